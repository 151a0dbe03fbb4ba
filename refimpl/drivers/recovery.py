"""How a run goes on after a failure: whether it restarts, when, and from which checkpoint.

In-process drivers share this. They give it the tasks of each deployment, ask it what they need for the next one, and
let it carry messages between the tasks and the coordinator; the clock and the threads are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from refimpl.checkpoint.completed import JobEnd
from refimpl.checkpoint.decisions import NotifyAborted, NotifyComplete, TriggerCheckpoint
from refimpl.cluster.restart import FixedDelayRestart, GiveUp, RestartAt, Restarts, RestartStrategy
from refimpl.config import CheckpointingMode
from refimpl.drivers.run_checkpoints import Attempt, RunCheckpoints, StoreWork, ToTask
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
from refimpl.records.events import Alignment, CheckpointBarrier, CheckpointType
from refimpl.state.manifest import CheckpointKind
from refimpl.state.store import SnapshotStore
from refimpl.state.subtask_state import SubtaskState
from refimpl.task.checkpoints import Unwanted
from refimpl.task.task import Task

__all__ = ["JobRecovery"]

_NOT_AGAIN = (ConfigError, InsufficientBuffersError, LeadershipLostError, LocalUsageError, RestoreRefusedError)
"""Errors that a job would meet again."""


class JobRecovery:
    """The checkpoints of the job called `job`, and its restarts.

    `graph` is that of the attempts that run, or are to be deployed next. `failure` is set when the coordinator wants
    the job to fail. What another run has pickled is read with `trust_pickle` only: to read it is to run what it says.

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
    ) -> None:
        self.graph = graph
        self.checkpoints = RunCheckpoints(store, job, graph.job.config, self._tell, self._fail, epoch_ms)
        self._trust_pickle = trust_pickle
        self.failure: SluiceError | None = None
        self._restarts = Restarts(restart or FixedDelayRestart(3, 1_000.0))
        self._tasks: dict[Attempt, Task] = {}
        self._running: dict[Attempt, Task] = {}

    # -- deployments -----------------------------------------------------------------------------------

    def snapshots(self) -> Snapshots:
        """What the next deployment goes on from; the store is asked.

        Raises:
            RestoreRefusedError, LeadershipLostError, StoreError, CorruptFileError: as `RunCheckpoints.recover`.
        """
        states = self.checkpoints.recover(self.graph, trust_pickle=self._trust_pickle)
        return Snapshots(partial(self.checkpoints.place_of, graph=self.graph), states)

    def start(self, tasks: Mapping[str, Task], now_ms: float) -> None:
        """These tasks, by name, are deployed and about to run."""
        self._tasks = {Attempt(name, self.graph.generation): task for name, task in tasks.items()}
        self._running = dict(self._tasks)
        self.checkpoints.start(self.graph, now_ms)

    def failed(self, error: BaseException, now_ms: float) -> RestartAt | GiveUp:
        """The job has failed: its tasks are no more. With a time to restart, the graph is that of the next attempts."""
        self._tasks, self._running, self.failure = {}, {}, None
        self.checkpoints.stop(now_ms)
        is_recoverable = isinstance(error, SluiceError) and not isinstance(error, _NOT_AGAIN)
        decision = self._restarts.failed(now_ms, is_recoverable)
        if isinstance(decision, RestartAt):
            self.graph = self.graph.restarted()
        return decision

    @property
    def is_at_work(self) -> bool:
        """Whether the coordinator counts on tasks."""
        return bool(self.checkpoints.coordinator.tasks.attempts)

    def finished(self, now_ms: float) -> None:
        """All tasks have ended well: what was kept for a restart is not needed any more.

        Raises:
            OSError: what a sink has left could not be removed.
        """
        self.checkpoints.stop(now_ms)
        self.checkpoints.dispose(JobEnd.FINISHED)
        for vertex in self.graph.job.vertices.values():
            for node in vertex.nodes:
                if node.on_job_finished is not None:
                    node.on_job_finished()

    # -- between tasks and coordinator -------------------------------------------------------------------

    def collect(self, now_ms: float) -> None:
        """Take what tasks have for the store and for the coordinator. None of them is at work meanwhile."""
        for attempt, task in list(self._running.items()):
            held = task.checkpoints
            while held.writes:
                checkpoint_id, state = held.writes.popleft()
                put = partial(self.checkpoints.leader.store.put, state.file.key, state.parts)
                then = partial(self._put, attempt, checkpoint_id, state)
                self.checkpoints.work.append(StoreWork(f"write {state.file.key}", put, then))
            while held.reports:
                self.checkpoints.task_says(attempt, held.reports.popleft(), now_ms)
            if task.is_done:
                del self._running[attempt]
                self.checkpoints.task_finished(attempt, now_ms)

    def _put(
        self, attempt: Attempt, checkpoint_id: int, state: SubtaskState, error: SluiceError | None, now_ms: float
    ) -> None:
        """A task's state has been put, or not; a task that is no more has left a file that nobody wants."""
        task = self._tasks.get(attempt)
        if task is None:
            self.checkpoints.task_says(attempt, Unwanted(state.file.key), now_ms)
        elif error is None:
            task.submit(partial(task.checkpoints.written, checkpoint_id))
        else:
            task.submit(partial(task.checkpoints.write_failed, checkpoint_id, str(error)))

    def _tell(self, attempt: Attempt, message: ToTask) -> None:
        task = self._tasks.get(attempt)
        if task is None:
            return
        match message:
            case TriggerCheckpoint():
                task.submit(partial(task.checkpoints.pass_on, self._barrier(message)))
            case NotifyComplete(checkpoint_id):
                task.submit(partial(task.checkpoints.notify_complete, checkpoint_id))
            case NotifyAborted(checkpoint_id):
                task.submit(partial(task.checkpoints.notify_aborted, checkpoint_id))

    def _barrier(self, trigger: TriggerCheckpoint) -> CheckpointBarrier:
        is_exact = self.graph.job.config.checkpointing_mode is CheckpointingMode.EXACTLY_ONCE
        alignment = Alignment.ALIGNED if is_exact else Alignment.AT_LEAST_ONCE
        barrier = CheckpointBarrier(trigger.checkpoint_id, trigger.timestamp_ms, alignment=alignment)
        if trigger.request.kind is not CheckpointKind.SAVEPOINT:
            return barrier
        location = trigger.request.name.encode()
        return CheckpointBarrier(
            trigger.checkpoint_id, trigger.timestamp_ms, CheckpointType.SAVEPOINT, location, Alignment.ALIGNED
        )

    def _fail(self, error: SluiceError) -> None:
        self.failure = self.failure or error
