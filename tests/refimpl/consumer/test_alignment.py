"""What Flink's recordings do not ask: wrong barriers, barriers of the other mode, and what is remembered."""

from __future__ import annotations

import pytest

from refimpl.config import CheckpointingMode, FlinkVersion
from refimpl.consumer import (
    Abort,
    AbortReason,
    AlignmentSnapshot,
    BarrierAligner,
    BarrierTracker,
    Complete,
    ResumeChannel,
    act_on,
    barrier_handler,
)
from refimpl.errors import RemoteProtocolError
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, EndOfSuperstep

VERSIONS = pytest.mark.parametrize("version", FlinkVersion)


def barrier(number: int, alignment: Alignment = Alignment.ALIGNED) -> CheckpointBarrier:
    return CheckpointBarrier(number, 0, alignment=alignment)


def loose(number: int) -> CheckpointBarrier:
    return barrier(number, Alignment.AT_LEAST_ONCE)


@VERSIONS
def test_a_barrier_that_comes_twice_on_a_channel_is_refused(version):
    aligner = BarrierAligner(3, version)
    aligner.on_event(1, barrier(4))
    before = aligner.snapshot()
    with pytest.raises(RemoteProtocolError, match="channel 1: barrier 4 a second time"):
        aligner.on_event(1, barrier(4))
    assert aligner.snapshot() == before


def test_a_tracker_counts_it_once():
    tracker = BarrierTracker(2)
    assert tracker.on_event(0, loose(1)) == []
    assert tracker.on_event(0, loose(1)) == []
    assert tracker.on_event(1, loose(1)) == [Complete(loose(1))]


@VERSIONS
def test_who_did_not_stop_is_not_told_to_go_on(version):
    aligner = BarrierAligner(2, version)
    assert aligner.on_event(0, loose(1)) == []
    assert aligner.on_event(1, barrier(1)).count(ResumeChannel(1)) == 1
    assert ResumeChannel(0) not in aligner.on_event(0, loose(1))


def test_a_tracker_keeps_nobody_waiting_who_has_stopped():
    tracker = BarrierTracker(2)
    assert tracker.on_event(0, barrier(1)) == [ResumeChannel(0)]
    assert tracker.on_event(1, barrier(1)) == [ResumeChannel(1), Complete(barrier(1))]


def test_a_tracker_forgets_the_oldest_of_more_than_fifty():
    tracker = BarrierTracker(2)
    for number in range(1, 52):
        assert tracker.on_event(0, loose(number)) == []
    assert tracker.snapshot().checkpoint_id == 2
    assert tracker.on_event(1, loose(1)) == []
    assert tracker.on_event(1, loose(2)) == [Complete(loose(2))]


def test_a_cut_that_completes_forgets_those_before_it():
    tracker = BarrierTracker(2)
    for number in (1, 2, 3):
        tracker.on_event(0, loose(number))
    assert tracker.on_event(1, loose(2)) == [Complete(loose(2))]
    assert tracker.on_event(1, loose(1)) == []
    assert tracker.snapshot() == AlignmentSnapshot(CheckpointingMode.AT_LEAST_ONCE, 3, (0,), 2, 1, 0)


@VERSIONS
@pytest.mark.parametrize("mode", CheckpointingMode)
def test_a_snapshot_says_who_has_come_and_what_was_completed(mode, version):
    handler = barrier_handler(mode, 3, version)
    kind = Alignment.ALIGNED if mode is CheckpointingMode.EXACTLY_ONCE else Alignment.AT_LEAST_ONCE
    assert handler.snapshot() == AlignmentSnapshot(mode, -1, (), -1, 0, 0)
    handler.on_event(2, barrier(1, kind))
    handler.on_event(0, barrier(1, kind))
    assert handler.snapshot() == AlignmentSnapshot(mode, 1, (0, 2), -1, 0, 0)
    handler.on_event(1, barrier(1, kind))
    assert handler.snapshot() == AlignmentSnapshot(mode, -1, (), 1, 1, 0)
    handler.on_event(1, CancelCheckpointMarker(5))
    assert handler.snapshot() == AlignmentSnapshot(mode, -1, (), 1, 1, 1)


