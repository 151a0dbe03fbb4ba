"""One checkpoint under way: what ends it, what no longer can, and what each ack is worth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.checkpoint import (
    PENDING_TRANSITIONS,
    Ack,
    AckResult,
    CheckpointFailureReason,
    CheckpointRequest,
    PendingCheckpoint,
    PendingEvent,
    PendingState,
)
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import StateFile

DO: dict[PendingEvent, Callable[[PendingCheckpoint], object]] = {
    PendingEvent.ACK: lambda pending: pending.acknowledge(ack("a")),
    PendingEvent.WRITE: lambda pending: pending.write(),
    PendingEvent.FAIL: lambda pending: pending.fail(CheckpointFailureReason.EXPIRED),
    PendingEvent.SUBSUME: lambda pending: pending.subsume(2),
    PendingEvent.WRITTEN: lambda pending: pending.written(),
    PendingEvent.NOT_WRITTEN: lambda pending: pending.not_written("full"),
    PendingEvent.SUSPEND: lambda pending: pending.suspend(),
}


def ack(attempt: str) -> Ack:
    return Ack(1, attempt, (StateFile(f"chk-1/{attempt}", 3, "00"),))


def pending_in(state: PendingState) -> PendingCheckpoint:
    pending = PendingCheckpoint(1, CheckpointRequest(1, 0), 0, ["a"])
    pending.acknowledge(ack("a"))
    match state:
        case PendingState.WRITING:
            pending.write()
        case PendingState.COMPLETED:
            pending.write()
            pending.written()
        case PendingState.ABORTED:
            pending.suspend()
    assert pending.state is state
    return pending


@pytest.mark.parametrize("state", PendingState)
@pytest.mark.parametrize("event", PendingEvent)
def test_it_goes_where_its_table_says_or_nowhere(state: PendingState, event: PendingEvent) -> None:
    pending = pending_in(state)
    if event in PENDING_TRANSITIONS[state]:
        DO[event](pending)
        assert pending.state is PENDING_TRANSITIONS[state][event]
    else:
        with pytest.raises(LocalUsageError):
            DO[event](pending)
        assert pending.state is state


@pytest.mark.parametrize("event", [PendingEvent.FAIL, PendingEvent.SUSPEND])
def test_while_its_manifest_is_written_it_is_too_late_to_undo(event: PendingEvent) -> None:
    pending = pending_in(PendingState.WRITING)
    assert DO[event](pending) is False
    assert (pending.state, pending.reason) == (PendingState.WRITING, None)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (PendingEvent.FAIL, CheckpointFailureReason.EXPIRED),
        (PendingEvent.SUBSUME, CheckpointFailureReason.SUBSUMED),
        (PendingEvent.SUSPEND, CheckpointFailureReason.SUSPENDED),
    ],
)
def test_what_ends_it_is_why_and_only_the_first_counts(event: PendingEvent, reason: CheckpointFailureReason) -> None:
    pending = pending_in(PendingState.COLLECTING)
    assert DO[event](pending) is True
    assert pending.reason is reason
    assert DO[PendingEvent.FAIL](pending) is False
    assert pending.reason is reason


def test_a_manifest_that_is_not_there_ends_it() -> None:
    pending = pending_in(PendingState.WRITING)
    assert pending.not_written("no space left")
    assert (pending.state, pending.reason) == (PendingState.ABORTED, CheckpointFailureReason.FINALIZE)
    assert pending.detail == "no space left"


def test_each_attempt_is_taken_once_and_strangers_not_at_all() -> None:
    pending = PendingCheckpoint(1, CheckpointRequest(1, 0), 0, ["a", "b"])
    assert pending.acknowledge(ack("c")) is AckResult.UNKNOWN
    assert pending.acknowledge(ack("b")) is AckResult.SUCCESS
    assert pending.acknowledge(ack("b")) is AckResult.DUPLICATE
    assert not pending.is_fully_acknowledged
    assert pending.keys == ["chk-1/b"]
    assert pending.acknowledge(ack("a")) is AckResult.SUCCESS
    assert pending.is_fully_acknowledged


@pytest.mark.parametrize("state", [PendingState.COMPLETED, PendingState.ABORTED])
def test_what_comes_when_it_is_over_is_discarded(state: PendingState) -> None:
    assert pending_in(state).acknowledge(ack("b")) is AckResult.DISCARDED


def test_a_manifest_before_all_acks_is_a_bug() -> None:
    pending = PendingCheckpoint(1, CheckpointRequest(1, 0), 0, ["a"])
    with pytest.raises(AssertionError, match="waits for"):
        pending.write()


def test_a_savepoint_cannot_be_subsumed() -> None:
    assert not PendingCheckpoint(1, CheckpointRequest.for_savepoint(1, 0, "s"), 0, ["a"]).can_be_subsumed
    assert PendingCheckpoint(1, CheckpointRequest(1, 0), 0, ["a"]).can_be_subsumed
