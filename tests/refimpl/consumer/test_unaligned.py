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
