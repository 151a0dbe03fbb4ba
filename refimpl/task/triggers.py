"""When a window gives its result: once, several times, and whether it begins anew after that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Protocol

from refimpl.errors import LocalUsageError
from refimpl.records.elements import StreamRecord
from refimpl.state.keyed_state import StateTable
from refimpl.task.time_service import ProcessingTimers
from refimpl.task.timers import TimerQueue
from refimpl.task.window_assigners import TimeWindow

__all__ = [
    "ContinuousEventTimeTrigger",
    "CountTrigger",
    "EventTimeTrigger",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
]


class TriggerResult(Enum):
    """What is to be done with a window.

    Flink:   TriggerResult (streaming.api.windowing.triggers), 1.11.4
    """

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    def __init__(self, is_fire: bool, is_purge: bool) -> None:
        self.is_fire = is_fire
        self.is_purge = is_purge


class TriggerContext:
    """What a trigger may ask and do for one key and one window: timers, and a number to remember.

    Flink:   Trigger.TriggerContext (streaming.api.windowing.triggers), 1.11.4
    """

    def __init__(self, timers: TimerQueue, processing_timers: ProcessingTimers, numbers: StateTable[int]) -> None:
        self.current_watermark = 0
        self.key: Hashable = None
        self.window = TimeWindow(0, 0)
        self._timers = timers
        self._processing_timers = processing_timers
        self._numbers = numbers

    def register_timer(self, timestamp: int) -> None:
        """Ask again when the watermark reaches `timestamp` (ms)."""
        self._timers.register(timestamp, self.key, self.window)

    def delete_timer(self, timestamp: int) -> None:
        """Do not ask at `timestamp` (ms); nothing happens if there is no such timer."""
        self._timers.delete(timestamp, self.key, self.window)

    @property
    def current_processing_time(self) -> int:
        """In ms, as the driver passed it in last."""
        return self._processing_timers.now_ms

    def register_processing_timer(self, timestamp: int) -> None:
        """Ask again when processing time reaches `timestamp` (ms)."""
        self._processing_timers.register(timestamp, self.key, self.window)

    def delete_processing_timer(self, timestamp: int) -> None:
        """Do not ask at `timestamp` (ms) of processing time; nothing happens if there is no such timer."""
        self._processing_timers.delete(timestamp, self.key, self.window)

    @property
    def number(self) -> int | None:
        """What the trigger remembers for this window, if anything."""
        return self._numbers.get(self.key, self.window)

    def remember(self, number: int | None) -> None:
        """Remember this number for this window; `None` forgets it."""
        if number is None:
            self._numbers.remove(self.key, self.window)
        else:
            self._numbers.put(self.key, self.window, number)

    def merge_numbers(self, merged: Sequence[TimeWindow], merge: Callable[[Sequence[int]], int]) -> None:
        """Remember one number for what several windows remembered that have become this one."""
        numbers = [self._numbers.remove(self.key, each) for each in merged]
        known = [number for number in numbers if number is not None]
        self.remember(merge(known) if known else None)


class Trigger(Protocol):
    """What decides when a window fires. It keeps nothing itself: one serves all keys and windows.

    Flink:   Trigger (streaming.api.windowing.triggers), 1.11.4
    """

    def on_element(self, record: StreamRecord, context: TriggerContext) -> TriggerResult:
        """A record has been put into the window."""

    def on_event_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        """The watermark has reached a timer of the window."""

    def on_processing_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        """Processing time has reached a timer of the window; most triggers set none."""
        return TriggerResult.CONTINUE

    def on_merge(self, merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        """The window has been made of these."""

    def clear(self, context: TriggerContext) -> None:
        """The window is over, or has become part of another: forget all that belongs to it."""


class EventTimeTrigger(Trigger):
    """Fires when the watermark has passed the window, and for each record that still comes after that.

    Flink:   EventTimeTrigger (streaming.api.windowing.triggers), 1.11.4
    """

    def on_element(self, _record: StreamRecord, context: TriggerContext) -> TriggerResult:
        last = context.window.max_timestamp
        if last <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_timer(last)
        return TriggerResult.CONTINUE

    def on_event_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if timestamp == context.window.max_timestamp else TriggerResult.CONTINUE

    def on_merge(self, _merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        if context.window.max_timestamp > context.current_watermark:
            context.register_timer(context.window.max_timestamp)

    def clear(self, context: TriggerContext) -> None:
        context.delete_timer(context.window.max_timestamp)


class ProcessingTimeTrigger(Trigger):
    """Fires when processing time has passed the window.

    Flink:   ProcessingTimeTrigger (streaming.api.windowing.triggers), 1.11.4
    """

    def on_element(self, _record: StreamRecord, context: TriggerContext) -> TriggerResult:
        context.register_processing_timer(context.window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(self, _timestamp: int, _context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, _timestamp: int, _context: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_merge(self, _merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        if context.window.max_timestamp > context.current_processing_time:
            context.register_processing_timer(context.window.max_timestamp)

    def clear(self, context: TriggerContext) -> None:
        context.delete_processing_timer(context.window.max_timestamp)


class ContinuousEventTimeTrigger(EventTimeTrigger):
    """Fires at each multiple of `interval_ms` that the watermark passes, and at the end of the window.

    Flink:   ContinuousEventTimeTrigger (streaming.api.windowing.triggers), 1.11.4
    Differs: times before 1970 are rounded down too, as for `TumblingWindows`.
    """

    def __init__(self, interval_ms: int) -> None:
        if interval_ms < 1:
            raise LocalUsageError(f"a trigger every {interval_ms} ms: the interval must be at least 1")
        self.interval_ms = interval_ms

    def on_element(self, record: StreamRecord, context: TriggerContext) -> TriggerResult:
        result = super().on_element(record, context)
        if not result.is_fire and context.number is None:
            assert record.timestamp is not None, f"{record} is in a window without a time"
            self._fire_next_at(record.timestamp - record.timestamp % self.interval_ms + self.interval_ms, context)
        return result

    def on_event_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        if timestamp == context.window.max_timestamp:
            return TriggerResult.FIRE
        if timestamp != context.number:
            return TriggerResult.CONTINUE
        self._fire_next_at(timestamp + self.interval_ms, context)
        return TriggerResult.FIRE

    def on_merge(self, merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        super().on_merge(merged, context)
        context.merge_numbers(merged, min)
        if context.number is not None:
            context.register_timer(context.number)

    def clear(self, context: TriggerContext) -> None:
        super().clear(context)
        if context.number is not None:
            context.delete_timer(context.number)
            context.remember(None)

    @staticmethod
    def _fire_next_at(timestamp: int, context: TriggerContext) -> None:
        context.remember(timestamp)
        context.register_timer(timestamp)


class CountTrigger(Trigger):
    """Fires after each `count` records of a window, and not at its end.

    Flink:   CountTrigger (streaming.api.windowing.triggers), 1.11.4
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise LocalUsageError(f"a trigger after {count} records: the count must be at least 1")
        self.count = count

    def on_element(self, _record: StreamRecord, context: TriggerContext) -> TriggerResult:
        number = (context.number or 0) + 1
        context.remember(number if number < self.count else None)
        return TriggerResult.CONTINUE if number < self.count else TriggerResult.FIRE

    def on_event_time(self, _timestamp: int, _context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        context.merge_numbers(merged, sum)

    def clear(self, context: TriggerContext) -> None:
        context.remember(None)


class PurgingTrigger(Trigger):
    """Another trigger, whose windows begin anew whenever they have fired.

    Flink:   PurgingTrigger (streaming.api.windowing.triggers), 1.11.4
    """

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger

    def on_element(self, record: StreamRecord, context: TriggerContext) -> TriggerResult:
        return _purged(self.trigger.on_element(record, context))

    def on_event_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        return _purged(self.trigger.on_event_time(timestamp, context))

    def on_processing_time(self, timestamp: int, context: TriggerContext) -> TriggerResult:
        return _purged(self.trigger.on_processing_time(timestamp, context))

    def on_merge(self, merged: Sequence[TimeWindow], context: TriggerContext) -> None:
        self.trigger.on_merge(merged, context)

    def clear(self, context: TriggerContext) -> None:
        self.trigger.clear(context)


def _purged(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire else result
