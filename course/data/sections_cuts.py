"""Data sections of lessons 14 and 15: what a job has counted that crashed in between, and what was under way then.

`ask_…` is a Spark query and knows nothing of the engine, the others run the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from course.data.comparison import rows_of
from course.data.crashes import count_through_a_crash
from course.data.flights import ARRIVAL_ORDER
from course.data.in_flight import Waited, checkpoint_what_waits
from refimpl.config import CheckpointingMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ask_departures", "ask_in_flight", "copy_in_flight", "count_and_crash", "note_put_back", "note_surplus"]

_AROUND_BYTES = 6  # a length of four bytes, a kind of one, and the number of letters in one


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


def ask_in_flight(flights: DataFrame) -> dict[str, int]:
    """How many bytes the flight numbers of each airport are, as records of text that wait in a channel."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    size = F.length(F.concat("carrier", F.col("flight").cast("string"))) + _AROUND_BYTES
    return {
        str(origin): int(num) for origin, num in rows_of(flights.groupBy("origin").agg(F.sum(size)).orderBy("origin"))
    }


def copy_in_flight(flights: DataFrame) -> dict[str, int]:
    """How many bytes of each airport's channel an unaligned checkpoint holds, if all waited when it was taken."""
    return _waited(flights).copied_bytes


def note_put_back(flights: DataFrame, measured: Mapping[str, Any]) -> tuple[str, ...]:
    """What the job has got of them after a crash."""
    waited = _waited(flights)
    num, distinct = len(waited.arrived), flights.count()
    return (
        f"{sum(measured.values())} B in the checkpoint; after a crash {num} of {distinct} flights arrive, each once",
    )


def _waited(flights: DataFrame) -> Waited:
    numbers: dict[str, list[str]] = {}
    for row in flights.orderBy(*ARRIVAL_ORDER).select("origin", "carrier", "flight").collect():
        numbers.setdefault(row.origin, []).append(f"{row.carrier}{row.flight}")
    return checkpoint_what_waits(dict(sorted(numbers.items())))
