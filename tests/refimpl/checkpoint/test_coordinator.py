"""The coordinator, event by event: what it decides, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.checkpoint import (
    Ack,
    AckResult,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointCoordinator,
    CheckpointFailureReason,
    CheckpointOptions,
    CheckpointRequest,
    CompletedCheckpoint,
    CompletedCheckpoints,
    CoordinatorDecision,
    Delete,
    DeleteManifest,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    RequestRefused,
    TaskEvent,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind, StateFile

TASKS = ("source", "map", "sink")


def coordinator(num_retained: int = 1, **options: int) -> CheckpointCoordinator:
    return CheckpointCoordinator(CheckpointOptions(**options), CompletedCheckpoints(num_retained))


def running(num_retained: int = 1, **options: int) -> CheckpointCoordinator:
    made = coordinator(num_retained, **options)
    made.start(TASKS, ["source"], 0)
    for task in TASKS:
        assert made.task_reports(task, TaskEvent.RUN, 0) == []
    return made


def key(checkpoint_id: int, task: str) -> str:
    return f"chk-{checkpoint_id}/{task}"


def keys(checkpoint_id: int, *tasks: str) -> tuple[str, ...]:
    return tuple(key(checkpoint_id, task) for task in tasks)


def ack(checkpoint_id: int, task: str, *more: str) -> Ack:
    named = (key(checkpoint_id, task), *more)
    return Ack(checkpoint_id, task, tuple(StateFile(name, 1, "00") for name in named))


def manual(made: CheckpointCoordinator, now_ms: float = 0, number: int = 1) -> int:
    """Ask for a checkpoint that starts at once; its id."""
    request = CheckpointRequest(number, now_ms)
    checkpoint_id = made.snapshot().next_id
    assert made.submit(request, now_ms) == [TriggerCheckpoint(checkpoint_id, request, round(now_ms), ("source",))]
    return checkpoint_id


def acknowledge(made: CheckpointCoordinator, checkpoint_id: int, *tasks: str) -> list[CoordinatorDecision]:
    decisions: list[CoordinatorDecision] = []
    for task in tasks:
        result, more = made.acknowledge(ack(checkpoint_id, task), 0)
        assert result is AckResult.SUCCESS
        decisions += more
    return decisions


def complete(made: CheckpointCoordinator, now_ms: float = 0) -> tuple[int, list[CoordinatorDecision]]:
    checkpoint_id = manual(made, now_ms)
    acknowledge(made, checkpoint_id, *TASKS)
    return checkpoint_id, made.manifest_written(checkpoint_id, now_ms)


def kinds(decisions: list[CoordinatorDecision]) -> list[type]:
    return [type(each) for each in decisions]


# -- what may start --------------------------------------------------------------------------------


def test_nothing_starts_until_all_sources_run() -> None:
    made = coordinator()
    request = CheckpointRequest(1, 0)
    refused = [RequestRefused(request, CheckpointFailureReason.NOT_ALL_RUNNING)]
    assert made.submit(request, 0) == refused
    made.start(TASKS, ["source"], 0)
    made.task_reports("map", TaskEvent.RUN, 0)
    assert made.submit(request, 0) == refused
    made.task_reports("source", TaskEvent.RUN, 0)
    assert made.submit(request, 5.6) == [TriggerCheckpoint(1, request, 6, ("source",))]


@pytest.mark.parametrize("task", TASKS)
def test_after_the_first_task_has_finished_there_is_none(task: str) -> None:
    made = running()
    made.task_reports(task, TaskEvent.FINISH, 0)
    request = CheckpointRequest(1, 0)
    assert made.submit(request, 0) == [RequestRefused(request, CheckpointFailureReason.NOT_ALL_RUNNING)]


def test_the_timer_runs_while_the_job_does() -> None:
    made = coordinator(interval_ms=10, min_pause_ms=10)
    assert made.next_deadline is None
    made.start(TASKS, ["source"], 100)
    made.task_reports("source", TaskEvent.RUN, 100)
    assert made.next_deadline == 110
    assert made.on_timeout(109) == []
    request = CheckpointRequest(0, 110, is_periodic=True)
    assert made.on_timeout(110) == [TriggerCheckpoint(1, request, 110, ("source",))]
    assert made.next_deadline == 120
    made.stop(111)
    assert made.next_deadline is None
    assert made.on_timeout(500) == []


def test_in_the_pause_the_timer_moves_to_its_end() -> None:
    made = running(interval_ms=10, min_pause_ms=10)
    made.on_timeout(10)
    acknowledge(made, 1, *TASKS)
    made.manifest_written(1, 17)
    request = CheckpointRequest(0, 20, is_periodic=True)
    assert made.on_timeout(20) == [RequestRefused(request, CheckpointFailureReason.MIN_PAUSE)]
    assert made.next_deadline == 27
    assert kinds(made.on_timeout(27)) == [TriggerCheckpoint]


def test_what_waits_for_its_turn_starts_when_one_is_over() -> None:
    made = running()
    manual(made)
    waiting = CheckpointRequest(2, 0)
    assert made.submit(waiting, 0) == []
    assert made.snapshot().queued == (waiting,)
    decisions = made.decline(1, "map", CheckpointFailureReason.DECLINED_NOT_READY, "", 4)
    assert decisions[-1] == TriggerCheckpoint(2, waiting, 4, ("source",))


def test_a_slow_checkpoint_makes_the_timer_ask_once() -> None:
    made = running(interval_ms=10)
    made.on_timeout(10)
    for now_ms in range(20, 100, 10):
        assert made.on_timeout(now_ms) == []
    assert len(made.snapshot().queued) == 1


def test_a_final_one_cannot_be_asked_for() -> None:
    with pytest.raises(LocalUsageError):
        running().submit(CheckpointRequest(1, 0, CheckpointKind.FINAL), 0)


# -- how one completes -----------------------------------------------------------------------------


def test_the_manifest_comes_after_all_acks_and_everything_else_after_the_manifest() -> None:
    made = running()
    first = manual(made)
    assert acknowledge(made, first, "sink", "map") == []
    acks = (ack(1, "sink"), ack(1, "map"), ack(1, "source"))
    assert acknowledge(made, first, "source") == [WriteManifest(1, CheckpointRequest(1, 0), 0, acks)]
    assert made.completed.kept == ()
    assert made.snapshot().writing_id == 1
    completed = CompletedCheckpoint(1, CheckpointKind.CHECKPOINT, acks, 0, 7)
    assert made.manifest_written(1, 7) == [
        CheckpointCompleted(completed, CheckpointRequest(1, 0)),
        NotifyComplete(1, TASKS),
    ]
    assert made.completed.kept == (completed,)


def test_older_ones_go_before_anybody_is_told_and_each_manifest_before_its_files() -> None:
    made = running()
    complete(made)
    _, decisions = complete(made)
    assert kinds(decisions) == [CheckpointCompleted, DeleteManifest, Delete, NotifyComplete]
    assert decisions[1:3] == [DeleteManifest(1), Delete(keys(1, *TASKS))]


def test_as_many_are_kept_as_wanted() -> None:
    made = running(num_retained=3)
    for _ in range(5):
        complete(made)
    assert [each.checkpoint_id for each in made.completed.kept] == [3, 4, 5]


def test_a_file_that_a_kept_manifest_names_stays_whoever_wrote_it() -> None:
    made = running()
    complete(made)
    checkpoint_id = manual(made)
    acknowledge(made, checkpoint_id, "map", "sink")
    made.acknowledge(ack(checkpoint_id, "source", key(1, "source")), 0)
    decisions = made.manifest_written(checkpoint_id, 0)
    assert Delete(keys(1, "map", "sink")) in decisions
    _, decisions = complete(made)
    assert Delete((*keys(2, "map", "sink", "source"), key(1, "source"))) in decisions


def test_a_newer_one_subsumes_the_older_ones_that_still_collect() -> None:
    made = running(max_concurrent=3)
    first, second = manual(made), manual(made)
    acknowledge(made, first, "map")
    acknowledge(made, second, *TASKS)
    decisions = made.manifest_written(second, 0)
    aborted = CheckpointAborted(
        1, CheckpointRequest(1, 0), CheckpointFailureReason.SUBSUMED, "by checkpoint 2", ("source", "sink")
    )
    assert decisions[1:] == [aborted, NotifyAborted(1, TASKS), Delete((key(1, "map"),)), NotifyComplete(2, TASKS)]
    assert made.snapshot().num_failed == 0


def test_a_savepoint_is_not_subsumed() -> None:
    made = running(max_concurrent=3)
    savepoint = CheckpointRequest.for_savepoint(1, 0, "s")
    made.submit(savepoint, 0)
    second = manual(made)
    acknowledge(made, second, *TASKS)
    made.manifest_written(second, 0)
    assert [each.request for each in made.snapshot().pending] == [savepoint]


def test_manifests_are_written_one_at_a_time_in_order() -> None:
    made = running(num_retained=2, max_concurrent=2)
    first, second = manual(made), manual(made)
    assert kinds(acknowledge(made, first, *TASKS)) == [WriteManifest]
    assert acknowledge(made, second, *TASKS) == []
    assert kinds(made.manifest_written(first, 0)) == [CheckpointCompleted, NotifyComplete, WriteManifest]
    made.manifest_written(second, 0)
    assert [each.checkpoint_id for each in made.completed.kept] == [1, 2]


@pytest.mark.parametrize("is_written", [True, False])
def test_an_older_one_that_is_ready_too_late_waits_for_the_newer_ones_outcome(is_written: bool) -> None:
    made = running(max_concurrent=2)
    first, second = manual(made), manual(made)
    acknowledge(made, first, "map", "sink")
    acknowledge(made, second, *TASKS)
    assert acknowledge(made, first, "source") == []
    if is_written:
        decisions = made.manifest_written(second, 0)
        assert kinds(decisions) == [CheckpointCompleted, CheckpointAborted, NotifyAborted, Delete, NotifyComplete]
    else:
        decisions = made.manifest_not_written(second, "full", 0)
        assert isinstance(decisions[-1], WriteManifest)
        assert decisions[-1].checkpoint_id == first


def test_a_manifest_that_is_not_there_ends_the_checkpoint_and_counts_for_nothing() -> None:
    made = running()
    acknowledge(made, manual(made), *TASKS)
    aborted = CheckpointAborted(1, CheckpointRequest(1, 0), CheckpointFailureReason.FINALIZE, "no space", ())
    decisions = made.manifest_not_written(1, "no space", 3)
    assert decisions == [DeleteManifest(1), aborted, NotifyAborted(1, TASKS), Delete(keys(1, *TASKS))]
    assert made.snapshot().num_failed == 0


def test_the_stores_answer_twice_is_no_news_and_unasked_a_mistake() -> None:
    made = running()
    first = manual(made)
    with pytest.raises(LocalUsageError):
        made.manifest_written(first, 0)
    with pytest.raises(LocalUsageError):
        made.manifest_not_written(first, "", 0)
    acknowledge(made, first, *TASKS)
    made.manifest_written(first, 0)
    assert made.manifest_written(first, 0) == []
    assert made.manifest_not_written(first, "", 0) == []


# -- how one ends otherwise ------------------------------------------------------------------------


def test_one_that_declines_ends_it_for_all() -> None:
    made = running()
    acknowledge(made, manual(made), "map")
    aborted = CheckpointAborted(
        1, CheckpointRequest(1, 0), CheckpointFailureReason.DECLINED, "sink: why", ("source", "sink")
    )
    decisions = made.decline(1, "sink", CheckpointFailureReason.DECLINED, "why", 0)
    assert decisions[:3] == [aborted, NotifyAborted(1, TASKS), Delete((key(1, "map"),))]
    assert kinds(decisions[3:]) == [FailJob]


def test_nobody_of_another_run_ends_it() -> None:
    made = running()
    manual(made)
    assert made.decline(1, "stranger", CheckpointFailureReason.DECLINED, "", 0) == []
    assert made.decline(9, "map", CheckpointFailureReason.DECLINED, "", 0) == []
    assert len(made.snapshot().pending) == 1


@pytest.mark.parametrize("tolerable", [0, 1, 2])
def test_more_failures_in_a_row_than_are_tolerable_fail_the_job(tolerable: int) -> None:
    made = running(tolerable_failures=tolerable)
    for number in range(tolerable + 1):
        decisions = made.decline(manual(made), "map", CheckpointFailureReason.IO, "full", 0)
        assert (FailJob in kinds(decisions)) == (number == tolerable)


def test_a_checkpoint_that_completes_forgives_those_before() -> None:
    made = running(tolerable_failures=1)
    for _ in range(4):
        decisions = made.decline(manual(made), "map", CheckpointFailureReason.IO, "full", 0)
        assert FailJob not in kinds(decisions)
        complete(made)


def test_what_takes_too_long_expires() -> None:
    made = running(timeout_ms=100, tolerable_failures=1)
    manual(made, 5)
    assert made.next_deadline == 105
    assert made.on_timeout(104) == []
    decisions = made.on_timeout(105)
    assert kinds(decisions) == [CheckpointAborted, NotifyAborted]
    assert made.snapshot().num_failed == 1
    assert made.next_deadline is None


def test_what_is_being_written_does_not_expire_nor_does_what_waits_for_that() -> None:
    made = running(timeout_ms=100, max_concurrent=2)
    first, second = manual(made), manual(made)
    acknowledge(made, first, *TASKS)
    acknowledge(made, second, *TASKS)
    assert made.next_deadline is None
    assert made.on_timeout(1_000) == []
    assert len(made.snapshot().pending) == 2


def test_a_task_that_fails_ends_what_it_has_not_acknowledged() -> None:
    made = running(max_concurrent=2)
    first, second = manual(made), manual(made)
    acknowledge(made, first, "map")
    decisions = made.task_reports("map", TaskEvent.FAIL, 0)
    assert [each.checkpoint_id for each in decisions if isinstance(each, CheckpointAborted)] == [second]
    assert made.snapshot().num_failed == 0
    assert NotifyAborted(second, ("source", "sink")) in decisions


def test_while_the_manifest_is_written_nothing_ends_it() -> None:
    made = running()
    first = manual(made)
    acknowledge(made, first, *TASKS)
    assert made.decline(first, "map", CheckpointFailureReason.DECLINED, "", 0) == []
    assert made.task_reports("map", TaskEvent.FAIL, 0) == []
    assert made.stop(0) == []
    assert made.snapshot().writing_id == first


# -- restarts --------------------------------------------------------------------------------------


def test_when_the_job_stops_running_what_collects_and_waits_is_given_up() -> None:
    made = running()
    acknowledge(made, manual(made), "map")
    waiting = CheckpointRequest(2, 0)
    made.submit(waiting, 0)
    suspended = CheckpointFailureReason.SUSPENDED
    decisions = made.stop(3)
    assert decisions[0] == RequestRefused(waiting, suspended)
    assert kinds(decisions[1:]) == [CheckpointAborted, NotifyAborted, Delete]
    assert made.snapshot().num_failed == 0
    assert made.snapshot().pending == ()


def test_a_restart_waits_for_the_outcome_and_nobody_is_told_who_is_gone() -> None:
    made = running()
    acknowledge(made, manual(made), *TASKS)
    made.stop(0)
    with pytest.raises(LocalUsageError, match="waits for the outcome"):
        made.start(TASKS, ["source"], 0)
    assert kinds(made.manifest_written(1, 0)) == [CheckpointCompleted]
    made.start([f"{task}'" for task in TASKS], ["source'"], 0)
    made.task_reports("source'", TaskEvent.RUN, 0)
    request = CheckpointRequest(1, 0)
    assert made.submit(request, 0) == [TriggerCheckpoint(2, request, 0, ("source'",))]


def test_a_job_starts_once() -> None:
    with pytest.raises(LocalUsageError, match="runs already"):
        running().start(TASKS, [], 0)


# -- late acks, and which files go -----------------------------------------------------------------


def test_an_ack_of_a_stranger_is_unknown_and_its_files_go() -> None:
    made = running()
    manual(made)
    assert made.acknowledge(ack(1, "zombie"), 0) == (AckResult.UNKNOWN, [Delete((key(1, "zombie"),))])


def test_an_ack_that_comes_twice_deletes_nothing_that_the_first_one_named() -> None:
    made = running()
    acknowledge(made, manual(made), "map")
    assert made.acknowledge(ack(1, "map"), 0) == (AckResult.DUPLICATE, [])
    assert made.acknowledge(ack(1, "map", "other"), 0) == (AckResult.DUPLICATE, [Delete(("other",))])


def test_a_late_ack_is_discarded_with_its_files() -> None:
    made = running()
    made.decline(manual(made), "map", CheckpointFailureReason.DECLINED_NOT_READY, "", 0)
    assert made.acknowledge(ack(1, "sink"), 0) == (AckResult.DISCARDED, [Delete((key(1, "sink"),))])


def test_a_late_ack_of_a_kept_checkpoint_deletes_nothing_it_names() -> None:
    made = running()
    complete(made)
    assert made.acknowledge(ack(1, "map"), 0) == (AckResult.DISCARDED, [])
    complete(made)
    assert made.acknowledge(ack(1, "map"), 0) == (AckResult.DISCARDED, [Delete((key(1, "map"),))])


def test_a_late_ack_of_a_savepoint_deletes_nothing_it_names() -> None:
    made = running()
    made.submit(CheckpointRequest.for_savepoint(1, 0, "s"), 0)
    acknowledge(made, 1, *TASKS)
    made.manifest_written(1, 0)
    assert made.acknowledge(ack(1, "map", "other"), 0) == (AckResult.DISCARDED, [Delete(("other",))])


def test_the_last_16_ids_are_remembered() -> None:
    made = running()
    for _ in range(17):
        made.decline(manual(made), "map", CheckpointFailureReason.DECLINED_NOT_READY, "", 0)
    assert made.acknowledge(ack(1, "map"), 0) == (AckResult.UNKNOWN, [])
    assert made.acknowledge(ack(2, "map"), 0) == (AckResult.DISCARDED, [Delete((key(2, "map"),))])


def test_an_id_of_the_future_is_nobodys() -> None:
    """A leader that was paused hears of the next one's checkpoints."""
    made = running()
    assert made.acknowledge(ack(5, "map"), 0) == (AckResult.UNKNOWN, [])


