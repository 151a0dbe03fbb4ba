"""Who says where a task is cut changes hands in a running job, and back when it fails."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.checkpoints import _GuardedAligner
from course.swap.guard import Guard
from course.swap.rule import part_of
from refimpl.consumer import Abort, AbortReason, BarrierAligner, ResumeChannel
from refimpl.records import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition

pytestmark = pytest.mark.slow

RIGHT = [pytest.param(part_of(each), id=each.name) for each in right_answers("14.1")]
PLAIN = RIGHT[0].values[0]


def wrong(name):
    (found,) = [part_of(each) for each in zoo("14.1") if each.name == name]
    return found


@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("part", RIGHT)
def test_a_right_part_changes_no_count_and_cuts_go_on(part, driver):
    report = swap.run("14.1", part, driver=driver, records=400)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 2
    assert report.crashed.startswith("✓")
    if driver == "simulation":
        assert 0 < report.num_cuts_before < report.num_cuts
        assert f"{report.num_cuts_before} before the swap, {report.num_cuts} in all" in repr(report)


@pytest.mark.parametrize("num_before", [1, 2, 3, 5])
def test_a_part_that_raises_is_taken_out_and_nobody_stands_still(num_before):
    calls = []

    class Breaking(PLAIN):
        def on_barrier(self, channel, barrier):
            calls.append(channel)
            if len(calls) == num_before:
                raise ZeroDivisionError("division by zero")
            return super().on_barrier(channel, barrier)

    report = swap.run("14.1", Breaking, records=400)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")
    assert report.num_cuts > report.num_cuts_before


def test_what_can_not_be_done_is_not_let_into_the_job():
    report = swap.run("14.1", wrong("w25_completes_a_number"), records=400)
    assert report.taken_out[0].startswith("TypeError")
    assert report.is_equal


def test_a_part_that_leaves_a_channel_blocked_is_seen():
    report = swap.run("14.1", wrong("w06_nobody_goes_on"), records=400)
    assert "nothing can move" in report.error
    assert "came to no end" in repr(report)


@pytest.mark.parametrize(("name", "num_counted"), [("w01_first_barrier_is_the_cut", 595), ("w02_reads_on", 607)])
def test_a_crash_shows_what_no_other_run_does(name, num_counted):
    report = swap.run("14.1", wrong(name))
    assert report.is_equal
    assert report.crashed.startswith("✗")
    assert f"counted {num_counted} of 600 flights" in repr(report)


HEARD = [
    (0, CheckpointBarrier(1, 0)), (2, CheckpointBarrier(1, 0)), (1, CheckpointBarrier(2, 0)),
    (2, CheckpointBarrier(2, 0)), (0, CheckpointBarrier(2, 0)), (1, CancelCheckpointMarker(4)),
    (0, CheckpointBarrier(3, 0)), (2, CheckpointBarrier(4, 0)), (0, CheckpointBarrier(5, 0)), (2, EndOfPartition()),
    (1, CheckpointBarrier(5, 0)), (0, CheckpointBarrier(6, 0)), (1, CheckpointBarrier(6, 0)),
    (1, CheckpointBarrier(7, 0)), (0, CancelCheckpointMarker(7)), (0, EndOfPartition()), (1, CheckpointBarrier(8, 0)),
]  # fmt: skip


def in_any_order(decisions):
    return sorted(map(repr, decisions))


@pytest.mark.parametrize("num_before", range(len(HEARD)))
@pytest.mark.parametrize("part", RIGHT)
def test_an_aligner_that_comes_in_late_knows_what_ours_knew(part, num_before):
    alone, before = BarrierAligner(3), BarrierAligner(3)
    for heard in HEARD[:num_before]:
        assert alone.on_event(*heard) == before.on_event(*heard)
    with Guard(part) as guard:
        theirs = _GuardedAligner(guard, before)
        for heard in HEARD[num_before:]:
            assert in_any_order(theirs.on_event(*heard)) == in_any_order(alone.on_event(*heard)), heard
            assert theirs.snapshot() == alone.snapshot()
        assert (guard.what_happened, guard.num_calls) == ([], 1 + len(HEARD) - num_before)


def test_who_waits_for_a_part_that_is_gone_goes_on():
    class Holding(BarrierAligner):
        def on_barrier(self, channel, barrier):
            return []

        def on_cancellation(self, channel, checkpoint_id):
            raise ZeroDivisionError

    with Guard(Holding) as guard:
        theirs = _GuardedAligner(guard, BarrierAligner(3))
        for channel in range(3):
            assert theirs.on_event(channel, CheckpointBarrier(1, 0)) == []
        decided = theirs.on_event(1, CancelCheckpointMarker(2))  # ours has nobody waiting
        assert decided == [Abort(2, AbortReason.CANCELLED), *map(ResumeChannel, range(3))]
        assert guard.is_out
