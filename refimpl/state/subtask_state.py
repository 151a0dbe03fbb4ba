"""What one subtask hands over at a checkpoint: the states of its operators, as a state file and a line for each."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, cast

from refimpl.errors import RemoteProtocolError, RestoreRefusedError
from refimpl.records.types import LONG, TypeSerializer
from refimpl.state.key_groups_of_state import KeyGroupedBytes, partitioned
from refimpl.state.keyed_state import KeyedStateBackend, TableWriter, write_table
from refimpl.state.manifest import StateFile, StateRecord, elements_key
from refimpl.state.operator_state import ElementBytes, OperatorStateBackend
from refimpl.state.sections import Section, SectionKind, state_file
from refimpl.state.state_types import is_pickled, written_as

__all__ = ["OperatorStates", "RestoredStates", "SubtaskState", "Timers"]


class Timers(Protocol):
    """What a snapshot needs of timers of one kind."""

    def register(self, timestamp: int, key: Hashable, namespace: Hashable) -> None: ...

    def items(self) -> Iterable[tuple[int, Hashable, Hashable]]:
        """Those that are set, in the order in which they would fire."""


@dataclass(frozen=True, slots=True)
class RestoredStates:
    """What a checkpoint has for one subtask of an operator, of the subtasks of before, by name.

    `others` are sections that only a subtask of the same number may go on from: a position, what was in flight.
    """

    keyed: Mapping[str, Sequence[KeyGroupedBytes]]
    timers: Mapping[str, Sequence[KeyGroupedBytes]]
    elements: Mapping[tuple[SectionKind, str], ElementBytes]
    others: Sequence[Section] = ()
    trust_pickle: bool = False


class OperatorStates:
    """All that one subtask of an operator remembers: by key, by no key, and timers of each kind.

    `timers` are by kind, `event` and `processing`, each with the type of its namespaces.

    Flink:   StreamOperatorStateContext, OperatorSnapshotFutures (streaming.api.operators), 1.11.4
    """

    def __init__(self, keyed: KeyedStateBackend, timers: dict[str, tuple[Timers, TypeSerializer]]) -> None:
        self.keyed = keyed
        self.by_no_key = OperatorStateBackend()
        self.timers = timers

    def snapshot(
        self, uid: str, key_groups: range, max_parallelism: int, write: TableWriter = write_table
    ) -> list[Section]:
        """The bytes of all of it as it is now; of what is empty, none.

        Raises:
            LocalUsageError: a value is not of the type that was declared for it, or a key belongs elsewhere.
        """
        sections = []
        for name, state in self.keyed.snapshot(key_groups, max_parallelism, write).items():
            if any(state.groups):
                sections.append(Section(uid, name, SectionKind.KEYED, state.to_bytes(), types=state.types))
        for name, (timers, namespace_type) in self.timers.items():
            entries = _timer_entries(timers, self.keyed.key_type, namespace_type)
            groups = partitioned(entries, key_groups, max_parallelism, self.keyed.key_type)
            if any(groups):
                pieces = KeyGroupedBytes(self._types_of_timers(namespace_type), key_groups, groups)
                sections.append(Section(uid, name, SectionKind.TIMERS, pieces.to_bytes(), types=pieces.types))
        for (kind, name), elements in self.by_no_key.snapshot().items():
            if elements.elements:
                types, count = (elements.type_name,), len(elements.elements)
                sections.append(Section(uid, name, kind, elements.to_bytes(), types=types, num_elements=count))
        return sections

    def restore(self, restored: RestoredStates) -> None:
        """Take over what a checkpoint has for this subtask.

        Raises:
            RestoreRefusedError: the checkpoint has other types, or has pickled what may not be trusted.
        """
        self.keyed.restore(restored.keyed, trust_pickle=restored.trust_pickle)
        self.by_no_key.restore(restored.elements, trust_pickle=restored.trust_pickle)
        for name, pieces in restored.timers.items():
            if name not in self.timers:
                raise RestoreRefusedError(f"the checkpoint has {name} timers, and this operator has none")
            timers, namespace_type = self.timers[name]
            types = self._types_of_timers(namespace_type)
            if not restored.trust_pickle and any(map(is_pickled, (self.keyed.key_type, namespace_type))):
                raise RestoreRefusedError(
                    f"{name} timers have keys that are pickled; if nobody else can write to this store, "
                    f"say trust_pickle=True"
                )
            for piece in pieces:
                if piece.types != types:
                    raise RestoreRefusedError(f"{name} timers were written as {piece.types}, and are to be {types}")
                for group in piece.groups:
                    _read_timers(group, timers, self.keyed.key_type, namespace_type)

    def _types_of_timers(self, namespace_type: TypeSerializer) -> tuple[str, ...]:
        return written_as(LONG), written_as(self.keyed.key_type), written_as(namespace_type)


@dataclass(frozen=True, slots=True)
class SubtaskState:
    """The sections of all operators of one subtask, as a file that is ready to be put into a store.

    Flink:   TaskStateSnapshot, OperatorSubtaskState (runtime.checkpoint), 1.11.4
    """

    parts: Sequence[bytes]
    file: StateFile
    states: Mapping[str, tuple[StateRecord, ...]]

    @staticmethod
    def of(key: str, sections: Sequence[Section], *, is_packed: bool = False) -> SubtaskState:
        """What is to be put under `key`, packed or not."""
        parts = state_file(sections, is_packed=is_packed)
        digest, size = sha256(), 0
        for part in parts:
            digest.update(part)
            size += len(part)
        states: dict[str, tuple[StateRecord, ...]] = {}
        elements = {}
        for section in sections:
            states[section.operator] = (*states.get(section.operator, ()), _record(section))
            if section.num_elements is not None:
                elements[elements_key(section.operator, section.kind, section.name)] = section.num_elements
        in_flight = sum(section.channel_bytes for section in sections)
        return SubtaskState(parts, StateFile(key, size, digest.hexdigest(), elements, in_flight), states)


def _record(section: Section) -> StateRecord:
    """The line of the manifest for a section."""
    versions = [int(found[1]) for name in section.types if (found := re.search(r"/(\d+)$", name))]
    pickled = any(re.search(r"\bpickle\b", name) for name in section.types)
    kind = section.kind.name.lower()
    return StateRecord(section.name, kind, ", ".join(section.types), max(versions, default=1), pickled)


def _timer_entries(
    timers: Timers, key_type: TypeSerializer, namespace_type: TypeSerializer
) -> Iterator[tuple[Hashable, bytearray]]:
    for timestamp, key, namespace in timers.items():
        target = bytearray()
        LONG.serialize(timestamp, target)
        key_type.serialize(key, target)
        namespace_type.serialize(namespace, target)
        yield key, target


def _read_timers(piece: bytes, timers: Timers, key_type: TypeSerializer, namespace_type: TypeSerializer) -> None:
    source, position = memoryview(piece), 0
    try:
        while position < len(source):
            timestamp, position = LONG.deserialize(source, position)
            key, position = key_type.deserialize(source, position)
            namespace, position = namespace_type.deserialize(source, position)
            timers.register(cast("int", timestamp), key, namespace)
    except (RemoteProtocolError, TypeError) as error:
        raise RestoreRefusedError(f"timers cannot be read: {error}") from error
