"""The regions of a job on threads of this process: each with threads of its own, and one that starts and ends them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial

from refimpl.cluster.region_scheduling import RegionToStart
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.blocking_files import ResultFiles
from refimpl.drivers.region_master import RegionMaster
from refimpl.drivers.regions import JobRegions
from refimpl.drivers.threads.task_manager import RegionPlace, TaskManagerThreads
from refimpl.drivers.threads.task_managers import TaskManagers
from refimpl.drivers.transport.streams import Security
from refimpl.exchange.messages import ResultPartitionId
from refimpl.invariants import check_nothing_left
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.shuffle_environment import pool_of
from refimpl.laws.records import RecordCounts
from refimpl.trace import Trace

__all__ = ["RegionThreads"]

_SECONDS_TO_STOP = 15.0


class RegionThreads:
    """All regions of `graph`, as `TaskManagers` are all tasks of a graph: `members` are those of the regions at work.

    `on_news` is called, on any thread, when the job may have ended.

    Raises:
        SluiceError: the first regions cannot be deployed; nothing is left behind.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        security: Security | None,
        on_news: Callable[[], None],
        num_slots: int | None,
        restart: RestartStrategy | None,
    ) -> None:
        self.job = JobRegions(graph, num_slots, restart)
        self._host = _ThreadsHost(self.job, trace, security, self._note_news)
        self._master = RegionMaster(self.job, self._host, on_news)
        try:
            self._master.deploy_first()
        except BaseException as error:
            self.close(error)
            raise

    @property
    def error(self) -> BaseException | None:
        """The one with which the job has failed for ever, as soon as it has."""
        return self._master.error

    @property
    def is_over(self) -> bool:
        """Whether no task runs any more, nor will."""
        return self._master.is_over

    @property
    def is_cancelled(self) -> bool:
        return self._master.is_cancelled

    @property
    def members(self) -> list[TaskManagerThreads]:
        """Those of the regions at work, or of the last that was."""
        at_work = list(self._master.at_work.values())
        return [each for region in at_work for each in region.members] or self._host.last

    @property
    def deployments(self) -> list[Deployment]:
        """What is deployed now, or was last."""
        return [each.deployment for each in self.members]

    @property
    def is_here(self) -> bool:
        """Whether one of their threads asks."""
        return self._master.is_here or any(each.is_here for each in self.members)

    def start(self) -> None:
        """Start all threads; returns at once."""
        self._master.start()

    def cancel(self) -> None:
        """Stop the tasks after what they are doing now. Returns at once."""
        self._master.cancel()

    def settle(self) -> None:
        """Nothing is left to be done: each region has been checked at its end."""

    def close(self, error: BaseException | None = None) -> None:
        """Stop all threads and give everything back; trouble is noted on `error`. Safe to repeat."""
        self._master.close(0.0 if self.is_here else _SECONDS_TO_STOP, error)
        self._host.files.close()

    def _note_news(self) -> None:
        self._master.note_news()


class _ThreadsHost:
    """Where the regions run: the network memory and the monitor of a TaskManager are those of all its regions."""

    def __init__(
        self, job: JobRegions, trace: Trace | None, security: Security | None, on_news: Callable[[], None]
    ) -> None:
        graph = job.schedule.graph
        numbers = range(graph.placement.num_task_managers)
        self.files = ResultFiles(graph.job.config, len(numbers))
        self.last: list[TaskManagerThreads] = []
        self._job = job
        pools = [pool_of(graph.job.config, trace) for _ in numbers]
        self._monitors = [threading.RLock() for _ in numbers]
        self._make = partial(TaskManagers, trace=trace, security=security, on_news=on_news, pools=pools)

    def deploy(self, region: RegionToStart) -> TaskManagers:
        places = [
            RegionPlace(monitor, results, region.places)
            for monitor, results in zip(self._monitors, self.files.results, strict=True)
        ]
        return self._make(region.graph, places=places)

    def start(self, attempts: TaskManagers) -> None:
        attempts.start()

    def end(self, attempts: TaskManagers) -> list[RecordCounts]:
        for each in attempts.members:
            each.settle()
        check_nothing_left(*attempts.deployments)
        counts = [RecordCounts.of(each) for each in attempts.deployments]
        attempts.close()
        self.last = attempts.members
        return counts

    def stop(self, attempts: TaskManagers, error: BaseException | None) -> None:
        attempts.close(error)

    def cancel(self, attempts: TaskManagers) -> None:
        attempts.cancel()

    def is_available(self, producer: ExecutionVertex) -> bool:
        with self._monitors[producer.task_manager]:
            return self.files.has_results_of(self._job.schedule.graph, producer)

    def drop(self, results: Collection[ResultPartitionId]) -> None:
        for monitor, each in zip(self._monitors, self.files.results, strict=True):
            with monitor:
                for partition in results:
                    each.release(partition)
