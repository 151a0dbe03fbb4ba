"""The JobMaster: one job under one leadership, with the TaskManagers that lend it slots.

Nothing is asked of a TaskManager that could not be asked again: it knows each attempt by its id. And what a message
that was lost has left different on both sides, the next heartbeat puts right.
"""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, AskForHeartbeat, HeartbeatDecision, HeartbeatTimes, PeerIsSilent
from refimpl.cluster.job_checkpoints import JobCheckpoints, LeadLost, MustFail, PassToTask, Restored
from refimpl.cluster.job_plan import JobPlan
from refimpl.cluster.messages import (
    AllocationsReport,
    AnswerOffer,
    AskAlive,
    CancelSlot,
    CheckpointReport,
    FreeSlot,
    JobWord,
    Message,
    OfferedSlots,
    Registered,
    RegisterJobMaster,
    RegisterTaskManager,
    RequestSlot,
    SlotFailed,
    StillAlive,
    SubmittedTask,
    TaskReport,
    TaskState,
    Wishes,
)
from refimpl.cluster.peer_links import PeerLink, links_of_peers, links_to_leaders
from refimpl.cluster.registration import AskToRegister, CloseConnection, Registration, RegistrationDecision
from refimpl.cluster.restart import RestartStrategy
from refimpl.cluster.scheduler import Scheduler
from refimpl.cluster.scheduler_decisions import (
    AttemptsEnd,
    AttemptsStart,
    FindRestore,
    GiveUpWish,
    JobIsOver,
    ReleaseSlot,
    SchedulerDecision,
    TellTaskManager,
    WishForSlot,
)
from refimpl.cluster.slot_pool import (
    AskResourceManager,
    CancelSlotRequest,
    NoSlot,
    ReturnSlot,
    SlotAssigned,
    SlotPool,
    SlotPoolDecision,
    SlotsLost,
)

__all__ = ["JobMaster"]


