"""The regions of a job in a simulation: deployed one by one, on TaskManagers whose memory and results stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from refimpl.cluster.region_scheduling import RegionToStart
from refimpl.cluster.restart import RestartAt, RestartStrategy
from refimpl.drivers.blocking_files import ResultFiles, results_of
from refimpl.drivers.makers import makers_of
from refimpl.drivers.regions import JobRegions
from refimpl.drivers.simulation.wire import Link, Way, links_between
from refimpl.errors import LocalUsageError
from refimpl.exchange.messages import ResultPartitionId
from refimpl.invariants import check_end_here
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.shuffle_environment import pool_of
from refimpl.laws.records import RecordCounts
from refimpl.trace import Trace

__all__ = ["RegionAtWork", "SimulatedRegions"]


@dataclass(slots=True)
class RegionAtWork:
    """A region that runs: its part on each TaskManager, and the links between them."""

    number: int
    deployments: list[Deployment]
    links: dict[str, Link] = field(default_factory=dict[str, Link])

    @property
    def is_over(self) -> bool:
        """Whether its tasks are done and nothing of it is on the way."""
        if not all(each.is_done for each in self.deployments):
            return False
        return not any(
            link.can_send(way) or link.next_arrival_ms(way) is not None for link in self.links.values() for way in Way
        )


class SimulatedRegions:
    """The regions of `graph`, those at work by number; `graph` is that of the newest attempts."""

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        num_slots: int | None = None,
        restart: RestartStrategy | None = None,
    ) -> None:
        self.job = JobRegions(graph, num_slots, restart)
        self.at_work: dict[int, RegionAtWork] = {}
        self.ended: list[Deployment] = []
        self._trace = trace
        config, numbers = graph.job.config, range(graph.placement.num_task_managers)
        self._files = ResultFiles(config, len(numbers))
        self._pools = [pool_of(config, trace) for _ in numbers]

    @property
    def graph(self) -> ExecutionGraph:
        """That of the attempts that run, or ran last."""
        return self.job.schedule.graph

    @property
    def num_result_bytes(self) -> int:
        """What blocking results take now."""
        return sum(each.num_bytes for each in self._files.results)

    def start(self) -> list[RegionAtWork]:
        """Deploy the regions whose time has come.

        Raises:
            SluiceError: one cannot be deployed.
        """
        return [self._deploy(each) for each in self.job.schedule.start_next()]

    def end(self, region: RegionAtWork) -> None:
        """A region is over: see that nothing is left of it, take back its memory, and drop what nobody reads any more.

        Raises:
            AssertionError: a law is broken.
        """
        others = [each for other in self.at_work.values() if other is not region for each in other.deployments]
        check_end_here(*region.deployments, beside=others)
        for link in region.links.values():
            link.check_end()
        del self.at_work[region.number]
        counts = [RecordCounts.of(each) for each in region.deployments]
        for each in region.deployments:
            each.close()
        self.ended = region.deployments
        self._drop(self.job.ended(region.number, counts))

    def fail(
        self, failed: Collection[int], error: BaseException, now_ms: float
    ) -> tuple[RestartAt, list[RegionAtWork]] | None:
        """Regions have failed: when they begin again, and what at work is stopped by that; `None` if they never do."""
        decided = self.job.failed(failed, error, now_ms, self._is_available)
        if decided is None:
            return None
        restart, numbers, results = decided
        stopped = [self.at_work.pop(each) for each in numbers if each in self.at_work]
        for region in stopped:
            for each in region.deployments:
                each.close_after(error)
        self._drop(results)
        return restart, stopped

    def lose_result(self, producer: str) -> None:
        """Let a finished task's blocking results be no more, as with the disk they were on.

        Raises:
            LocalUsageError: it has none.
        """
        named = [each for each in self.graph.vertices if each.name == producer]
        lost = [each for execution in named for each in results_of(self.graph, execution)]
        if not lost or not all(map(self._is_available, named)):
            raise LocalUsageError(f"{producer} has no blocking result that could be lost")
        self._drop(lost)

    def lose_results_of(self, task_manager: int) -> None:
        """Let all blocking results of a TaskManager be no more."""
        results = self._files.results[task_manager]
        self._drop([each for each in results.ids if each not in self._being_written()])

    def close(self) -> None:
        """Drop all results."""
        self._files.close()

    def _deploy(self, start: RegionToStart) -> RegionAtWork:
        region = RegionAtWork(start.number, [])
        self.at_work[start.number] = region
        config = start.graph.job.config
        for number, pool in enumerate(self._pools):
            makers = makers_of(config, default=False)
            results = self._files.results[number]
            made = Deployment(
                start.graph,
                number,
                self._trace,
                makers=makers,
                pool=pool,
                results=results,
                region=start.places,
            )
            region.deployments.append(made)
        label = "" if len(self.job.schedule.states) == 1 else f"region {start.number}: "
        region.links = links_between(region.deployments, label)
        return region

    def _being_written(self) -> set[ResultPartitionId]:
        return {each for number in self.at_work for each in self.job.schedule.results(number)}

    def _is_available(self, execution: ExecutionVertex) -> bool:
        return self._files.has_results_of(self.graph, execution)

    def _drop(self, results: Sequence[ResultPartitionId]) -> None:
        for each in self._files.results:
            for partition in results:
                each.release(partition)
