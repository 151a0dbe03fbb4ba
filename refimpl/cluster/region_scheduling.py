"""Which regions of a job run now: each starts when every blocking result it reads is complete, and slots are free.

A region that has failed begins again by itself, with whoever has read from it; who has produced what it reads is asked
again only if that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.failover import to_restart
from refimpl.errors import LocalUsageError
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.job_graph import Place
from refimpl.transitions import next_state

__all__ = ["REGION_TRANSITIONS", "RegionEvent", "RegionSchedule", "RegionState", "RegionToStart"]


class RegionState(Enum):
    """How far a region is."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class RegionEvent(Enum):
    """What can happen to a region."""

    START = "start"
    FINISH = "finish"
    RESTART = "begin again"


REGION_TRANSITIONS = {
    RegionState.WAITING: {RegionEvent.START: RegionState.RUNNING, RegionEvent.RESTART: RegionState.WAITING},
    RegionState.RUNNING: {RegionEvent.FINISH: RegionState.FINISHED, RegionEvent.RESTART: RegionState.WAITING},
    RegionState.FINISHED: {RegionEvent.RESTART: RegionState.WAITING},
}


@dataclass(frozen=True, slots=True)
class RegionToStart:
    """A region whose time has come: its number, and the graph with its attempts as they are to be."""

    number: int
    graph: ExecutionGraph
    executions: tuple[ExecutionVertex, ...]

    @property
    def places(self) -> frozenset[Place]:
        """The subtasks that it consists of."""
        return frozenset((each.vertex.id, each.subtask) for each in self.executions)


class RegionSchedule:
    """The regions of `graph`, by their numbers in the order of the job. `most_slots` were in use at one time.

    `num_slots` are all there are; without it, as many as are wanted. `graph` is that of the attempts that run, or ran
    last.

    Raises:
        LocalUsageError: a region needs more slots at one time than there are.

    Flink:   PipelinedRegionSchedulingStrategy (runtime.scheduler.strategy), 1.12; LazyFromSourcesSchedulingStrategy,
             1.11.4, starts single tasks
    """

    def __init__(self, graph: ExecutionGraph, num_slots: int | None = None) -> None:
        self.graph = graph
        self.most_slots = 0
        job = graph.job
        self._places = job.places
        self._regions: Sequence[frozenset[Place]] = job.regions()
        self._slots = [job.slots_of(region) for region in self._regions]
        self._num_slots = num_slots
        if num_slots is not None and num_slots < job.num_slots:
            raise LocalUsageError(
                f"the job needs {job.num_slots} slots at one time, and there are {num_slots}; explain() says why"
            )
        self._states = [RegionState.WAITING] * len(self._regions)
        region_of = {place: number for number, region in enumerate(self._regions) for place in region}
        self._region_of = region_of
        self._reads: list[set[int]] = [set() for _ in self._regions]
        for each in job.exchanges:
            if each.is_blocking:
                self._reads[region_of[each.consumer]].add(region_of[each.producer])

    def __repr__(self) -> str:
        return f"RegionSchedule({', '.join(state.value for state in self._states)})"

    @property
    def states(self) -> tuple[RegionState, ...]:
        """How far each region is."""
        return tuple(self._states)

    @property
    def is_done(self) -> bool:
        """Whether all regions have finished."""
        return all(state is RegionState.FINISHED for state in self._states)

    def start_next(self) -> list[RegionToStart]:
        """The regions that start now, in the order of the job."""
        started = []
        for number, state in enumerate(self._states):
            is_complete = all(self._states[each] is RegionState.FINISHED for each in self._reads[number])
            if state is RegionState.WAITING and is_complete and self._takes_slots(number):
                self._go_on(number, RegionEvent.START)
                started.append(RegionToStart(number, self.graph, self.executions(number)))
        return started

    def executions(self, number: int) -> tuple[ExecutionVertex, ...]:
        """The present attempts of a region."""
        return tuple(each for each in self.graph.vertices if (each.vertex.id, each.subtask) in self._regions[number])

    def finished(self, number: int) -> list[ResultPartitionId]:
        """A region has come to its end: the results that nobody will read any more, unless somebody begins again.

        Flink:   RegionPartitionReleaseStrategy (runtime.executiongraph.failover.flip1.partitionrelease), 1.11.4
        """
        self._go_on(number, RegionEvent.FINISH)
        return [
            partition
            for producer in sorted(self._reads[number])
            if all(self._states[each] is RegionState.FINISHED for each in self._readers_of(producer))
            for partition in self.results(producer)
        ]

    def results(self, number: int) -> list[ResultPartitionId]:
        """The blocking results that the present attempts of a region write."""
        executions = self.executions(number)
        return [
            self.graph.partition_id(index, each)
            for index, edge in enumerate(self.graph.job.edges)
            for each in executions
            if edge.is_blocking and edge.source == each.vertex.id
        ]

    def failed(
        self, numbers: Iterable[int], is_available: Callable[[ExecutionVertex], bool] = lambda _producer: True
    ) -> list[int]:
        """Regions have failed: the numbers of those that begin again with them, they themselves among these.

        Whatever of them runs must be stopped before `start_next`, and what they have written is of no use any more.
        `is_available` says whether the blocking results of a finished attempt are still there.
        """
        present = {(each.vertex.id, each.subtask): each for each in self.graph.vertices}
        begin_again = to_restart(
            [place for number in numbers for place in self._regions[number]],
            self._places,
            self.graph.job.exchanges,
            lambda place: self._has_result(present[place], is_available),
        )
        again = sorted({self._region_of[place] for place in begin_again})
        touched = [each for each in again if self._states[each] is not RegionState.WAITING]
        executions = [execution for each in touched for execution in self.executions(each)]
        for each in touched:
            self._go_on(each, RegionEvent.RESTART)
        self.graph = self.graph.restarted(executions)
        return touched

    def _has_result(self, producer: ExecutionVertex, is_available: Callable[[ExecutionVertex], bool]) -> bool:
        state = self._states[self._region_of[producer.vertex.id, producer.subtask]]
        return state is not RegionState.FINISHED or is_available(producer)  # what runs has lost nothing

    def _readers_of(self, producer: int) -> Iterable[int]:
        return (number for number, reads in enumerate(self._reads) if producer in reads)

    def _takes_slots(self, number: int) -> bool:
        """Whether there are slots for one region more; then they are counted."""
        running = (each for each, state in enumerate(self._states) if state is RegionState.RUNNING)
        wanted = set(self._slots[number]).union(*(self._slots[each] for each in running))
        if self._num_slots is not None and len(wanted) > self._num_slots:
            return False
        self.most_slots = max(self.most_slots, len(wanted))
        return True

    def _go_on(self, number: int, event: RegionEvent) -> None:
        self._states[number] = next_state(REGION_TRANSITIONS, self._states[number], event, self)
