"""The TaskManager: it lends its slots to jobs, runs what their JobMasters send, and says how that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import (
    FLINKS_HEARTBEAT,
    HEARTBEAT_INTERVAL_MS,
    AskForHeartbeat,
    HeartbeatDecision,
    HeartbeatTimes,
    PeerIsSilent,
)
from refimpl.cluster.messages import (
    AllocationsReport,
    AnswerOffer,
    AnswerSlot,
    AskAlive,
    CancelTask,
    CheckpointReport,
    FreeSlot,
    GiveSlot,
    JobWord,
    Message,
    NotifyTask,
    OfferedSlots,
    Registered,
    RegisterTaskManager,
    ReleasePartitions,
    SlotReport,
    SlotWasFreed,
    StillAlive,
    SubmittedTask,
    TaskReport,
    TaskState,
    TriggerTask,
)
from refimpl.cluster.partition_tracker import PartitionTracker
from refimpl.cluster.peer_links import PeerLink, links_to_leaders
from refimpl.cluster.registration import AskToRegister, CloseConnection, Registration, RegistrationDecision
from refimpl.cluster.slot_table import FailTasks, OfferSlots, SlotAvailable, SlotTable, SlotTableDecision
from refimpl.cluster.task_orders import DropResults, StartTask, StopTask, TaskOrder, WordForTask
from refimpl.task.checkpoint_reports import Report, Snapshotted
from refimpl.task.task_state import TaskLife, TaskLifeEvent, TaskLifeState

__all__ = ["MAX_WITHOUT_RESOURCE_MANAGER_MS", "TaskExecutor"]

MAX_WITHOUT_RESOURCE_MANAGER_MS = 300_000.0


@dataclass(slots=True)
class _Job:
    """A job that has slots here, and how this TaskManager is with its JobMaster."""

    registration: Registration


class TaskExecutor(Endpoint):
    """The TaskManager at `address`; its token is that of one life, and another life has a newer one.

    What JobMasters say to whoever runs the tasks is in `words`.
    What has to be done with tasks is in `task_orders`. `given_up` says why this TaskManager is of use to nobody any
    more, and its process has to end: no ResourceManager has taken it for five minutes, or a task does not end.

    Flink:   TaskExecutor, JobLeaderService (runtime.taskexecutor), 1.11.4
    Differs: who leads a job is said with each slot that is given, and by the driver when that changes.
    """

    def __init__(
        self,
        address: str,
        token: FencingToken,
        num_slots: int,
        now_ms: float,
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        super().__init__(address, token)
        self.slots = SlotTable(address, num_slots)
        self.task_orders: list[TaskOrder] = []
        self.words: list[JobWord] = []
        self.given_up = ""
        self._resource_manager = Registration(address)
        self._give_up_at_ms: float | None = now_ms + MAX_WITHOUT_RESOURCE_MANAGER_MS
        self._jobs: dict[str, _Job] = {}
        self._tasks: dict[ExecutionId, TaskLife] = {}
        self._results = PartitionTracker()
        self._final_words: dict[ExecutionId, Snapshotted] = {}  # said again until the attempt has ended
        self._heartbeats = heartbeat.watching(asks=False)

    @property
    def executions(self) -> tuple[ExecutionId, ...]:
        """The attempts that have not ended here."""
        return tuple(self._tasks)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Those that have slots here, or results."""
        return tuple(self._jobs)

    # -- who leads ---------------------------------------------------------------------------------------

    def resource_manager_is(self, address: str, token: FencingToken, now_ms: float) -> None:
        """Somebody leads the cluster's resources."""
        self._to_resource_manager(self._resource_manager.leader_is(address, token, now_ms), now_ms)

    def job_master_is(self, job_id: str, address: str, token: FencingToken, now_ms: float) -> None:
        """Somebody leads a job; of interest while the job has slots here."""
        job = self._jobs.get(job_id)
        if job is not None:
            self._to_job_master(job_id, job.registration.leader_is(address, token, now_ms), now_ms)

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        """The connection to a leader has ended, or it is silent."""
        self._heartbeats.stop_watching(address)
        if (leader := self._resource_manager.leader) is not None and leader[0] == address:
            self._to_resource_manager(self._resource_manager.lost(leader[1], now_ms), now_ms)
        for job_id, job in list(self._jobs.items()):
            if (leader := job.registration.leader) is not None and leader[0] == address:
                self._to_job_master(job_id, job.registration.lost(leader[1], now_ms), now_ms, why)

    def links(self, now_ms: float) -> tuple[PeerLink, ...]:
        registrations = (self._resource_manager, *(job.registration for job in self._jobs.values()))
        return links_to_leaders(registrations, self._heartbeats, now_ms)

    # -- tasks -------------------------------------------------------------------------------------------

    def task_is(
        self,
        execution: ExecutionId,
        state: TaskState,
        why: str,
        now_ms: float,
        missing: tuple[ExecutionId, ...] = (),
    ) -> None:
        """What became of an attempt that was started here: it runs, or has ended. Who was cancelled ends cancelled.

        `missing` are those whose blocking results it could not reach.
        """
        if (life := self._tasks.get(execution)) is None:
            return
        if state is TaskState.RUNNING:
            if life.state is TaskLifeState.DEPLOYING:
                life.on(TaskLifeEvent.OPEN)
                self._tell_job_master(execution.job_id, TaskReport(execution, state, why))
            return
        end = _end_of(life, state, why)
        del self._tasks[execution]
        self._final_words.pop(execution, None)
        useless = self._results.ended(execution, has_finished=end is TaskState.FINISHED)
        self._tell_job_master(execution.job_id, TaskReport(execution, end, why, missing))
        self._drop(execution.job_id, useless)
        self._slots(self.slots.task_gone(execution), now_ms)

    def task_says(self, execution: ExecutionId, report: Report) -> None:
        """What an attempt that was started here, and may have ended, has done of a checkpoint."""
        if isinstance(report, Snapshotted) and report.is_final and execution in self._tasks:
            self._final_words[execution] = report
        self._tell_job_master(execution.job_id, CheckpointReport(execution, report))

    def tell(self, word: JobWord) -> None:
        """Say something to who drives the JobMaster; if none is registered with it is lost."""
        self._tell_job_master(word.job_id, word)

    # -- time --------------------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        ends = [self._resource_manager.next_deadline, self._give_up_at_ms, self._heartbeats.next_deadline]
        ends += [life.next_deadline for life in self._tasks.values()]
        ends += [self.slots.next_deadline, *(job.registration.next_deadline for job in self._jobs.values())]
        return min((end for end in ends if end is not None), default=None)

    def on_timeout(self, now_ms: float) -> None:
        if self._give_up_at_ms is not None and now_ms >= self._give_up_at_ms:
            self.given_up, self._give_up_at_ms = "no ResourceManager has taken it for five minutes", None
        self._watch(self._heartbeats.on_timeout(now_ms), now_ms)
        self._to_resource_manager(self._resource_manager.on_timeout(now_ms), now_ms)
        for job_id, job in list(self._jobs.items()):
            self._to_job_master(job_id, job.registration.on_timeout(now_ms), now_ms)
        self._slots(self.slots.on_timeout(now_ms), now_ms)
        for execution, life in self._tasks.items():
            if life.on_timeout(now_ms):
                self.task_orders.append(StopTask(execution, "it was cancelled, and has not ended"))
            if life.is_stuck:
                self.given_up = f"{execution} was cancelled, and does not end"

    # -- messages ----------------------------------------------------------------------------------------

    def _handle(self, message: Message, sender: str, token: FencingToken, now_ms: float) -> None:
        if (sender, token) == self._resource_manager.leader:
            self._heartbeats.heard(sender, now_ms)
            self._from_resource_manager(message, token, now_ms)
            return
        for job_id, job in list(self._jobs.items()):
            if (sender, token) == job.registration.leader:
                self._heartbeats.heard(sender, now_ms)
                self._from_job_master(job_id, job, message, token, now_ms)
                return

    def _from_resource_manager(self, message: Message, token: FencingToken, now_ms: float) -> None:
        if isinstance(message, Registered):
            if self._resource_manager.accepted(token):
                self._give_up_at_ms = None
                self._heartbeats.watch(self._leader_address(self._resource_manager), now_ms)
            return
        if not self._resource_manager.is_registered:
            return
        match message:
            case AskAlive():
                self._tell_resource_manager(SlotReport(self.slots.report()))
            case GiveSlot(slot, allocation, job_master, job_master_token):
                answer, decisions = self.slots.request(slot.index, allocation, now_ms)
                if answer.allocation == allocation:
                    self._jobs.setdefault(allocation.job_id, _Job(Registration(self.address)))
                    self.job_master_is(allocation.job_id, job_master, job_master_token, now_ms)
                self._tell_resource_manager(AnswerSlot(slot, answer.slot, answer.allocation))
                self._slots(decisions, now_ms)

    def _from_job_master(self, job_id: str, job: _Job, message: Message, token: FencingToken, now_ms: float) -> None:
        if isinstance(message, Registered):
            if job.registration.accepted(token):
                self._heartbeats.watch(self._leader_address(job.registration), now_ms)
                self._slots(self.slots.job_master_found(job_id, now_ms), now_ms)
            return
        if not job.registration.is_registered:
            return
        match message:
            case AnswerOffer(accepted, rejected):
                self._slots(self.slots.offer_answered(accepted, rejected, now_ms), now_ms)
            case FreeSlot(allocation):
                self._slots(self.slots.free(allocation, "the JobMaster does not need the slot"), now_ms)
            case AllocationsReport(known, wanted):
                self._drop(job_id, self._results.release_all_but(job_id, wanted))
                own = tuple(each for each in self._tasks if each.job_id == job_id)
                kept = self._results.of(job_id)
                self._tell_job_master(job_id, StillAlive(self.slots.allocations_of(job_id), own, kept))
                for execution, final in self._final_words.items():
                    if execution.job_id == job_id:
                        self._tell_job_master(job_id, CheckpointReport(execution, final))
                self._slots(self.slots.reconcile(job_id, known, now_ms, HEARTBEAT_INTERVAL_MS), now_ms)
            case SubmittedTask():
                self._start(message)
            case ReleasePartitions(executions):
                self._drop(job_id, self._results.release(executions))
            case JobWord():
                self.words.append(message)
            case CancelTask(execution):
                if execution in self._tasks:
                    self._stop(execution, "the JobMaster has cancelled it", now_ms)
                else:
                    self._tell_job_master(job_id, TaskReport(execution, TaskState.CANCELED, "it is not there"))
            case TriggerTask(execution) | NotifyTask(execution) if execution in self._tasks:
                self.task_orders.append(WordForTask(message))

    def _start(self, task: SubmittedTask) -> None:
        if task.execution in self._tasks:
            return  # it was asked for again
        if not self.slots.add_task(task.allocation, task.execution):
            why = f"{self.address} has no slot for {task.allocation}"
            self._tell_job_master(task.execution.job_id, TaskReport(task.execution, TaskState.FAILED, why))
            return
        life = self._tasks[task.execution] = TaskLife(f"{task.execution}")
        life.on(TaskLifeEvent.DEPLOY)
        if task.keeps_results:
            self._results.begin(task.execution)
        self.task_orders.append(StartTask(task))

    def _stop(self, execution: ExecutionId, why: str, now_ms: float) -> None:
        self._tasks[execution].on(TaskLifeEvent.CANCEL, now_ms)
        self.task_orders.append(StopTask(execution, why))

    # -- what follows ------------------------------------------------------------------------------------

    def _watch(self, decisions: Iterable[HeartbeatDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case PeerIsSilent(peer, silent_ms):
                    self.peer_is_gone(peer, f"{peer} was silent for {silent_ms:.0f} ms", now_ms)
                case AskForHeartbeat():
                    raise AssertionError("a TaskManager answers, and asks nobody")

    def _to_resource_manager(self, decisions: Iterable[RegistrationDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case AskToRegister(address, token):
                    self._send(address, token, RegisterTaskManager(self.slots.report()))
                case CloseConnection(address):
                    self._heartbeats.stop_watching(address)
                    self._give_up_at_ms = now_ms + MAX_WITHOUT_RESOURCE_MANAGER_MS

    def _to_job_master(
        self, job_id: str, decisions: Iterable[RegistrationDecision], now_ms: float, why: str = "another leads the job"
    ) -> None:
        for decision in decisions:
            match decision:
                case AskToRegister(address, token):
                    if job_id in self._jobs:  # and has not been forgotten with its last result
                        self._send(address, token, RegisterTaskManager())
                case CloseConnection(address):
                    self._heartbeats.stop_watching(address)
                    self._slots(self.slots.job_master_lost(job_id, why, now_ms), now_ms)
                    self._drop(job_id, self._results.release_all_but(job_id))

    def _slots(self, decisions: Iterable[SlotTableDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case OfferSlots(job_id, offers):
                    self._tell_job_master(job_id, OfferedSlots(offers))
                case SlotAvailable(slot, allocation):
                    self._tell_resource_manager(SlotWasFreed(slot, allocation))
                    self._forget_job(allocation.job_id)
                case FailTasks(tasks, why):
                    for task in tasks:
                        assert isinstance(task, ExecutionId), f"{task!r} is no attempt"
                        self._stop(task, why, now_ms)

    def _drop(self, job_id: str, executions: tuple[ExecutionId, ...]) -> None:
        if executions:
            self.task_orders.append(DropResults(executions))
            self._forget_job(job_id)

    def _forget_job(self, job_id: str) -> None:
        """Whose last slot has gone, and the last result, has no business here."""
        if self.slots.allocations_of(job_id) or self._results.of(job_id):
            return
        job = self._jobs.pop(job_id, None)
        if job is not None and job.registration.leader is not None:
            self._heartbeats.stop_watching(job.registration.leader[0])

    def _tell_resource_manager(self, message: Message) -> None:
        if self._resource_manager.is_registered and self._resource_manager.leader is not None:
            self._send(*self._resource_manager.leader, message)

    def _tell_job_master(self, job_id: str, message: Message) -> None:
        job = self._jobs.get(job_id)
        if job is not None and job.registration.is_registered and job.registration.leader is not None:
            self._send(*job.registration.leader, message)

    @staticmethod
    def _leader_address(registration: Registration) -> str:
        assert registration.leader is not None, "it was accepted by nobody"
        return registration.leader[0]


_ENDS = {
    TaskLifeState.FINISHED: TaskState.FINISHED,
    TaskLifeState.FAILED: TaskState.FAILED,
    TaskLifeState.CANCELED: TaskState.CANCELED,
}
_EVENTS = {
    TaskState.FINISHED: TaskLifeEvent.FINISH,
    TaskState.FAILED: TaskLifeEvent.FAIL,
    TaskState.CANCELED: TaskLifeEvent.CANCEL,
}


def _end_of(life: TaskLife, said: TaskState, why: str) -> TaskState:
    """How an attempt has ended that has unwound, of which `said` is the last word."""
    if said is TaskState.FINISHED and life.state is TaskLifeState.DEPLOYING:
        life.on(TaskLifeEvent.OPEN)  # a short one
    life.on(_EVENTS[said], why=why)
    life.on(TaskLifeEvent.UNWIND)
    return _ENDS[life.state]
