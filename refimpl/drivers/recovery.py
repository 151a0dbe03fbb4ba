"""How a run goes on after a failure: whether it restarts, when, and from which checkpoint.

Drivers share this. They give it the tasks of each deployment, ask it what they need for the next one, and let it
carry messages between the tasks and the coordinator; the clock and the threads are theirs. What those do next whose
clock runs by itself is in `RestartingJob`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from refimpl.checkpoint.completed import JobEnd
from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.decisions import NotifyAborted, NotifyComplete, TriggerCheckpoint
from refimpl.checkpoint.live_tasks import TaskEvent
from refimpl.cluster.restart import FixedDelayRestart, GiveUp, RestartAt, Restarts, RestartStrategy
from refimpl.config import Config, FlinkVersion
from refimpl.drivers.restore_point import RestorePoint
from refimpl.drivers.run_checkpoints import Attempt, RunCheckpoints, ToTask
from refimpl.drivers.store_calls import StoreWork
from refimpl.drivers.task_gateways import StateToPut, TaskGateway
from refimpl.errors import (
    ConfigError,
    InsufficientBuffersError,
    LeadershipLostError,
    LocalUsageError,
    RestoreRefusedError,
    SluiceError,
)
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.task_factory import Snapshots
from refimpl.records.events import (
    Alignment,
    CheckpointBarrier,
    CheckpointType,
    SavepointFormat,
    alignment_of,
    alignment_timeout_of,
)
from refimpl.state.store import SnapshotStore
from refimpl.state.subtask_state import SubtaskState
from refimpl.task.checkpoint_reports import Snapshotted, Unwanted

__all__ = ["JobRecovery", "barrier_of", "dispose_of", "is_recoverable"]

_NOT_AGAIN = (ConfigError, InsufficientBuffersError, LeadershipLostError, LocalUsageError, RestoreRefusedError)
"""Errors that a job would meet again."""


class JobRecovery:
    """The checkpoints of the job called `job` in a store, and its restarts.

    `graph` is that of the attempts that run, or are to be deployed next. `failure` is set when the coordinator wants
    the job to fail. With the name of a `savepoint` the first attempts begin with that one, whatever there is beside it;
    it counts as a checkpoint from then on. What another run has pickled is read with `trust_pickle` only: to read it is
    to run what it says. Tries of one run that know nothing of each other give the same `run`.

    Flink:   JobMaster, DefaultScheduler (runtime.jobmaster, runtime.scheduler), 1.11.4
    Differs: a failure restarts every task. What a job that has failed for ever leaves stays in the store, so that
             another run can go on; Flink deletes it unless it is told not to.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        store: SnapshotStore,
        job: str,
        restart: RestartStrategy | None = None,
        epoch_ms: float = 0.0,
        trust_pickle: bool = False,
        savepoint: str | None = None,
        run: str | None = None,
    ) -> None:
        self.graph = graph
        self.checkpoints = RunCheckpoints(store, job, graph.job.config, self._tell, self._fail, epoch_ms, run)
        self.store, self._trust_pickle = store, trust_pickle
        self._savepoint = savepoint
        self.failure: SluiceError | None = None
        self._restarts = Restarts(restart or FixedDelayRestart(3, 1_000.0))
        self._tasks: dict[Attempt, TaskGateway] = {}
        self._running: dict[Attempt, TaskGateway] = {}
        self._untold: dict[str, Attempt] = {}  # files that were put, and their tasks have not spoken of

    # -- deployments -----------------------------------------------------------------------------------

    def restore_point(self) -> RestorePoint:
        """What the next deployment goes on from; the store is asked.

        Raises:
            RestoreRefusedError, LeadershipLostError, StoreError: as `RunCheckpoints.recover`.
        """
        point = self.checkpoints.recover(self.graph, self._savepoint, trust_pickle=self._trust_pickle)
        self._savepoint = None
        return point

    def snapshots(self) -> Snapshots:
        """The same, with all states read.

        Raises:
            RestoreRefusedError, LeadershipLostError, StoreError, CorruptFileError: as `RestorePoint.snapshots` too.
        """
        return self.restore_point().snapshots(self.store, self.graph)

    def start(self, tasks: Mapping[str, TaskGateway], now_ms: float) -> None:
        """These tasks, by name, are deployed and about to run."""
        self._tasks = {Attempt(name, self.graph.generation): task for name, task in tasks.items()}
        self._running = dict(self._tasks)
        self.checkpoints.start(self.graph, now_ms)

    def stop(self, now_ms: float) -> None:
        """The tasks are no more. What they have put and nobody has heard of is deleted."""
        self._tasks, self._running = {}, {}
        self.checkpoints.stop(now_ms)
        for key, attempt in self._untold.items():
            self.checkpoints.task_says(attempt, Unwanted(key), now_ms)
        self._untold.clear()

    def failed(self, error: BaseException, now_ms: float) -> RestartAt | GiveUp:
        """The job has failed: its tasks are no more. With a time to restart, the graph is that of the next attempts."""
        self.stop(now_ms)
        self.failure = None
        decision = self._restarts.failed(now_ms, is_recoverable(error))
        if isinstance(decision, RestartAt):
            self.graph = self.graph.restarted()
        return decision

    @property
    def is_at_work(self) -> bool:
        """Whether the coordinator counts on tasks."""
        return bool(self.checkpoints.coordinator.tasks.attempts)

    def savepoint(self, name: str, now_ms: float) -> CheckpointRequest:
        """Ask for a savepoint.

        Raises:
            LocalUsageError: the name is taken, or no task runs.
        """
        if not self.is_at_work:
            raise LocalUsageError("no task runs that could save anything")
        return self.checkpoints.savepoint(name, now_ms)

    def finished(self, now_ms: float) -> None:
        """All tasks have ended well: `stop`, then `dispose`."""
        self.stop(now_ms)
        self.dispose()

    def dispose(self) -> None:
        """What was kept for a restart is not needed any more; what is to be done waits among the calls of the store."""
        dispose_of(self.checkpoints, self.graph)

    # -- between tasks and coordinator -------------------------------------------------------------------

    def collect(self, now_ms: float) -> None:
        """Take what tasks have for the store and for the coordinator."""
        for attempt, task in list(self._running.items()):
            is_done = task.is_done  # asked first: what a task says comes before its end
            for said in task.take():
                if isinstance(said, StateToPut):
                    self._put(attempt, said)
                    continue
                if isinstance(said, Snapshotted) and said.file is not None:
                    self._untold.pop(said.file.key, None)
                elif isinstance(said, Unwanted):
                    self._untold.pop(said.key, None)
                self.checkpoints.task_says(attempt, said, now_ms)
            if is_done:
                del self._running[attempt]
                self.checkpoints.task_is(attempt, TaskEvent.FINISH, now_ms)

    def gone(self, names: Collection[str]) -> None:
        """These tasks are no more, without a word; the others go on until somebody notices."""
        for attempt in [each for each in self._tasks if each.task in names]:
            del self._tasks[attempt]
            self._running.pop(attempt, None)

    def _put(self, attempt: Attempt, said: StateToPut) -> None:
        do, then = partial(self._put_state, attempt, said.state), partial(self._was_put, attempt, said)
        self.checkpoints.work.append(StoreWork(f"write {said.state.file.key}", do, then))

    def _put_state(self, attempt: Attempt, state: SubtaskState) -> None:
        if attempt in self._tasks:  # or else nobody wants it any more
            self.checkpoints.leader.store.put(state.file.key, state.parts)

    def _was_put(self, attempt: Attempt, said: StateToPut, error: SluiceError | None, now_ms: float) -> None:
        """A task's state has been put, or not; a task that is no more has left a file that nobody wants."""
        task, key = self._tasks.get(attempt), said.state.file.key
        if task is None:
            self.checkpoints.task_says(attempt, Unwanted(key), now_ms)
            return
        self._untold[key] = attempt
        task.written(said.checkpoint_id, None if error is None else str(error))

    def _tell(self, attempt: Attempt, message: ToTask) -> None:
        task = self._tasks.get(attempt)
        if task is None:
            return
        match message:
            case TriggerCheckpoint():
                name, config = message.request.name, self.graph.job.config
                task.send_barrier(barrier_of(message.checkpoint_id, message.timestamp_ms, name, config))
            case NotifyComplete(checkpoint_id):
                task.notify_complete(checkpoint_id)
            case NotifyAborted(checkpoint_id):
                task.notify_aborted(checkpoint_id)

    def _fail(self, error: SluiceError) -> None:
        self.failure = self.failure or error


