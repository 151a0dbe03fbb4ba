"""Records of the same key and the same stretch of event time, put together.

A window is complete when the watermark passes its end, however late that is by the clock. A record
whose window is complete already is late: it goes to the side output `late`, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from refimpl.errors import USER_CODE_RAISES, LocalUsageError
from refimpl.records.elements import MAX_WATERMARK, StreamRecord, Watermark
from refimpl.records.vectorized import for_one
from refimpl.task.operators import Operator
from refimpl.task.outputs import OutputTag
from refimpl.task.state import EventTimeTimers, KeyedState

__all__ = ["LATE", "AggregateFunction", "TimeWindow", "TumblingWindows", "WindowOperator"]

LATE = OutputTag("late")
"""The side output of records that came after their window had fired."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Event times from `start_ms` up to but not including `end_ms`.

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


class TumblingWindows:
    """Windows of `size_ms`, side by side, one of them starting at `offset_ms`.

    A day that begins at midnight in UTC+8 has an offset of -8 hours.

    Flink:   TumblingEventTimeWindows (streaming.api.windowing.assigners), 1.11.4
    """

    def __init__(self, size_ms: int, offset_ms: int = 0) -> None:
        if size_ms < 1 or abs(offset_ms) >= size_ms:
            raise LocalUsageError(
                f"a window of {size_ms} ms, offset {offset_ms} ms: the size must be at least 1 "
                f"and the offset smaller than the size, forwards or backwards"
            )
        self.size_ms = size_ms
        self.offset_ms = offset_ms

    def assign(self, timestamp: int) -> TimeWindow:
        """The window `timestamp` (ms) falls into."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return TimeWindow(start, start + self.size_ms)


class AggregateFunction(Protocol, Generic[A]):
    """Folds values into an accumulator of constant size.

    Flink:   AggregateFunction (api.common.functions), 1.11.4
    """

    def create_accumulator(self) -> A: ...

    def add(self, value: Any, accumulator: A) -> A: ...

    def get_result(self, accumulator: A) -> object: ...


class WindowOperator(Operator):
    """Aggregates the values of each key and window; emits `(key, start_ms, end_ms, result)`.

    The result's event time is the last ms of its window.

    Flink:   WindowOperator with an EventTimeTrigger (streaming.runtime.operators.windowing), 1.11.4
    Differs: no allowed lateness, triggers or evictors; state is one accumulator.
    """

    def __init__(
        self,
        key_of: Callable[[object], Hashable],
        windows: TumblingWindows,
        aggregate: AggregateFunction[Any],
    ) -> None:
        self.key_of = key_of
        self.windows = windows
        self.aggregate = aggregate
        self.accumulators: KeyedState[Any] = KeyedState()  # by key and start: windows of one size differ in no more
        self.timers = EventTimeTimers()
        self.num_late = 0
        self._key_of_one = for_one(key_of)

    @property
    def num_open_windows(self) -> int:
        """Accumulators held now."""
        return len(self.accumulators)

    def process(self, record: StreamRecord) -> None:
        if record.timestamp is None:
            missing = LocalUsageError("a record without event time cannot be put into a window")
            raise self.fail(record.value, missing)
        window = self.windows.assign(record.timestamp)
        if window.max_timestamp <= self.current_watermark:
            self.num_late += 1
            self.output.collect_side(LATE, record)
            return
        try:
            key = self._key_of_one(record.value)
            accumulator = self.accumulators.get(key, window.start_ms)
            if accumulator is None:
                accumulator = self.aggregate.create_accumulator()
                self.timers.register(window.max_timestamp, key, window)
            self.accumulators.put(key, window.start_ms, self.aggregate.add(record.value, accumulator))
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        for _, key, window in self.timers.advance(watermark.timestamp):
            assert isinstance(window, TimeWindow), f"a timer for {window!r} is no window's"
            accumulator = self.accumulators.remove(key, window.start_ms)
            try:
                result = self.aggregate.get_result(accumulator)
            except USER_CODE_RAISES as error:
                raise self.fail((key, window), error) from error
            value = (key, window.start_ms, window.end_ms, result)
            self.output.collect(StreamRecord(value, window.max_timestamp))
        self.output.emit_watermark(watermark)
