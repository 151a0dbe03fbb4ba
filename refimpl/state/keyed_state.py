"""What an operator remembers for each key: a value, a list, a map, or values folded into one.

A **namespace** tells apart what belongs to one key: a window, or nothing (`None`). All state of a subtask is in
tables, one for each name. A snapshot makes bytes of them, and that is all that makes bytes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from refimpl.errors import LocalUsageError, RemoteProtocolError, RestoreRefusedError
from refimpl.producer.key_groups import java_identity, key_of_identity
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.state.key_groups_of_state import KeyGroupedBytes, partitioned
from refimpl.state.state_types import VOID, ListType, MapType, is_pickled, written_as

__all__ = [
    "KeyedStateBackend",
    "ListState",
    "MapState",
    "ReducingState",
    "StateTable",
    "TableWriter",
    "ValueState",
    "write_table",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Restored:
    """Bytes of a checkpoint that wait until somebody says what they are."""

    pieces: tuple[KeyGroupedBytes, ...]
    trust_pickle: bool


class StateTable(Generic[T]):
    """One value for each (key, namespace). Keys are equal if they are in Java.

    Whoever has a key in hand asks the table; the states below ask it for the backend's current key.

    Flink:   StateTable (runtime.state.heap), 1.11.4
    Differs: one dict; Flink has a map for each key group.
    """

    def __init__(self, name: str = "", value_type: TypeSerializer = ANY, namespace_type: TypeSerializer = ANY) -> None:
        self.name = name
        self.value_type = value_type
        self.namespace_type = namespace_type
        self._values: dict[tuple[Hashable, Hashable], T] = {}

    def __len__(self) -> int:
        return len(self._values)

    @property
    def contents(self) -> Mapping[tuple[Hashable, Hashable], T]:
        """Each value, by what its key is known by (`java_identity`) and its namespace."""
        return self._values

    def find(self, key: Hashable, namespace: Hashable = None) -> tuple[T, ...]:
        """The value alone, which may be `None` itself; nothing if there is none."""
        found = java_identity(key), namespace
        return (self._values[found],) if found in self._values else ()

    def get(self, key: Hashable, namespace: Hashable = None) -> T | None:
        """The value, or `None` if there is none."""
        return self._values.get((java_identity(key), namespace))

    def put(self, key: Hashable, namespace: Hashable, value: T) -> None:
        self._values[java_identity(key), namespace] = value

    def remove(self, key: Hashable, namespace: Hashable = None) -> T | None:
        """Forget the value and return it."""
        return self._values.pop((java_identity(key), namespace), None)

    def items(self) -> Iterator[tuple[Hashable, Hashable, T]]:
        """Each key, namespace and value."""
        for (identity, namespace), value in self._values.items():
            yield key_of_identity(identity), namespace, value

    def entries(self, key_type: TypeSerializer) -> Iterator[tuple[Hashable, bytearray]]:
        """Each key, and the bytes of key, namespace and value."""
        for key, namespace, value in self.items():
            target = bytearray()
            key_type.serialize(key, target)
            self.namespace_type.serialize(namespace, target)
            self.value_type.serialize(value, target)
            yield key, target

    def read(self, piece: bytes, key_type: TypeSerializer) -> None:
        """Put in what `entries` made, one behind the other."""
        source, position = memoryview(piece), 0
        while position < len(source):
            key, position = key_type.deserialize(source, position)
            namespace, position = self.namespace_type.deserialize(source, position)
            value, position = self.value_type.deserialize(source, position)
            self.put(key, namespace, cast("T", value))


TableWriter = Callable[[StateTable[Any], TypeSerializer, range, int], tuple[bytes, ...]]
"""Makes the bytes of a table for each of some key groups: `write(table, key_type, key_groups, max_parallelism)`."""


def write_table(
    table: StateTable[Any], key_type: TypeSerializer, key_groups: range, max_parallelism: int
) -> tuple[bytes, ...]:
    """The entries of a table, one behind the other for each key group.

    Raises:
        LocalUsageError: a value is not of the declared type, or a key belongs to none of these key groups.
    """
    return partitioned(table.entries(key_type), key_groups, max_parallelism, key_type)


class _KeyedState(Generic[T]):
    """State for the backend's current key; `namespace` is whose it is, until it is set to another."""

    def __init__(self, backend: KeyedStateBackend, table: StateTable[T]) -> None:
        self.namespace: Hashable = None
        self._backend = backend
        self._table = table

    def clear(self) -> None:
        """Forget it for this key and namespace."""
        self._table.remove(self._backend.current_key, self.namespace)

    def keys_in_use(self) -> list[Hashable]:
        """The keys that have something in this namespace, whatever the current one is."""
        return [key for key, namespace, _ in self._table.items() if namespace == self.namespace]

    def _find(self) -> T | None:
        return self._table.get(self._backend.current_key, self.namespace)

    def _put(self, value: T) -> None:
        self._table.put(self._backend.current_key, self.namespace, value)


