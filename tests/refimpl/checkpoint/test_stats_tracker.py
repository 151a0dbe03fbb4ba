"""The record of checkpoints, told what was decided by hand; a whole run feeds it in `tests/test_checkpoints.py`."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import (
    Ack,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointCounts,
    CheckpointFailureReason,
    CheckpointRequest,
    CheckpointStats,
    CheckpointStatsTracker,
    CheckpointStatus,
    CompletedCheckpoint,
    DeleteManifest,
    NotifyComplete,
    RequestRefused,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.state.manifest import CheckpointKind, StateFile

TIMED = CheckpointRequest(0, 0.0, is_periodic=True)
EXPIRED, SUBSUMED = CheckpointFailureReason.EXPIRED, CheckpointFailureReason.SUBSUMED


class Told:
    """A tracker of a job of two tasks, and short words for what it is told."""

    def __init__(self, num_remembered: int = 10) -> None:
        self.tracker = CheckpointStatsTracker(num_remembered)
        self.tracker.started(["source-0", "sink-0"])

    def begin(self, number: int, at_ms: float = 0.0, request: CheckpointRequest = TIMED) -> None:
        self.tracker.note(TriggerCheckpoint(number, request, round(at_ms), ("source-0",)), at_ms)

    def ack(self, number: int, task: str, at_ms: float, size: int = 10) -> None:
        self.tracker.acknowledged(Ack(number, task, (StateFile(f"{task}.state", size, "00"),)), at_ms)

    def complete(self, number: int, at_ms: float, request: CheckpointRequest = TIMED) -> None:
        checkpoint = CompletedCheckpoint(number, request.kind, (), 0.0, at_ms, name=request.name)
        self.tracker.note(CheckpointCompleted(checkpoint, request), at_ms)

    def abort(self, number: int, reason: CheckpointFailureReason, at_ms: float, detail: str = "") -> None:
        self.tracker.note(CheckpointAborted(number, TIMED, reason, detail, ()), at_ms)

    @property
    def counts(self) -> CheckpointCounts:
        return self.tracker.snapshot().counts

    def __getitem__(self, number: int) -> CheckpointStats:
        (found,) = [each for each in self.tracker.snapshot().history if each.checkpoint_id == number]
        return found


def test_a_checkpoint_is_followed_from_its_trigger_to_its_end() -> None:
    told = Told()
    told.begin(7, 5.0)
    assert told[7].status is CheckpointStatus.IN_PROGRESS
    assert [(each.task, each.acked_ms) for each in told[7].subtasks] == [("source-0", None), ("sink-0", None)]
    told.ack(7, "sink-0", 6.0, 30)
    told.ack(7, "source-0", 8.0, 12)
    assert [each.task for each in told[7].acknowledged] == ["sink-0", "source-0"]
    assert (told[7].state_bytes, told[7].is_writing) == (42, False)
    assert told[7].duration_ms(9.0) == 4.0
    told.tracker.note(WriteManifest(7, TIMED, 5.0, ()), 8.5)
    assert told[7].is_writing
    told.complete(7, 11.0)
    assert (told[7].status, told[7].is_writing, told[7].ended_ms) == (CheckpointStatus.COMPLETED, False, 11.0)
    assert told[7].duration_ms(99.0) == 6.0


def test_of_two_that_acknowledge_in_one_moment_the_later_one_in_the_job_is_the_last() -> None:
    told = Told()
    told.begin(1)
    told.ack(1, "sink-0", 2.0)
    told.ack(1, "source-0", 2.0)
    assert [each.task for each in told[1].acknowledged] == ["source-0", "sink-0"]


def test_one_that_failed_says_why() -> None:
    told = Told()
    told.begin(1)
    told.abort(1, EXPIRED, 10.0, "after 10 ms")
    assert (told[1].status, told[1].reason, told[1].detail) == (CheckpointStatus.FAILED, EXPIRED, "after 10 ms")
    assert told.tracker.snapshot().latest_failed == told[1]


def test_each_is_counted_once_wherever_it_ends() -> None:
    """Flink: CheckpointStatsCountsTest#testCounts."""
    told = Told()
    for number in range(1, 6):
        told.begin(number)
    told.complete(2, 1.0)
    told.complete(2, 1.0)
    told.abort(1, SUBSUMED, 1.0)
    told.abort(2, EXPIRED, 1.0)
    told.tracker.note(RequestRefused(TIMED, CheckpointFailureReason.NOT_ALL_RUNNING), 2.0)
    told.tracker.restored(2, CheckpointKind.CHECKPOINT, 3.0)
    assert told.counts == CheckpointCounts(5, 3, 1, 1, 1, 1)
    assert told.tracker.snapshot().refusal is CheckpointFailureReason.NOT_ALL_RUNNING
    assert told[2].status is CheckpointStatus.COMPLETED


