"""A task's part of a checkpoint: the order of the cut, what waits, and what an abort leaves."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from refimpl.consumer import AbortReason
from refimpl.errors import LocalUsageError
from refimpl.records import Alignment, CheckpointBarrier
from refimpl.task import (
    FINAL_SNAPSHOT,
    SNAPSHOT_TRANSITIONS,
    BroadcastBarrier,
    BroadcastCancelMarker,
    CancelWrite,
    CaptureInputs,
    DropCapture,
    DropWritten,
    FailTask,
    FinishTask,
    OperatorAborted,
    OperatorComplete,
    PrepareBarrier,
    SendAck,
    SendDecline,
    SendEnded,
    SnapshotDecision,
    SnapshotEvent,
    SnapshotState,
    SubtaskSnapshotting,
    TakeState,
    WriteState,
)

CHAIN = ("head", "tail")


def barrier(checkpoint_id: int, alignment: Alignment = Alignment.ALIGNED) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0, alignment=alignment)


def decided(snapshots: SubtaskSnapshotting, is_blocked: bool = False) -> list[SnapshotDecision]:
    """All that is to be done now."""
    decisions = []
    while (decision := snapshots.next_decision(is_blocked)) is not None:
        decisions.append(decision)
    return decisions


def synchronous_part(checkpoint_id: int) -> list[SnapshotDecision]:
    return [
        PrepareBarrier(checkpoint_id, "head"),
        PrepareBarrier(checkpoint_id, "tail"),
        BroadcastBarrier(barrier(checkpoint_id)),
        TakeState(checkpoint_id, "head"),
        TakeState(checkpoint_id, "tail"),
        WriteState(checkpoint_id),
    ]


def writing(checkpoint_id: int = 1) -> SubtaskSnapshotting:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(checkpoint_id))
    assert decided(snapshots) == synchronous_part(checkpoint_id)
    return snapshots


# -- the table -------------------------------------------------------------------------------------


def in_state(state: SnapshotState) -> SubtaskSnapshotting:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(1))
    if state is not SnapshotState.TRIGGERED:
        decided(snapshots)
    match state:
        case SnapshotState.ABORTED:
            snapshots.notify_aborted(1)
        case SnapshotState.OVER:
            snapshots.written(1)
    decided(snapshots, is_blocked=True)
    return snapshots


@pytest.mark.parametrize("state", SnapshotState)
@pytest.mark.parametrize("event", SnapshotEvent)
def test_a_snapshot_goes_where_its_table_says_or_nowhere(state: SnapshotState, event: SnapshotEvent) -> None:
    snapshots = in_state(state)
    assert snapshots._state_of(1) is state
    if event in SNAPSHOT_TRANSITIONS[state]:
        snapshots._go_on(1, event)
        assert snapshots._state_of(1) is SNAPSHOT_TRANSITIONS[state][event]
    else:
        with pytest.raises(LocalUsageError):
            snapshots._go_on(1, event)
        assert snapshots._state_of(1) is state


# -- barriers --------------------------------------------------------------------------------------


def test_the_synchronous_part_has_its_order_and_operators_go_head_first() -> None:
    snapshots = writing()
    assert snapshots.last_id == 1
    assert snapshots.num_writing == 1
    assert not snapshots.is_waiting
    snapshots.written(1)
    assert decided(snapshots) == [SendAck(1)]
    assert snapshots.num_writing == 0


def test_an_unaligned_barrier_goes_out_before_the_inputs_are_copied_and_both_before_the_state() -> None:
    snapshots = SubtaskSnapshotting(["head"])
    unaligned = barrier(1, Alignment.UNALIGNED)
    snapshots.trigger(unaligned)
    assert decided(snapshots) == [
        PrepareBarrier(1, "head"),
        BroadcastBarrier(unaligned),
        CaptureInputs(1),
        TakeState(1, "head"),
        WriteState(1),
    ]


def test_nothing_touches_an_output_while_a_record_is_in_hand() -> None:
    """Else the record would be in the state and behind the barrier: lost."""
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(1))
    assert decided(snapshots, is_blocked=True) == []
    assert snapshots.is_waiting
    assert snapshots.next_decision(is_blocked=False) == PrepareBarrier(1, "head")
    assert decided(snapshots, is_blocked=True) == []
    assert decided(snapshots) == synchronous_part(1)[1:]


def test_what_touches_no_output_does_not_wait() -> None:
    snapshots = writing(1)
    snapshots.trigger(barrier(2))
    snapshots.written(1)
    assert decided(snapshots, is_blocked=True) == [SendAck(1)]
    assert decided(snapshots) == synchronous_part(2)


@pytest.mark.parametrize("checkpoint_id", [1, 2])
def test_a_barrier_that_is_not_new_does_nothing(checkpoint_id: int) -> None:
    snapshots = writing(2)
    snapshots.trigger(barrier(checkpoint_id))
    assert decided(snapshots) == []
    snapshots.trigger(barrier(checkpoint_id, Alignment.UNALIGNED))
    assert decided(snapshots) == [DropCapture(checkpoint_id)]
    assert snapshots.last_id == 2


def test_snapshots_are_written_side_by_side() -> None:
    snapshots = writing(1)
    snapshots.trigger(barrier(2))
    assert decided(snapshots) == synchronous_part(2)
    snapshots.written(2)
    snapshots.written(1)
    assert decided(snapshots) == [SendAck(2), SendAck(1)]


# -- aborts ----------------------------------------------------------------------------------------


def test_an_abort_by_the_input_is_declined_and_told_to_whoever_reads_from_here() -> None:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.abort(3, AbortReason.CANCELLED)
    assert decided(snapshots) == [SendDecline(3, AbortReason.CANCELLED), DropCapture(3), BroadcastCancelMarker(3)]
    assert snapshots.last_id == 3
    snapshots.trigger(barrier(3))
    assert decided(snapshots) == []


def test_an_older_one_that_is_aborted_does_not_take_the_last_back() -> None:
    snapshots = writing(5)
    snapshots.abort(3, AbortReason.INPUT_ENDED)
    assert snapshots.last_id == 5


def test_one_that_was_aborted_before_its_barrier_came_is_a_marker_and_no_snapshot() -> None:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.notify_aborted(1)
    assert decided(snapshots) == []
    snapshots.trigger(barrier(1))
    assert decided(snapshots) == [BroadcastCancelMarker(1)]
    snapshots.trigger(barrier(2))
    assert decided(snapshots) == synchronous_part(2)


def test_at_most_128_are_remembered_and_the_oldest_forgotten() -> None:
    snapshots = SubtaskSnapshotting(["head"])
    for checkpoint_id in range(1, 130):
        snapshots.notify_aborted(checkpoint_id)
    snapshots.trigger(barrier(1))
    assert BroadcastBarrier(barrier(1)) in decided(snapshots)
    snapshots.trigger(barrier(2))
    assert decided(snapshots) == [BroadcastCancelMarker(2)]


def test_one_that_is_aborted_while_it_is_written_is_cancelled_and_its_files_go() -> None:
    snapshots = writing()
    snapshots.notify_aborted(1)
    told = [OperatorAborted(1, "head"), OperatorAborted(1, "tail")]
    assert decided(snapshots) == [CancelWrite(1), DropCapture(1), *told]
    snapshots.written(1)
    assert decided(snapshots) == [DropWritten(1)]


def test_one_that_is_aborted_and_whose_write_fails_is_not_declined_as_well() -> None:
    snapshots = writing()
    snapshots.notify_aborted(1)
    decided(snapshots)
    snapshots.write_failed(1, "cancelled")
    assert decided(snapshots) == [DropWritten(1)]


@pytest.mark.parametrize("num_done", [0, 1, 2])
def test_one_that_is_aborted_before_its_barrier_went_out_becomes_a_marker(num_done: int) -> None:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(1))
    for _ in range(num_done):
        snapshots.next_decision(is_blocked=False)
    snapshots.notify_aborted(1)
    decisions = decided(snapshots)
    assert decisions[:2] == [DropCapture(1), BroadcastCancelMarker(1)]
    assert not any(isinstance(each, BroadcastBarrier | TakeState | WriteState) for each in decisions)


def test_one_that_is_aborted_between_its_barrier_and_its_state_needs_no_marker() -> None:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(1))
    for _ in range(3):
        snapshots.next_decision(is_blocked=False)
    snapshots.notify_aborted(1)
    assert BroadcastCancelMarker(1) not in decided(snapshots)
    assert snapshots.num_writing == 0


def test_after_its_ack_an_abort_is_only_told() -> None:
    """The files are the coordinator's by then."""
    snapshots = writing()
    snapshots.written(1)
    decided(snapshots)
    snapshots.notify_aborted(1)
    assert decided(snapshots) == [DropCapture(1), OperatorAborted(1, "head"), OperatorAborted(1, "tail")]


