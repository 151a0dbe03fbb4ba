"""What a process function is given: where it runs and its state, and, for each value, its time, its key, timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.records.any_type import ANY
from refimpl.records.elements import StreamRecord
from refimpl.records.types import TypeSerializer
from refimpl.state.keyed_state import KeyedStateBackend, ListState, MapState, ReducingState, ValueState
from refimpl.state.state_types import VOID
from refimpl.state.subtask_state import OperatorStates, Timers
from refimpl.task.broadcast_states import BroadcastStates, GuardedBroadcastState, MapStateDescriptor
from refimpl.task.operators import Operator, OperatorContext
from refimpl.task.outputs import OutputTag
from refimpl.task.time_service import ProcessingTimers, ProcessingTimeService
from refimpl.task.timers import TimerQueue

__all__ = ["NO_KEY", "FunctionContext", "KeyedServices", "ProcessContext", "TimeDomain", "TimerService"]


class TimeDomain(Enum):
    """The kind of time in which a timer was set.

    Flink:   TimeDomain (streaming.api), 1.11.4
    """

    EVENT_TIME = "event time"
    PROCESSING_TIME = "processing time"


class _NoKey:
    """The key where there is none: whoever looks for its state is told so."""

    def __repr__(self) -> str:
        return "no key"

    def __hash__(self) -> int:
        raise LocalUsageError(
            "state by key was asked for where there is no key: in open, or with a broadcast value in hand; "
            "there ctx.for_each_key goes through the keys"
        )


NO_KEY = _NoKey()
"""The current key in `open`, and while a broadcast value is in hand."""


class KeyedServices:
    """State and timers by key of one operator, and the key they are about; `states` is what a checkpoint has of them.

    `on_timer` is called for each timer of processing time that is due, with its moment, key and namespace.

    Flink:   AbstractStreamOperator.setCurrentKey, InternalTimeServiceManager (streaming.api.operators), 1.11.4
    """

    def __init__(
        self,
        key_type: TypeSerializer,
        time: ProcessingTimeService,
        on_timer: Callable[[int, Hashable, Hashable], None],
    ) -> None:
        self.event_timers = TimerQueue()
        self.processing_timers = ProcessingTimers(time, on_timer)
        timers: dict[str, tuple[Timers, TypeSerializer]] = {
            "event": (self.event_timers, VOID),
            "processing": (self.processing_timers, VOID),
        }
        self.states = OperatorStates(KeyedStateBackend(key_type), timers)
        self.state = self.states.keyed
        self.state.current_key = NO_KEY

    @property
    def key(self) -> Hashable:
        """The current key.

        Raises:
            LocalUsageError: there is none: what is in hand was broadcast.
        """
        hash(self.state.current_key)
        return self.state.current_key

    def use_key(self, key: Hashable) -> None:
        """Let state and timers be about this key."""
        self.state.current_key = key


class FunctionContext:
    """Where a function runs: the name of its operator, which of `parallelism` subtasks; and where its state comes from.

    Flink:   RuntimeContext (api.common.functions), 1.11.4
    """

    def __init__(self, context: OperatorContext, services: KeyedServices | None) -> None:
        self.name = context.name
        self.subtask = context.subtask
        self.parallelism = context.parallelism
        self.max_parallelism = context.max_parallelism
        self._services = services

    def value_state(self, name: str, value_type: TypeSerializer = ANY) -> ValueState:
        """One value for each key.

        Raises:
            LocalUsageError: the stream has no keys. So do the others.
        """
        return self._state.value_state(name, value_type)

    def list_state(self, name: str, element_type: TypeSerializer = ANY) -> ListState:
        """A list for each key."""
        return self._state.list_state(name, element_type)

    def map_state(self, name: str, key_type: TypeSerializer = ANY, value_type: TypeSerializer = ANY) -> MapState:
        """A dict for each key."""
        return self._state.map_state(name, key_type, value_type)

    def reducing_state(
        self, name: str, reduce: Callable[[Any, Any], Any], value_type: TypeSerializer = ANY
    ) -> ReducingState:
        """A value for each key that grows by `reduce(held, added)`."""
        return self._state.reducing_state(name, reduce, value_type)

    @property
    def _state(self) -> KeyedStateBackend:
        if self._services is None:
            raise LocalUsageError(f"{self.name} has no state by key: its stream has no keys; use key_by before it")
        return self._services.state


class TimerService:
    """Sets timers for the current key, and says what time it is, in ms. Equal timers are one.

    A timer whose time has passed already fires when the watermark advances next.

    Flink:   TimerService, SimpleTimerService (streaming.api), 1.11.4
    """

    def __init__(self, operator: Operator, services: KeyedServices | None) -> None:
        self._operator = operator
        self._services = services

    @property
    def current_watermark(self) -> int:
        return self._operator.current_watermark

    @property
    def current_processing_time(self) -> int:
        return self._operator.context.time.now_ms

    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for this key when the watermark has reached `timestamp`.

        Raises:
            LocalUsageError: there is no key. So do the others.
        """
        services = self._keyed
        services.event_timers.register(timestamp, services.key, None)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Do not call; nothing happens if there is no such timer of this key."""
        services = self._keyed
        services.event_timers.delete(timestamp, services.key, None)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for this key when it is `timestamp`. What waits at the end of input is not called."""
        services = self._keyed
        services.processing_timers.register(timestamp, services.key, None)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Do not call; nothing happens if there is no such timer of this key."""
        services = self._keyed
        services.processing_timers.delete(timestamp, services.key, None)

    @property
    def _keyed(self) -> KeyedServices:
        if self._services is None:
            raise LocalUsageError(
                f"{self._operator.context.name} cannot set timers: its stream has no keys; use key_by before it"
            )
        if self._services.state.current_key is NO_KEY:
            raise LocalUsageError("a timer is of a key, and what is broadcast has none; set it in process_element")
        return self._services


class ProcessContext:
    """What a function may ask for and do while it has a value or a timer in hand; not longer.

    `timestamp` is the event time of the value, if it has any, or the time of the timer; `time_domain` is the kind of
    time of a timer. `timers` sets others.

    Flink:   KeyedProcessFunction.Context and OnTimerContext, KeyedBroadcastProcessFunction.Context, 1.11.4
    """

    def __init__(
        self,
        operator: Operator,
        services: KeyedServices | None = None,
        broadcast_states: BroadcastStates | None = None,
    ) -> None:
        self.timestamp: int | None = None
        self.time_domain: TimeDomain | None = None
        self.timers = TimerService(operator, services)
        self._operator = operator
        self._services = services
        self._broadcast_states = broadcast_states

    @property
    def current_key(self) -> Any:
        """The key of the value, or of the timer.

        Raises:
            LocalUsageError: there is none.
        """
        if self._services is None:
            raise LocalUsageError(f"{self._operator.context.name} knows no keys: use key_by before it")
        return self._services.key

    def output(self, tag: OutputTag, value: object) -> None:
        """Send a value to the side output `tag`, with the time of what is in hand."""
        self._operator.output.collect_side(tag, StreamRecord(value, self.timestamp))

    def broadcast_state(self, descriptor: MapStateDescriptor) -> GuardedBroadcastState:
        """The map of this name, which may be written while a broadcast value is in hand.

        Raises:
            LocalUsageError: no stream was broadcast to here with this map.
        """
        if self._broadcast_states is None:
            name = self._operator.context.name
            raise LocalUsageError(f"{name} has no broadcast state: connect it to stream.broadcast(…) of a descriptor")
        return self._broadcast_states.get(descriptor)

    def for_each_key(self, state: Any, function: Callable[[Any, Any], object]) -> None:
        """Call `function(key, state)` for each key that has something in `state`, with that as the current key.

        Raises:
            LocalUsageError: no broadcast value is in hand: the order of keys is not the same in every run.

        Flink:   KeyedBroadcastProcessFunction.Context.applyToKeyedState, 1.11.4
        """
        services = self._services
        if services is None or self._broadcast_states is None or not self._broadcast_states.may_write:
            raise LocalUsageError("for_each_key is for process_broadcast_element of a keyed stream")
        before = services.state.current_key
        try:
            for key in state.keys_in_use():
                services.use_key(key)
                function(key, state)
        finally:
            services.use_key(before)
