"""Which blocking results of a job there are, and where: from the end of their producer until nobody needs them.

A region starts when all that it reads afterwards is complete and kept. What it has read goes when every region that
reads the same has come to its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from refimpl.cluster.executions import Execution, ExecutionId, ExecutionState
from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.job.regions import regions

__all__ = ["KeptResult", "ResultTracker"]


@dataclass(frozen=True, slots=True, order=True)
class KeptResult:
    """What an attempt has written for who reads it later, all of it, and the address of the TaskManager that has it."""

    execution: ExecutionId
    task_manager: str


class ResultTracker:
    """The blocking results of the job of `plan`, by the subtask that has produced them.

    Flink:   JobMasterPartitionTrackerImpl (runtime.io.network.partition), RegionPartitionReleaseStrategy
             (runtime.executiongraph.failover.flip1.partitionrelease), 1.11.4
    """

    def __init__(self, plan: JobPlan) -> None:
        places = list(plan.slot_of)
        self.region_of = {place: each for each in regions(places, plan.exchanges) for place in each}
        self._regions = list(dict.fromkeys(self.region_of[place] for place in places))
        self._reads: dict[frozenset[Place], set[Place]] = {each: set() for each in self._regions}
        self._readers: dict[Place, set[frozenset[Place]]] = {}  # by producer
        for each in plan.exchanges:
            if each.is_blocking:
                reader = self.region_of[each.consumer]
                self._reads[reader].add(each.producer)
                self._readers.setdefault(each.producer, set()).add(reader)
        self._kept: dict[Place, KeptResult] = {}

    @property
    def has_blocking(self) -> bool:
        """Whether the job writes any."""
        return bool(self._readers)

    @property
    def kept(self) -> tuple[KeptResult, ...]:
        """Those that are there."""
        return tuple(self._kept.values())

    def is_producer(self, place: Place) -> bool:
        """Whether a subtask writes a blocking result."""
        return place in self._readers

    def is_kept(self, place: Place) -> bool:
        """Whether what a subtask has produced is there."""
        return place in self._kept

    def keep(self, execution: ExecutionId, task_manager: str) -> None:
        """An attempt has come to its end there, and has produced what is read later."""
        if self.is_producer(execution.place):
            self._kept[execution.place] = KeptResult(execution, task_manager)

    def drop(self, execution: ExecutionId) -> KeptResult | None:
        """What an attempt has produced is gone, or of no use to anybody; None if there is none."""
        kept = self._kept.get(execution.place)
        return self._kept.pop(execution.place) if kept is not None and kept.execution == execution else None

    def at(self, task_manager: str) -> list[KeptResult]:
        """What is kept there."""
        return [each for each in self._kept.values() if each.task_manager == task_manager]

    def read_by(self, place: Place) -> tuple[KeptResult, ...]:
        """What the region of a subtask reads, when it is all there."""
        return tuple(self._kept[each] for each in sorted(self._reads[self.region_of[place]]) if each in self._kept)

    def done_with(self, executions: Mapping[Place, Execution]) -> list[KeptResult]:
        """What has been read by every region that reads it."""
        done = [region for region in self._regions if all(_has_finished(executions[place]) for place in region)]
        return [kept for place, kept in self._kept.items() if self._readers[place] <= set(done)]

    def next_region(
        self, executions: Mapping[Place, Execution], excluded: Collection[Place]
    ) -> tuple[frozenset[Place] | None, list[Place]]:
        """The first region in the order of the job that can start, none of it `excluded`; else the producers, if there
        are any, that have finished and whose results, which somebody waits for, are not there any more."""
        lost: list[Place] = []
        for region in self._regions:
            reads = self._reads[region]
            if any(executions[each].state is not ExecutionState.CREATED for each in region):
                continue
            if not all(_has_finished(executions[each]) for each in reads) or not reads.union(region).isdisjoint(
                excluded
            ):
                continue
            if reads <= self._kept.keys():
                return region, []
            lost += sorted(reads - self._kept.keys())
        return None, lost

    def is_available(self, executions: Mapping[Place, Execution], place: Place) -> bool:
        """Whether who reads what a subtask produces does not need another attempt of it."""
        return place in self._kept or not _has_finished(executions[place])

    def wanted_at(self, task_manager: str, live: Iterable[ExecutionId]) -> tuple[ExecutionId, ...]:
        """Whose results a TaskManager is to keep: those that are there, and those that `live` attempts there write."""
        writing = [each for each in live if self.is_producer(each.place)]
        return tuple(sorted([*writing, *(each.execution for each in self.at(task_manager))]))


def _has_finished(execution: Execution) -> bool:
    return execution.state is ExecutionState.FINISHED
