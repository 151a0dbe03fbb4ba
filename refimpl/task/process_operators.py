"""The operators of process functions: they set key and time, call the function, and send on what it answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from refimpl.errors import USER_CODE_RAISES, shown
from refimpl.records.any_type import ANY
from refimpl.records.elements import StreamRecord, Watermark
from refimpl.records.types import TypeSerializer
from refimpl.records.vectorized import for_one
from refimpl.state.keyed_state import KeyedStateBackend
from refimpl.state.subtask_state import OperatorStates
from refimpl.task.broadcast_states import BroadcastStates, MapStateDescriptor
from refimpl.task.co_operators import TwoInputOperator
from refimpl.task.operators import Operator, OperatorContext, collect_all
from refimpl.task.outputs import Output
from refimpl.task.process_context import NO_KEY, FunctionContext, KeyedServices, ProcessContext, TimeDomain
from refimpl.task.process_function import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    Results,
    RichFunction,
)

__all__ = [
    "BroadcastProcessOperator",
    "CoProcessOperator",
    "KeyedBroadcastProcessOperator",
    "KeyedCoProcessOperator",
    "KeyedProcessOperator",
    "ProcessOperator",
]

KeyOf = Callable[[Any], Hashable]


class _Calls(Operator):
    """An operator around a function with a context.

    Flink:   AbstractUdfStreamOperator, TimestampedCollector (streaming.api.operators), 1.11.4
    """

    def __init__(self, function: RichFunction) -> None:
        self.user_function = function

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._ctx = ProcessContext(self)
        self._function_context = FunctionContext(context, None)

    def open(self) -> None:
        self.user_function.open(self._function_context)

    def finish(self) -> None:
        self.user_function.close()

    def _call(self, method: Callable[[Any, ProcessContext], Results], record: StreamRecord) -> None:
        """Let the function treat a record; its results have the record's time."""
        self._ctx.timestamp = record.timestamp
        try:
            results = self._iterator_of(method(record.value, self._ctx))
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        if results is not None:
            collect_all(self, results, record.value, record.timestamp)

    def _iterator_of(self, results: object) -> Iterator[object] | None:
        if results is None:
            return None
        if isinstance(results, Iterable):
            return iter(results)
        raise TypeError(f"a process function answers an iterable of results or None, not {shown(results)}")


class _KeyedCalls(_Calls):
    """Such an operator with keys: timers fire here, each with its key as the current one.

    Flink:   InternalTimerServiceImpl.advanceWatermark (streaming.api.operators), 1.11.4
    """

    user_function: KeyedProcessFunction | KeyedCoProcessFunction | KeyedBroadcastProcessFunction

    def __init__(self, function: RichFunction, key_type: TypeSerializer) -> None:
        super().__init__(function)
        self._key_type = key_type

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.keyed = KeyedServices(self._key_type, context.time, self._on_processing_time)
        self.states = self.keyed.states
        self._ctx = ProcessContext(self, self.keyed)
        self._function_context = FunctionContext(context, self.keyed)

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        for timestamp, key, _ in self.keyed.event_timers.advance(watermark.timestamp):
            self._fire(timestamp, key, TimeDomain.EVENT_TIME)
        self.output.emit_watermark(watermark)

    def _on_processing_time(self, timestamp: int, key: Hashable, _namespace: Hashable) -> None:
        self._fire(timestamp, key, TimeDomain.PROCESSING_TIME)

    def _fire(self, timestamp: int, key: Hashable, domain: TimeDomain) -> None:
        """Call the function for a timer; a result of event time has the timer's time, others none."""
        self.keyed.use_key(key)
        self._ctx.timestamp, self._ctx.time_domain = timestamp, domain
        try:
            results = self._iterator_of(self.user_function.on_timer(timestamp, self._ctx))
        except USER_CODE_RAISES as error:
            raise self.fail((key, timestamp), error) from error
        if results is not None:
            collect_all(self, results, (key, timestamp), timestamp if domain is TimeDomain.EVENT_TIME else None)
        self._ctx.time_domain = None

    def _use_key_of(self, key_of: KeyOf, record: StreamRecord) -> None:
        try:
            key = key_of(record.value)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        self.keyed.use_key(key)


class ProcessOperator(_Calls):
    """Calls a `ProcessFunction`.

    Flink:   ProcessOperator (streaming.api.operators), 1.11.4
    """

    user_function: ProcessFunction

    def __init__(self, function: ProcessFunction) -> None:
        super().__init__(function)

    def process(self, record: StreamRecord) -> None:
        self._call(self.user_function.process_element, record)


