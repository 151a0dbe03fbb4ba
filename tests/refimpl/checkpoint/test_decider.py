"""Which request starts, waits or is dropped, as Flink 1.11.4 decides it; more cases are in `conformance`."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import (
    MAX_QUEUED_REQUESTS,
    CheckpointFailureReason,
    CheckpointRequest,
    CheckpointRequestDecider,
    DropRequest,
    MoveTimer,
    StartCheckpoint,
)
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind


def periodic(number: int, submitted_ms: float = 0) -> CheckpointRequest:
    return CheckpointRequest(number, submitted_ms, is_periodic=True)


def test_the_queue_is_in_the_order_of_what_is_most_wanted() -> None:
    savepoint = CheckpointRequest(1, 9, CheckpointKind.SAVEPOINT)
    forced_savepoint = CheckpointRequest.for_savepoint(2, 9, "s")
    forced = CheckpointRequest(3, 9, is_forced=True)
    manual, late_manual = CheckpointRequest(4, 8), CheckpointRequest(5, 9)
    timer, late_timer = periodic(6, 1), periodic(7, 2)
    decider = CheckpointRequestDecider()
    for request in (late_timer, timer, late_manual, manual, forced, savepoint, forced_savepoint):
        assert decider.submit(request, 10, 0, is_triggering=True) == []
    ordered = (forced_savepoint, savepoint, forced, manual, late_manual, timer, late_timer)
    assert decider.queued == ordered
    for request in ordered:
        assert decider.choose(10, 0) == [StartCheckpoint(request)]
    assert decider.choose(10, 0) == []


def test_of_equals_the_older_goes_first() -> None:
    decider = CheckpointRequestDecider()
    for number in range(5):
        decider.submit(CheckpointRequest(number, 3), 3, 1)
    assert [request.number for request in decider.queued] == [0, 1, 2, 3, 4]


def test_only_what_is_forced_starts_beside_the_most_that_may_be_under_way() -> None:
    decider = CheckpointRequestDecider(max_concurrent=2)
    manual, forced = CheckpointRequest(1, 0), CheckpointRequest(2, 0, is_forced=True)
    assert decider.submit(manual, 0, 2) == []
    assert decider.submit(forced, 0, 2) == [StartCheckpoint(forced)]
    assert decider.choose(0, 2) == []
    assert decider.choose(0, 1) == [StartCheckpoint(manual)]


def test_a_forced_one_behind_a_savepoint_that_is_not_waits_too() -> None:
    """Only the first is looked at."""
    decider = CheckpointRequestDecider()
    decider.submit(CheckpointRequest(1, 0, CheckpointKind.SAVEPOINT), 0, 1)
    assert decider.submit(CheckpointRequest(2, 0, is_forced=True), 0, 1) == []


@pytest.mark.parametrize(("now_ms", "goes"), [(109, False), (110, True), (111, True)])
def test_the_timers_request_is_dropped_in_the_pause_and_the_timer_moves_to_its_end(now_ms: int, goes: bool) -> None:
    decider = CheckpointRequestDecider(min_pause_ms=10)
    request = periodic(0, now_ms)
    decisions = decider.submit(request, now_ms, 0, last_completion_ms=100)
    if goes:
        assert decisions == [StartCheckpoint(request)]
    else:
        assert decisions == [DropRequest(request, CheckpointFailureReason.MIN_PAUSE), MoveTimer(110)]
        assert decider.queued == ()


@pytest.mark.parametrize(
    "request_",
    [
        CheckpointRequest(1, 0),
        CheckpointRequest(1, 0, CheckpointKind.SAVEPOINT),
        CheckpointRequest.for_savepoint(1, 0, "s"),
        CheckpointRequest(1, 0, is_forced=True, is_periodic=True),
    ],
)
def test_what_somebody_asked_for_or_forces_does_not_wait_for_the_pause(request_: CheckpointRequest) -> None:
    """Flink: CheckpointRequestDeciderTest#testSavepointTiming, #testCheckpointTiming."""
    assert CheckpointRequestDecider(min_pause_ms=10).submit(request_, 0, 0, 0) == [StartCheckpoint(request_)]


def test_too_many_under_way_is_looked_at_before_the_pause() -> None:
    decider = CheckpointRequestDecider(min_pause_ms=10)
    assert decider.submit(periodic(0), 0, 1, 0) == []
    assert len(decider.queued) == 1


def test_a_full_queue_drops_its_last() -> None:
    decider = CheckpointRequestDecider(max_queued=2)
    timers = [periodic(0, 1), periodic(1, 2)]
    for request in timers:
        assert decider.submit(request, 2, 1) == []
    manual = CheckpointRequest(2, 3)
    assert decider.submit(manual, 3, 1) == [DropRequest(timers[1], CheckpointFailureReason.TOO_MANY_REQUESTS)]
    assert decider.queued == (manual, timers[0])


def test_a_full_queue_of_what_users_asked_for_takes_no_more_not_even_what_is_wanted_more() -> None:
    decider = CheckpointRequestDecider(max_queued=1)
    manual, savepoint = CheckpointRequest(1, 0), CheckpointRequest.for_savepoint(2, 0, "s")
    decider.submit(manual, 0, 1)
    assert decider.submit(savepoint, 0, 1) == [DropRequest(savepoint, CheckpointFailureReason.TOO_MANY_REQUESTS)]
    assert decider.queued == (manual,)


def test_a_thousand_may_wait() -> None:
    decider = CheckpointRequestDecider()
    for number in range(MAX_QUEUED_REQUESTS):
        assert decider.submit(periodic(number, number), 0, 1) == []
    last = periodic(1_000, 1_000)
    assert decider.submit(last, 0, 1) == [DropRequest(last, CheckpointFailureReason.TOO_MANY_REQUESTS)]
    assert MAX_QUEUED_REQUESTS == 1_000


def test_all_that_waits_can_be_dropped() -> None:
    decider = CheckpointRequestDecider()
    decider.submit(periodic(0), 0, 1)
    dropped = decider.drop_all(CheckpointFailureReason.SUSPENDED)
    assert dropped == [DropRequest(periodic(0), CheckpointFailureReason.SUSPENDED)]
    assert decider.queued == ()


@pytest.mark.parametrize("limits", [{"max_concurrent": 0}, {"max_queued": 0}, {"min_pause_ms": -1}])
def test_limits_that_are_none_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(LocalUsageError):
        CheckpointRequestDecider(**limits)
