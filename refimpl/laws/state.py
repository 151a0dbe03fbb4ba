"""State: what an attempt begins with is what tasks had at the cut it goes on from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from refimpl.job.deployment import Deployment
from refimpl.producer.key_groups import key_group_range
from refimpl.state.recovery import Recovered
from refimpl.state.sections import SectionKind
from refimpl.task.source import SourceInput
from refimpl.task.task import Task

__all__ = ["StateLaw"]

_Part = tuple[str, SectionKind, str]  # operator, kind, name
_Digest = Mapping[_Part, bytes]

_NUM_REMEMBERED = 20


class StateLaw:
    """The states of all tasks at each cut, taken at that moment, and compared with what a restore makes of the files.

    `begin` comes after the tasks of an attempt were made, and before their first step. Nothing is said of a checkpoint
    whose cut was not seen: of another run, or the final one. Subtasks have the numbers they had.
    """

    def __init__(self) -> None:
        self._at_cuts: dict[int, dict[str, _Digest]] = {}

    def begin(self, recovered: Recovered | None, deployments: Iterable[Deployment]) -> None:
        """An attempt of the job begins, with a checkpoint or with none.

        Raises:
            AssertionError: a task has other state than it had at the cut.
        """
        manifest = None if recovered is None else recovered.manifest
        at_cut = {} if manifest is None else self._at_cuts.get(manifest.checkpoint_id, {})
        tasks = [task for deployment in deployments for task in deployment.tasks]
        if at_cut:
            self._check(at_cut, {task.name: _digest(task) for task in tasks})
        for task in tasks:
            task.checkpoints.on_cut = partial(self._note, task)

    def _note(self, task: Task, checkpoint_id: int) -> None:
        self._at_cuts.setdefault(checkpoint_id, {})[task.name] = _digest(task)
        while len(self._at_cuts) > _NUM_REMEMBERED:
            del self._at_cuts[min(self._at_cuts)]

    @staticmethod
    def _check(at_cut: Mapping[str, _Digest], restored: Mapping[str, _Digest]) -> None:
        for task in at_cut.keys() & restored.keys():
            for part in at_cut[task].keys() | restored[task].keys():
                operator, kind, name = part
                if kind is SectionKind.UNION:  # each has what all had
                    continue
                assert at_cut[task].get(part) == restored[task].get(part), (
                    f"{task} does not begin with what it had at the cut: {kind.name.lower()} state "
                    f"{name!r} of {operator!r} was {at_cut[task].get(part)!r} and is {restored[task].get(part)!r}"
                )


def _digest(task: Task) -> _Digest:
    """All that a task remembers, as bytes, as it is now."""
    found: dict[_Part, bytes] = {}
    if isinstance(task.input, SourceInput):
        found["", SectionKind.SOURCE_POSITION, "position"] = str(task.input.position).encode()
    for operator in task.chain.operators:
        if operator.states is not None:
            context = operator.context
            groups = key_group_range(context.subtask, context.max_parallelism, context.parallelism)
            for section in operator.states.snapshot(context.uid, groups, context.max_parallelism):
                found[context.uid, section.kind, section.name] = section.raw
    return found
