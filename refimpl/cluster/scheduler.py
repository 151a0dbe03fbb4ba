"""One job, its attempts and the slots they wait for: from the first wish to the end of the job.

A job is deployed when all its slots are there. When an attempt fails, whatever has to begin again with it is stopped
first; when the last of these has stopped and the pause is over, the next attempts are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from refimpl.cluster.executions import (
    AskForASlot,
    Execution,
    ExecutionDecision,
    ExecutionEvent,
    ExecutionId,
    ExecutionState,
    GiveSlotBack,
    ReleaseResults,
    SubmitTask,
    TellToCancel,
)
from refimpl.cluster.failover import to_restart
from refimpl.cluster.heartbeat import HEARTBEAT_INTERVAL_MS
from refimpl.cluster.job_status import JobEvent, JobState, JobStatus
from refimpl.cluster.messages import CancelTask, RestoreFrom, SubmittedTask, TaskState
from refimpl.cluster.restart import GiveUp, RestartAt, Restarts, RestartStrategy
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
from refimpl.cluster.slots import AllocationId, SlotId
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.regions import Exchange, regions

__all__ = ["JobPlan", "Place", "Scheduler"]

_EVENTS = {
    TaskState.RUNNING: ExecutionEvent.RUN,
    TaskState.FINISHED: ExecutionEvent.FINISH,
    TaskState.FAILED: ExecutionEvent.FAIL,
    TaskState.CANCELED: ExecutionEvent.CANCELED,
}
_LIVE = (ExecutionState.DEPLOYING, ExecutionState.RUNNING, ExecutionState.CANCELING)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What has to be known of job `job_id`: which subtask goes into which of its slots, and who reads whom.

    A slot holds one subtask of each vertex of a group at most; the slots are numbered from 0.
    """

    job_id: str
    slot_of: dict[Place, int]
    exchanges: tuple[Exchange[Place], ...] = ()

    @classmethod
    def of(cls, job_id: str, graph: ExecutionGraph) -> JobPlan:
        """The plan of a job as its graph has it: its slots, and every channel once."""
        placement = graph.placement
        slot_of = {
            (each.vertex.id, each.subtask): placement.slot_of(each.vertex, each.subtask) for each in graph.vertices
        }
        return cls(job_id, slot_of, tuple(graph.job.exchanges))

    @property
    def num_slots(self) -> int:
        return max(self.slot_of.values()) + 1


@dataclass(slots=True)
class _JobSlot:
    """One of the slots of the job: where it is, if it is anywhere, and where it was before."""

    number: int
    allocation: AllocationId | None = None
    slot: SlotId | None = None
    before: AllocationId | None = None
    places: set[Place] = field(default_factory=set)  # of the attempts that need it


@dataclass(slots=True)
class _Pause:
    """The time between a failure and the next attempts of `places`."""

    until: RestartAt
    places: frozenset[Place]
    is_over: bool = False


@dataclass(slots=True)
class _Restoring:
    """What attempts go on from, if they have to know it, and the places of those that wait until it is found."""

    is_needed: bool
    found: RestoreFrom | None = None
    waiting: frozenset[Place] | None = None


