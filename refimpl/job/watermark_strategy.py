"""How a stream says how far event time has come, in the words of the API.

strategy = (
    WatermarkStrategy.for_bounded_out_of_orderness(2_000)
    .with_timestamp_assigner(lambda row: row["time_ms"])
    .with_idleness(60_000)
)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.task.time_service import ProcessingTimeService
from refimpl.task.watermarks import BoundedOutOfOrderness, WatermarkGenerator, WatermarksWithIdleness

__all__ = ["WatermarkStrategy"]


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """What makes the generator of each subtask, and where a record's event time comes from.

    Each word returns another strategy. Watermarks are made by each subtask from what it has seen itself: behind a
    rebalance one quiet subtask holds all back, unless it is idle.

    Flink:   WatermarkStrategy (api.common.eventtime), 1.11.4
    """

    make_generator: Callable[[], WatermarkGenerator]
    timestamp_of: Callable[[Any], int] | None = None
    idle_timeout_ms: int | None = None

    @staticmethod
    def for_bounded_out_of_orderness(bound_ms: int) -> WatermarkStrategy:
        """Records come up to `bound_ms` later than a record of a larger time.

        Raises:
            LocalUsageError: the bound is none.
        """
        BoundedOutOfOrderness(bound_ms)  # what cannot be is refused now
        return WatermarkStrategy(partial(BoundedOutOfOrderness, bound_ms))

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Times never fall."""
        return WatermarkStrategy.for_bounded_out_of_orderness(0)

    @staticmethod
    def for_generator(make_generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """A generator of your own; each subtask makes one."""
        return WatermarkStrategy(make_generator)

    def with_timestamp_assigner(self, timestamp_of: Callable[[Any], int]) -> WatermarkStrategy:
        """The event time of a value, in ms; without it records keep the time they have."""
        return replace(self, timestamp_of=timestamp_of)

    def with_idleness(self, timeout_ms: int) -> WatermarkStrategy:
        """A subtask without records for more than `timeout_ms` of processing time is not waited for.

        It is found out by the periodic probes, so never if `auto_watermark_interval_ms` is 0.

        Raises:
            LocalUsageError: the timeout is none.
        """
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < 1:
            raise LocalUsageError(f"an idle timeout of {timeout_ms!r} ms is none; use a whole number, 1 or more")
        return replace(self, idle_timeout_ms=timeout_ms)

    def create_generator(self, time: ProcessingTimeService) -> WatermarkGenerator:
        """The generator of one subtask, whose processing time is `time`."""
        generator = self.make_generator()
        if self.idle_timeout_ms is None:
            return generator
        return WatermarksWithIdleness(generator, self.idle_timeout_ms, time)
