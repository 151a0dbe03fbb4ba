"""What the regions of one job share on a TaskManager: its network memory, and the blocking results that are kept there.

Results outlive the attempts that have written them: whoever reads them from elsewhere connects to the `ResultServer`,
which is there as long as the job has business here.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial

from refimpl.cluster.executions import ExecutionId
from refimpl.drivers.cluster.tasks.words import DataAddress
from refimpl.drivers.kept_partitions import KeptPartitions
from refimpl.drivers.makers import makers_of
from refimpl.drivers.threads.connections import TaskManagerConnections
from refimpl.drivers.threads.job_memory import JobMemory
from refimpl.drivers.threads.leader_followers import LeaderFollowers
from refimpl.drivers.threads.task_manager import RegionPlace
from refimpl.drivers.transport.streams import Security
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.state.store import SnapshotStore

__all__ = ["JobPlace", "ResultServer", "Workplace"]

_SECONDS_TO_SETTLE = 5.0


@dataclass(frozen=True, slots=True)
class Workplace:
    """What tasks find on a TaskManager: where their states are kept, and how others reach their data."""

    store: SnapshotStore
    host: str = "127.0.0.1"
    security: Security | None = None


class ResultServer:
    """Lets tasks elsewhere read the results of a job, which are in `place`, from `address`, until it is stopped.

    `on_bug` hears, on any thread, what nobody has foreseen.

    Raises:
        ConfigError: it cannot listen there.

    Flink:   NettyServer, ResultPartitionManager (runtime.io.network), 1.11.4
    Differs: there one for all jobs.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        pool: NetworkBufferPool,
        place: RegionPlace,
        workplace: Workplace,
        on_bug: Callable[[BaseException], None],
    ) -> None:
        self.monitor = place.monitor
        self.leader_followers = LeaderFollowers(place.monitor, {})  # no task is here that could read
        self.fail = on_bug
        makers = makers_of(graph.job.config)
        self._deployment = Deployment(graph, makers=makers, pool=pool, results=place.results, region=())
        self._connections = TaskManagerConnections(self, self._deployment, False, workplace.host, workplace.security)
        self.address: DataAddress = self._connections.address
        self._thread = threading.Thread(target=self._accept, name=f"results at {self.address}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cut all who read; waits until nothing of them is left, for a while."""
        self._connections.stop()
        self._thread.join(_SECONDS_TO_SETTLE)
        self._connections.settle(_SECONDS_TO_SETTLE)
        with self.monitor:
            self.leader_followers.close()
            self._deployment.close()

    def _accept(self) -> None:
        try:
            self._connections.accept()
        except BaseException as bug:  # noqa: BLE001 - told to who runs the TaskManager
            self.fail(bug)


class JobPlace:
    """The place of the job called `job_id` on a TaskManager; of a job without blocking exchanges it has memory only.

    Files are removed on a thread of its own.

    Flink:   NettyShuffleEnvironment, TaskExecutorPartitionTrackerImpl (runtime.io.network), 1.11.4
    """

    def __init__(self, job_id: str, workplace: Workplace, on_bug: Callable[[BaseException], None]) -> None:
        self.workplace = workplace
        self._job_id = job_id
        self._on_bug = on_bug
        self._lock = threading.Lock()
        self._kept = KeptPartitions()  # under the monitor of the job
        self._memory: JobMemory | None = None
        self._monitor = threading.RLock()
        self._server: ResultServer | None = None
        self._to_drop: queue.SimpleQueue[tuple[ExecutionId, ...] | None] = queue.SimpleQueue()
        self._janitor = threading.Thread(target=self._tidy, name=f"results of {job_id}", daemon=True)

    @property
    def results_address(self) -> DataAddress:
        """Where others read the results that are kept here; none if the job has no such."""
        return None if self._server is None else self._server.address

    def of(self, region: frozenset[Place], graph: ExecutionGraph) -> tuple[NetworkBufferPool, RegionPlace]:
        """What is for a region of `graph`; the first brings all that they share.

        Raises:
            ConfigError: the job compresses, and the library for that is not there; or nobody can listen here.
        """
        with self._lock:
            if self._memory is None:
                is_batch = graph.job.is_batch
                self._memory = JobMemory(partial(self._kept.of, self._job_id)) if is_batch else JobMemory()
            pool, place = self._memory.of(region, graph.job.config)
            self._monitor = place.monitor
            if graph.job.is_batch and self._server is None:
                self._janitor.start()
                self._server = ResultServer(graph, pool, place, self.workplace, self._on_bug)
        return pool, place

    def writes(self, graph: ExecutionGraph, executions: Iterable[ExecutionId]) -> None:
        """These attempts of `graph` begin to write results that are to be kept."""
        with self._monitor:
            self._kept.writes(graph, executions)

    def has(self, execution: ExecutionId) -> bool:
        """Whether all that an attempt has written is here, and complete."""
        with self._monitor:
            return self._kept.has(execution)

    def drop(self, executions: Collection[ExecutionId]) -> None:
        """Nobody needs what these have written. Returns at once."""
        self._to_drop.put(tuple(executions))

    def close(self) -> None:
        """Drop all, and serve nobody any more. Returns at once; no region may be made here afterwards."""
        self._to_drop.put(None)

    def join(self, timeout_s: float) -> bool:
        """After `close`, wait until nothing is left; whether that is so."""
        if self._janitor.ident is not None:
            self._janitor.join(timeout_s)
        return not self._janitor.is_alive()

    def _tidy(self) -> None:
        try:
            while (executions := self._to_drop.get()) is not None:
                with self._monitor:
                    self._kept.drop(executions)
            if self._server is not None:
                self._server.stop()
            with self._monitor:
                self._kept.close()
        except BaseException as bug:  # noqa: BLE001 - told to who runs the TaskManager
            self._on_bug(bug)