class JobMaster(Endpoint):
    """One leadership over one job, with its `checkpoints` if it has any.

    It takes over no attempt and no blocking result from whoever led before: a job with checkpoints goes on from the
    newest of them, a batch job begins from nothing. What TaskManagers say to whoever drives this is in `words`, with
    who has said it.

    Flink:   JobMaster (runtime.jobmaster), 1.11.4; from 1.20 on one that is told to goes on with a batch job from the
             JobEventStore of the one before it (FLIP-383, FLINK-33892).
    """

    def __init__(
        self,
        address: str,
        token: FencingToken,
        plan: JobPlan,
        strategy: RestartStrategy,
        now_ms: float,
        checkpoints: JobCheckpoints | None = None,
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        super().__init__(address, token)
        self.checkpoints = checkpoints
        self.scheduler = Scheduler(plan, token.epoch, strategy, now_ms, restores=checkpoints is not None)
        self.pool = SlotPool(plan.job_id, token.epoch)
        self._resource_manager = Registration(address)
        self._task_managers = heartbeat.watching(asks=True)
        self._resource_manager_watch = heartbeat.watching(asks=False)
        self.words: list[tuple[str, JobWord]] = []
        self._sent_to: dict[ExecutionId, str] = {}  # the TaskManagers of the attempts that are not to end

    # -- the job -----------------------------------------------------------------------------------------

    def start(self, now_ms: float) -> None:
        """Run the job."""
        self._carry_out(self.scheduler.start(now_ms), now_ms)

    def cancel(self, now_ms: float) -> None:
        """End the job; cancelled again, or ended meanwhile, it is no news."""
        self._carry_out(self.scheduler.cancel(now_ms), now_ms)

    def suspend(self, now_ms: float) -> None:
        """Lose the leadership: TaskManagers keep the slots for a while, for whoever leads next."""
        self.scheduler.suspend(now_ms)
        self.pool.suspend()
        self._outbox.clear()
        self.peers.clear()

    def checkpoints_went_on(self, now_ms: float) -> None:
        """There may be news of the checkpoints; whoever makes their calls of the store says so after each."""
        if self.checkpoints is None or self.is_over:
            return
        for news in self.checkpoints.take_news():
            match news:
                case Restored(restore):
                    self._carry_out(self.scheduler.restored(restore, now_ms), now_ms)
                case PassToTask(message):
                    if message.execution in self._sent_to:
                        self._send_to_peer(self._sent_to[message.execution], message)
                case MustFail(why, is_recoverable):
                    self._carry_out(self.scheduler.job_failed(why, now_ms, is_recoverable), now_ms)
                case LeadLost():
                    self.suspend(now_ms)

    @property
    def is_over(self) -> bool:
        """Whether the job is, for this leadership at least."""
        return self.scheduler.status.state.is_terminal

    # -- peers -------------------------------------------------------------------------------------------

    def resource_manager_is(self, address: str, token: FencingToken, now_ms: float) -> None:
        """Somebody leads the cluster's resources."""
        self._to_resource_manager(self._resource_manager.leader_is(address, token, now_ms))

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        """The connection to a peer has ended, or it is silent."""
        self._task_managers.stop_watching(address)
        if (leader := self._resource_manager.leader) is not None and leader[0] == address:
            self._to_resource_manager(self._resource_manager.lost(leader[1], now_ms))
        if self.peers.pop(address, None) is not None:
            lost = [each for each in self.pool.task_manager_lost(address, why) if isinstance(each, SlotsLost)]
            slots = [allocation for each in lost for allocation in each.allocations]
            self._carry_out(self.scheduler.task_manager_lost(address, slots, why, now_ms), now_ms)

    def links(self, now_ms: float) -> tuple[PeerLink, ...]:
        above = links_to_leaders([self._resource_manager], self._resource_manager_watch, now_ms)
        return above + links_of_peers(self.peers, self._task_managers, now_ms)

    def tell(self, task_manager: str, word: JobWord) -> None:
        """Say something to who drives a TaskManager; to one that has not registered it is lost."""
        self._send_to_peer(task_manager, word)

    # -- time --------------------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        if self.is_over:
            return None
        ends = [self._task_managers.next_deadline, self._resource_manager_watch.next_deadline]
        ends += [self._resource_manager.next_deadline, self.pool.next_deadline, self.scheduler.next_deadline]
        ends += [] if self.checkpoints is None else [self.checkpoints.next_deadline]
        return min((end for end in ends if end is not None), default=None)

    def on_timeout(self, now_ms: float) -> None:
        if self.is_over:
            return
        self._watch(self._task_managers.on_timeout(now_ms), now_ms)
        self._watch(self._resource_manager_watch.on_timeout(now_ms), now_ms)
        self._to_resource_manager(self._resource_manager.on_timeout(now_ms))
        self._pool(self.pool.on_timeout(now_ms), now_ms)
        self._carry_out(self.scheduler.on_timeout(now_ms), now_ms)
        if self.checkpoints is not None:
            self.checkpoints.on_timeout(now_ms)
            self.checkpoints_went_on(now_ms)

    # -- messages ----------------------------------------------------------------------------------------

    def _handle(self, message: Message, sender: str, token: FencingToken, now_ms: float) -> None:
        if self.is_over:
            return
        if (sender, token) == self._resource_manager.leader:
            self._resource_manager_watch.heard(sender, now_ms)
            self._from_resource_manager(message, token, now_ms)
        elif isinstance(message, RegisterTaskManager):
            self._register(sender, token, now_ms)
        elif self.peers.get(sender) == token:
            self._task_managers.heard(sender, now_ms)
            self._from_task_manager(message, sender, now_ms)
            self.checkpoints_went_on(now_ms)

    def _from_resource_manager(self, message: Message, token: FencingToken, now_ms: float) -> None:
        match message:
            case Registered():
                if self._resource_manager.accepted(token) and self._resource_manager.leader is not None:
                    self._resource_manager_watch.watch(self._resource_manager.leader[0], now_ms)
                    self._pool(self.pool.resource_manager_found(), now_ms)
            case AskAlive():
                self._tell_resource_manager(Wishes(tuple(self.pool.waiting.values())))
            case SlotFailed(allocation, why):
                self._pool(self.pool.failed(allocation, why), now_ms)

    def _register(self, sender: str, token: FencingToken, now_ms: float) -> None:
        if self._is_new_life(sender, token):
            self.peer_is_gone(sender, f"{sender} has begun anew", now_ms)
        self.peers[sender] = token
        self._task_managers.watch(sender, now_ms)
        self.pool.task_manager_found(sender)
        self._send_to_peer(sender, Registered())

    def _from_task_manager(self, message: Message, sender: str, now_ms: float) -> None:
        match message:
            case OfferedSlots(offers):
                answer, decisions = self.pool.offer(sender, offers, now_ms)
                self._send_to_peer(sender, AnswerOffer(answer.accepted, answer.rejected))
                self._pool(decisions, now_ms)
            case TaskReport(execution, state, why, missing):
                self._carry_out(self.scheduler.task_is(sender, execution, state, why, now_ms, missing), now_ms)
                if self.checkpoints is not None and state in (TaskState.RUNNING, TaskState.FINISHED):
                    self.checkpoints.task_is(execution, state, now_ms)
            case CheckpointReport(execution, report) if self.checkpoints is not None:
                self.checkpoints.task_says(execution, report, now_ms)
            case JobWord():
                self.words.append((sender, message))
            case StillAlive(allocations, executions, results):
                self._pool(self.pool.reconcile(sender, allocations, f"{sender} does not have the slot"), now_ms)
                self._carry_out(self.scheduler.running_are(sender, executions, results, now_ms), now_ms)

    # -- what follows ------------------------------------------------------------------------------------

    def _carry_out(self, decisions: Iterable[SchedulerDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case WishForSlot(number, before):
                    self._pool(self.pool.request(number, now_ms, before), now_ms)
                case GiveUpWish(number):
                    self._pool(self.pool.cancel(number), now_ms)
                case ReleaseSlot(allocation):
                    self._pool(self.pool.release(allocation, now_ms), now_ms)
                case TellTaskManager(task_manager, message):
                    if isinstance(message, SubmittedTask):
                        self._sent_to[message.execution] = task_manager
                    self._send_to_peer(task_manager, message)
                case JobIsOver():
                    self._pool(self.pool.close(), now_ms)
                case FindRestore() | AttemptsStart() | AttemptsEnd() if self.checkpoints is not None:
                    self._to_checkpoints(self.checkpoints, decision, now_ms)

    def _to_checkpoints(
        self, checkpoints: JobCheckpoints, decision: FindRestore | AttemptsStart | AttemptsEnd, now_ms: float
    ) -> None:
        match decision:
            case FindRestore():
                checkpoints.recover()
            case AttemptsStart(executions):
                checkpoints.start(executions, now_ms)
            case AttemptsEnd(executions):
                checkpoints.stop(executions, now_ms)
                for execution in executions:
                    self._sent_to.pop(execution, None)

    def _pool(self, decisions: Iterable[SlotPoolDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case AskResourceManager(allocation):
                    self._tell_resource_manager(RequestSlot(allocation))
                case CancelSlotRequest(allocation):
                    self._tell_resource_manager(CancelSlot(allocation))
                case SlotAssigned(number, allocation, slot):
                    assert isinstance(number, int), f"{number!r} is no slot of the job"
                    self._carry_out(self.scheduler.slot_assigned(number, allocation, slot, now_ms), now_ms)
                case NoSlot(number, why):
                    assert isinstance(number, int), f"{number!r} is no slot of the job"
                    self._carry_out(self.scheduler.no_slot(number, why, now_ms), now_ms)
                case ReturnSlot(allocation, slot):
                    self._send_to_peer(slot.task_manager, FreeSlot(allocation))
                case SlotsLost(allocations, why):
                    self._carry_out(self.scheduler.slots_lost(allocations, why, now_ms), now_ms)

    def _watch(self, decisions: Iterable[HeartbeatDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case AskForHeartbeat(peer):
                    wanted = self.scheduler.results_wanted_at(peer)
                    self._send_to_peer(peer, AllocationsReport(self.pool.allocations_at(peer), wanted))
                case PeerIsSilent(peer, silent_ms):
                    self.peer_is_gone(peer, f"{peer} was silent for {silent_ms:.0f} ms", now_ms)

    def _to_resource_manager(self, decisions: Iterable[RegistrationDecision]) -> None:
        for decision in decisions:
            match decision:
                case AskToRegister(address, token):
                    self._send(address, token, RegisterJobMaster(self.scheduler.plan.job_id))
                case CloseConnection(address):
                    self._resource_manager_watch.stop_watching(address)
                    self.pool.resource_manager_lost()

    def _tell_resource_manager(self, message: Message) -> None:
        if self._resource_manager.is_registered and self._resource_manager.leader is not None:
            self._send(*self._resource_manager.leader, message)
