"""Functions of the user's with everything an operator has: state, timers, side outputs.

A function is a class. Each subtask gets a copy of the object that was given; `open` is where it asks for its state, and
keeps it in attributes. `process_element` and `on_timer` answer an iterable of results, as a generator does, or `None`:

    class CountPerMinute(KeyedProcessFunction):
        def open(self, context):
            self.count = context.value_state("count")

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            ctx.timers.register_event_time_timer(ctx.timestamp // 60_000 * 60_000 + 59_999)

        def on_timer(self, timestamp, ctx):
            yield ctx.current_key, timestamp, self.count.value()
            self.count.clear()
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from refimpl.task.process_context import FunctionContext, ProcessContext

__all__ = [
    "BroadcastProcessFunction",
    "CoProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "ProcessFunction",
    "Results",
    "RichFunction",
]

Results: TypeAlias = Iterable[object] | None
"""What a function answers: its results, one by one, or none."""


class RichFunction:
    """What all of them have: a beginning and an end.

    Flink:   RichFunction (api.common.functions), 1.11.4
    """

    def open(self, context: FunctionContext) -> None:
        """Get ready: `context` has the state. Called once in each subtask, before the first value."""

    def close(self) -> None:
        """Give up what was opened. Called behind the last value."""


class ProcessFunction(RichFunction):
    """Values of one stream, each with its time and with side outputs.

    Flink:   ProcessFunction (streaming.api.functions), 1.11.4
    Differs: results are answered, as in PyFlink; Flink's Java functions have a collector. It has no timers.
    """

    def process_element(self, value: Any, ctx: ProcessContext) -> Results:
        """What becomes of a value."""
        raise NotImplementedError(f"{type(self).__name__}.process_element")


class KeyedProcessFunction(ProcessFunction):
    """Values of one stream by key, with state and timers of each key.

    Flink:   KeyedProcessFunction (streaming.api.functions), 1.11.4
    """

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Results:
        """What comes of a timer of `ctx.current_key`, when time has come to `timestamp` (ms)."""


class CoProcessFunction(RichFunction):
    """Values of two streams.

    Flink:   CoProcessFunction (streaming.api.functions.co), 1.11.4
    Differs: as `ProcessFunction` does.
    """

    def process_element1(self, value: Any, ctx: ProcessContext) -> Results:
        """What becomes of a value of the first stream."""
        raise NotImplementedError(f"{type(self).__name__}.process_element1")

    def process_element2(self, value: Any, ctx: ProcessContext) -> Results:
        """What becomes of a value of the second stream."""
        raise NotImplementedError(f"{type(self).__name__}.process_element2")


class KeyedCoProcessFunction(CoProcessFunction):
    """Values of two streams by key: state and timers of a key are the same for both.

    Flink:   KeyedCoProcessFunction (streaming.api.functions.co), 1.11.4
    """

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Results:
        """What comes of a timer of `ctx.current_key`, when time has come to `timestamp` (ms)."""


class BroadcastProcessFunction(RichFunction):
    """Values of a stream, and of another one that every subtask gets.

    What was broadcast is kept in `ctx.broadcast_state(descriptor)`, which the other side may only read.

    Flink:   BroadcastProcessFunction (streaming.api.functions.co), 1.11.4
    """

    def process_element(self, value: Any, ctx: ProcessContext) -> Results:
        """What becomes of a value of the stream that was not broadcast."""
        raise NotImplementedError(f"{type(self).__name__}.process_element")

    def process_broadcast_element(self, value: Any, ctx: ProcessContext) -> Results:
        """What becomes of a value that every subtask gets; it must do the same in each."""
        raise NotImplementedError(f"{type(self).__name__}.process_broadcast_element")


class KeyedBroadcastProcessFunction(BroadcastProcessFunction):
    """Values of a stream by key, and of another one that every subtask gets.

    What was broadcast has no key: there state is reached with `ctx.for_each_key`, and no timers can be set.

    Flink:   KeyedBroadcastProcessFunction (streaming.api.functions.co), 1.11.4
    """

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Results:
        """What comes of a timer of `ctx.current_key`, when time has come to `timestamp` (ms)."""
