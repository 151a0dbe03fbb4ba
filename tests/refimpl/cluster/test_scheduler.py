"""What a job does before its attempts are sent out, and with what is said of them that nobody has asked for."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    AllocationId,
    AttemptsEnd,
    AttemptsStart,
    Exchange,
    ExecutionId,
    FindRestore,
    FixedDelayRestart,
    JobIsOver,
    JobPlan,
    JobState,
    RestoreFrom,
    Scheduler,
    SchedulerDecision,
    SlotId,
    SubmittedTask,
    TaskState,
    TellTaskManager,
    WishForSlot,
)

NOTHING = RestoreFrom("job", 1, None)
LATER = RestoreFrom("job", 2, "chk-4/_metadata")
TWO_REGIONS = JobPlan(
    "job", {(0, 0): 0, (0, 1): 1, (1, 0): 0, (1, 1): 1}, (Exchange((0, 0), (1, 0)), Exchange((0, 1), (1, 1)))
)


def made(restores: bool = True) -> Scheduler:
    return Scheduler(TWO_REGIONS, 1, FixedDelayRestart(3, 100), 0, restores)


def running(scheduler: Scheduler) -> list[SchedulerDecision]:
    """Let it run; what was decided on the way."""
    decisions = [*scheduler.start(0), *scheduler.restored(NOTHING, 0)]
    for number in range(2):
        slot = SlotId(f"tm-{number}", 0)
        decisions += scheduler.slot_assigned(number, AllocationId("job", 1, number), slot, 0)
    for execution in list(scheduler.executions.values()):
        decisions += says(scheduler, execution.id, TaskState.RUNNING)
    return decisions


def says(scheduler: Scheduler, execution: ExecutionId, state: TaskState, now_ms: float = 0) -> list[SchedulerDecision]:
    return scheduler.task_is(f"tm-{execution.subtask}", execution, state, "", now_ms)


def submitted(decisions: list[SchedulerDecision]) -> list[SubmittedTask]:
    told = [each.message for each in decisions if isinstance(each, TellTaskManager)]
    return [each for each in told if isinstance(each, SubmittedTask)]


def test_slots_are_wished_for_when_it_is_known_what_the_attempts_go_on_from() -> None:
    scheduler = made()
    assert scheduler.start(0) == [FindRestore()]
    assert [type(each) for each in scheduler.restored(NOTHING, 0)] == [WishForSlot, WishForSlot]
    assert [type(each) for each in made(restores=False).start(0)] == [WishForSlot, WishForSlot]


def test_an_attempt_is_sent_out_with_its_region_and_with_what_it_goes_on_from() -> None:
    decisions = running(made())
    tasks = submitted(decisions)
    assert [each.execution.place for each in tasks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [[other.place for other in each.together] for each in tasks] == [
        [(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 0), (1, 0)], [(0, 1), (1, 1)]
    ]  # fmt: skip
    assert {each.restore for each in tasks} == {NOTHING}
    starts = [each for each in decisions if isinstance(each, AttemptsStart)]
    assert starts == [AttemptsStart(tuple(each.execution for each in tasks))]


def test_a_region_ends_alone_and_its_next_attempts_go_on_from_what_was_found_for_them() -> None:
    scheduler = made()
    running(scheduler)
    first, second = (scheduler.executions[place].id for place in [(0, 0), (1, 0)])
    assert AttemptsEnd((first, second)) in says(scheduler, first, TaskState.FAILED)
    says(scheduler, second, TaskState.CANCELED)
    decisions = scheduler.on_timeout(100)
    assert decisions == [FindRestore()]
    scheduler.restored(LATER, 100)
    tasks = submitted(scheduler.slot_assigned(0, AllocationId("job", 1, 0), SlotId("tm-0", 0), 100))
    assert [(each.execution.place, each.execution.attempt, each.restore) for each in tasks] == [
        ((0, 0), 1, LATER), ((1, 0), 1, LATER)
    ]  # fmt: skip
    assert scheduler.status.state is JobState.RUNNING


def test_an_attempt_that_was_cancelled_by_nobody_here_has_failed() -> None:
    scheduler = made()
    running(scheduler)
    says(scheduler, scheduler.executions[0, 0].id, TaskState.CANCELED)
    assert scheduler.status.state is JobState.RESTARTING


@pytest.mark.parametrize("is_recoverable", [True, False])
def test_what_is_no_attempt_fails_the_whole_job_and_ends_it_if_it_would_be_met_again(is_recoverable: bool) -> None:
    scheduler = made()
    scheduler.start(0)
    decisions = scheduler.job_failed("the store is empty", 0, is_recoverable)
    assert scheduler.failure == "the store is empty"
    if is_recoverable:
        assert scheduler.status.state is JobState.RESTARTING
        assert scheduler.on_timeout(100) == [FindRestore()]
    else:
        assert decisions[-1] == JobIsOver(JobState.FAILED)


def test_what_was_found_for_attempts_that_have_ended_meanwhile_starts_nothing() -> None:
    scheduler = made()
    scheduler.start(0)
    scheduler.job_failed("a fault", 0)
    assert scheduler.restored(NOTHING, 0) == []
    assert scheduler.status.state is JobState.RESTARTING
    scheduler.cancel(1)
    assert scheduler.restored(NOTHING, 1) == []
    assert scheduler.status.state is JobState.CANCELED