# -- the writer, and completion --------------------------------------------------------------------


def test_a_write_that_fails_is_declined_and_the_task_goes_on() -> None:
    snapshots = writing()
    snapshots.write_failed(1, "no space left")
    assert decided(snapshots) == [SendDecline(1, AbortReason.IO, "no space left"), DropWritten(1)]
    snapshots.trigger(barrier(2))
    assert decided(snapshots) == synchronous_part(2)


@pytest.mark.parametrize("checkpoint_id", [FINAL_SNAPSHOT, 1, 2])
def test_what_is_not_being_written_cannot_have_been(checkpoint_id: int) -> None:
    snapshots = SubtaskSnapshotting(CHAIN)
    snapshots.trigger(barrier(1))
    with pytest.raises(LocalUsageError):
        snapshots.written(checkpoint_id)
    with pytest.raises(LocalUsageError):
        snapshots.write_failed(checkpoint_id, "")


def test_operators_are_told_of_a_completion_in_order() -> None:
    snapshots = writing()
    snapshots.notify_complete(1)
    assert decided(snapshots) == [OperatorComplete(1, "head"), OperatorComplete(1, "tail")]


# -- the end ---------------------------------------------------------------------------------------


def ended() -> SubtaskSnapshotting:
    snapshots = writing(4)
    snapshots.end_of_input()
    take = [TakeState(FINAL_SNAPSHOT, "head"), TakeState(FINAL_SNAPSHOT, "tail"), WriteState(FINAL_SNAPSHOT)]
    assert decided(snapshots) == take
    return snapshots