class ValueState(_KeyedState[Any]):
    """One value for the current key.

    Flink:   ValueState (api.common.state), HeapValueState, 1.11.4
    """

    def value(self) -> Any:
        """The value; `None` if there is none."""
        return self._find()

    def update(self, value: Any) -> None:
        """Remember this value; `None` forgets it."""
        if value is None:
            self.clear()
        else:
            self._put(value)


class ListState(_KeyedState[list[Any]]):
    """Several values for the current key, in the order they were added.

    Flink:   ListState (api.common.state), HeapListState, 1.11.4
    """

    def get(self) -> tuple[Any, ...]:
        """All values; none if nothing was added."""
        return tuple(self._find() or ())

    def add(self, value: Any) -> None:
        """Remember one more."""
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        """Remember these behind the others."""
        held = self._find()
        if held is None:
            self.update(values)
        else:
            held.extend(values)

    def update(self, values: Iterable[Any]) -> None:
        """Remember these instead; none of them forgets all."""
        kept = list(values)
        if kept:
            self._put(kept)
        else:
            self.clear()


class MapState(_KeyedState[dict[Hashable, Any]]):
    """A dict for the current key. Its keys are equal if they are in Java.

    Flink:   MapState (api.common.state), HeapMapState, 1.11.4
    """

    def get(self, key: Hashable) -> Any:
        """The value of `key`; `None` if there is none."""
        return (self._find() or {}).get(java_identity(key))

    def put(self, key: Hashable, value: Any) -> None:
        """Remember `value` for `key`."""
        held = self._find()
        if held is None:
            held = {}
            self._put(held)
        held[java_identity(key)] = value

    def remove(self, key: Hashable) -> None:
        """Forget `key`; nothing happens if there is no such."""
        held = self._find()
        if held is not None:
            held.pop(java_identity(key), None)
            if not held:
                self.clear()

    def items(self) -> list[tuple[Hashable, Any]]:
        """Each key with its value, in the order the keys were first put."""
        return [(key_of_identity(identity), value) for identity, value in (self._find() or {}).items()]

    def __contains__(self, key: Hashable) -> bool:
        return java_identity(key) in (self._find() or {})

    def __len__(self) -> int:
        return len(self._find() or {})


