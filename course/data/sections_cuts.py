"""Data section of lesson 14: what a job has counted that crashed in between.

`ask_…` is a Spark query and knows nothing of the engine, the others run the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from course.data.comparison import rows_of
from course.data.crashes import count_through_a_crash
from course.data.flights import ARRIVAL_ORDER
from refimpl.config import CheckpointingMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ask_departures", "count_and_crash", "note_surplus"]


def ask_departures(flights: DataFrame) -> dict[str, int]:
    """How many flights left each airport."""
    return {str(origin): int(count) for origin, count in rows_of(flights.groupBy("origin").count().orderBy("origin"))}


def count_and_crash(flights: DataFrame) -> dict[str, int]:
    """What the job has counted that crashed once, and went on from its newest checkpoint."""
    return count_through_a_crash(_origins(flights)).counts


def note_surplus(flights: DataFrame, measured: Mapping[str, Any]) -> tuple[str, ...]:
    """The same without alignment."""
    found = count_through_a_crash(_origins(flights), CheckpointingMode.AT_LEAST_ONCE)
    total = sum(measured.values())
    return (f"at least once: {found.total} flights, {found.total - total} of {total} counted twice",)


def _origins(flights: DataFrame) -> list[str]:
    """Where each flight left from, in the order of their arrival."""
    return [row.origin for row in flights.orderBy(*ARRIVAL_ORDER).select("origin").collect()]