def test_only_the_last_are_remembered_and_what_is_in_progress_always_is() -> None:
    told = Told(num_remembered=2)
    for number in range(1, 6):
        told.begin(number)
    for number in (2, 3, 4, 5):
        told.complete(number, float(number))
    assert [each.checkpoint_id for each in told.tracker.snapshot().history] == [1, 4, 5]


def test_the_latest_of_each_kind_outlives_the_history() -> None:
    """Flink: CheckpointStatsHistoryTest#testZeroMaxSizeHistory, and its latest ones."""
    told = Told(num_remembered=1)
    saving = CheckpointRequest.for_savepoint(1, 0.0, "before-the-move")
    told.begin(1, request=saving)
    told.complete(1, 1.0, saving)
    told.begin(2)
    told.abort(2, EXPIRED, 2.0)
    told.begin(3)
    told.complete(3, 3.0)
    seen = told.tracker.snapshot()
    latest = (seen.latest_savepoint, seen.latest_failed, seen.latest_completed)
    assert [each.checkpoint_id for each in latest if each is not None] == [1, 2, 3]
    assert seen.latest_savepoint is not None
    assert (seen.latest_savepoint.kind, seen.latest_savepoint.name) == (CheckpointKind.SAVEPOINT, "before-the-move")
    assert [each.checkpoint_id for each in seen.history] == [3]


def test_what_was_restored_is_known_also_if_another_run_has_taken_it() -> None:
    told = Told()
    told.tracker.restored(40, CheckpointKind.SAVEPOINT, 0.5)
    restored = told.tracker.snapshot().latest_restored
    assert restored is not None
    assert (restored.checkpoint_id, restored.kind, restored.restored_ms) == (40, CheckpointKind.SAVEPOINT, 0.5)
    assert told.tracker.snapshot().history == ()
    told.begin(41)
    told.complete(41, 2.0)
    told.tracker.restored(41, CheckpointKind.CHECKPOINT, 3.0)
    assert (told[41].num_restores, told.counts.num_restored) == (1, 2)


def test_a_completed_one_is_discarded_with_its_manifest_and_a_failed_one_never_was_there() -> None:
    told = Told()
    told.begin(1)
    told.begin(2)
    told.complete(1, 1.0)
    told.abort(2, CheckpointFailureReason.FINALIZE, 2.0)
    for number in (1, 2, 3):
        told.tracker.note(DeleteManifest(number), 3.0)
    assert [told[number].is_discarded for number in (1, 2)] == [True, False]


def test_a_final_one_has_those_that_have_ended_in_the_order_in_which_they_did() -> None:
    told = Told()
    for task, at_ms in (("sink-0", 4.0), ("source-0", 6.0)):
        told.tracker.acknowledged(Ack(0, task, (StateFile(task, 5, "00"),)), at_ms, is_final=True)
    assert told.counts.num_triggered == 0
    final = CheckpointRequest(0, 7.0, CheckpointKind.FINAL, is_forced=True)
    told.tracker.note(WriteManifest(9, final, 7.0, ()), 8.0)
    assert (told[9].kind, told[9].triggered_ms, told[9].state_bytes) == (CheckpointKind.FINAL, 7.0, 10)
    assert [(each.task, each.acked_ms) for each in told[9].acknowledged] == [("sink-0", 4.0), ("source-0", 6.0)]
    told.complete(9, 9.0, final)
    assert told[9].status is CheckpointStatus.COMPLETED


def test_what_ended_before_a_restart_is_no_part_of_the_final_one() -> None:
    told = Told()
    told.tracker.acknowledged(Ack(0, "sink-0"), 4.0, is_final=True)
    told.tracker.started(["source-0", "sink-0"])
    told.tracker.acknowledged(Ack(0, "source-0"), 9.0, is_final=True)
    told.tracker.note(WriteManifest(2, CheckpointRequest(0, 9.0, CheckpointKind.FINAL), 9.0, ()), 9.0)
    assert [each.task for each in told[2].subtasks] == ["source-0"]


@pytest.mark.parametrize("status", ["unknown", "over"])
def test_what_comes_too_late_changes_nothing(status: str) -> None:
    told = Told()
    if status == "over":
        told.begin(1)
        told.abort(1, EXPIRED, 1.0)
    before = told.tracker.snapshot()
    told.ack(1, "sink-0", 2.0)
    told.complete(1, 2.0)
    told.abort(1, SUBSUMED, 2.0)
    told.tracker.note(NotifyComplete(1, ("sink-0",)), 2.0)
    assert told.tracker.snapshot() is before


def test_an_acknowledgement_counts_once() -> None:
    told = Told()
    told.begin(1)
    told.ack(1, "sink-0", 2.0, 5)
    told.ack(1, "sink-0", 3.0, 7)
    told.ack(1, "nobody-3", 3.0, 7)
    assert (told[1].state_bytes, [each.acked_ms for each in told[1].acknowledged]) == (5, [2.0])
