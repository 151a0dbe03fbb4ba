"""What a subtask remembers that belongs to no key: lists that are dealt out anew when the job is rescaled, and a map
that all subtasks have.

split       the elements of all subtasks are dealt out: the positions of a source's files
union       each subtask gets the elements of all
broadcast   a map that is the same everywhere: rules that came on a broadcast stream
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from refimpl.errors import CorruptFileError, LocalUsageError, RemoteProtocolError, RestoreRefusedError
from refimpl.producer.key_groups import java_identity, key_of_identity
from refimpl.records.any_type import ANY
from refimpl.records.types import TupleType, TypeSerializer
from refimpl.state.key_groups_of_state import read_pieces, read_types, write_pieces, write_types
from refimpl.state.sections import SectionKind
from refimpl.state.state_types import is_pickled, written_as

__all__ = ["BroadcastState", "ElementBytes", "OperatorListState", "OperatorStateBackend"]


@dataclass(frozen=True, slots=True)
class ElementBytes:
    """The elements of one named state as bytes, each apart.

    Flink:   OperatorStateHandle.StateMetaInfo (runtime.state), 1.11.4
    """

    type_name: str
    elements: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        """The name of the type, where each element ends, and the elements."""
        target = bytearray()
        write_types((self.type_name,), target)
        return write_pieces(self.elements, target)

    @staticmethod
    def from_bytes(raw: bytes, file: str) -> ElementBytes:
        """What `to_bytes` wrote.

        Raises:
            CorruptFileError: these bytes are none of it; `file` is named.
        """
        source = memoryview(raw)
        try:
            types, position = read_types(source, 0)
            elements = read_pieces(source, position)
        except RemoteProtocolError as error:
            raise CorruptFileError(file, f"no list of elements: {error}") from None
        if len(types) != 1:
            raise CorruptFileError(file, f"a list of elements of {len(types)} types")
        return ElementBytes(types[0], elements)


class OperatorListState:
    """A list of this subtask.

    Flink:   ListState, PartitionableListState (runtime.state), 1.11.4
    """

    def __init__(self, name: str, element_type: TypeSerializer) -> None:
        self.name = name
        self.element_type = element_type
        self._elements: list[Any] = []

    def get(self) -> tuple[Any, ...]:
        """All elements, in the order they were added."""
        return tuple(self._elements)

    def add(self, element: Any) -> None:
        self._elements.append(element)

    def update(self, elements: Iterable[Any]) -> None:
        """Remember these instead."""
        self._elements = [*elements]

    def clear(self) -> None:
        self._elements = []


class BroadcastState:
    """A map that every subtask changes in the same way. Its keys are equal if they are in Java.

    Flink:   BroadcastState, HeapBroadcastState (runtime.state), 1.11.4
    """

    def __init__(self, name: str, element_type: TypeSerializer) -> None:
        self.name = name
        self.element_type = element_type
        self._entries: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """The value of `key`; `None` if there is none."""
        return self._entries.get(java_identity(key))

    def put(self, key: Hashable, value: Any) -> None:
        self._entries[java_identity(key)] = value

    def remove(self, key: Hashable) -> None:
        self._entries.pop(java_identity(key), None)

    def items(self) -> list[tuple[Hashable, Any]]:
        """Each key with its value, in the order the keys were first put."""
        return [(key_of_identity(identity), value) for identity, value in self._entries.items()]

    def clear(self) -> None:
        self._entries = {}

    def __contains__(self, key: Hashable) -> bool:
        return java_identity(key) in self._entries

    def __len__(self) -> int:
        return len(self._entries)


_Named = tuple[SectionKind, str]


class OperatorStateBackend:
    """All state of one subtask of an operator that belongs to no key, by kind and name.

    What a checkpoint brings waits as bytes until its name is asked for, as in `KeyedStateBackend`.

    Flink:   DefaultOperatorStateBackend (runtime.state), 1.11.4
    """

    def __init__(self) -> None:
        self._states: dict[_Named, OperatorListState | BroadcastState] = {}
        self._restored: dict[_Named, tuple[ElementBytes, bool]] = {}

    def list_state(self, name: str, element_type: TypeSerializer = ANY) -> OperatorListState:
        """A list whose elements, with those of the other subtasks, are dealt out when the job is rescaled.

        Raises:
            LocalUsageError: this name has another type already.
            RestoreRefusedError: the checkpoint has another type, or has pickled what may not be trusted.
        """
        return self._list(SectionKind.SPLIT, name, element_type)

    def union_list_state(self, name: str, element_type: TypeSerializer = ANY) -> OperatorListState:
        """A list that after a restore has the elements of all subtasks. Raises as `list_state`."""
        return self._list(SectionKind.UNION, name, element_type)

    def transactions(self, name: str, element_type: TypeSerializer = ANY) -> OperatorListState:
        """A list of what is under way outside the job, dealt out as `list_state` is. Raises as that."""
        return self._list(SectionKind.TRANSACTION, name, element_type)

    def broadcast_state(
        self, name: str, key_type: TypeSerializer = ANY, value_type: TypeSerializer = ANY
    ) -> BroadcastState:
        """A map that is the same in all subtasks. Raises as `list_state`."""
        state = self._state(SectionKind.BROADCAST, BroadcastState(name, TupleType(key_type, value_type)))
        assert isinstance(state, BroadcastState), f"{name} is no map"
        return state

    def snapshot(self) -> dict[_Named, ElementBytes]:
        """The bytes of all state as it is now, by kind and name.

        Raises:
            LocalUsageError: an element is not of the type that was declared for it.
        """
        found = {}
        for named, state in self._states.items():
            elements = state.get() if isinstance(state, OperatorListState) else state.items()
            try:
                written = tuple(_written(element, state.element_type) for element in elements)
            except LocalUsageError as error:
                raise LocalUsageError(f"the state {state.name!r} cannot be written: {error}") from error
            found[named] = ElementBytes(written_as(state.element_type), written)
        return found | {named: restored for named, (restored, _trust) in self._restored.items()}

    def restore(self, states: Mapping[_Named, ElementBytes], *, trust_pickle: bool = True) -> None:
        """Take over what `snapshot` made, or what was dealt out of it.

        Raises:
            RestoreRefusedError: as `list_state` does, for what has been asked for already.
        """
        for named, restored in states.items():
            if named in self._states:
                _fill(self._states[named], restored, trust_pickle)
            else:
                self._restored[named] = restored, trust_pickle

    def _list(self, kind: SectionKind, name: str, element_type: TypeSerializer) -> OperatorListState:
        state = self._state(kind, OperatorListState(name, element_type))
        assert isinstance(state, OperatorListState), f"{name} is no list"
        return state

    def _state(
        self, kind: SectionKind, fresh: OperatorListState | BroadcastState
    ) -> OperatorListState | BroadcastState:
        """The state of this kind and name; the fresh one, or that filled from a checkpoint, if there is none yet."""
        named = kind, fresh.name
        held = self._states.get(named)
        if held is None:
            if named in self._restored:
                _fill(fresh, *self._restored[named])
                del self._restored[named]
            self._states[named] = held = fresh
        elif held.element_type.name != fresh.element_type.name:
            raise LocalUsageError(
                f"the state {fresh.name!r} is of {held.element_type.name}; "
                f"it cannot be of {fresh.element_type.name} too"
            )
        return held


def _written(element: object, element_type: TypeSerializer) -> bytes:
    target = bytearray()
    element_type.serialize(element, target)
    return bytes(target)


def _fill(state: OperatorListState | BroadcastState, restored: ElementBytes, trust_pickle: bool) -> None:
    if restored.elements and restored.type_name != written_as(state.element_type):
        raise RestoreRefusedError(
            f"the state {state.name!r} was written as {restored.type_name}, and is to be read as "
            f"{written_as(state.element_type)}"
        )
    if is_pickled(state.element_type) and not trust_pickle:
        raise RestoreRefusedError(
            f"the state {state.name!r} is pickled, and to read it is to run what it says; "
            f"if nobody else can write to this store, say trust_pickle=True"
        )
    for raw in restored.elements:
        try:
            element: Any
            element, end = state.element_type.deserialize(memoryview(raw), 0)
            if end != len(raw):
                raise RemoteProtocolError(f"{len(raw) - end} bytes of an element are left over")
            if isinstance(state, BroadcastState):
                state.put(*element)
            else:
                state.add(element)
        except (RemoteProtocolError, TypeError) as error:
            raise RestoreRefusedError(f"the state {state.name!r} cannot be read: {error}") from error
