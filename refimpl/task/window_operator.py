"""Records of the same key and the same stretch of time, put together.

A window is over when the watermark passes its end and what lateness it allows, however late that is by the clock. A
record all of whose windows are over is late: it goes to the side output `late`, and is counted. In processing time
a record belongs to the windows of the moment it arrives at, so none is late.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar

from refimpl.errors import USER_CODE_RAISES, LocalUsageError
from refimpl.records.any_type import ANY
from refimpl.records.elements import MAX_WATERMARK, StreamRecord, Watermark
from refimpl.records.types import LONG, TypeSerializer
from refimpl.records.vectorized import for_one
from refimpl.state.keyed_state import KeyedStateBackend, StateTable
from refimpl.state.state_types import VOID
from refimpl.state.subtask_state import OperatorStates
from refimpl.task.merging_windows import MERGING_WINDOWS, Merge, MergingWindows
from refimpl.task.operators import Operator, OperatorContext
from refimpl.task.outputs import Output, OutputTag
from refimpl.task.time_service import ProcessingTimers
from refimpl.task.timers import TimerQueue
from refimpl.task.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger, TriggerContext, TriggerResult
from refimpl.task.window_assigners import TIME_WINDOW, TimeWindow, WindowAssigner

__all__ = ["LATE", "AggregateFunction", "WindowOperator"]

LATE = OutputTag("late")
"""The side output of records that came after their windows were over."""

A = TypeVar("A")


class AggregateFunction(Protocol, Generic[A]):
    """Folds values into an accumulator of constant size. Windows that grow together need `merge` of it as well.

    A checkpoint writes accumulators with the serializer `accumulator_type`, if the class has one, else as `ANY`.

    Flink:   AggregateFunction (api.common.functions), 1.11.4
    """

    def create_accumulator(self) -> A: ...

    def add(self, value: Any, accumulator: A) -> A: ...

    def get_result(self, accumulator: A) -> object: ...


class WindowOperator(Operator):
    """Aggregates the values of each key and window; emits `(key, start_ms, end_ms, result)`.

    The result's event time is the last ms of its window. With `allowed_lateness_ms` a window stays for so long after
    its end; a record that comes meanwhile makes it fire again, with all its values: an update, not an addition.

    Raises:
        LocalUsageError: windows that grow together, and an aggregate without `merge`; a lateness that is none.

    Flink:   WindowOperator (streaming.runtime.operators.windowing), 1.11.4
    Differs: a late record goes to the side output and is counted; Flink does one of both. No evictors; state is one
             accumulator. Windows of processing time have no lateness, which is refused; Flink ignores it.
    """

    states: OperatorStates

    def __init__(
        self,
        key_of: Callable[[object], Hashable],
        windows: WindowAssigner,
        aggregate: AggregateFunction[Any],
        trigger: Trigger | None = None,
        allowed_lateness_ms: int = 0,
        key_type: TypeSerializer | None = None,
    ) -> None:
        if allowed_lateness_ms < 0:
            raise LocalUsageError(f"a lateness of {allowed_lateness_ms} ms is none; use 0 or more")
        self.is_event_time = getattr(windows, "is_event_time", True)
        if allowed_lateness_ms and not self.is_event_time:
            raise LocalUsageError(f"{windows!r} have no late records: an allowed lateness would do nothing")
        self._merge_accumulators = getattr(aggregate, "merge", _cannot_merge)
        if windows.is_merging and self._merge_accumulators is _cannot_merge:
            kind = type(aggregate).__name__
            raise LocalUsageError(f"{windows!r} grow together: {kind} needs merge(accumulator, other) for them")
        self.key_of = key_of
        self.windows = windows
        self.aggregate = aggregate
        self.trigger = trigger or (EventTimeTrigger() if self.is_event_time else ProcessingTimeTrigger())
        self.allowed_lateness_ms = allowed_lateness_ms
        self.timers = TimerQueue()
        self.states = OperatorStates(KeyedStateBackend(key_type or ANY), {"event": (self.timers, TIME_WINDOW)})
        accumulator_type, tables = getattr(aggregate, "accumulator_type", ANY), self.states.keyed
        self.accumulators: StateTable[Any] = tables.table("window-contents", accumulator_type, TIME_WINDOW)
        self.num_late = 0
        self._key_of_one = for_one(key_of)
        self._merging: StateTable[MergingWindows] = tables.table("merging-windows", MERGING_WINDOWS, VOID)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.processing_timers = ProcessingTimers(context.time, self._on_processing_timer)
        self.states.timers["processing"] = self.processing_timers, TIME_WINDOW
        numbers = self.states.keyed.table("trigger", LONG, TIME_WINDOW)
        self._context = TriggerContext(self.timers, self.processing_timers, numbers)

    @property
    def num_open_windows(self) -> int:
        """Accumulators held now."""
        return len(self.accumulators)

    def process(self, record: StreamRecord) -> None:
        time = record.timestamp if self.is_event_time else self.context.time.now_ms
        if time is None:
            missing = LocalUsageError("a record without event time cannot be put into a window")
            raise self.fail(record.value, missing)
        try:
            key = self._key_of_one(record.value)
            windows = self.windows.assign(time, record.value)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        self._context.current_watermark = self.current_watermark
        self._context.key = key
        is_in_one = False
        for window in windows:
            is_in_one |= self._put(key, window, record)
        # A record that is in no window may also lie between two.
        is_behind = self.is_event_time and time + self.allowed_lateness_ms <= self.current_watermark
        if not is_in_one and is_behind:
            self.num_late += 1
            self.output.collect_side(LATE, record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = self._context.current_watermark = watermark.timestamp
        for timestamp, key, window in self.timers.advance(watermark.timestamp):
            self._on_timer(timestamp, key, window, is_event_time=True)
        self.output.emit_watermark(watermark)

    # -- a record ----------------------------------------------------------------------------------

    def _put(self, key: Hashable, assigned: TimeWindow, record: StreamRecord) -> bool:
        """Put a record into a window it was assigned to; false if that is over."""
        window = state_window = assigned
        if self.windows.is_merging:
            window, state_window = self._merged(key, assigned)
        if self._is_over(window):
            self._retire(key, window)
            return False
        try:
            found = self.accumulators.find(key, state_window)
            accumulator = found[0] if found else self.aggregate.create_accumulator()
            self.accumulators.put(key, state_window, self.aggregate.add(record.value, accumulator))
            self._context.window = window
            result = self.trigger.on_element(record, self._context)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        self._act(result, key, window, state_window)
        self._own_timers.register(self._cleanup_time(window), key, window)
        return True

    def _merged(self, key: Hashable, assigned: TimeWindow) -> tuple[TimeWindow, TimeWindow]:
        """The window that `assigned` has grown together with, and where its accumulator lies."""
        windows = self._merging.get(key)
        if windows is None:
            windows = MergingWindows()
            self._merging.put(key, None, windows)
        window, merge = windows.add(assigned)
        if merge is not None:
            self._merge(key, merge)
        state_window = windows.state_window(window)
        assert state_window is not None, f"{window} has just been made"
        return window, state_window

    def _state_window(self, key: Hashable, window: TimeWindow) -> TimeWindow | None:
        """Where the accumulator of an open window lies."""
        if not self.windows.is_merging:
            return window
        windows = self._merging.get(key)
        return None if windows is None else windows.state_window(window)

    def _merge(self, key: Hashable, merge: Merge) -> None:
        try:
            self._context.window = merge.result
            self.trigger.on_merge(merge.merged, self._context)
            for window in merge.merged:
                self._context.window = window
                self.trigger.clear(self._context)
                self._own_timers.delete(self._cleanup_time(window), key, window)
            states = [merge.state_window, *merge.other_states]
            held = [found[0] for state in states if (found := self.accumulators.find(key, state))]
            for state in states:
                self.accumulators.remove(key, state)
            if held:  # what was purged holds nothing
                self.accumulators.put(key, merge.state_window, reduce(self._merge_accumulators, held))
        except USER_CODE_RAISES as error:
            raise self.fail((key, merge.result), error) from error

    def _retire(self, key: Hashable, window: TimeWindow) -> None:
        """Forget a window that is over, where windows grow together."""
        windows = self._merging.get(key)
        if windows is not None:
            windows.retire(window)
            if not len(windows):
                self._merging.remove(key)

    # -- a result ----------------------------------------------------------------------------------

    def _on_processing_timer(self, timestamp: int, key: Hashable, window: Hashable) -> None:
        self._context.current_watermark = self.current_watermark
        self._on_timer(timestamp, key, window, is_event_time=False)

    def _on_timer(self, timestamp: int, key: Hashable, window: Hashable, is_event_time: bool) -> None:
        assert isinstance(window, TimeWindow), f"a timer for {window!r} is no window's"
        self._context.key = key
        state_window = self._state_window(key, window)
        if state_window is None:
            return  # a trigger has left a timer of a window that is over
        self._context.window = window
        try:
            ask = self.trigger.on_event_time if is_event_time else self.trigger.on_processing_time
            result = ask(timestamp, self._context)
        except USER_CODE_RAISES as error:
            raise self.fail((key, window), error) from error
        self._act(result, key, window, state_window)
        if is_event_time is self.is_event_time and timestamp == self._cleanup_time(window):
            self._clean_up(key, window, state_window)

    def _act(self, result: TriggerResult, key: Hashable, window: TimeWindow, state_window: TimeWindow) -> None:
        if result.is_fire:
            for accumulator in self.accumulators.find(key, state_window):  # none if nothing came since it began anew
                self._emit(key, window, accumulator)
        if result.is_purge:
            self.accumulators.remove(key, state_window)

    def _emit(self, key: Hashable, window: TimeWindow, accumulator: Any) -> None:
        try:
            result = self.aggregate.get_result(accumulator)
        except USER_CODE_RAISES as error:
            raise self.fail((key, window), error) from error
        self.output.collect(StreamRecord((key, *window, result), window.max_timestamp))

    def _clean_up(self, key: Hashable, window: TimeWindow, state_window: TimeWindow) -> None:
        self.accumulators.remove(key, state_window)
        self.trigger.clear(self._context)
        self._retire(key, window)

    @property
    def _own_timers(self) -> TimerQueue | ProcessingTimers:
        """Those in the time of the windows."""
        return self.timers if self.is_event_time else self.processing_timers

    def _is_over(self, window: TimeWindow) -> bool:
        return self.is_event_time and self._cleanup_time(window) <= self.current_watermark

    def _cleanup_time(self, window: TimeWindow) -> int:
        """When a window is over: no later than time itself."""
        return min(window.max_timestamp + self.allowed_lateness_ms, MAX_WATERMARK.timestamp)


def _cannot_merge(one: Any, other: Any) -> Any:
    raise AssertionError(f"{one} and {other} are of windows that do not grow together")