class KeyedProcessOperator(_KeyedCalls):
    """Calls a `KeyedProcessFunction`.

    Flink:   KeyedProcessOperator (streaming.api.operators), 1.11.4
    """

    user_function: KeyedProcessFunction

    def __init__(self, function: KeyedProcessFunction, key_of: KeyOf, key_type: TypeSerializer = ANY) -> None:
        super().__init__(function, key_type)
        self._key_of = for_one(key_of)

    def process(self, record: StreamRecord) -> None:
        self._use_key_of(self._key_of, record)
        self._call(self.user_function.process_element, record)


class CoProcessOperator(_Calls, TwoInputOperator):
    """Calls a `CoProcessFunction`.

    Flink:   CoProcessOperator (streaming.api.operators.co), 1.11.4
    """

    user_function: CoProcessFunction

    def __init__(self, function: CoProcessFunction) -> None:
        super().__init__(function)

    def process_first(self, record: StreamRecord) -> None:
        self._call(self.user_function.process_element1, record)

    def process_second(self, record: StreamRecord) -> None:
        self._call(self.user_function.process_element2, record)


class KeyedCoProcessOperator(_KeyedCalls, TwoInputOperator):
    """Calls a `KeyedCoProcessFunction`; `keys_of` take the key out of a value of the first input, and of the second.

    Flink:   KeyedCoProcessOperator (streaming.api.operators.co), 1.11.4
    """

    user_function: KeyedCoProcessFunction

    def __init__(
        self, function: KeyedCoProcessFunction, keys_of: tuple[KeyOf, KeyOf], key_type: TypeSerializer = ANY
    ) -> None:
        super().__init__(function, key_type)
        self._keys_of = [for_one(each) for each in keys_of]

    def process_first(self, record: StreamRecord) -> None:
        self._use_key_of(self._keys_of[0], record)
        self._call(self.user_function.process_element1, record)

    def process_second(self, record: StreamRecord) -> None:
        self._use_key_of(self._keys_of[1], record)
        self._call(self.user_function.process_element2, record)


class BroadcastProcessOperator(_Calls, TwoInputOperator):
    """Calls a `BroadcastProcessFunction`: the second input is the one that was broadcast, with these maps.

    Flink:   CoBroadcastWithNonKeyedOperator (streaming.api.operators.co), 1.11.4
    """

    user_function: BroadcastProcessFunction

    def __init__(self, function: BroadcastProcessFunction, descriptors: Sequence[MapStateDescriptor]) -> None:
        super().__init__(function)
        self._descriptors = descriptors

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.states = OperatorStates(KeyedStateBackend(), {})
        self.broadcast_states = BroadcastStates(self._descriptors, self.states.by_no_key)
        self._ctx = ProcessContext(self, None, self.broadcast_states)

    def process_first(self, record: StreamRecord) -> None:
        self._call(self.user_function.process_element, record)

    def process_second(self, record: StreamRecord) -> None:
        self.broadcast_states.may_write = True
        self._call(self.user_function.process_broadcast_element, record)
        self.broadcast_states.may_write = False


class KeyedBroadcastProcessOperator(_KeyedCalls, TwoInputOperator):
    """Calls a `KeyedBroadcastProcessFunction`, likewise; only the first input has keys.

    Flink:   CoBroadcastWithKeyedOperator (streaming.api.operators.co), 1.11.4
    """

    user_function: KeyedBroadcastProcessFunction

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction,
        descriptors: Sequence[MapStateDescriptor],
        key_of: KeyOf,
        key_type: TypeSerializer = ANY,
    ) -> None:
        super().__init__(function, key_type)
        self._descriptors = descriptors
        self._key_of = for_one(key_of)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.broadcast_states = BroadcastStates(self._descriptors, self.keyed.states.by_no_key)
        self._ctx = ProcessContext(self, self.keyed, self.broadcast_states)

    def process_first(self, record: StreamRecord) -> None:
        self._use_key_of(self._key_of, record)
        self._call(self.user_function.process_element, record)

    def process_second(self, record: StreamRecord) -> None:
        self.keyed.use_key(NO_KEY)
        self.broadcast_states.may_write = True
        self._call(self.user_function.process_broadcast_element, record)
        self.broadcast_states.may_write = False
