"""One job, its attempts and the slots they wait for: from the first wish to the end of the job.

A job is deployed when all its slots are there. One with blocking exchanges is deployed region by region: each when all
that it reads is complete and its slots are there, which it gives back when it has ended. When an attempt fails,
whatever has to begin again with it is stopped first: see `PendingRestart`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

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
from refimpl.cluster.heartbeat import HEARTBEAT_INTERVAL_MS
from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.cluster.job_slots import JobSlot, JobSlots
from refimpl.cluster.job_status import JobEvent, JobState, JobStatus
from refimpl.cluster.messages import CancelTask, ReleasePartitions, RestoreFrom, SubmittedTask, TaskState
from refimpl.cluster.pending_restart import PendingRestart
from refimpl.cluster.restart import RestartStrategy
from refimpl.cluster.result_tracker import KeptResult, ResultTracker
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

__all__ = ["Scheduler"]

_EVENTS = {
    TaskState.RUNNING: ExecutionEvent.RUN,
    TaskState.FINISHED: ExecutionEvent.FINISH,
    TaskState.FAILED: ExecutionEvent.FAIL,
    TaskState.CANCELED: ExecutionEvent.CANCELED,
}
_LIVE = (ExecutionState.DEPLOYING, ExecutionState.RUNNING, ExecutionState.CANCELING)


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
    Differs: a job without blocking exchanges is deployed as a whole, also after a failure; Flink deploys a region when
             its slots are there. Regions wait for slots one after the other, so that no two have half of theirs.
    """

    def __init__(
        self, plan: JobPlan, epoch: int, strategy: RestartStrategy, now_ms: float, restores: bool = False
    ) -> None:
        self.plan = plan
        self.status = JobStatus(plan.job_id, now_ms)
        self.executions = {place: Execution(ExecutionId(plan.job_id, *place, epoch=epoch)) for place in plan.slot_of}
        self.failure: str | None = None
        self._slots = JobSlots(plan)
        self._submitted_ms: dict[Place, float] = {}
        self._restart = PendingRestart(plan, strategy)
        self._restoring = _Restoring(restores)
        self._results = ResultTracker(plan)
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
            self._restart.give_up()
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
        self._restart.give_up()

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return self._restart.next_deadline

    def on_timeout(self, now_ms: float) -> list[SchedulerDecision]:
        """The pause may be over."""
        self._restart.on_timeout(now_ms)
        self._begin_again(now_ms)
        return self._take()

    # -- slots -------------------------------------------------------------------------------------------

    def slot_assigned(
        self, number: int, allocation: AllocationId, slot: SlotId, now_ms: float
    ) -> list[SchedulerDecision]:
        """Slot `number` of the job is there."""
        self._slots[number].allocation, self._slots[number].slot = allocation, slot
        self._deploy(now_ms)
        self._schedule_next(now_ms)
        return self._take()

    def no_slot(self, number: int, why: str, now_ms: float) -> list[SchedulerDecision]:
        """Slot `number` of the job will not come; while something of it runs, that will give back its own."""
        slot = self._slots[number]
        if self._results.has_blocking and any(each.state in _LIVE for each in self.executions.values()):
            self._decisions.append(WishForSlot(number, slot.before))
        else:
            self._fail_all(self._slots.lose([slot]), why, now_ms)
        return self._take()

    def slots_lost(self, allocations: Sequence[AllocationId], why: str, now_ms: float) -> list[SchedulerDecision]:
        """These slots are gone, with all that ran in them."""
        self._fail_all(self._slots.lose(self._slots.known_as(allocations)), why, now_ms)
        return self._take()

    def task_manager_lost(
        self, task_manager: str, allocations: Sequence[AllocationId], why: str, now_ms: float
    ) -> list[SchedulerDecision]:
        """With these slots all blocking results that were there are gone."""
        lost = self._results_lost(self._results.at(task_manager))
        self._fail_all(self._slots.lose(self._slots.known_as(allocations)), why, now_ms, lost)
        return self._take()

    # -- TaskManagers ------------------------------------------------------------------------------------

    def task_is(
        self,
        task_manager: str,
        execution: ExecutionId,
        state: TaskState,
        why: str,
        now_ms: float,
        missing: Sequence[ExecutionId] = (),
    ) -> list[SchedulerDecision]:
        """What a TaskManager says of an attempt; one that is not the present one has no business to run.

        What is `missing` it should have read: that was reached by nobody, and counts as gone.
        """
        known = self.executions.get(execution.place)
        if known is not None and known.id == execution:
            if state is TaskState.CANCELED and known.state is not ExecutionState.CANCELING:
                state = TaskState.FAILED  # nobody here has told it to stop
            if state is TaskState.FINISHED and not known.state.is_terminal:
                self._results.keep(execution, task_manager)
            for each in missing:
                self._release(self._results.drop(each))
            self._on(known, _EVENTS[state], now_ms, why)
        elif state is TaskState.RUNNING:
            self._decisions.append(TellTaskManager(task_manager, CancelTask(execution)))
        return self._take()

    def running_are(
        self, task_manager: str, running: Sequence[ExecutionId], results: Sequence[ExecutionId], now_ms: float
    ) -> list[SchedulerDecision]:
        """A TaskManager has said what runs there: what else should has been lost, what should not is stopped.

        So it is with the blocking `results` that it has.

        Flink:   ExecutionDeploymentReconciler (runtime.jobmaster), 1.12
        """
        decisions: list[SchedulerDecision] = []
        for execution_id in running:
            decisions += self.task_is(task_manager, execution_id, TaskState.RUNNING, "", now_ms)
        for place, execution in list(self.executions.items()):
            should_be = execution.state in _LIVE and self._slots.is_at(place, task_manager)
            is_old = now_ms - self._submitted_ms.get(place, now_ms) >= HEARTBEAT_INTERVAL_MS
            if should_be and is_old and execution.id not in running:
                self._on(execution, ExecutionEvent.FAIL, now_ms, f"{task_manager} does not run it")
        gone = [each for each in self._results.at(task_manager) if each.execution not in results]
        if gone:
            self._fail_all((), f"{task_manager} does not have it", now_ms, self._results_lost(gone))
        return decisions + self._take()

    def results_wanted_at(self, task_manager: str) -> tuple[ExecutionId, ...]:
        """The attempts whose blocking results a TaskManager is to keep."""
        live = [each.id for each in self.executions.values() if each.state in _LIVE]
        here = [each for each in live if self._slots.is_at(each.place, task_manager)]
        return self._results.wanted_at(task_manager, here)

    # -- attempts ----------------------------------------------------------------------------------------

    def _restore_and_schedule(self, places: frozenset[Place], now_ms: float) -> None:
        is_known = self._results.has_blocking and self._restoring.found is not None  # there are no checkpoints
        if self._restoring.is_needed and not is_known:
            self._restoring.waiting = places | (self._restoring.waiting or frozenset())
            self._decisions.append(FindRestore())
        else:
            self._schedule(places, now_ms)

    def _schedule(self, places: Iterable[Place], now_ms: float) -> None:
        if self._results.has_blocking:
            self._schedule_next(now_ms)
            return
        for place in sorted(places):
            self._on(self.executions[place], ExecutionEvent.SCHEDULE, now_ms)
        self._deploy(now_ms)

    def _schedule_next(self, now_ms: float) -> None:
        """Let the regions that can start do so, until one has to wait for slots."""
        while self._may_schedule:
            region, lost = self._results.next_region(self.executions, self._restart.places)
            if lost:
                self._fail_all((), "nobody has it", now_ms, lost)
            if region is None:
                return
            for place in sorted(region):
                self._on(self.executions[place], ExecutionEvent.SCHEDULE, now_ms)
            self._deploy(now_ms)

    @property
    def _may_schedule(self) -> bool:
        """Whether the job goes on, region by region, and none of them waits for slots."""
        if self.status.state not in (JobState.RUNNING, JobState.RESTARTING) or not self._results.has_blocking:
            return False
        is_known = not self._restoring.is_needed or self._restoring.found is not None
        return is_known and all(each.state is not ExecutionState.SCHEDULED for each in self.executions.values())

    def _deploy(self, now_ms: float) -> None:
        """Send out the attempts that wait, when all that they wait for is there."""
        waiting = [each for each in self.executions.values() if each.state is ExecutionState.SCHEDULED]
        if not self._slots.have_all(each.id.place for each in waiting):
            return
        for execution in waiting:
            self._on(execution, ExecutionEvent.SLOT, now_ms)
        if waiting and not self._results.has_blocking:  # or else there are no checkpoints to begin
            self._decisions.append(AttemptsStart(tuple(each.id for each in waiting)))

    def _on(self, execution: Execution, event: ExecutionEvent, now_ms: float, why: str = "") -> None:
        before = execution.state
        self._carry_out(execution.on(event), now_ms)
        if before.is_terminal or not execution.state.is_terminal:
            return
        if execution.state is ExecutionState.FAILED:
            self._failed([execution.id.place], f"{execution.id} has failed: {why or 'nobody says why'}", now_ms)
        self._go_on(now_ms)

    def _go_on(self, now_ms: float) -> None:
        """What follows on the end of an attempt."""
        self._begin_again(now_ms)
        for each in self._results.done_with(self.executions):
            self._release(self._results.drop(each.execution))
        self._schedule_next(now_ms)
        self._look_at_the_end(now_ms)

    def _carry_out(self, decisions: Iterable[ExecutionDecision], now_ms: float) -> None:
        for decision in decisions:
            slot = self._slots.of(decision.execution.place)
            match decision:
                case AskForASlot(execution):
                    if slot.is_wanted:
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
                case ReleaseResults(execution):
                    self._release(self._results.drop(execution))  # pipelined ones go with their attempt

    def _submitted(self, execution: ExecutionId, allocation: AllocationId) -> SubmittedTask:
        together = tuple(self.executions[place].id for place in sorted(self._results.region_of[execution.place]))
        reads = tuple((each.execution, each.task_manager) for each in self._results.read_by(execution.place))
        keeps = self._results.is_producer(execution.place)
        return SubmittedTask(execution, allocation, self._slots.where, together, self._restoring.found, reads, keeps)

    def _tell(self, slot: JobSlot, message: SubmittedTask | CancelTask) -> None:
        if slot.slot is not None:
            self._decisions.append(TellTaskManager(slot.slot.task_manager, message))

    def _leave(self, slot: JobSlot, place: Place) -> None:
        """An attempt needs its slot no more; whoever is the last gives it back."""
        slot.places.discard(place)
        if slot.places:
            return
        if slot.allocation is None:
            self._decisions.append(GiveUpWish(slot.number))
        else:
            self._decisions.append(ReleaseSlot(slot.give_back()))

    def _end(self, places: Iterable[Place], now_ms: float) -> None:
        """Stop whatever runs at these places, with what it does for checkpoints."""
        places = sorted(places)
        self._restoring.waiting = None
        self._decisions.append(AttemptsEnd(tuple(self.executions[place].id for place in places)))
        for place in places:
            self._on(self.executions[place], ExecutionEvent.CANCEL, now_ms)

    # -- failures, and the end ---------------------------------------------------------------------------

    def _fail_all(self, places: Iterable[Place], why: str, now_ms: float, lost: Sequence[Place] = ()) -> None:
        """All of these have failed at once, and what those at `lost` have produced is gone with that."""
        failed = list[Place]()
        for place in places:
            execution, was_over = self.executions[place], self.executions[place].state.is_terminal
            self._carry_out(execution.on(ExecutionEvent.FAIL), now_ms)
            if execution.state is ExecutionState.FAILED and not was_over:
                failed.append(place)
        if failed:
            self._failed([*failed, *lost], f"{self.executions[failed[0]].id} has failed: {why}", now_ms)
        elif lost:
            self._failed(lost, f"the result of {self.executions[lost[0]].id} is lost: {why}", now_ms)
        self._go_on(now_ms)

    def _results_lost(self, gone: Iterable[KeptResult]) -> list[Place]:
        """These results are not there any more; whose they were."""
        dropped = [self._results.drop(each.execution) for each in gone]
        return sorted(each.execution.place for each in dropped if each is not None)

    def _release(self, kept: KeptResult | None) -> None:
        if kept is not None:
            message = ReleasePartitions((kept.execution,))
            self._decisions.append(TellTaskManager(kept.task_manager, message))

    def _failed(self, failed: Iterable[Place], why: str, now_ms: float, is_recoverable: bool = True) -> None:
        """Attempts have failed: with them go those that cannot do without them."""
        if self.status.state not in (JobState.RUNNING, JobState.RESTARTING):
            return
        self.failure = why
        waiting = self._restoring.waiting or frozenset()
        is_available = partial(self._results.is_available, self.executions)
        places = self._restart.failed(failed, waiting, is_available, now_ms, is_recoverable)
        self.status.on(JobEvent.FINAL_FAILURE if places is None else JobEvent.RECOVERABLE, now_ms)
        self._end(self.plan.slot_of if places is None else places, now_ms)

    def _begin_again(self, now_ms: float) -> None:
        """Make the next attempts, if the pause is over and the last ones have all come to an end."""
        if (places := self._restart.begin(self.executions)) is None:
            return
        generation = max(each.id.generation for each in self.executions.values()) + 1
        for place in places:
            self.executions[place] = Execution(self.executions[place].id.next_attempt(generation))
        self.status.on(JobEvent.RESTARTED, now_ms)
        self._restore_and_schedule(places, now_ms)

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
