"""The job of the demo and of the lessons: departures and delays per origin and hour of event time.

    flights → timestamps → departure → flown → (by origin) → hourly → results

It is written once, here, so that a lesson, the demo and a test run the same job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from course.data.oracle import HOUR_MS
from refimpl.config import Config
from refimpl.job import StreamEnvironment, WatermarkStrategy
from refimpl.records import ANY, LONG, STRING, Column, Field, RecordBatch, TupleType, TypeSerializer, Vectorized
from refimpl.task import ReaderFactory, TumblingWindows

__all__ = ["LARGEST_DISORDER_MS", "MAP_OPERATOR", "DelayTotals", "departure", "flights_job", "to_rows"]

LARGEST_DISORDER_MS = 24 * HOUR_MS
"""No flight of 2013 is more than 1300 minutes out of order: with this bound no record is late."""

NUM_KEY_GROUPS = 256
"""Flink's default for a small job is 128; there EWR, JFK and LGA all go to the second of two subtasks."""

MAP_OPERATOR = "departure"
"""The operator whose function exercise 0.1 writes."""

_DEPARTURE = TupleType(STRING, LONG)

_FLIGHTS_PER_WATERMARK = 4096
"""As many as a reader hands on in a batch: a watermark in the middle would cut it."""


def departure(flight: dict[str, Any]) -> tuple[str, int]:
    """Where a flight left from, and how many minutes late (below zero: early)."""
    return flight["origin"], flight["dep_delay_minutes"]


def _departures(flights: RecordBatch) -> tuple[Column, Column]:
    """What `departure` does, for many flights."""
    return flights["origin"], flights["dep_delay_minutes"]


def _have_flown(departures: RecordBatch) -> Column:
    """Which of many departures have a delay."""
    import numpy as np

    return ~np.ma.getmaskarray(departures[1])


class DelayTotals:
    """How many departures, and the sum of their delays in minutes."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[str, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def accumulate_groups(self, batch: RecordBatch, starts: Column) -> list[tuple[int, int]]:
        import numpy as np  # where it is missing, as in a browser, no records travel in batches

        counts = np.diff(starts, append=len(batch))
        sums = np.add.reduceat(batch[1].astype(np.int64), starts)
        return list(zip(counts.tolist(), sums.tolist(), strict=True))

    def merge(self, accumulator: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


def flights_job(
    make_reader: ReaderFactory,
    on_result: Callable[[Any], object],
    config: Config | None = None,
    parallelism: int = 2,
    function: Callable[[dict[str, Any]], object] = departure,
    strategy: WatermarkStrategy | None = None,
) -> StreamEnvironment:
    """The job, ready to be run; `on_result` gets `(origin, start_ms, end_ms, (departures, delay sum))`.

    `function` is what the `departure` operator calls: the reference one, or a learner's. With a `strategy` watermarks
    come now and then, as it has them; without one they follow so many records.
    """
    config = config or Config(object_reuse=True)
    if config.max_parallelism is None:
        config = dataclasses.replace(config, max_parallelism=NUM_KEY_GROUPS)
    environment = StreamEnvironment(config, parallelism)
    # Any value may come out of a learner's function; ours is known, travels without tags, and does many at once.
    departure_type: TypeSerializer = ANY
    mapped, every = function, 64
    if function is departure:
        departure_type, mapped, every = _DEPARTURE, Vectorized(departure, _departures), _FLIGHTS_PER_WATERMARK
    is_flown = Vectorized(lambda flown: flown[1] is not None, _have_flown)
    flights = environment.source(make_reader, name="flights")
    if strategy is None:
        timed = flights.assign_timestamps(Field("event_time_ms"), LARGEST_DISORDER_MS, every=every)
    else:
        timed = flights.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Field("event_time_ms")))
    (
        timed.map(mapped, name=MAP_OPERATOR, type=departure_type)
        .filter(is_flown, name="flown")
        .key_by(0)
        .window(TumblingWindows(HOUR_MS))
        .aggregate(DelayTotals(), name="hourly")
        .sink(on_result, name="results")
    )
    return environment


def to_rows(results: list[Any]) -> list[tuple[int, str, int, int, float]]:
    """Results of the job as the oracle's rows: start, origin, departures, delay sum, mean delay."""
    return [(start, origin, count, total, total / count) for origin, start, _end, (count, total) in results]