class ReducingState(_KeyedState[Any]):
    """One value for the current key, into which each that is added is folded.

    Flink:   ReducingState (api.common.state), HeapReducingState, 1.11.4
    """

    def __init__(self, backend: KeyedStateBackend, table: StateTable[Any], reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__(backend, table)
        self._reduce = reduce

    def get(self) -> Any:
        """What all that was added has become; `None` if nothing was."""
        return self._find()

    def add(self, value: Any) -> None:
        """Fold one more value into it; the first one is what it is."""
        held = self._table.find(self._backend.current_key, self.namespace)
        self._put(self._reduce(held[0], value) if held else value)


class KeyedStateBackend:
    """All keyed state of one subtask of an operator, by name.

    `current_key` is whose state the states are about. What a checkpoint brings under a name waits as bytes until the
    name is asked for, with the types to read it; what is never asked for is in the next snapshot as it came.

    Flink:   HeapKeyedStateBackend (runtime.state.heap), 1.11.4
    Differs: a snapshot makes bytes at once; Flink's tables are copied on write and made bytes later.
    """

    def __init__(self, key_type: TypeSerializer = ANY) -> None:
        self.key_type = key_type
        self.current_key: Hashable = None
        self._tables: dict[str, StateTable[Any]] = {}
        self._restored: dict[str, _Restored] = {}

    @property
    def tables(self) -> Mapping[str, StateTable[Any]]:
        """Those that somebody has asked for, by name."""
        return self._tables

    def value_state(
        self, name: str, value_type: TypeSerializer = ANY, namespace_type: TypeSerializer = VOID
    ) -> ValueState:
        """One value for each key."""
        return ValueState(self, self.table(name, value_type, namespace_type))

    def list_state(
        self, name: str, element_type: TypeSerializer = ANY, namespace_type: TypeSerializer = VOID
    ) -> ListState:
        """A list for each key."""
        return ListState(self, self.table(name, ListType(element_type), namespace_type))

    def map_state(self, name: str, key_type: TypeSerializer = ANY, value_type: TypeSerializer = ANY) -> MapState:
        """A dict for each key."""
        return MapState(self, self.table(name, MapType(key_type, value_type), VOID))

    def reducing_state(
        self, name: str, reduce: Callable[[Any, Any], Any], value_type: TypeSerializer = ANY
    ) -> ReducingState:
        """A value for each key that grows by `reduce(held, added)`."""
        return ReducingState(self, self.table(name, value_type, VOID), reduce)

    def table(
        self, name: str, value_type: TypeSerializer = ANY, namespace_type: TypeSerializer = ANY
    ) -> StateTable[Any]:
        """The table of this name; made, or filled from a checkpoint, when it is first asked for.

        Raises:
            LocalUsageError: it was asked for with other types before.
            RestoreRefusedError: the checkpoint has other types, or has pickled what may not be trusted.
        """
        table = self._tables.get(name)
        if table is None:
            table = StateTable(name, value_type, namespace_type)
            if name in self._restored:
                self._fill(table, self._restored[name])
                del self._restored[name]
            self._tables[name] = table
        elif (table.value_type.name, table.namespace_type.name) != (value_type.name, namespace_type.name):
            raise LocalUsageError(
                f"the state {name!r} is of {table.value_type.name} by {table.namespace_type.name}; "
                f"it cannot be of {value_type.name} by {namespace_type.name} too"
            )
        return table

    def snapshot(
        self, key_groups: range, max_parallelism: int, write: TableWriter = write_table
    ) -> dict[str, KeyGroupedBytes]:
        """The bytes of all state as it is now, by name.

        Raises:
            LocalUsageError: a value is not of the type that was declared for it.
        """
        found = {}
        for name, table in self._tables.items():
            try:
                groups = write(table, self.key_type, key_groups, max_parallelism)
            except LocalUsageError as error:
                raise LocalUsageError(f"the state {name!r} cannot be written: {error}") from error
            found[name] = KeyGroupedBytes(self._types_of(table), key_groups, groups)
        for name, restored in self._restored.items():
            found[name] = _joined(restored.pieces, key_groups)
        return found

    def restore(self, pieces: Mapping[str, Iterable[KeyGroupedBytes]], *, trust_pickle: bool = True) -> None:
        """Take over what `snapshot` made, of one or several subtasks, by name.

        Raises:
            RestoreRefusedError: as `table` does, for what has been asked for already.
        """
        for name, several in pieces.items():
            restored = _Restored(tuple(several), trust_pickle)
            if name in self._tables:
                self._fill(self._tables[name], restored)
            else:
                self._restored[name] = restored

    def _types_of(self, table: StateTable[Any]) -> tuple[str, ...]:
        return written_as(self.key_type), written_as(table.namespace_type), written_as(table.value_type)

    def _fill(self, table: StateTable[Any], restored: _Restored) -> None:
        types = self._types_of(table)
        for piece in restored.pieces:
            if piece.types != types:
                raise RestoreRefusedError(
                    f"the state {table.name!r} was written as key, namespace, value of {', '.join(piece.types)}, "
                    f"and is to be read as {', '.join(types)}"
                )
        if not restored.trust_pickle and any(map(is_pickled, (self.key_type, table.namespace_type, table.value_type))):
            raise RestoreRefusedError(
                f"the state {table.name!r} is pickled, and to read it is to run what it says; "
                f"if nobody else can write to this store, say trust_pickle=True"
            )
        for piece in restored.pieces:
            for group in piece.groups:
                try:
                    table.read(group, self.key_type)
                except (RemoteProtocolError, TypeError) as error:  # a list where a key should be
                    raise RestoreRefusedError(f"the state {table.name!r} cannot be read: {error}") from error


def _joined(pieces: Iterable[KeyGroupedBytes], key_groups: range) -> KeyGroupedBytes:
    """The pieces of several subtasks as those of one, for these key groups."""
    groups = [bytearray() for _ in key_groups]
    types: tuple[str, ...] = ()
    for piece in pieces:
        types = piece.types
        own = piece.within(key_groups)
        for key_group, group in zip(own.key_groups, own.groups, strict=True):
            groups[key_group - key_groups.start] += group
    return KeyGroupedBytes(types, key_groups, tuple(map(bytes, groups)))
