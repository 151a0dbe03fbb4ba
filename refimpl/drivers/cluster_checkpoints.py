"""The checkpoints of a job as its JobMaster has them, in a store: what the cluster's drivers share of them.

A driver makes the calls of the store, one after the other: `next_call`, then `called`, then it says
`checkpoints_went_on` to the JobMaster. The first of them makes this leadership the store's leader of the job, unless
the driver has let it `lead` before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial

from refimpl.checkpoint.completed import JobEnd
from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.decisions import NotifyComplete, TriggerCheckpoint
from refimpl.checkpoint.live_tasks import TaskEvent
from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_checkpoints import CheckpointNews, LeadLost, MustFail, PassToTask, Restored
from refimpl.cluster.job_status import JobState
from refimpl.cluster.messages import NotifyTask, RestoreFrom, TaskState, TriggerTask
from refimpl.drivers.leftovers import remove_checkpoints_of
from refimpl.drivers.recovery import dispose_of, is_recoverable
from refimpl.drivers.restore_point import RestorePoint
from refimpl.drivers.run_checkpoints import Attempt, RunCheckpoints, ToTask
from refimpl.drivers.store_calls import StoreWork
from refimpl.errors import LeadershipLostError, LocalUsageError, SluiceError, described
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph
from refimpl.state.store import SnapshotStore
from refimpl.task.checkpoint_reports import Report, Snapshotted, Unwanted

__all__ = ["ClusterCheckpoints"]

_NOBODY = Attempt("an attempt of before", -1)
_ENDS = {JobState.FINISHED: JobEnd.FINISHED, JobState.FAILED: JobEnd.FAILED, JobState.CANCELED: JobEnd.CANCELED}
_EVENTS = {TaskState.RUNNING: TaskEvent.RUN, TaskState.FINISHED: TaskEvent.FINISH}


class ClusterCheckpoints:
    """The checkpoints of the job called `job_id`, made of `job`, for one leadership.

    What is pickled in them is read with `trust_pickle` only: a store that others may write is not to be trusted. Times
    are the driver's, in ms; `epoch_ms` is when they began, in ms since 1970.

    Flink:   CheckpointCoordinator as SchedulerBase (runtime.scheduler) has it, 1.11.4
    """

    def __init__(
        self, store: SnapshotStore, job_id: str, job: JobGraph, epoch_ms: float = 0.0, *, trust_pickle: bool = False
    ) -> None:
        self.run: RunCheckpoints | None = None
        self._make = partial(RunCheckpoints, store, job_id, job.config, self._tell, self._fail, epoch_ms)
        self._own = store, job_id
        self._job = job
        self._trust_pickle = trust_pickle
        self._recoveries: deque[StoreWork] = deque()
        self._num_recoveries = 0
        self._found: RestorePoint | None = None
        self._attempts: dict[ExecutionId, Attempt] = {}
        self._executions: dict[Attempt, ExecutionId] = {}
        self._names = {(each.vertex.id, each.subtask): each for each in ExecutionGraph(job).vertices}
        self._news: list[CheckpointNews] = []

    # -- the store -------------------------------------------------------------------------------------

    def lead(self) -> int:
        """Become the leader of the job, as the store has it; the epoch of that. The store is asked.

        Raises:
            LeadershipLostError, StoreError: as `RunCheckpoints`.
        """
        if self.run is None:
            self.run = self._make()
        return self.run.leader.epoch

    def next_call(self) -> StoreWork | None:
        """The call of the store to make now; what is under way comes before another recovery."""
        for waiting in ([] if self.run is None else [self.run.work], [self._recoveries]):
            if waiting and waiting[0]:
                return waiting[0].popleft()
        return None

    def called(self, call: StoreWork, error: BaseException | None, now_ms: float) -> None:
        """A call has returned, or raised `error`; what is no `SluiceError` is no word of a store's, and is fatal."""
        if error is None or isinstance(error, SluiceError):
            call.then(error, now_ms)
        else:
            self._news.append(MustFail(described(error), is_recoverable=False))

    def recover(self) -> None:
        self._num_recoveries += 1
        number = self._num_recoveries
        self._recoveries.append(
            StoreWork("find the newest checkpoint", partial(self._recover, number), partial(self._recovered, number))
        )

    def dispose(self, end: JobState) -> None:
        """The job has ended for ever: what was kept for a restart goes, and savepoints stay.

        Somebody who has taken the lead meanwhile needs it all: then everything stays.
        """
        run, own = self.run, self._own
        if run is None:
            return
        if end is JobState.FINISHED:
            dispose_of(run, ExecutionGraph(self._job))
        elif run.recovered is not None:
            run.dispose(_ENDS[end])

        def led(error: SluiceError | None, _now_ms: float) -> None:
            if error is None:
                do = partial(remove_checkpoints_of, *own)
                run.work.append(StoreWork("remove the checkpoints", do, _ignore))

        run.work.append(StoreWork("see who leads", run.leader.check, led))

    def savepoint(self, name: str, now_ms: float) -> CheckpointRequest:
        """Ask for a savepoint; in the history of `run` it is told with this request.

        Raises:
            LocalUsageError: one of this name has been asked for, or no task runs.
        """
        if self.run is None or not self._attempts:
            raise LocalUsageError("no task runs that could save anything")
        return self.run.savepoint(name, now_ms)

    # -- the JobMaster ---------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        return self.run.next_deadline if self.run is not None and self._attempts else None

    def on_timeout(self, now_ms: float) -> None:
        if self.run is not None and self._attempts:
            self.run.on_timeout(now_ms)

    def start(self, executions: Sequence[ExecutionId], now_ms: float) -> None:
        assert self.run is not None, "recover comes first"
        made = {each: Attempt(self._names[each.place].name, each.generation) for each in executions}
        self._attempts |= made
        self._executions |= {attempt: each for each, attempt in made.items()}
        graph = ExecutionGraph(self._job, generation=self._num_recoveries)
        self.run.deploy(graph, {attempt: self._names[each.place] for each, attempt in made.items()}, now_ms)

    def stop(self, executions: Sequence[ExecutionId], now_ms: float) -> None:
        if self.run is None or not self._attempts:  # none was sent out: what to go on from was still looked for
            return
        if self._attempts.keys() <= set(executions):
            self.run.stop(now_ms)
        else:
            self.run.lose([self._attempts[each] for each in executions if each in self._attempts], now_ms)
        for each in executions:
            if (attempt := self._attempts.pop(each, None)) is not None:
                del self._executions[attempt]

    def task_is(self, execution: ExecutionId, state: TaskState, now_ms: float) -> None:
        if self.run is not None and execution in self._attempts:
            self.run.task_is(self._attempts[execution], _EVENTS[state], now_ms)

    def task_says(self, execution: ExecutionId, report: Report, now_ms: float) -> None:
        if self.run is None:
            return
        if execution in self._attempts:
            self.run.task_says(self._attempts[execution], report, now_ms)
        elif isinstance(report, Unwanted):
            self.run.task_says(_NOBODY, report, now_ms)
        elif isinstance(report, Snapshotted) and report.file is not None:  # nobody will hear of it
            self.run.task_says(_NOBODY, Unwanted(report.file.key), now_ms)

    def take_news(self) -> Sequence[CheckpointNews]:
        news, self._news = self._news, []
        return news

    # -- what comes of it ------------------------------------------------------------------------------

    def _recover(self, number: int) -> None:
        self.lead()
        assert self.run is not None, "it leads"
        self._found = self.run.recover(ExecutionGraph(self._job, generation=number), trust_pickle=self._trust_pickle)

    def _recovered(self, number: int, error: SluiceError | None, _now_ms: float) -> None:
        if error is not None:
            self._fail(error)
        elif number == self._num_recoveries and self._found is not None and self.run is not None:
            key = None if self.run.recovered is None else self.run.recovered.key
            found = self._found
            self._news.append(Restored(RestoreFrom(found.job, found.attempt, key, found.trust_pickle)))

    def _fail(self, error: SluiceError) -> None:
        why = f"{type(error).__name__}: {error}"
        is_lost = isinstance(error, LeadershipLostError)
        self._news.append(LeadLost(why) if is_lost else MustFail(why, is_recoverable(error)))

    def _tell(self, attempt: Attempt, message: ToTask) -> None:
        execution = self._executions.get(attempt)
        if execution is None:
            return
        if isinstance(message, TriggerCheckpoint):
            request = message.request
            told = TriggerTask(execution, message.checkpoint_id, message.timestamp_ms, request.name)
            self._news.append(PassToTask(told))
        else:
            is_complete = isinstance(message, NotifyComplete)
            self._news.append(PassToTask(NotifyTask(execution, message.checkpoint_id, is_complete)))


def _ignore(_error: SluiceError | None, _now_ms: float) -> None:
    """What could not be removed stays: nothing needs it to be gone."""
