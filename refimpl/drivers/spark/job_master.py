"""The checkpoints of a job on Spark: who leads in a try of the stage, and what it goes on from.

TaskManager 0 of each try claims an epoch before any task is made, and finds the newest checkpoint; all of the try go on
from there. Then it is the JobMaster beside its own tasks: it triggers checkpoints, hears of states and writes the
manifests. It restarts nothing: Spark does, with another try. Nor does it remove anything at the end: Spark may lose the
rows even then, and makes them again, from the last checkpoint; who has got them removes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from refimpl.cluster.restart import NoRestart
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.job_threads import JobThreads
from refimpl.drivers.leftovers import remove_checkpoints_of
from refimpl.drivers.processes.attempts import RemoteTask
from refimpl.drivers.processes.messages import TaskSaid, TellTask
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.spark.kept_results import RESULTS_FOLDER
from refimpl.errors import LocalUsageError, NoSuchKeyError
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.state.layout import JobStore, claim_key, claimed_epoch
from refimpl.state.manifest import Manifest
from refimpl.state.recovery import Leader
from refimpl.state.store import MemoryStore, SnapshotStore

__all__ = ["SparkJobMaster", "TryRecovery", "Where"]

_SECONDS_TO_END = 10.0


@dataclass(frozen=True, slots=True)
class Where:
    """Where the checkpoints of the job called `job` are, for all tries of one run.

    `epoch` is the claim of the process that started the run: who does not see it does not see the store.
    """

    store: SnapshotStore
    job: str
    run: str
    epoch: int
    trust_pickle: bool

    @staticmethod
    def of(store: SnapshotStore, job: str, run: str, trust_pickle: bool) -> Where:
        """Claim an epoch for a run.

        Raises:
            LocalUsageError: a store that is in the memory of one process.
            LeadershipLostError, StoreError: as `Leader`.
        """
        if isinstance(store, MemoryStore):
            raise LocalUsageError(
                "a MemoryStore is in the memory of one process, and executors are others: a stage that is tried again "
                "could not go on from there; take a FileStore that all of them see, or an ObjectStore"
            )
        return Where(store, job, run, _claim(store, job, run).epoch, trust_pickle)

    def check(self) -> None:
        """Refuse a store that this machine does not share with the one that started the run.

        Raises:
            LocalUsageError: the claim of the run is not there.
            StoreError: the store did not answer.
        """
        key = claim_key(self.epoch)
        try:
            JobStore(self.store, self.job).size(key)
        except NoSuchKeyError:
            place = self.store.folder if isinstance(self.store, FileStore) else type(self.store).__name__
            raise LocalUsageError(
                f"an executor does not see {key} in {place}, where this run has put it: a try of the stage on that "
                f"machine could not go on from a checkpoint; take a folder or an ObjectStore that all executors share"
            ) from None

    def remove(self) -> None:
        """The job has finished and its results are here: remove its checkpoints. No try leads any more.

        Raises:
            StoreError: the store did not answer.
        """
        _claim(self.store, self.job, self.run)
        remove_checkpoints_of(self.store, self.job)
        own = JobStore(self.store, self.job)
        own.delete(own.list(RESULTS_FOLDER))


def _claim(store: SnapshotStore, job: str, run: str) -> Leader:
    own = JobStore(store, job)
    return Leader(own, max((claimed_epoch(key) or 0 for key in own.list("leader-")), default=0) + 1, run)


class TryRecovery(JobRecovery):
    """The checkpoints of one try: a failure ends it."""

    def __init__(self, graph: ExecutionGraph, where: Where) -> None:
        trust = where.trust_pickle
        super().__init__(graph, where.store, where.job, NoRestart(), trust_pickle=trust, run=where.run)

    @property
    def manifest(self) -> Manifest | None:
        """What it goes on from."""
        recovered = self.checkpoints.recovered
        return None if recovered is None else recovered.manifest

    def dispose(self) -> None:
        """Nothing: the rows are not yet where they are wanted."""


class _Attempts:
    """All tasks of the try, as TaskManager 0 reaches them. What goes wrong with them is voted on elsewhere."""

    error: BaseException | None = None

    def __init__(self, graph: ExecutionGraph, tell: Callable[[int, TellTask], None]) -> None:
        self.is_over = False
        self.generation = graph.generation
        self.tasks: Mapping[str, RemoteTask] = {
            each.name: RemoteTask(partial(tell, each.task_manager), each.name, graph.generation)
            for each in graph.vertices
        }


class SparkJobMaster:
    """Keeps the checkpoints of a try going, beside TaskManager 0; `tell` sends a word to a task of TaskManager i.

    `fail` ends the job, with the reason, because of its checkpoints. Words of the tasks come to `hear`, on any thread.

    Flink:   JobMaster (runtime.jobmaster), 1.11.4
    """

    def __init__(
        self,
        recovery: TryRecovery,
        clock: ProcessingClock,
        tell: Callable[[int, TellTask], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._recovery = recovery
        self._fail = fail
        self._has_ended = threading.Event()
        self._attempts = _Attempts(recovery.graph, tell)
        self._master: JobThreads[_Attempts] = JobThreads(recovery, self, clock, self._on_over)

    # -- the try -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The tasks are about to run."""
        self._master.start()

    def hear(self, said: TaskSaid) -> None:
        """A task says something of a checkpoint, or that it has ended well."""
        task = self._attempts.tasks.get(said.task)
        if task is not None and said.generation == self._attempts.generation:
            task.hear(said.report)
            self._master.note_news()

    def all_ended(self) -> None:
        """Every task has ended well: wait until what is under way in the store is done, but not for long."""
        self._attempts.is_over = True
        self._master.note_news()
        self._has_ended.wait(_SECONDS_TO_END)

    def close(self) -> None:
        """Take no more checkpoints."""
        self._master.cancel(_SECONDS_TO_END)

    # -- what `JobThreads` deploys on: the tasks are there, and Spark ends them ----------------------------

    def deploy(self) -> _Attempts:
        return self._attempts

    def start(self, attempts: _Attempts) -> None: ...

    def settle(self, attempts: _Attempts) -> None: ...

    def stop(self, attempts: _Attempts, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)

    def _on_over(self, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        self._has_ended.set()
