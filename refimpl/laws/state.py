"""State: what an attempt begins with is what tasks had at the cut it goes on from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from weakref import WeakKeyDictionary

from refimpl.job.deployment import Deployment
from refimpl.producer.key_groups import key_group_range
from refimpl.state.key_groups_of_state import KeyGroupedBytes
from refimpl.state.manifest import Manifest
from refimpl.state.operator_state import ElementBytes
from refimpl.state.recovery import Recovered
from refimpl.state.sections import SectionKind
from refimpl.state.store import SnapshotStore
from refimpl.task.source import SourceInput
from refimpl.task.task import Task

__all__ = ["StateLaw"]

_Part = tuple[SectionKind, str]  # kind and name of a state
_States = Mapping[str, Mapping[_Part, bytes]]  # of each operator of a task by uid, also of one that has none

_NUM_REMEMBERED = 1_000
_BY_KEY_GROUP = (SectionKind.KEYED, SectionKind.TIMERS)
_DEALT_OUT = (SectionKind.SPLIT, SectionKind.TRANSACTION)

_at_cuts: WeakKeyDictionary[SnapshotStore, dict[str, _States]] = WeakKeyDictionary()
"""What tasks had when they wrote the state files of a store: for the next run of the job too."""


class StateLaw:
    """The states of all tasks of a job at each cut and at the end of their input, taken at that moment, and compared
    with what a restore makes of the files.

    It knows a cut by the files of a checkpoint or savepoint. So it holds from one leader to the next, and from one run
    with a store to the next, with as many subtasks or with others:

    keyed, timers      all that the subtasks had of a key group is with one of them, and nothing else is
    split lists        to each its own; with other subtasks, each element is with one
    union lists        to each the elements of all
    broadcast          to each its own; with other subtasks, that of one
    positions          to each its own

    `begin` comes after the tasks of an attempt were made, and before their first step. Nothing is said of an operator
    whose cuts were not all seen.
    """

    def __init__(self, store: SnapshotStore, job: str) -> None:
        self._job = job
        try:
            self._at_cuts = _at_cuts.setdefault(store, {})
        except TypeError:  # no weak reference to this store, or no hash: then of this run alone
            self._at_cuts = {}

    def begin(self, recovered: Recovered | None, deployments: Iterable[Deployment]) -> None:
        """An attempt of the job begins, with a checkpoint or with none.

        Raises:
            AssertionError: an operator has other state than it had at the cut.
        """
        tasks = [task for deployment in deployments for task in deployment.tasks]
        if recovered is not None and recovered.manifest is not None:
            self._check_all(recovered.manifest, tasks)
        for task in tasks:
            task.checkpoints.on_cut = partial(self._note, task)

    def _note(self, task: Task, file: str) -> None:
        self._at_cuts[f"{self._job}/{file}"] = _states_of(task)
        while len(self._at_cuts) > _NUM_REMEMBERED:
            del self._at_cuts[next(iter(self._at_cuts))]

    def _check_all(self, manifest: Manifest, tasks: Iterable[Task]) -> None:
        restored: dict[str, list[Mapping[_Part, bytes]]] = {}
        for task in sorted(tasks, key=lambda task: task.chain.head.context.subtask):
            for uid, states in _states_of(task).items():
                restored.setdefault(uid, []).append(states)
        for operator in manifest.operators:
            keys = [None if file is None else f"{self._job}/{file.key}" for file in operator.subtasks]
            if all(key is None or key in self._at_cuts for key in keys):
                at_cut = [{} if key is None else self._at_cuts[key].get(operator.uid, {}) for key in keys]
                self._check(operator.uid, at_cut, restored.get(operator.uid, []))

    @staticmethod
    def _check(uid: str, at_cut: Sequence[Mapping[_Part, bytes]], restored: Sequence[Mapping[_Part, bytes]]) -> None:
        for part in dict.fromkeys(part for states in (*at_cut, *restored) for part in states):
            before, after = ([states.get(part) for states in of_all] for of_all in (at_cut, restored))
            kind, name = part
            assert _is_what_it_was(kind, before, after), (
                f"{uid!r} does not begin with what it had at the cut: {kind.name.lower()} state {name!r} of its "
                f"subtasks was {before!r} and is {after!r}"
            )


def _is_what_it_was(kind: SectionKind, before: list[bytes | None], after: list[bytes | None]) -> bool:
    if kind in _BY_KEY_GROUP:
        return _of_groups(before) == _of_groups(after)
    if kind is SectionKind.UNION:
        return all(_elements([each]) == _elements(before) for each in after)
    if len(before) == len(after):
        return before == after
    if kind in _DEALT_OUT:
        return _elements(before) == _elements(after)
    return all(each in before for each in after)


def _of_groups(states: Iterable[bytes | None]) -> Counter[tuple[int, bytes]]:
    """The bytes of each key group that has some."""
    read = [KeyGroupedBytes.from_bytes(raw, "a law") for raw in states if raw is not None]
    return Counter(pair for each in read for pair in zip(each.key_groups, each.groups, strict=True) if pair[1])


def _elements(states: Iterable[bytes | None]) -> Counter[bytes]:
    return Counter(each for raw in states if raw is not None for each in ElementBytes.from_bytes(raw, "a law").elements)


def _states_of(task: Task) -> _States:
    """All that a task remembers, as bytes, as it is now."""
    found: dict[str, dict[_Part, bytes]] = {}
    for operator in task.chain.operators:
        context = operator.context
        states = found.setdefault(context.uid, {})
        if operator is task.chain.head and isinstance(task.input, SourceInput):
            states[SectionKind.SOURCE_POSITION, "position"] = str(task.input.position).encode()
        if operator.states is not None:
            groups = key_group_range(context.subtask, context.max_parallelism, context.parallelism)
            for section in operator.states.snapshot(context.uid, groups, context.max_parallelism):
                states[section.kind, section.name] = section.raw
    return found