# -- savepoints ------------------------------------------------------------------------------------


def test_a_savepoint_goes_beside_another_is_kept_by_nobody_and_told_to_nobody_who_would_commit() -> None:
    made = running()
    complete(made)
    second = manual(made)
    savepoint = CheckpointRequest.for_savepoint(9, 0, "s")
    assert made.submit(savepoint, 0) == [TriggerCheckpoint(3, savepoint, 0, ("source",))]
    acknowledge(made, 3, *TASKS)
    decisions = made.manifest_written(3, 0)
    assert kinds(decisions) == [CheckpointCompleted]
    assert [each.checkpoint_id for each in made.completed.kept] == [1]
    assert [each.checkpoint_id for each in made.snapshot().pending] == [second]


# -- the end of a bounded job ----------------------------------------------------------------------


def final(task: str) -> Ack:
    return Ack(0, task, (StateFile(f"final/{task}", 1, "00"),))


def ended() -> tuple[CheckpointCoordinator, list[CoordinatorDecision]]:
    made = running()
    assert made.task_reports("source", TaskEvent.FINISH, 0) == []
    assert made.task_ended(final("map"), 1) == []
    return made, made.task_ended(final("sink"), 2)


def test_when_all_have_ended_or_finished_their_last_snapshots_become_the_final_checkpoint() -> None:
    made, decisions = ended()
    request = CheckpointRequest(0, 2, CheckpointKind.FINAL, is_forced=True)
    acks = tuple(replace(final(task), checkpoint_id=1) for task in ("map", "sink"))
    assert decisions == [WriteManifest(1, request, 2, acks, finished=("source",))]
    completed = CompletedCheckpoint(1, CheckpointKind.FINAL, acks, 2, 3, finished=("source",))
    told = NotifyComplete(1, ("map", "sink"))
    assert made.manifest_written(1, 3) == [CheckpointCompleted(completed, request), told]


