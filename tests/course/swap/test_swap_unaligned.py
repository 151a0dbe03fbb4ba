"""Who says where a task is cut by barriers that overtake changes hands in a running job, and back when it fails."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.guard import Guard
from course.swap.rule import part_of
from course.swap.unaligned import _GuardedUnaligner
from refimpl.config import FlinkVersion
from refimpl.consumer import (
    Abort,
    AbortReason,
    AlternatingBarrierHandler,
    BarrierUnaligner,
    Captured,
    CaptureState,
    StartCapture,
)
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier, EndOfPartition

pytestmark = pytest.mark.slow

RIGHT = [pytest.param(part_of(each), id=each.name) for each in right_answers("15.1")]
PLAIN = RIGHT[0].values[0]


def wrong(name):
    (found,) = [part_of(each) for each in zoo("15.1") if each.name == name]
    return found


def loose(number):
    return CheckpointBarrier(number, 0, alignment=Alignment.UNALIGNED)


def tight(number):
    return CheckpointBarrier(number, 0)


@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("part", RIGHT)
def test_a_right_part_changes_no_count_and_cuts_go_on(part, driver):
    report = swap.run("15.1", part, driver=driver, records=400)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 2
    assert report.crashed.startswith("✓")
    assert "on from checkpoint" in report.crashed
    if driver == "simulation":
        assert 0 < report.num_cuts_before < report.num_cuts


@pytest.mark.parametrize("num_before", [1, 2, 3, 5])
def test_a_part_that_raises_is_taken_out_and_the_job_goes_on(num_before):
    calls = []

    class Breaking(PLAIN):
        def on_barrier(self, channel, barrier):
            calls.append(channel)
            if len(calls) == num_before:
                raise ZeroDivisionError("division by zero")
            return super().on_barrier(channel, barrier)

    report = swap.run("15.1", Breaking, records=400)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")
    assert report.num_cuts > report.num_cuts_before
    assert report.crashed.startswith("✓")


@pytest.mark.parametrize("name", ["w14_goes_on", "w15_complete", "w16_captured_a_barrier", "w17_starts_a_number"])
def test_what_can_not_be_done_is_not_let_into_the_job(name):
    report = swap.run("15.1", wrong(name), records=400)
    assert report.taken_out[0].startswith("TypeError")
    assert "no StartCapture of a barrier" in report.taken_out[0]
    assert report.is_equal


@pytest.mark.parametrize("name", ["w01_cut_at_the_last", "w02_first_is_all", "w05_never_reset"])
def test_a_crash_shows_what_no_other_run_does(name):
    report = swap.run("15.1", wrong(name))
    assert report.is_equal
    assert report.crashed.startswith("✗")
    assert "came to no end" in repr(report)


def test_without_an_end_of_the_copies_there_is_no_checkpoint_to_go_on_from():
    report = swap.run("15.1", wrong("w04_no_end_of_it"))
    assert report.crashed == "✓ a second job, which crashed and went on from its beginning, counted 600 of 600 flights"


HEARD = [
    (0, loose(1)), (2, loose(1)), (1, loose(2)), 2, (2, loose(2)), (0, loose(2)), (1, CancelCheckpointMarker(4)),
    (0, loose(3)), (2, loose(4)), (0, loose(5)), (2, EndOfPartition()), (1, loose(5)), (0, loose(6)), 5, (1, loose(6)),
    (1, loose(7)), 7, (0, CancelCheckpointMarker(7)), (1, loose(8)), 8, (0, EndOfPartition()), (1, loose(9)),
]  # fmt: skip
"""What comes on a channel, or the number of a checkpoint that somebody has given up."""


def said(handler, heard):
    decisions = handler.on_aborted(heard) if isinstance(heard, int) else handler.on_event(*heard)
    return sorted(map(repr, decisions))


def guarded(guard, handler):
    handler.unaligner = _GuardedUnaligner(guard, handler.unaligner)
    return handler


@pytest.mark.parametrize("num_before", range(len(HEARD)))
@pytest.mark.parametrize("part", RIGHT)
def test_an_unaligner_that_comes_in_late_knows_what_ours_knew(part, num_before):
    alone, theirs = AlternatingBarrierHandler(3), AlternatingBarrierHandler(3)
    for heard in HEARD[:num_before]:
        assert said(alone, heard) == said(theirs, heard)
    with Guard(part) as guard:
        guarded(guard, theirs)
        for heard in HEARD[num_before:]:
            assert said(theirs, heard) == said(alone, heard), heard
            assert theirs.snapshot() == alone.snapshot()
        assert guard.what_happened == []
        assert guard.num_calls > len(HEARD) - num_before


@pytest.mark.parametrize("part", RIGHT)
def test_barriers_that_are_aligned_and_a_wait_that_is_too_long_leave_both_with_the_same(part):
    """A savepoint's barriers end what is captured; an alignment that takes too long is taken over."""
    timed = CheckpointBarrier(3, 0, alignment_timeout_ms=10)
    alone, theirs = (AlternatingBarrierHandler(2, FlinkVersion.V2_2) for _ in range(2))
    with Guard(part) as guard:
        guarded(guard, theirs)
        for step in (
            lambda each: each.on_event(0, loose(1)),
            lambda each: each.on_event(0, tight(2)),
            lambda each: each.on_event(1, tight(2)),
            lambda each: each.on_timeout(100.0),
            lambda each: each.on_event(0, timed),
            lambda each: each.on_timeout(200.0),
            lambda each: each.on_event(1, timed.as_unaligned()),
            lambda each: each.on_event(1, tight(4)),
            lambda each: each.on_event(0, CancelCheckpointMarker(4)),
            lambda each: each.on_event(0, loose(5)),
            lambda each: each.on_event(1, loose(5)),
        ):
            assert sorted(map(repr, step(theirs))) == sorted(map(repr, step(alone)))
            assert theirs.snapshot() == alone.snapshot()
        assert guard.what_happened == []


def test_what_a_part_that_is_gone_had_not_begun_is_aborted():
    class Silent(BarrierUnaligner):
        def on_barrier(self, channel, barrier):
            if channel:
                raise ZeroDivisionError
            return []

    with Guard(Silent) as guard:
        theirs = _GuardedUnaligner(guard, BarrierUnaligner(2))
        assert theirs.on_barrier(0, loose(1)) == []  # ours has begun
        assert theirs.on_barrier(1, loose(1)) == [Abort(1, AbortReason.IO)]
        assert guard.is_out
        assert theirs.on_barrier(0, loose(2)) == [StartCapture(loose(2))]
        assert theirs.on_barrier(1, loose(2)) == [Captured(2)]


def test_what_a_part_says_twice_is_done_once():
    class Twice(PLAIN):
        def on_barrier(self, channel, barrier):
            return 2 * [*reversed(super().on_barrier(channel, barrier))]

    with Guard(Twice) as guard:
        theirs = _GuardedUnaligner(guard, BarrierUnaligner(1))
        assert theirs.on_barrier(0, loose(1)) == [StartCapture(loose(1)), Captured(1)]
        assert theirs.on_end(0) == []
        assert theirs.ours.state is CaptureState.IDLE
