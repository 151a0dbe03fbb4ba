"""Data section of lesson 13: which flights come too late, by the bound.

`ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.data.comparison import rows_of
from course.data.flights import ARRIVAL_ORDER
from course.data.oracle import HOUR_MS
from course.data.watermarks import MINUTE_MS, late_in_the_engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BOUNDS_MIN", "ask_late", "run_late"]

BOUNDS_MIN = (0, 30, 60, 120)


def ask_late(flights: DataFrame) -> dict[str, int]:
    """Flights whose hour had ended a whole bound before the newest flight that came before them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    before = Window.orderBy(*ARRIVAL_ORDER).rowsBetween(Window.unboundedPreceding, -1)
    newest = F.max("event_time_ms").over(before)
    hour_end = F.expr(f"event_time_ms div {HOUR_MS} * {HOUR_MS} + {HOUR_MS}")
    behind = flights.select((newest - hour_end).alias("behind_ms"))
    counts = [F.count_if(F.col("behind_ms") >= bound * MINUTE_MS) for bound in BOUNDS_MIN]
    (found,) = rows_of(behind.agg(*counts))
    return {_case(bound): late for bound, late in zip(BOUNDS_MIN, found, strict=True)}


def run_late(flights: DataFrame) -> dict[str, int]:
    """What the windows of the engine leave out, when a watermark follows each record."""
    rows = [row.asDict() for row in flights.orderBy(*ARRIVAL_ORDER).collect()]
    return {_case(bound): late_in_the_engine(rows, bound) for bound in BOUNDS_MIN}


def _case(bound_min: int) -> str:
    return f"bound {bound_min} min"