def test_those_that_ended_are_told_until_they_have_finished() -> None:
    made, _ = ended()
    made.manifest_written(1, 3)
    assert made.next_deadline == 1_003
    made.task_reports("map", TaskEvent.FINISH, 10)
    assert made.on_timeout(1_003) == [NotifyComplete(1, ("sink",))]
    made.task_reports("sink", TaskEvent.FINISH, 1_010)
    assert made.next_deadline is None


def test_the_end_said_twice_is_said_once() -> None:
    made, _ = ended()
    assert made.task_ended(final("sink"), 2) == []
    again = Ack(0, "sink", (StateFile("final/again", 1, "00"),))
    assert made.task_ended(again, 2) == [Delete(("final/again",))]


def test_an_end_needs_its_snapshot() -> None:
    with pytest.raises(LocalUsageError, match="final snapshot"):
        running().task_reports("map", TaskEvent.END, 0)


def test_a_job_in_which_nobody_wants_to_be_told_has_no_final_checkpoint() -> None:
    made = running()
    assert [made.task_reports(task, TaskEvent.FINISH, 0) for task in TASKS] == [[], [], []]
    assert made.snapshot().next_id == 1


def test_who_ends_gives_up_what_it_has_not_acknowledged() -> None:
    made = running()
    acknowledge(made, manual(made), "map")
    decisions = made.task_ended(final("sink"), 0)
    assert isinstance(decisions[0], CheckpointAborted)
    assert decisions[0].reason is CheckpointFailureReason.DECLINED_INPUT_ENDED
    assert made.snapshot().num_failed == 0


def test_a_restart_before_the_final_checkpoint_drops_the_final_snapshots() -> None:
    made = running()
    made.task_reports("source", TaskEvent.FINISH, 0)
    made.task_ended(final("map"), 1)
    assert made.stop(2) == [Delete(("final/map",))]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_restart_while_the_final_manifest_is_written_waits_for_its_outcome(is_written: bool) -> None:
    made, _ = ended()
    assert made.stop(3) == []
    if is_written:
        assert kinds(made.manifest_written(1, 4)) == [CheckpointCompleted]
        latest = made.completed.latest
        assert latest is not None
        assert (latest.kind, latest.finished) == (CheckpointKind.FINAL, ("source",))
    else:
        decisions = made.manifest_not_written(1, "full", 4)
        assert kinds(decisions) == [DeleteManifest, CheckpointAborted, Delete]
        assert decisions[-1] == Delete(("final/map", "final/sink"))


def test_a_final_checkpoint_that_cannot_be_fails_the_job() -> None:
    made, _ = ended()
    decisions = made.manifest_not_written(1, "full", 4)
    assert isinstance(decisions[-1], FailJob)
    assert "full" in decisions[-1].cause