def test_at_the_end_the_last_state_is_taken_and_the_task_waits_until_it_counts() -> None:
    snapshots = ended()
    snapshots.written(FINAL_SNAPSHOT)
    assert decided(snapshots) == [SendEnded()]
    snapshots.notify_complete(4)
    assert decided(snapshots) == [OperatorComplete(4, "head"), OperatorComplete(4, "tail")]
    snapshots.notify_complete(5)
    assert decided(snapshots) == [OperatorComplete(5, "head"), OperatorComplete(5, "tail"), FinishTask()]
    snapshots.notify_complete(5)
    assert FinishTask() not in decided(snapshots)


def test_a_final_snapshot_that_cannot_be_written_fails_the_task() -> None:
    snapshots = ended()
    snapshots.write_failed(FINAL_SNAPSHOT, "full")
    assert decided(snapshots) == [
        DropWritten(FINAL_SNAPSHOT),
        FailTask("the final snapshot could not be written: full"),
    ]


def test_after_the_end_no_barrier_is_new_and_the_end_comes_once() -> None:
    snapshots = ended()
    snapshots.trigger(barrier(9))
    assert decided(snapshots) == []
    with pytest.raises(LocalUsageError, match="ended already"):
        snapshots.end_of_input()


# -- laws over random events -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_random_events_keep_the_laws(seed: int) -> None:
    """Whoever reads from here hears of each id once, in order; each write is answered once, and each answer used."""
    print(f"{seed=}")
    draw = random.Random(seed)
    snapshots, next_id, is_blocked = SubtaskSnapshotting(CHAIN), 1, False
    heard, asked, open_writes, ends = list[int](), set[int](), list[int](), Counter[int]()
    taken: dict[int, list[str]] = {}
    for _ in range(300):
        match draw.choice(["trigger", "trigger", "abort", "aborted", "complete", "write", "write", "block", "step"]):
            case "trigger":
                asked.add(next_id)
                snapshots.trigger(barrier(next_id))
                next_id += draw.randint(0, 2)
            case "abort":
                if next_id > snapshots.last_id:
                    asked.add(next_id)
                    snapshots.abort(next_id, AbortReason.CANCELLED)
            case "aborted":
                snapshots.notify_aborted(draw.randint(max(1, next_id - 4), next_id + 2))
            case "complete":
                snapshots.notify_complete(next_id)
            case "write" if open_writes:
                done = open_writes.pop(draw.randrange(len(open_writes)))
                snapshots.written(done) if draw.random() < 0.7 else snapshots.write_failed(done, "")
            case "block":
                is_blocked = not is_blocked
        for decision in decided(snapshots, is_blocked):
            touches = isinstance(decision, PrepareBarrier | BroadcastBarrier | BroadcastCancelMarker | TakeState)
            assert not (is_blocked and touches)
            match decision:
                case BroadcastBarrier(event):
                    heard.append(event.checkpoint_id)
                    taken[event.checkpoint_id] = []
                case BroadcastCancelMarker(checkpoint_id):
                    heard.append(checkpoint_id)
                case TakeState(checkpoint_id, operator):
                    taken[checkpoint_id].append(operator)
                case WriteState(checkpoint_id):
                    assert taken[checkpoint_id] == list(CHAIN)
                    open_writes.append(checkpoint_id)
                case SendAck(checkpoint_id) | DropWritten(checkpoint_id):
                    ends[checkpoint_id] += 1
        assert heard == sorted(set(heard)), "an id twice, or out of order"
        assert snapshots.num_writing == len(open_writes)
        assert set(ends.values()) <= {1}
        assert set(heard) <= asked
    for decision in decided(snapshots):
        match decision:
            case BroadcastBarrier(event):
                heard.append(event.checkpoint_id)
            case BroadcastCancelMarker(checkpoint_id):
                heard.append(checkpoint_id)
    assert asked == set(heard), "somebody waits for a barrier for ever"
