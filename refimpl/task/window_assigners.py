"""Which windows a record belongs to: by its event time, or by the time at which it arrives.

tumbling   side by side: each record in one
sliding    one begins every `slide_ms`: each record in several, or in none where the slide is longer than the size
session    from a record until nothing has come for `gap_ms`: they grow together while records come
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from refimpl.errors import LocalUsageError
from refimpl.records.elements import MAX_WATERMARK
from refimpl.records.types import LONG, TupleType

__all__ = [
    "TIME_WINDOW",
    "ProcessingTimeSessionWindows",
    "SessionWindows",
    "SlidingProcessingTimeWindows",
    "SlidingWindows",
    "TimeWindow",
    "TumblingProcessingTimeWindows",
    "TumblingWindows",
    "WindowAssigner",
]


class TimeWindow(NamedTuple):
    """Times from `start_ms` up to but not including `end_ms`.

    Flink:   TimeWindow (streaming.api.windowing.windows), 1.11.4
    """

    start_ms: int
    end_ms: int

    @property
    def max_timestamp(self) -> int:
        """The last ms that belongs to the window: it fires when the watermark reaches this.

        Differs: event time ends with the last long. Flink's sum wraps around, and the window counts as complete.
        """
        return min(self.end_ms - 1, MAX_WATERMARK.timestamp)

    def touches(self, other: TimeWindow) -> bool:
        """Whether no time lies between the two; one may end where the other begins."""
        return self.start_ms <= other.end_ms and other.start_ms <= self.end_ms

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start_ms, other.start_ms), max(self.end_ms, other.end_ms))


class TimeWindowType(TupleType):
    """Start and end, as two longs.

    Flink:   TimeWindow.Serializer (streaming.api.windowing.windows), 1.11.4
    """

    def __init__(self) -> None:
        super().__init__(LONG, LONG)
        self.name = "time window"

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        window, position = super().deserialize(source, position)
        return TimeWindow(*cast("tuple[int, int]", window)), position


TIME_WINDOW = TimeWindowType()


class WindowAssigner(Protocol):
    """What puts a record into windows.

    Flink:   WindowAssigner, MergingWindowAssigner (streaming.api.windowing.assigners), 1.11.4
    """

    is_merging: bool
    """Whether windows of one key that touch become one."""

    is_event_time: bool = True
    """Whether `assign` is asked with event times; else with the processing time at which a record comes."""

    def assign(self, timestamp: int, value: Any = None) -> Sequence[TimeWindow]:
        """The windows of a record with this time (ms) and value; maybe none."""


class TumblingWindows:
    """Windows of `size_ms`, side by side, one of them starting at `offset_ms`.

    A day that begins at midnight in UTC+8 has an offset of -8 hours.

    Flink:   TumblingEventTimeWindows (streaming.api.windowing.assigners), 1.11.4
    Differs: times before 1970 are rounded down too; Java's remainder rounds them up (FLINK-26334).
    """

    is_merging = False
    is_event_time = True

    def __init__(self, size_ms: int, offset_ms: int = 0) -> None:
        if size_ms < 1 or abs(offset_ms) >= size_ms:
            raise LocalUsageError(
                f"a window of {size_ms} ms, offset {offset_ms} ms: the size must be at least 1 "
                f"and the offset smaller than the size, forwards or backwards"
            )
        self.size_ms = size_ms
        self.offset_ms = offset_ms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.offset_ms})"

    def assign(self, timestamp: int, value: Any = None) -> Sequence[TimeWindow]:
        """The one window that `timestamp` (ms) falls into."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return (TimeWindow(start, start + self.size_ms),)


class SlidingWindows:
    """Windows of `size_ms`, one beginning every `slide_ms`, one of them at `offset_ms`.

    The size need not be a multiple of the slide. If it is smaller, times between two windows belong to none.

    Flink:   SlidingEventTimeWindows (streaming.api.windowing.assigners), 1.11.4
    Differs: times before 1970 are rounded down too, as for `TumblingWindows`.
    """

    is_merging = False
    is_event_time = True

    def __init__(self, size_ms: int, slide_ms: int, offset_ms: int = 0) -> None:
        if size_ms < 1 or slide_ms < 1 or abs(offset_ms) >= slide_ms:
            raise LocalUsageError(
                f"windows of {size_ms} ms every {slide_ms} ms, offset {offset_ms} ms: size and slide must be at "
                f"least 1 and the offset smaller than the slide, forwards or backwards"
            )
        self.size_ms = size_ms
        self.slide_ms = slide_ms
        self.offset_ms = offset_ms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.slide_ms}, {self.offset_ms})"

    def assign(self, timestamp: int, value: Any = None) -> Sequence[TimeWindow]:
        """The windows that hold `timestamp` (ms), the one that begins last first."""
        last = timestamp - (timestamp - self.offset_ms) % self.slide_ms
        starts = range(last, timestamp - self.size_ms, -self.slide_ms)
        return [TimeWindow(start, start + self.size_ms) for start in starts]


class SessionWindows:
    """Windows that last from a record until `gap_ms` have passed without another one of its key.

    The gap may depend on the record: then it is a function of the value.

    Flink:   EventTimeSessionWindows, DynamicEventTimeSessionWindows (streaming.api.windowing.assigners), 1.11.4
    """

    is_merging = True
    is_event_time = True

    def __init__(self, gap_ms: int | Callable[[Any], int]) -> None:
        self.gap_ms = gap_ms
        if not callable(gap_ms):
            _check_gap(gap_ms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gap_ms})"

    def assign(self, timestamp: int, value: Any = None) -> Sequence[TimeWindow]:
        """The window that the record would have if it were alone.

        Raises:
            LocalUsageError: the gap of this value is no gap.
        """
        gap = self.gap_ms
        if callable(gap):
            gap = gap(value)
            _check_gap(gap)
        return (TimeWindow(timestamp, timestamp + gap),)


class TumblingProcessingTimeWindows(TumblingWindows):
    """The same by the time at which records arrive: what they hold depends on how fast the job runs.

    Those that are open when input ends give no result.

    Flink:   TumblingProcessingTimeWindows (streaming.api.windowing.assigners), 1.11.4
    Differs: as `TumblingWindows`.
    """

    is_event_time = False


class SlidingProcessingTimeWindows(SlidingWindows):
    """The same by the time at which records arrive, as `TumblingProcessingTimeWindows`.

    Flink:   SlidingProcessingTimeWindows (streaming.api.windowing.assigners), 1.11.4
    Differs: as `SlidingWindows`.
    """

    is_event_time = False


class ProcessingTimeSessionWindows(SessionWindows):
    """The same by the time at which records arrive, as `TumblingProcessingTimeWindows`.

    Flink:   ProcessingTimeSessionWindows, DynamicProcessingTimeSessionWindows, 1.11.4
    """

    is_event_time = False


def _check_gap(gap_ms: int) -> None:
    if not isinstance(gap_ms, int) or isinstance(gap_ms, bool) or gap_ms < 1:
        raise LocalUsageError(f"a session gap of {gap_ms!r} ms is no gap; use 1 or more")
