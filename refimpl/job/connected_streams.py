"""Two streams that one operator reads, each with values of its own type."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Never, TypeVar

from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described, shown
from refimpl.job.transformed import Transformed
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.task.broadcast_states import MapStateDescriptor
from refimpl.task.co_operators import CoFlatMapOperator, CoMapOperator, TwoInputOperator
from refimpl.task.process_function import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    RichFunction,
)
from refimpl.task.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
)

__all__ = [
    "BroadcastConnectedStream",
    "BroadcastStream",
    "ConnectedStreams",
    "KeyedConnectedStreams",
    "check_function",
    "needs_keys",
    "own_copy",
]

Stream = TypeVar("Stream", bound=Transformed)
F = TypeVar("F")
KeyOf = Callable[[Any], Hashable]


class ConnectedStreams(Generic[Stream]):
    """Two streams into one operator, which knows of each record which stream it is of.

    Flink:   ConnectedStreams (streaming.api.datastream), 1.11.4
    """

    def __init__(self, first: Stream, second: Stream) -> None:
        self._first = first
        self._second = second

    def map(
        self,
        of_first: Callable[[Any], object],
        of_second: Callable[[Any], object],
        name: str = "co_map",
        type: TypeSerializer = ANY,
    ) -> Stream:
        """One result for each value: a function for the values of each stream."""
        return self.transform(name, lambda: CoMapOperator(of_first, of_second), type)

    def flat_map(
        self,
        of_first: Callable[[Any], object],
        of_second: Callable[[Any], object],
        name: str = "co_flat_map",
        type: TypeSerializer = ANY,
    ) -> Stream:
        """Any number of results for each value: the functions return iterables."""
        return self.transform(name, lambda: CoFlatMapOperator(of_first, of_second), type)

    def process(self, function: CoProcessFunction, name: str = "co_process", type: TypeSerializer = ANY) -> Stream:
        """What `function` makes of the values of each stream.

        Raises:
            LocalUsageError: it is no such function, or needs keys, which these streams have not.
        """
        check_function(function, CoProcessFunction, self._first)
        if isinstance(function, KeyedCoProcessFunction):
            raise needs_keys(function, self._first)
        return self.transform(name, lambda: CoProcessOperator(own_copy(function)), type)

    def transform(self, name: str, make_operator: Callable[[], TwoInputOperator], type: TypeSerializer = ANY) -> Stream:
        """Any operator of two inputs; each subtask gets its own from `make_operator`."""
        return self._first.transform_with(self._second, name, make_operator, type)


class KeyedConnectedStreams(ConnectedStreams[Stream]):
    """Two streams of which the records of one key meet in one subtask.

    Flink:   ConnectedStreams of two KeyedStreams (streaming.api.datastream), 1.11.4
    """

    def __init__(self, first: Stream, second: Stream, keys_of: tuple[KeyOf, KeyOf], key_type: TypeSerializer) -> None:
        super().__init__(first, second)
        self._keys_of = keys_of
        self._key_type = key_type

    def process(
        self, function: CoProcessFunction, name: str = "keyed_co_process", type: TypeSerializer = ANY
    ) -> Stream:
        """What `function` makes of the values of each stream, with state and timers by key if it is a keyed one.

        Raises:
            LocalUsageError: it is no such function.
        """
        if not isinstance(function, KeyedCoProcessFunction):
            return super().process(function, name, type)
        keys_of, key_type = self._keys_of, self._key_type  # and not `self`, which would take the job along
        return self.transform(name, lambda: KeyedCoProcessOperator(own_copy(function), keys_of, key_type), type)


class BroadcastConnectedStream(Generic[Stream]):
    """A stream and one that every subtask of the operator gets; `key` is how the first has keys, and their type.

    Flink:   BroadcastConnectedStream (streaming.api.datastream), 1.11.4
    """

    def __init__(
        self, first: Stream, second: BroadcastStream[Stream], key: tuple[KeyOf, TypeSerializer] | None = None
    ) -> None:
        self._first = first
        self._second = second
        self._key = key

    def process(
        self, function: BroadcastProcessFunction, name: str = "broadcast_process", type: TypeSerializer = ANY
    ) -> Stream:
        """What `function` makes of the values of each stream; a keyed one needs a first stream with keys.

        Raises:
            LocalUsageError: it is no such function, or needs keys where there are none, or the reverse.
        """
        check_function(function, BroadcastProcessFunction, self._first)
        descriptors = self._second.descriptors
        if not isinstance(function, KeyedBroadcastProcessFunction):
            return self._transform(name, lambda: BroadcastProcessOperator(own_copy(function), descriptors), type)
        if self._key is None:
            raise needs_keys(function, self._first)
        key_of, key_type = self._key
        return self._transform(
            name, lambda: KeyedBroadcastProcessOperator(own_copy(function), descriptors, key_of, key_type), type
        )

    def _transform(self, name: str, make_operator: Callable[[], TwoInputOperator], type: TypeSerializer) -> Stream:
        return self._first.transform_with(self._second.stream, name, make_operator, type)


class BroadcastStream(Generic[Stream]):
    """A stream that every subtask gets, kept in the maps that `descriptors` name; only the second one connected.

    Flink:   BroadcastStream (streaming.api.datastream), 1.11.4
    """

    def __init__(self, stream: Stream, descriptors: Sequence[MapStateDescriptor]) -> None:
        self.stream = stream
        self.descriptors = tuple(descriptors)

    def __repr__(self) -> str:
        return f"BroadcastStream({self.stream})"

    def connect(self, other: object) -> Never:
        """Refuse: what is broadcast is the second of two.

        Raises:
            LocalUsageError: always.
        """
        raise LocalUsageError(
            f"{self} is on the wrong side: connect the other stream to it, "
            f"other.connect(stream.broadcast(descriptor)).process(…)"
        )


def check_function(function: object, kind: type[RichFunction], stream: object) -> None:
    """Refuse what is no process function of this kind.

    Raises:
        LocalUsageError: names the kind.
    """
    if isinstance(function, kind):
        return
    if isinstance(function, type) and issubclass(function, kind):
        raise LocalUsageError(f"process takes an object, not the class {function.__name__}: {function.__name__}()")
    raise LocalUsageError(
        f"process of {stream} takes a {kind.__name__}, not {shown(function)}; for a plain function there is map"
    )


def needs_keys(function: object, stream: object) -> LocalUsageError:
    """What to raise for a function with state and timers by key, where the stream has no keys."""
    name = builtins.type(function).__name__
    return LocalUsageError(f"{name} has state and timers by key, and {stream} has no keys; use key_by before it")


def own_copy(function: F) -> F:
    """A copy of a function for one subtask, so that what it keeps in attributes is its own.

    Raises:
        LocalUsageError: it holds what cannot be copied.

    Flink:   a function is serialized, and each subtask has its own, 1.11.4
    """
    try:
        return copy.deepcopy(function)
    except USER_CODE_RAISES as error:
        raise LocalUsageError(
            f"{shown(function)} cannot be copied for each subtask ({described(error)}); make in `open` what it holds"
        ) from error
