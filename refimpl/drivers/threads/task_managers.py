"""The TaskManagers of a job, all on threads of this process: of one deployment, and of each that follows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.task_gateways import LocalTask
from refimpl.drivers.threads.task_manager import RegionPlace, TaskManagerThreads
from refimpl.drivers.transport.streams import Security
from refimpl.invariants import check_end
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.shuffle_environment import pool_of
from refimpl.job.task_factory import Snapshots
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.trace import Trace

__all__ = ["TaskManagers", "ThreadsCluster"]


class TaskManagers:
    """All of `graph`, in `members`; if one fails the others stop too, and `error` is the first that was.

    `on_news` is called, on any thread, without a monitor, when one of them has ended or failed; with `snapshots` also
    when a task has something to say of a checkpoint, on its thread. `pools`, by TaskManager, outlive this deployment.
    With `places`, by TaskManager, they are those of one region.

    Raises:
        ConfigError, InsufficientBuffersError, RestoreRefusedError: as `TaskManagerThreads`; nothing is left behind.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        security: Security | None,
        on_news: Callable[[], None],
        snapshots: Snapshots | None = None,
        pools: Sequence[NetworkBufferPool] | None = None,
        places: Sequence[RegionPlace] | None = None,
    ) -> None:
        self.members: list[TaskManagerThreads] = []
        self._on_news = on_news
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        try:
            for number in range(graph.placement.num_task_managers):
                each = TaskManagerThreads(
                    graph,
                    trace,
                    number,
                    security=security,
                    on_end=self._ended,
                    snapshots=snapshots,
                    on_news=on_news if snapshots is not None else _nobody_waits,
                    pool=None if pools is None else pools[number],
                    place=None if places is None else places[number],
                )
                self.members.append(each)
        except BaseException as error:
            self.close(error)
            raise
        self.tasks: Mapping[str, LocalTask] = {}
        if snapshots is not None:
            self.tasks = {
                task.name: LocalTask(task, partial(each.wake, task), on_news)
                for each in self.members
                for task in each.deployment.tasks
            }

    @property
    def deployments(self) -> list[Deployment]:
        """The part of the job that each TaskManager has."""
        return [each.deployment for each in self.members]

    @property
    def error(self) -> BaseException | None:
        """The first one, as soon as it has happened."""
        return self._error or next((each.error for each in self.members if each.error is not None), None)

    @property
    def is_over(self) -> bool:
        """Whether no task runs any more."""
        return all(each.is_ended for each in self.members)

    @property
    def is_cancelled(self) -> bool:
        return any(each.is_cancelled for each in self.members)

    @property
    def is_here(self) -> bool:
        """Whether one of their threads asks."""
        return any(each.is_here for each in self.members)

    def start(self) -> None:
        """Start all threads; returns at once."""
        addresses = [each.connections.address for each in self.members]
        for each in self.members:
            each.start(addresses)

    def cancel(self) -> None:
        """Stop the tasks after what they are doing now. Returns at once."""
        for each in self.members:
            each.cancel()

    def settle(self) -> None:
        """After the last task has ended well: wait for the connections to end too, and check that nothing is left.

        Raises:
            AssertionError: a law is broken.
        """
        for each in self.members:
            each.settle()
        check_end(*self.deployments)

    def close(self, error: BaseException | None = None) -> None:
        """Stop all threads and give everything back; trouble is noted on `error`. Safe to repeat."""
        for each in self.members:
            each.cancel()
        for each in self.members:
            each.close(error)

    def _ended(self) -> None:
        """A TaskManager's last task has ended, or one has failed: then the others stop too."""
        with self._lock:
            self._error = error = self.error
        self._on_news()
        if error is not None:
            self.cancel()


class ThreadsCluster:
    """Where the attempts of a job are made, one after the other: the network memory of its TaskManagers stays.

    `on_news` is as in `TaskManagers`.
    """

    def __init__(
        self,
        recovery: JobRecovery,
        trace: Trace | None,
        security: Security | None,
        on_news: Callable[[], None],
    ) -> None:
        self._recovery = recovery
        self._trace = trace
        self._security = security
        self._on_news = on_news
        graph = recovery.graph
        self._pools = [pool_of(graph.job.config, trace) for _ in range(graph.placement.num_task_managers)]

    def deploy(self) -> TaskManagers:
        """Make the attempts of the newest graph; the store is asked.

        Raises:
            SluiceError: as `JobRecovery.snapshots` and `TaskManagers`.
        """
        snapshots, graph = self._recovery.snapshots(), self._recovery.graph
        return TaskManagers(graph, self._trace, self._security, self._on_news, snapshots, self._pools)

    def start(self, attempts: TaskManagers) -> None:
        attempts.start()

    def settle(self, attempts: TaskManagers) -> None:
        attempts.settle()

    def stop(self, attempts: TaskManagers, error: BaseException | None) -> None:
        attempts.close(error)


def _nobody_waits() -> None:
    """Without checkpoints it is the end that counts."""
