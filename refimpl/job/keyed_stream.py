"""Streams by key: an operator behind the exchange, and windows of each key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Generic, TypeVar, overload

from refimpl.errors import LocalUsageError
from refimpl.job.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    KeyedConnectedStreams,
    check_function,
    own_copy,
)
from refimpl.job.transformed import Transformed
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.task.operators import Operator
from refimpl.task.process_function import KeyedProcessFunction, ProcessFunction
from refimpl.task.process_operators import KeyedProcessOperator, ProcessOperator
from refimpl.task.triggers import Trigger
from refimpl.task.window_assigners import WindowAssigner
from refimpl.task.window_operator import AggregateFunction, WindowOperator

__all__ = ["KeyedStream", "WindowedStream"]


Stream = TypeVar("Stream", bound=Transformed)


class KeyedStream(Generic[Stream]):
    """A stream whose records of one key meet in one subtask; `stream` leaves by the key already.

    Flink:   KeyedStream (streaming.api.datastream), 1.11.4
    """

    def __init__(
        self, stream: Stream, key_of: Callable[[Any], Hashable], key_type: TypeSerializer | None = None
    ) -> None:
        self.key_of = key_of
        self.key_type = key_type
        self._stream = stream

    def __repr__(self) -> str:
        return f"KeyedStream({self._stream})"

    @property
    def _key_type(self) -> TypeSerializer:
        return self.key_type or ANY

    def window(self, windows: WindowAssigner) -> WindowedStream[Stream]:
        """Put the records of each key into windows, of event time or of processing time."""
        return WindowedStream(self._stream, self.key_of, windows, self.key_type)

    @overload
    def connect(self, other: KeyedStream[Stream]) -> KeyedConnectedStreams[Stream]: ...

    @overload
    def connect(self, other: BroadcastStream[Stream]) -> BroadcastConnectedStream[Stream]: ...

    def connect(
        self, other: KeyedStream[Stream] | BroadcastStream[Stream]
    ) -> KeyedConnectedStreams[Stream] | BroadcastConnectedStream[Stream]:
        """This stream and another, of which the records of one key meet in one subtask; or one that all subtasks get.

        Raises:
            LocalUsageError: the other has no key, or hashes its keys in another way.
        """
        if isinstance(other, BroadcastStream):
            return BroadcastConnectedStream(self._stream, other, (self.key_of, self._key_type))
        if not isinstance(other, KeyedStream):
            raise LocalUsageError(
                f"{self} has a key and {other} has none: records that belong together would not meet; "
                f"use key_by on both, or on neither, or give the other to all with broadcast(descriptor)"
            )
        types = [None if each.key_type is None else each.key_type.name for each in (self, other)]
        if types[0] != types[1]:
            raise LocalUsageError(
                f"keys of type {types[0]} and of type {types[1]} are hashed in two ways, so that equal ones would not "
                f"meet; give both key_by the same key_type"
            )
        return KeyedConnectedStreams(self._stream, other._stream, (self.key_of, other.key_of), self._key_type)

    def process(self, function: ProcessFunction, name: str = "keyed_process", type: TypeSerializer = ANY) -> Stream:
        """What `function` makes of each value, with state and timers by key if it is a keyed one.

        Raises:
            LocalUsageError: it is no such function.
        """
        check_function(function, ProcessFunction, self)
        if not isinstance(function, KeyedProcessFunction):
            return self.transform(name, lambda: ProcessOperator(own_copy(function)), type)
        key_of, key_type = self.key_of, self._key_type  # and not `self`, which would take the job along
        return self.transform(name, lambda: KeyedProcessOperator(own_copy(function), key_of, key_type), type)

    def transform(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer = ANY) -> Stream:
        """Any operator, behind the exchange by key."""
        return self._stream.transform(name, make_operator, type)

    def sink(self, function: Callable[[Any], object], name: str = "sink") -> Stream:
        return self._stream.sink(function, name)


class WindowedStream(Generic[Stream]):
    """Records by key and window, waiting to be aggregated.

    Flink:   WindowedStream (streaming.api.datastream), 1.11.4
    """

    def __init__(
        self,
        stream: Stream,
        key_of: Callable[[Any], Hashable],
        windows: WindowAssigner,
        key_type: TypeSerializer | None = None,
    ) -> None:
        self._stream = stream
        self._key_of = key_of
        self._key_type = key_type
        self._windows = windows
        self._trigger: Trigger | None = None
        self._lateness_ms = 0

    def trigger(self, trigger: Trigger) -> WindowedStream[Stream]:
        """Let `trigger` say when a window gives its result; without one it does at its end."""
        self._trigger = trigger
        return self

    def allowed_lateness(self, lateness_ms: int) -> WindowedStream[Stream]:
        """Keep windows for so long behind their end: what comes meanwhile makes them give a new result."""
        self._lateness_ms = lateness_ms
        return self

    def aggregate(self, function: AggregateFunction[Any], name: str = "window", type: TypeSerializer = ANY) -> Stream:
        """`(key, start_ms, end_ms, result)` for each window when it fires, by default when it is complete.

        Raises:
            LocalUsageError: a lateness that is none, or session windows and a function without `merge`.
        """
        # The parts and not `self`, which would take the job along, sinks and all.
        settings = self._trigger, self._lateness_ms, self._key_type
        make = partial(WindowOperator, self._key_of, self._windows, function, *settings)
        make()  # what cannot be is refused now
        return self._stream.transform(name, make, type)
