"""Who gets which state when a job goes on from a checkpoint, perhaps with another parallelism.

keyed, timers     each subtask takes its range of key groups, from whoever had a part of it
split lists       dealt out evenly; a state starts with the subtask where the odd elements of the one before ended
union lists       everything to each
broadcast         a copy to each
positions, what was in flight   only with the parallelism that they were written at
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refimpl.errors import CorruptFileError, NoSuchKeyError, RestoreRefusedError
from refimpl.producer.key_groups import key_group_range
from refimpl.state.key_groups_of_state import KeyGroupedBytes
from refimpl.state.manifest import OperatorRecord, StateFile, elements_key
from refimpl.state.operator_state import ElementBytes
from refimpl.state.sections import Section, SectionKind, read_sections, read_table
from refimpl.state.store import SnapshotStore
from refimpl.state.subtask_state import RestoredStates

__all__ = ["ElementRange", "OperatorPlan", "Share", "assign", "read_share"]

_DEALT_OUT = (SectionKind.SPLIT, SectionKind.TRANSACTION)
_LISTS = (*_DEALT_OUT, SectionKind.UNION, SectionKind.BROADCAST)
_BY_KEY_GROUP = (SectionKind.KEYED, SectionKind.TIMERS)


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """An operator of the job that is to go on."""

    uid: str
    max_parallelism: int
    parallelism: int


@dataclass(frozen=True, slots=True)
class ElementRange:
    """Some elements of a list in a state file."""

    file: StateFile
    kind: SectionKind
    name: str
    elements: range


@dataclass(frozen=True, slots=True)
class Share:
    """What one subtask of an operator gets: its key groups of these files, elements, and what only it may have."""

    key_groups: range
    keyed: tuple[StateFile, ...] = ()
    elements: tuple[ElementRange, ...] = ()
    own: StateFile | None = None


def assign(
    operators: Iterable[OperatorRecord], wanted: Iterable[OperatorPlan], *, allow_non_restored: bool = False
) -> dict[str, tuple[Share, ...]]:
    """The share of each subtask, by the operator's uid; of one that is new, none.

    Raises:
        RestoreRefusedError: an operator has another max parallelism; it has state that cannot be given to another
            number of subtasks; or it is gone, has state, and `allow_non_restored` is false.

    Flink:   StateAssignmentOperation (runtime.checkpoint), 1.11.4
    """
    plans = {plan.uid: plan for plan in wanted}
    shares = {}
    for operator in operators:
        plan = plans.get(operator.uid)
        if plan is not None:
            shares[operator.uid] = _shares(operator, plan)
        elif any(operator.subtasks) and operator.states and not allow_non_restored:
            raise RestoreRefusedError(
                f"the checkpoint has state of the operator {operator.uid!r}, which the job does not have (it has "
                f"{', '.join(map(repr, sorted(plans)))}); to lose that state, say allow_non_restored=True"
            )
    return shares


def _shares(operator: OperatorRecord, plan: OperatorPlan) -> tuple[Share, ...]:
    if operator.max_parallelism != plan.max_parallelism and operator.states:
        raise RestoreRefusedError(
            f"the operator {operator.uid!r} has a max parallelism of {plan.max_parallelism}, and its state was written "
            f"with {operator.max_parallelism}: the key groups are others"
        )
    is_same = operator.parallelism == plan.parallelism
    movable = {kind.name.lower() for kind in (*_LISTS, *_BY_KEY_GROUP)}
    fixed = sorted({state.kind for state in operator.states} - movable)
    if fixed and not is_same:
        raise RestoreRefusedError(
            f"the operator {operator.uid!r} has state of the kind {fixed[0]}, which only {operator.parallelism} "
            f"subtasks can go on from, and not {plan.parallelism}"
        )
    elements = _kept(operator) if is_same else _dealt(operator, plan.parallelism)
    shares = []
    for index in range(plan.parallelism):
        own = key_group_range(index, plan.max_parallelism, plan.parallelism)
        keyed = []
        for before, file in enumerate(operator.subtasks):
            had = key_group_range(before, operator.max_parallelism, operator.parallelism)
            if file is not None and max(own.start, had.start) < min(own.stop, had.stop):
                keyed.append(file)
        shares.append(
            Share(own, tuple(keyed), tuple(elements[index]), operator.subtasks[index] if fixed and is_same else None)
        )
    return tuple(shares)


def _lists(operator: OperatorRecord, kinds: Sequence[SectionKind]) -> dict[tuple[SectionKind, str], list[ElementRange]]:
    """For each list of these kinds, by name, all elements of each subtask that has some."""
    found: dict[tuple[SectionKind, str], list[ElementRange]] = {}
    names = sorted({(state.kind, state.name) for state in operator.states})
    for kind in kinds:
        for name in (name for of_kind, name in names if of_kind == kind.name.lower()):
            for file in operator.subtasks:
                count = file.elements.get(elements_key(operator.uid, kind, name), 0) if file is not None else 0
                if file is not None and count:
                    found.setdefault((kind, name), []).append(ElementRange(file, kind, name, range(count)))
    return found


def _kept(operator: OperatorRecord) -> list[list[ElementRange]]:
    """With the same parallelism: to each its own, and unions to all."""
    shares: list[list[ElementRange]] = [[] for _ in operator.subtasks]
    for (kind, _name), lists in _lists(operator, _LISTS).items():
        for index, file in enumerate(operator.subtasks):
            shares[index] += [each for each in lists if kind is SectionKind.UNION or each.file is file]
    return shares


def _dealt(operator: OperatorRecord, parallelism: int) -> list[list[ElementRange]]:
    """With another parallelism.

    Flink:   RoundRobinOperatorStateRepartitioner (runtime.checkpoint), 1.11.4
    Differs: the states are taken in the order of their names; Flink's order is that of a hash map.
    """
    shares: list[list[ElementRange]] = [[] for _ in range(parallelism)]
    first = 0
    for lists in _lists(operator, _DEALT_OUT).values():
        base, odd = divmod(sum(len(each.elements) for each in lists), parallelism)
        waiting = list(lists)
        for step in range(parallelism):
            shares[(first + step) % parallelism] += _taken(waiting, base + (step < odd))
        first = (first + odd) % parallelism
    for lists in _lists(operator, (SectionKind.UNION,)).values():
        for share in shares:
            share += lists
    for lists in _lists(operator, (SectionKind.BROADCAST,)).values():
        for index, share in enumerate(shares):
            share.append(lists[index % len(lists)])
    return shares


def _taken(waiting: list[ElementRange], count: int) -> list[ElementRange]:
    """The next `count` elements of those that wait."""
    taken = []
    while count:
        head = waiting.pop(0)
        now, later = head.elements[:count], head.elements[count:]
        taken.append(ElementRange(head.file, head.kind, head.name, now))
        if later:
            waiting.insert(0, ElementRange(head.file, head.kind, head.name, later))
        count -= len(now)
    return taken


# -- reading ---------------------------------------------------------------------------------------


def read_share(store: SnapshotStore, uid: str, share: Share, *, trust_pickle: bool = False) -> RestoredStates:
    """The bytes of a share, of the sections it needs and no others.

    Raises:
        CorruptFileError: a file is damaged or missing.
        StoreError: the store did not answer.
    """
    keyed: dict[SectionKind, dict[str, list[KeyGroupedBytes]]] = {kind: {} for kind in _BY_KEY_GROUP}
    for file in share.keyed:
        for section in _sections(store, file, uid, _BY_KEY_GROUP):
            piece = KeyGroupedBytes.from_bytes(section.raw, file.key).within(share.key_groups)
            keyed[section.kind].setdefault(section.name, []).append(piece)
    elements: dict[tuple[SectionKind, str], ElementBytes] = {}
    for wanted in share.elements:
        (section,) = [s for s in _sections(store, wanted.file, uid, (wanted.kind,)) if s.name == wanted.name]
        found = ElementBytes.from_bytes(section.raw, wanted.file.key)
        if len(found.elements) < wanted.elements.stop:
            raise CorruptFileError(wanted.file.key, f"{section}: fewer elements than the manifest speaks of")
        before = elements.get((wanted.kind, wanted.name), ElementBytes(found.type_name, ()))
        if found.type_name != before.type_name:
            raise CorruptFileError(wanted.file.key, f"{section}: {found.type_name}, and {before.type_name} elsewhere")
        mine = found.elements[wanted.elements.start : wanted.elements.stop]
        elements[wanted.kind, wanted.name] = ElementBytes(found.type_name, before.elements + mine)
    fixed = [kind for kind in SectionKind if kind not in (*_LISTS, *_BY_KEY_GROUP)]
    others = _sections(store, share.own, uid, fixed) if share.own is not None else ()
    return RestoredStates(
        keyed[SectionKind.KEYED], keyed[SectionKind.TIMERS], elements, tuple(others), trust_pickle=trust_pickle
    )


def _sections(store: SnapshotStore, file: StateFile, uid: str, kinds: Sequence[SectionKind]) -> tuple[Section, ...]:
    """The sections of one operator and of these kinds, read alone."""

    def read(start: int, length: int) -> bytes:
        return store.get(file.key, start, length)

    try:
        size = store.size(file.key)
        if size != file.size:
            raise CorruptFileError(file.key, f"has {size} bytes, and the manifest speaks of {file.size}")
        table = read_table(read, size, file.key)
        mine = [entry for entry in table if entry.operator == uid and entry.kind in kinds]
        return read_sections(read, mine, file.key)
    except NoSuchKeyError as error:
        raise CorruptFileError(file.key, error.reason) from None
