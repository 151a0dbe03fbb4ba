"""Which of the tasks that a TaskManager is sent are made together, and end together.

Attempts of one region exchange records while they run, and those of them that are here are made at once: a channel
between two of them has its queue from the beginning. They are of no use without one another, so they end at once too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.cluster.messages import SubmittedTask
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph
from refimpl.job.placement import Placement

__all__ = ["TaskUnit", "TaskUnits", "UnitId", "addresses_of", "graph_of"]


@dataclass(frozen=True, slots=True, order=True)
class UnitId:
    """The attempts of one region under one leadership; each TaskManager that has some of them has a unit of it."""

    job_id: str
    epoch: int
    generation: int
    first: Place

    @classmethod
    def of(cls, task: SubmittedTask) -> UnitId:
        """The unit that a task belongs to."""
        own = task.execution
        first = min((each.place for each in task.together), default=own.place)
        return cls(own.job_id, own.epoch, own.generation, first)


@dataclass(slots=True)
class TaskUnit:
    """What one TaskManager has of a region: the attempts that it awaits, and what it was sent of them by now."""

    id: UnitId
    awaited: frozenset[ExecutionId]
    tasks: dict[ExecutionId, SubmittedTask] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return self.tasks.keys() == self.awaited

    @property
    def task(self) -> SubmittedTask:
        """One of its tasks; what does not concern that alone is the same in all."""
        return next(iter(self.tasks.values()))


class TaskUnits:
    """The units of the TaskManager at `address`, made or still awaited.

    Flink:   TaskExecutor (runtime.taskexecutor), 1.11.4
    Differs: there each task is made when it is sent, and asks for its inputs until they are there.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._units: dict[UnitId, TaskUnit] = {}

    def add(self, task: SubmittedTask, plan: JobPlan) -> TaskUnit | None:
        """A task was sent; its unit, if that is complete now and is to be made."""
        unit_id = UnitId.of(task)
        if unit_id not in self._units:
            here = [each for each in task.together if task.places[plan.slot_of[each.place]] == self._address]
            self._units[unit_id] = TaskUnit(unit_id, frozenset(here) | {task.execution})
        unit = self._units[unit_id]
        unit.tasks[task.execution] = task
        return unit if unit.is_complete else None

    def remove(self, execution: ExecutionId) -> TaskUnit | None:
        """The unit of an attempt that is to end, or has failed: all of it ends. None if it has ended before."""
        for unit in self._units.values():
            if execution in unit.tasks:
                del self._units[unit.id]
                return unit
        return None


def addresses_of(task: SubmittedTask) -> list[str]:
    """The TaskManagers of the job at the moment in which the region of a task was sent out, by their numbers."""
    return sorted({*task.places, *(address for _, address in task.reads)})


def graph_of(job: JobGraph, task: SubmittedTask) -> ExecutionGraph:
    """The graph in which the region of a task is what it was submitted as; every TaskManager comes to the same ids.

    TaskManagers are numbered in the order of their addresses; whoever has written what it reads afterwards counts as
    where that is kept. No id is that of another attempt, also under another leader, which counts its attempts from 0
    again.
    """
    execution = task.execution
    run_id = hashlib.sha256(f"{execution.job_id}/{execution.epoch}".encode()).digest()[:8]
    written = [each for each, _ in task.reads]
    attempts: Mapping[Place, int] = {each.place: each.attempt for each in (*task.together, execution, *written)}
    addresses = addresses_of(task)
    kept = {each.place: addresses.index(address) for each, address in task.reads}
    placement = Placement(job, len(addresses), [addresses.index(each) for each in task.places], kept)
    return ExecutionGraph(job, placement, attempts, run_id, execution.generation)
