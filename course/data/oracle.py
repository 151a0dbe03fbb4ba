"""Spark's own answer to the questions that the engine answers: for the demo, and for every exercise.

The oracle is a *batch* query. Spark's streaming watermark is no oracle: what it drops depends on the batch size, see
`course.data.watermarks`. `expected` gives the answer for an exercise by its number, `compare` says what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from course.data.comparison import Comparison, Shape, compare_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "HOUR_MS",
    "ORACLES",
    "Comparison",
    "Departures",
    "Oracle",
    "compare",
    "cuts",
    "departures_per_window",
    "expected",
    "serialized_results",
]

HOUR_MS = 3_600_000
LENGTH_BYTES = 4


class Departures(NamedTuple):
    """What left one airport in one window `[window_start_ms, window_start_ms + size)` of event time."""

    window_start_ms: int
    origin: str
    departures: int
    delay_sum_minutes: int
    delay_mean_minutes: float


def departures_per_window(
    frame: DataFrame, window_ms: int = HOUR_MS, *, counts_early_as_0: bool = False
) -> list[Departures]:
    """Ask Spark for departures, sum and mean of delays per origin and tumbling window, sorted.

    Raises:
        ValueError: `window_ms` is less than 1.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    if window_ms < 1:
        raise ValueError(f"window_ms must be at least 1, got {window_ms}")
    event_time = F.col("event_time_ms")
    start = (event_time - F.pmod(event_time, F.lit(window_ms))).alias("window_start_ms")
    delay = F.col("dep_delay_minutes")
    if counts_early_as_0:
        delay = F.greatest(delay, F.lit(0))
    answer = frame.groupBy(start, "origin").agg(F.count("*"), F.sum(delay), F.avg(delay))
    return sorted(Departures(*row) for row in rows_of(answer))


class SerializedResults(NamedTuple):
    """How often a serializer gives each of its three answers, with buffers of one size."""

    segment_size: int
    full_record: int
    partial: int
    full_record_and_buffer: int


def serialized_results(frame: DataFrame, segment_sizes: Iterable[int] = (64, 1_024, 32_768)) -> list[SerializedResults]:
    """Ask Spark how often the records `id`, `size_bytes`, in order of `id`, meet the end of a buffer.

    No serializer is involved. With its length of 4 bytes a record lies from byte s to byte e of the stream. It is cut
    at each multiple of the buffer size strictly between them, and each such copy says PARTIAL. The last copy fills its
    buffer if e is a multiple, too.
    """
    from pyspark.sql import functions as F  # noqa: N812

    stream = on_the_stream(frame).persist()
    try:
        answers = []
        for size in segment_sizes:
            fills = F.count_if(F.pmod(F.col("end"), F.lit(size)) == 0)
            row = stream.agg(F.count("*"), F.sum(cuts(F.col("start"), F.col("end"), size)), fills).collect()[0]
            answers.append(SerializedResults(size, row[0] - row[2], row[1], row[2]))
        return answers
    finally:
        stream.unpersist()


def on_the_stream(frame: DataFrame) -> DataFrame:
    """`id`, `start` and `end`: where each record of `size_bytes` lies, its length of 4 bytes with it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    size = F.col("size_bytes").cast("bigint") + LENGTH_BYTES
    end = F.sum(size).over(Window.orderBy("id").rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return frame.select("id", end.alias("end"), (end - size).alias("start"))


def cuts(start: Column, end: Column, segment_size: int) -> Column:
    """Multiples of the buffer size strictly between two places of a stream, the first included if it is none."""
    from pyspark.sql import functions as F  # noqa: N812

    size = F.lit(segment_size).cast("bigint")
    return F.floor((end - 1) / size) - F.floor(start / size)


@dataclass(frozen=True, slots=True)
class Oracle:
    """What Spark is asked for an exercise: the data set, the question in words, and the query."""

    data: str
    question: str
    query: Callable[[DataFrame], list[Any]]
    shape: Shape


def compare(got: Iterable[tuple[int, str, int, int, float]], want: Iterable[Departures]) -> Comparison:
    """Compare two answers row by row, in any order; a row's key is its window and its origin.

    Counts and sums must be the same; means may differ by rounding (relative 1e-9).
    """
    return compare_rows((Departures(*row) for row in got), want, _DEPARTURES)


def expected(exercise: str, frame: DataFrame) -> list[Any]:
    """Spark's answer for an exercise, such as "3.1", or for the "demo".

    Raises:
        KeyError: there is no such exercise.
    """
    if exercise not in ORACLES:
        raise KeyError(f"there is no oracle for {exercise}; there are {', '.join(ORACLES)}")
    return ORACLES[exercise].query(frame)


def _show_key(row: tuple[Any, ...]) -> str:
    """Window and origin for people."""
    return f"{datetime.fromtimestamp(row[0] / 1000, UTC):%Y-%m-%d %H:%M}Z {row[1]}"


def _show_values(row: tuple[Any, ...]) -> str:
    return f"{row[2]} departures, {row[3]} min in all, mean {row[4]:.3f}"


_DEPARTURES = Shape(Departures._fields, 2, _show_key, _show_values)

ORACLES = {
    "demo": Oracle("flights", "departures and delays per airport and hour", departures_per_window, _DEPARTURES),
    "0.1": Oracle(
        "flights", "the same, where a flight that left early counts as 0 minutes late",
        lambda frame: departures_per_window(frame, counts_early_as_0=True), _DEPARTURES,
    ),
    "3.1": Oracle(
        "documents", "how often a copy ends the record, the buffer, or both", serialized_results,
        Shape(SerializedResults._fields, 1),
    ),
}  # fmt: skip
