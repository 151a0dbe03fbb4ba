"""Unaligned barriers: the first one cuts, the others end what is copied; and a savepoint in between is aligned."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.consumer import (
    CAPTURE_TRANSITIONS,
    Abort,
    AbortReason,
    AlternatingBarrierHandler,
    BarrierUnaligner,
    Captured,
    CaptureEvent,
    CaptureState,
    Complete,
    ResumeChannel,
    StartCapture,
)
from refimpl.errors import LocalUsageError
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier, EndOfPartition

VERSIONS = pytest.mark.parametrize("version", FlinkVersion)
EVENTS = {
    CaptureEvent.NEWER_BARRIER: (0, CheckpointBarrier(6, 0, alignment=Alignment.UNALIGNED)),
    CaptureEvent.CURRENT_BARRIER: (0, CheckpointBarrier(5, 0, alignment=Alignment.UNALIGNED)),
    CaptureEvent.OLDER_BARRIER: (0, CheckpointBarrier(4, 0, alignment=Alignment.UNALIGNED)),
    CaptureEvent.CANCEL: (0, CancelCheckpointMarker(5)),
    CaptureEvent.END: (2, EndOfPartition()),
}


def loose(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(number, 0, alignment=Alignment.UNALIGNED)


def aligned(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(number, 0)


def handler_in(state: CaptureState) -> BarrierUnaligner:
    """One that is in this state with checkpoint 5."""
    handler = BarrierUnaligner(3)
    handler.on_event(0, loose(5))
    if state is CaptureState.IDLE:
        handler.on_aborted(5)
    return handler


@pytest.mark.parametrize("state", CaptureState)
@pytest.mark.parametrize("event", CaptureEvent)
def test_every_event_in_every_state_does_what_the_table_says_or_is_none(
    state: CaptureState, event: CaptureEvent
) -> None:
    handler = handler_in(state)
    assert handler.state is state
    if event not in CAPTURE_TRANSITIONS[state]:
        with pytest.raises(LocalUsageError):
            handler._go_on(event)
        return
    if event in EVENTS:
        handler.on_event(*EVENTS[event])
    elif event is CaptureEvent.ABORT:
        handler.on_aborted(5)
    elif event is CaptureEvent.TAKE_OVER:
        handler.take_over(loose(6), [1])
    else:
        handler.on_event(1, loose(5))
        handler.on_event(2, loose(5))
    assert handler.state is CAPTURE_TRANSITIONS[state][event]


DECIDED = {
    (CaptureState.IDLE, CaptureEvent.NEWER_BARRIER): [StartCapture(loose(6))],
    (CaptureState.CAPTURING, CaptureEvent.NEWER_BARRIER): [Abort(5, AbortReason.SUBSUMED), StartCapture(loose(6))],
    (CaptureState.CAPTURING, CaptureEvent.CANCEL): [Abort(5, AbortReason.CANCELLED)],
    (CaptureState.CAPTURING, CaptureEvent.END): [Abort(5, AbortReason.INPUT_ENDED)],
}


@pytest.mark.parametrize("state", CaptureState)
@pytest.mark.parametrize("event", EVENTS)
def test_what_an_event_asks_for(state: CaptureState, event: CaptureEvent) -> None:
    assert handler_in(state).on_event(*EVENTS[event]) == DECIDED.get((state, event), [])


@VERSIONS
def test_the_first_barrier_cuts_and_the_last_ends_what_is_copied(version: FlinkVersion) -> None:
    handler = BarrierUnaligner(3, version)
    assert handler.on_event(1, loose(1)) == [StartCapture(loose(1))]
    assert handler.on_event(2, loose(1)) == []
    assert handler.snapshot().arrived == (1, 2)
    assert handler.on_event(0, loose(1)) == [Captured(1)]
    assert handler.snapshot().last_completed_id == 1
    assert handler.on_event(0, loose(1)) == []


@VERSIONS
def test_one_channel_cuts_and_ends_at_once(version: FlinkVersion) -> None:
    assert BarrierUnaligner(1, version).on_event(0, loose(3)) == [StartCapture(loose(3)), Captured(3)]


def test_a_cancelled_checkpoint_does_not_begin_when_its_barrier_comes_late() -> None:
    handler = BarrierUnaligner(2)
    assert handler.on_event(0, CancelCheckpointMarker(4)) == [Abort(4, AbortReason.CANCELLED)]
    assert handler.on_event(1, loose(4)) == []
    assert handler.on_event(1, CancelCheckpointMarker(4)) == []
    assert handler.latest_checkpoint_id == 4


@VERSIONS
def test_an_ended_channel_is_not_waited_for_by_the_next_checkpoint(version: FlinkVersion) -> None:
    handler = BarrierUnaligner(2, version)
    assert handler.on_event(1, EndOfPartition()) == []
    assert handler.on_event(0, loose(1)) == [StartCapture(loose(1)), Captured(1)]


def test_in_2_x_the_end_of_a_channel_is_as_good_as_its_barrier() -> None:
    handler = BarrierUnaligner(2, FlinkVersion.V2_2)
    handler.on_event(0, loose(1))
    assert handler.on_event(1, EndOfPartition()) == [Captured(1)]


# -- both kinds ------------------------------------------------------------------------------------


@VERSIONS
def test_a_savepoint_ends_what_is_captured_and_is_aligned(version: FlinkVersion) -> None:
    handler = AlternatingBarrierHandler(2, version)
    assert handler.on_event(0, loose(1)) == [StartCapture(loose(1))]
    assert handler.on_event(0, aligned(2)) == [Abort(1, AbortReason.SUBSUMED)]
    assert handler.on_event(1, loose(1)) == []
    assert set(handler.on_event(1, aligned(2))) == {ResumeChannel(0), ResumeChannel(1), Complete(aligned(2))}
    assert handler.snapshot().num_completed == 1


@VERSIONS
def test_a_checkpoint_ends_the_alignment_of_a_savepoint(version: FlinkVersion) -> None:
    handler = AlternatingBarrierHandler(2, version)
    handler.on_event(0, aligned(1))
    decisions = handler.on_event(1, loose(2))
    assert set(decisions) == {ResumeChannel(0), Abort(1, AbortReason.SUBSUMED), StartCapture(loose(2))}
    assert handler.on_event(1, aligned(1)) == [ResumeChannel(1)], "who stopped behind it goes on"
    assert handler.on_event(0, loose(2)) == [Captured(2)]


@pytest.mark.parametrize("first", [loose(1), aligned(1)])
def test_a_marker_cancels_whatever_is_pending(first: CheckpointBarrier) -> None:
    handler = AlternatingBarrierHandler(2)
    handler.on_event(0, first)
    assert Abort(1, AbortReason.CANCELLED) in handler.on_event(1, CancelCheckpointMarker(1))
    assert handler.snapshot().checkpoint_id == -1
    assert handler.on_event(1, first) == ([ResumeChannel(1)] if first.needs_alignment else [])


@pytest.mark.parametrize("version", FlinkVersion)
@pytest.mark.parametrize("first", [loose(1), aligned(1)])
def test_an_ended_channel_counts_for_both_kinds(version: FlinkVersion, first: CheckpointBarrier) -> None:
    handler = AlternatingBarrierHandler(2, version)
    handler.on_event(1, EndOfPartition())
    decisions = handler.on_event(0, first)
    assert (Complete(first) if first.needs_alignment else Captured(1)) in decisions


# -- an alignment that takes too long ------------------------------------------------------------------


def timed(number: int) -> CheckpointBarrier:
    """Aligned for 50 ms from 100 ms on."""
    return CheckpointBarrier(number, 100, alignment_timeout_ms=50)


def handler_with(*arrived: int, num_channels: int = 3) -> AlternatingBarrierHandler:
    """One that aligns the timed barrier of checkpoint 1, which these channels have delivered at 120 ms."""
    handler = AlternatingBarrierHandler(num_channels, FlinkVersion.V2_2)
    handler.on_timeout(120)
    for channel in arrived:
        assert handler.on_event(channel, timed(1)) == []
    return handler


def cut(number: int) -> CheckpointBarrier:
    return timed(number).as_unaligned()


def test_an_alignment_that_takes_too_long_is_cut_there_and_who_waits_goes_on() -> None:
    handler = handler_with(2, 0)
    assert handler.next_deadline == 150
    assert handler.on_timeout(149.9) == []
    assert not handler.snapshot().is_unaligned
    assert handler.on_timeout(150) == [StartCapture(cut(1)), ResumeChannel(0), ResumeChannel(2)]
    assert handler.snapshot().arrived == (0, 2)
    assert handler.snapshot().is_unaligned
    assert handler.next_deadline is None
    assert handler.on_timeout(1_000) == []
    assert handler.on_event(1, timed(1)) == [ResumeChannel(1), Captured(1)]
    assert handler.snapshot().num_completed == 1
    assert handler.snapshot().is_unaligned


def test_a_barrier_that_has_stopped_waiting_on_its_way_takes_the_others_with_it() -> None:
    handler = handler_with(0)
    assert handler.on_event(1, cut(1)) == [StartCapture(cut(1)), ResumeChannel(0)]
    assert handler.on_event(2, cut(1)) == [Captured(1)]
    assert handler.snapshot().num_aborted == 0


def test_a_barrier_that_waits_still_ends_the_copies_of_its_channel() -> None:
    handler = handler_with()
    assert handler.on_event(1, cut(1)) == [StartCapture(cut(1))]
    assert handler.on_event(0, timed(1)) == [ResumeChannel(0)]
    assert handler.on_event(2, timed(1)) == [ResumeChannel(2), Captured(1)]


def test_an_alignment_in_time_is_one_and_has_no_deadline_any_more() -> None:
    handler = handler_with(0, 1)
    assert handler.on_event(2, timed(1)) == [Complete(timed(1)), *map(ResumeChannel, range(3))]
    assert handler.next_deadline is None
    assert handler.on_timeout(1_000) == []
    assert not handler.snapshot().is_unaligned


@VERSIONS
def test_a_savepoint_is_aligned_however_long_it_takes(version: FlinkVersion) -> None:
    handler = AlternatingBarrierHandler(2, version)
    handler.on_timeout(100)
    handler.on_event(0, aligned(1))
    assert handler.next_deadline is None
    assert handler.on_timeout(1e9) == []


def test_a_clock_that_goes_behind_waits_no_longer_than_it_says() -> None:
    handler = AlternatingBarrierHandler(2, FlinkVersion.V2_2)
    handler.on_timeout(30)
    handler.on_event(0, timed(1))
    assert handler.next_deadline == 80


def test_without_a_clock_an_alignment_has_no_end() -> None:
    handler = AlternatingBarrierHandler(2, FlinkVersion.V2_2)
    handler.on_event(0, timed(1))
    assert handler.next_deadline is None


def test_a_channel_that_has_ended_counts_at_the_switch_too() -> None:
    handler = handler_with(0)
    handler.on_event(1, EndOfPartition())
    assert handler.on_timeout(150) == [StartCapture(cut(1)), ResumeChannel(0)]
    assert handler.on_event(2, EndOfPartition()) == [Captured(1)]


def test_a_newer_barrier_ends_what_was_switched_and_is_aligned_itself() -> None:
    handler = handler_with(0)
    handler.on_timeout(150)
    assert handler.on_event(0, timed(2)) == [Abort(1, AbortReason.SUBSUMED)]
    assert handler.next_deadline == 150
    assert not handler.snapshot().is_unaligned
    assert handler.on_event(1, timed(1)) == [ResumeChannel(1)]


def test_a_marker_cancels_what_was_switched() -> None:
    handler = handler_with(0)
    handler.on_timeout(150)
    assert handler.on_event(1, CancelCheckpointMarker(1)) == [Abort(1, AbortReason.CANCELLED)]
    assert handler.on_event(2, timed(1)) == [ResumeChannel(2)], "who stopped behind it goes on"
    assert handler.next_deadline is None


def test_a_barrier_that_waits_behind_data_is_waited_for_no_longer_than_it_says() -> None:
    handler = AlternatingBarrierHandler(2, FlinkVersion.V2_2)
    handler.on_timeout(20)
    handler.announce(timed(1))
    assert handler.next_deadline is None, "nobody has said yet what time it is"
    handler.tell(110)
    assert handler.next_deadline == 150
    assert handler.on_timeout(150) == [StartCapture(cut(1))]
    assert handler.next_deadline is None
    assert handler.on_event(1, timed(1)) == [ResumeChannel(1)]
    assert handler.on_event(0, cut(1)) == [Captured(1)]


def test_what_was_announced_and_has_come_is_aligned_as_any() -> None:
    handler = AlternatingBarrierHandler(2, FlinkVersion.V2_2)
    handler.announce(timed(1))
    handler.tell(110)
    handler.on_event(0, timed(1))
    assert handler.next_deadline == 150
    assert handler.on_event(1, timed(1))[0] == Complete(timed(1))
    handler.announce(timed(1))
    assert handler.next_deadline is None


def test_what_was_announced_and_is_cancelled_does_not_begin() -> None:
    handler = AlternatingBarrierHandler(2, FlinkVersion.V2_2)
    handler.announce(timed(1))
    handler.tell(110)
    assert handler.on_event(1, CancelCheckpointMarker(1)) == [Abort(1, AbortReason.CANCELLED)]
    assert handler.on_timeout(500) == []
