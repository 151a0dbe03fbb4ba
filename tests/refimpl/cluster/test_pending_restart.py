"""What begins again after failures that follow on one another, and not before all of it has stopped."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    Exchange,
    Execution,
    ExecutionEvent,
    ExecutionId,
    FixedDelayRestart,
    JobPlan,
    PendingRestart,
)
from refimpl.cluster.job_plan import Place

A, B, C, D = (0, 0), (0, 1), (1, 0), (1, 1)
PAIRS = JobPlan("job", {A: 0, B: 1, C: 0, D: 1}, (Exchange(A, C), Exchange(B, D)))
NOBODY = frozenset[Place]()


class Attempts:
    """A pending restart, and an attempt of each subtask that has not ended."""

    def __init__(self, max_restarts: int = 9) -> None:
        self.restart = PendingRestart(PAIRS, FixedDelayRestart(max_restarts, 100))
        self.executions = {place: Execution(ExecutionId("job", *place)) for place in PAIRS.slot_of}

    def fail(self, place: Place, now_ms: float, is_recoverable: bool = True) -> frozenset[Place] | None:
        return self.restart.failed([place], NOBODY, lambda _place: True, now_ms, is_recoverable)

    def end(self, *places: Place) -> None:
        for place in places:
            self.executions[place].on(ExecutionEvent.CANCEL)

    def begin(self) -> frozenset[Place] | None:
        return self.restart.begin(self.executions)


def test_the_region_of_what_has_failed_begins_again_after_the_pause_and_once() -> None:
    attempts = Attempts()
    assert (attempts.restart.places, attempts.restart.next_deadline) == (NOBODY, None)
    assert attempts.fail(A, now_ms=5) == {A, C}
    assert (attempts.restart.places, attempts.restart.next_deadline) == ({A, C}, 105)
    attempts.end(A, C)
    attempts.restart.on_timeout(104)
    assert attempts.begin() is None
    attempts.restart.on_timeout(105)
    assert attempts.begin() == {A, C}
    assert attempts.begin() is None
    assert (attempts.restart.places, attempts.restart.next_deadline) == (NOBODY, None)


def test_nothing_begins_before_the_last_attempt_has_stopped() -> None:
    attempts = Attempts()
    attempts.fail(A, now_ms=0)
    attempts.restart.on_timeout(100)
    assert attempts.restart.next_deadline is None
    attempts.end(A)
    assert attempts.begin() is None
    attempts.end(C)
    assert attempts.begin() == {A, C}


def test_a_second_failure_begins_the_pause_anew_and_both_begin_together() -> None:
    attempts = Attempts()
    attempts.fail(A, now_ms=0)
    attempts.restart.on_timeout(100)
    assert attempts.fail(B, now_ms=130) == {A, B, C, D}
    attempts.end(A, B, C, D)
    attempts.restart.on_timeout(200)
    assert attempts.begin() is None
    assert attempts.restart.next_deadline == 230
    attempts.restart.on_timeout(230)
    assert attempts.begin() == {A, B, C, D}


def test_who_waits_to_be_sent_out_begins_again_too() -> None:
    restart = Attempts().restart
    assert restart.failed([A], frozenset({B}), lambda _place: True, 0, True) == {A, B, C}


@pytest.mark.parametrize(("max_restarts", "is_recoverable"), [(1, True), (9, False)])
def test_after_the_last_failure_nothing_begins(max_restarts: int, is_recoverable: bool) -> None:
    attempts = Attempts(max_restarts)
    assert attempts.fail(A, now_ms=0) == {A, C}
    assert attempts.fail(A, 10, is_recoverable) is None
    assert (attempts.restart.places, attempts.restart.next_deadline) == (NOBODY, None)


def test_after_giving_up_nothing_begins() -> None:
    attempts = Attempts()
    attempts.fail(A, now_ms=0)
    attempts.end(A, C)
    attempts.restart.give_up()
    attempts.restart.on_timeout(1_000)
    assert attempts.begin() is None
    assert attempts.restart.next_deadline is None