def barrier_of(checkpoint_id: int, timestamp_ms: int, savepoint: str, config: Config) -> CheckpointBarrier:
    """What sources are to send for a checkpoint, or for the savepoint of that name: one is aligned always."""
    if not savepoint:
        timeout_ms, alignment = alignment_timeout_of(config), alignment_of(config)
        return CheckpointBarrier(checkpoint_id, timestamp_ms, alignment=alignment, alignment_timeout_ms=timeout_ms)
    location, kind = savepoint.encode(), CheckpointType.SAVEPOINT
    layout = None if config.flink_version is FlinkVersion.V1_11 else SavepointFormat.CANONICAL
    return CheckpointBarrier(checkpoint_id, timestamp_ms, kind, location, Alignment.ALIGNED, layout)


def is_recoverable(error: BaseException) -> bool:
    """Whether a job that has failed with it may do better the next time."""
    return isinstance(error, SluiceError) and not isinstance(error, _NOT_AGAIN)


def dispose_of(checkpoints: RunCheckpoints, graph: ExecutionGraph) -> None:
    """A job has ended well: remove what was kept for a restart, and what its sinks have left, by calls of the store.

    Somebody who has taken the lead meanwhile needs it all: then everything stays.
    """

    def clean_up() -> None:
        for vertex in graph.job.vertices.values():
            for node in vertex.nodes:
                if node.on_job_finished is not None:
                    node.on_job_finished()

    def led(error: SluiceError | None, _now_ms: float) -> None:
        if error is None:
            checkpoints.dispose(JobEnd.FINISHED)
            checkpoints.work.append(StoreWork("remove what sinks have left", clean_up, _ignore))

    checkpoints.work.append(StoreWork("see who leads", checkpoints.leader.check, led))


def _ignore(_error: SluiceError | None, _now_ms: float) -> None:
    """Nothing follows from it."""