class Scheduler:
    """The attempts of one job under one leadership, that of `epoch`. `failure` says why one has failed last.

    With `restores` no attempt is sent out before it is known what it goes on from.

    Flink:   DefaultScheduler (runtime.scheduler), ExecutionGraph (runtime.executiongraph), 1.11.4
    Differs: a job is deployed as a whole, also after a failure; Flink deploys a region when its slots are there.
    """

    def __init__(
        self, plan: JobPlan, epoch: int, strategy: RestartStrategy, now_ms: float, restores: bool = False
    ) -> None:
        self.plan = plan
        self.status = JobStatus(plan.job_id, now_ms)
        self.executions = {place: Execution(ExecutionId(plan.job_id, *place, epoch=epoch)) for place in plan.slot_of}
        self.failure: str | None = None
        self._slots = [_JobSlot(number) for number in range(plan.num_slots)]
        self._submitted_ms: dict[Place, float] = {}
        self._restarts = Restarts(strategy)
        self._pause: _Pause | None = None
        self._restoring = _Restoring(restores)
        self._region_of = {place: each for each in regions(list(plan.slot_of), plan.exchanges) for place in each}
        self._decisions: list[SchedulerDecision] = []

    # -- the job -----------------------------------------------------------------------------------------

    def start(self, now_ms: float) -> list[SchedulerDecision]:
        """Run the job."""
        self.status.on(JobEvent.START, now_ms)
        self._restore_and_schedule(frozenset(self.plan.slot_of), now_ms)
        return self._take()

    def cancel(self, now_ms: float) -> list[SchedulerDecision]:
        """End the job; cancelled again, or ended meanwhile, it is no news."""
        if self.status.on(JobEvent.CANCEL, now_ms):
            self._restarts.disarm()
            self._pause = None
            self._end(self.plan.slot_of, now_ms)
            self._look_at_the_end(now_ms)
        return self._take()

    def restored(self, restore: RestoreFrom, now_ms: float) -> list[SchedulerDecision]:
        """It is known what the attempts that wait for it go on from."""
        places, self._restoring.waiting = self._restoring.waiting, None
        if places is not None:
            self._restoring.found = restore
            self._schedule(places, now_ms)
        return self._take()

    def job_failed(self, why: str, now_ms: float, is_recoverable: bool = True) -> list[SchedulerDecision]:
        """Something has failed that is no attempt: all of them begin again, unless they would meet it again."""
        self._failed(self.plan.slot_of, why, now_ms, is_recoverable)
        self._begin_again(now_ms)
        self._look_at_the_end(now_ms)
        return self._take()

    def suspend(self, now_ms: float) -> None:
        """Lose the leadership: whatever runs is for whoever leads next to know of."""
        self.status.on(JobEvent.LOSE_LEADERSHIP, now_ms)
        self._pause = None

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return None if self._pause is None or self._pause.is_over else self._pause.until.at_ms

    def on_timeout(self, now_ms: float) -> list[SchedulerDecision]:
        """The pause may be over."""
        pause = self._pause
        if pause is not None and not pause.is_over and now_ms >= pause.until.at_ms:
            pause.is_over = self._restarts.fires(pause.until.version)
            self._begin_again(now_ms)
        return self._take()

    # -- slots -------------------------------------------------------------------------------------------

    def slot_assigned(
        self, number: int, allocation: AllocationId, slot: SlotId, now_ms: float
    ) -> list[SchedulerDecision]:
        """Slot `number` of the job is there."""
        self._slots[number].allocation, self._slots[number].slot = allocation, slot
        self._deploy(now_ms)
        return self._take()

    def no_slot(self, number: int, why: str, now_ms: float) -> list[SchedulerDecision]:
        """Slot `number` of the job will not come."""
        self._fail_all_in(self._slots[number], why, now_ms)
        return self._take()

    def slots_lost(self, allocations: Sequence[AllocationId], why: str, now_ms: float) -> list[SchedulerDecision]:
        """These slots are gone, with all that ran in them."""
        for slot in [each for each in self._slots if each.allocation in allocations]:
            self._fail_all_in(slot, why, now_ms)
        return self._take()

    # -- TaskManagers ------------------------------------------------------------------------------------

    def task_is(
        self, task_manager: str, execution: ExecutionId, state: TaskState, why: str, now_ms: float
    ) -> list[SchedulerDecision]:
        """What a TaskManager says of an attempt; one that is not the present one has no business to run."""
        known = self.executions.get(execution.place)
        if known is not None and known.id == execution:
            if state is TaskState.CANCELED and known.state is not ExecutionState.CANCELING:
                state = TaskState.FAILED  # nobody here has told it to stop
            self._on(known, _EVENTS[state], now_ms, why)
        elif state is TaskState.RUNNING:
            self._decisions.append(TellTaskManager(task_manager, CancelTask(execution)))
        return self._take()

    def running_are(self, task_manager: str, running: Sequence[ExecutionId], now_ms: float) -> list[SchedulerDecision]:
        """A TaskManager has said what runs there: what else should has been lost, what should not is stopped.

        Flink:   ExecutionDeploymentReconciler (runtime.jobmaster), 1.12
        """
        decisions: list[SchedulerDecision] = []
        for execution_id in running:
            decisions += self.task_is(task_manager, execution_id, TaskState.RUNNING, "", now_ms)
        for place, execution in list(self.executions.items()):
            slot = self._slots[self.plan.slot_of[place]].slot
            should_be = slot is not None and slot.task_manager == task_manager and execution.state in _LIVE
            is_old = now_ms - self._submitted_ms.get(place, now_ms) >= HEARTBEAT_INTERVAL_MS
            if should_be and is_old and execution.id not in running:
                self._on(execution, ExecutionEvent.FAIL, now_ms, f"{task_manager} does not run it")
        return decisions + self._take()

    # -- attempts ----------------------------------------------------------------------------------------

    def _restore_and_schedule(self, places: frozenset[Place], now_ms: float) -> None:
        if self._restoring.is_needed:
            self._restoring.waiting = places | (self._restoring.waiting or frozenset())
            self._decisions.append(FindRestore())
        else:
            self._schedule(places, now_ms)

    def _schedule(self, places: Iterable[Place], now_ms: float) -> None:
        for place in sorted(places):
            self._on(self.executions[place], ExecutionEvent.SCHEDULE, now_ms)
        self._deploy(now_ms)

    def _deploy(self, now_ms: float) -> None:
        """Send out the attempts that wait, when all that they wait for is there."""
        waiting = [each for each in self.executions.values() if each.state is ExecutionState.SCHEDULED]
        if any(self._slots[self.plan.slot_of[each.id.place]].allocation is None for each in waiting):
            return
        for execution in waiting:
            self._on(execution, ExecutionEvent.SLOT, now_ms)
        if waiting:
            self._decisions.append(AttemptsStart(tuple(each.id for each in waiting)))

    def _on(self, execution: Execution, event: ExecutionEvent, now_ms: float, why: str = "") -> None:
        before = execution.state
        self._carry_out(execution.on(event), now_ms)
        if before.is_terminal or not execution.state.is_terminal:
            return
        if execution.state is ExecutionState.FAILED:
            self._failed([execution.id.place], f"{execution.id} has failed: {why or 'nobody says why'}", now_ms)
        self._begin_again(now_ms)
        self._look_at_the_end(now_ms)

    def _carry_out(self, decisions: Iterable[ExecutionDecision], now_ms: float) -> None:
        for decision in decisions:
            slot = self._slots[self.plan.slot_of[decision.execution.place]]
            match decision:
                case AskForASlot(execution):
                    if not slot.places and slot.allocation is None:
                        self._decisions.append(WishForSlot(slot.number, slot.before))
                    slot.places.add(execution.place)
                case SubmitTask(execution):
                    assert slot.allocation is not None, f"{execution} has no slot"
                    self._submitted_ms[execution.place] = now_ms
                    self._tell(slot, self._submitted(execution, slot.allocation))
                case TellToCancel(execution):
                    self._tell(slot, CancelTask(execution))
                case GiveSlotBack(execution):
                    self._leave(slot, execution.place)
                case ReleaseResults():
                    pass  # pipelined results go with their attempt

    def _submitted(self, execution: ExecutionId, allocation: AllocationId) -> SubmittedTask:
        where = tuple(each.slot.task_manager if each.slot else "" for each in self._slots)
        together = tuple(self.executions[place].id for place in sorted(self._region_of[execution.place]))
        return SubmittedTask(execution, allocation, where, together, self._restoring.found)

    def _tell(self, slot: _JobSlot, message: SubmittedTask | CancelTask) -> None:
        if slot.slot is not None:
            self._decisions.append(TellTaskManager(slot.slot.task_manager, message))

    def _leave(self, slot: _JobSlot, place: Place) -> None:
        """An attempt needs its slot no more; whoever is the last gives it back."""
        slot.places.discard(place)
        if slot.places:
            return
        if slot.allocation is None:
            self._decisions.append(GiveUpWish(slot.number))
        else:
            self._decisions.append(ReleaseSlot(slot.allocation))
            slot.before, slot.allocation, slot.slot = slot.allocation, None, None

    def _end(self, places: Iterable[Place], now_ms: float) -> None:
        """Stop whatever runs at these places, with what it does for checkpoints."""
        places = sorted(places)
        self._restoring.waiting = None
        self._decisions.append(AttemptsEnd(tuple(self.executions[place].id for place in places)))
        for place in places:
            self._on(self.executions[place], ExecutionEvent.CANCEL, now_ms)

    # -- failures, and the end ---------------------------------------------------------------------------

    def _fail_all_in(self, slot: _JobSlot, why: str, now_ms: float) -> None:
        slot.allocation = slot.slot = None
        for place in sorted(slot.places):
            self._on(self.executions[place], ExecutionEvent.FAIL, now_ms, why)

    def _failed(self, failed: Iterable[Place], why: str, now_ms: float, is_recoverable: bool = True) -> None:
        """Attempts have failed: with them go those that cannot do without them."""
        if self.status.state not in (JobState.RUNNING, JobState.RESTARTING):
            return
        self.failure = why
        decision = self._restarts.failed(now_ms, is_recoverable)
        if isinstance(decision, GiveUp):
            self._pause = None
            self.status.on(JobEvent.FINAL_FAILURE, now_ms)
            self._end(self.plan.slot_of, now_ms)
            return
        self.status.on(JobEvent.RECOVERABLE, now_ms)
        places = to_restart(failed, list(self.plan.slot_of), self.plan.exchanges) | (
            self._restoring.waiting or frozenset()
        )
        if self._pause is not None:
            places |= self._pause.places
        self._pause = _Pause(decision, places)
        self._end(places, now_ms)

    def _begin_again(self, now_ms: float) -> None:
        """Make the next attempts, if the pause is over and the last ones have all come to an end."""
        pause = self._pause
        if pause is None or not pause.is_over:
            return
        if not all(self.executions[place].state.is_terminal for place in pause.places):
            return
        self._pause = None
        generation = max(each.id.generation for each in self.executions.values()) + 1
        for place in pause.places:
            last = self.executions[place].id
            self.executions[place] = Execution(
                ExecutionId(last.job_id, *place, last.attempt + 1, generation, last.epoch)
            )
        self.status.on(JobEvent.RESTARTED, now_ms)
        self._restore_and_schedule(pause.places, now_ms)

    def _look_at_the_end(self, now_ms: float) -> None:
        """Whether the job has come to its end with its last attempt."""
        states = {each.state for each in self.executions.values()}
        if self.status.state is JobState.RUNNING and states == {ExecutionState.FINISHED}:
            self.status.on(JobEvent.ALL_FINISHED, now_ms)
        elif self.status.state in (JobState.FAILING, JobState.CANCELLING) and all(each.is_terminal for each in states):
            self.status.on(JobEvent.ALL_TERMINAL, now_ms)
        else:
            return
        self._decisions.append(JobIsOver(self.status.state))

    def _take(self) -> list[SchedulerDecision]:
        """What was decided since it was asked last."""
        decisions, self._decisions = self._decisions, []
        return decisions
