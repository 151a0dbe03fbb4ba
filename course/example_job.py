"""A job to run on any driver: `sluice run course/example_job.py --on spark`.

Sensors report once a millisecond, ten of them in turn. How many reports does each send in a second, and what do
they add up to?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refimpl.config import Config
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, TupleType
from refimpl.task import IterableReader, TumblingWindows

__all__ = ["job"]

NUM_REPORTS = 20_000
REPORT = TupleType(LONG, LONG, LONG)  # sensor, time in ms, value


def reports(subtask: int, parallelism: int) -> IterableReader:
    """The reports that one subtask of the source reads."""
    times_ms = range(subtask, NUM_REPORTS, parallelism)
    return IterableReader((time_ms % 10, time_ms, time_ms * 7 % 100) for time_ms in times_ms)


class Totals:
    """How many, and their sum."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, report: tuple[int, int, int], total: tuple[int, int]) -> tuple[int, int]:
        return total[0] + 1, total[1] + report[2]

    def get_result(self, total: tuple[int, int]) -> tuple[int, int]:
        return total


def job(sink: Callable[[Any], object]) -> StreamEnvironment:
    """The job; `sink` gets `(sensor, start_ms, end_ms, (reports, sum))` for each sensor and second."""
    environment = StreamEnvironment(Config(num_buffers=256), parallelism=2)
    (
        environment.source(reports, type=REPORT, name="reports")
        .assign_timestamps(lambda report: report[1], max_out_of_orderness_ms=0)
        .key_by(lambda report: report[0])
        .window(TumblingWindows(1000))
        .aggregate(Totals(), name="totals")
        .sink(sink)
    )
    return environment