@VERSIONS
@pytest.mark.parametrize("mode", CheckpointingMode)
def test_other_events_decide_nothing(mode, version):
    assert barrier_handler(mode, 2, version).on_event(0, EndOfSuperstep()) == []


@VERSIONS
def test_channels_that_have_ended_are_not_waited_for_by_the_next_barrier(version):
    aligner = BarrierAligner(2, version)
    aligner.on_event(0, EndOfPartition())
    assert set(aligner.on_event(1, barrier(1))) == {ResumeChannel(1), Complete(barrier(1))}


@pytest.mark.parametrize("mode", CheckpointingMode)
def test_the_time_of_an_alignment_is_from_the_first_barrier_to_the_last(mode):
    handler = barrier_handler(mode, 3, FlinkVersion.V1_11)
    for channel, now_ms in ((1, 10.0), (0, 12.0), (2, 17.5)):
        handler.now_ms = now_ms
        assert handler.alignment_ms(1) is None
        handler.on_event(channel, barrier(1))
    assert handler.alignment_ms(1) == 7.5
    handler.now_ms = 40.0
    for channel in range(3):
        handler.on_event(channel, barrier(2))
    assert (handler.alignment_ms(1), handler.alignment_ms(2)) == (None, 0.0)


def test_an_alignment_that_was_given_up_leaves_the_next_its_own_time():
    aligner = BarrierAligner(2)
    for channel, number, now_ms in ((0, 1, 1.0), (0, 2, 5.0), (1, 2, 6.0), (1, 1, 7.0)):
        aligner.now_ms = now_ms
        aligner.on_event(channel, barrier(number))
    assert aligner.alignment_ms(2) == 1.0
    assert aligner.alignment_ms(1) is None


def test_without_a_time_nobody_knows_how_long_it_took():
    aligner = BarrierAligner(1)
    aligner.on_event(0, barrier(1))
    assert aligner.alignment_ms(1) is None


class Channel:
    """Stands for a channel that waits."""

    def __init__(self) -> None:
        self.num_resumed = 0

    def resume(self) -> None:
        self.num_resumed += 1


def test_what_was_decided_is_done_and_told():
    channels = [Channel(), Channel()]
    decisions = [ResumeChannel(1), Complete(barrier(3)), Abort(4, AbortReason.CANCELLED)]
    assert list(act_on(decisions, channels)) == [barrier(3), Abort(4, AbortReason.CANCELLED)]
    assert [each.num_resumed for each in channels] == [0, 1]


def completed(num_channels: int, *steps: str) -> list[int]:
    """Which checkpoints a tracker completes; `3@1` is barrier 3 on channel 1."""
    tracker = BarrierTracker(num_channels)
    found = []
    for number, channel in (map(int, step.split("@")) for line in steps for step in line.split()):
        decided = tracker.on_event(channel, loose(number))
        found += [each.barrier.checkpoint_id for each in decided if isinstance(each, Complete)]
    return found


def test_a_tracker_waits_for_late_barriers_although_newer_ones_have_come():
    """Where inputs are slow in different ways, no checkpoint would be completed otherwise.

    Flink: `BarrierTrackerTest#testCompleteCheckpointsOnLateBarriers` (P108).
    """
    steps = (
        "2@1 2@0 2@2",
        "3@1 3@2  4@2 4@1  3@0 4@0",
        "5@1 5@0 5@2",
        "6@1 6@0  7@1 7@2 8@2 8@1 9@1  7@0",  # 6 never comes on channel 2
        "9@2 10@2 8@0 9@0",
    )
    assert completed(3, *steps) == [2, 3, 4, 5, 7, 8, 9]
    assert completed(3, *steps, "10@0 10@1") == [2, 3, 4, 5, 7, 8, 9, 10]


def test_a_tracker_skips_what_a_channel_never_delivers():
    """Flink: `BarrierTrackerTest#testMultiChannelSkippingCheckpoints` (P109)."""
    assert completed(3, "1@1 1@2 1@0", "2@0 2@1 2@2", "3@2", "4@0 4@1 4@2") == [1, 2, 4]
