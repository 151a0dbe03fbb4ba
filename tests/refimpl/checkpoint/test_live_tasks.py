"""Who can be asked for a checkpoint, and when everybody is done."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import TASK_TRANSITIONS, Ack, LiveTasks, TaskEvent, TaskPhase
from refimpl.errors import LocalUsageError

LEADS_TO = {
    TaskPhase.DEPLOYED: None,
    TaskPhase.RUNNING: TaskEvent.RUN,
    TaskPhase.ENDED: TaskEvent.END,
    TaskPhase.FINISHED: TaskEvent.FINISH,
    TaskPhase.FAILED: TaskEvent.FAIL,
}


@pytest.mark.parametrize("phase", TaskPhase)
@pytest.mark.parametrize("event", TaskEvent)
def test_an_attempt_goes_where_its_table_says(phase: TaskPhase, event: TaskEvent) -> None:
    tasks = LiveTasks(["a"])
    if (before := LEADS_TO[phase]) is not None:
        assert tasks.report("a", before)
    after = TASK_TRANSITIONS[phase][event]
    assert tasks.report("a", event) is (after is not phase)
    assert tasks.phases["a"] is after


def test_an_attempt_of_another_run_is_no_news() -> None:
    tasks = LiveTasks(["a"])
    assert not tasks.report("b", TaskEvent.FINISH)
    assert tasks.attempts == ("a",)


def test_all_sources_must_run_and_the_others_only_be_there() -> None:
    tasks = LiveTasks(["a", "b", "c"], ["a", "b"])
    assert not tasks.can_be_cut
    tasks.report("a", TaskEvent.RUN)
    assert not tasks.can_be_cut
    tasks.report("b", TaskEvent.RUN)
    assert tasks.can_be_cut


@pytest.mark.parametrize("event", [TaskEvent.END, TaskEvent.FINISH, TaskEvent.FAIL])
@pytest.mark.parametrize("who", ["a", "b"])
def test_after_the_first_is_done_there_is_no_cut(event: TaskEvent, who: str) -> None:
    tasks = LiveTasks(["a", "b"], ["a"])
    tasks.report("a", TaskEvent.RUN)
    tasks.report("b", TaskEvent.RUN)
    assert tasks.can_be_cut
    tasks.report(who, event)
    assert not tasks.can_be_cut


def test_all_are_done_when_each_has_ended_or_finished() -> None:
    tasks = LiveTasks(["a", "b"])
    tasks.report("a", TaskEvent.END)
    assert not tasks.all_done
    tasks.report("b", TaskEvent.FINISH)
    assert tasks.all_done
    assert tasks.in_phase(TaskPhase.ENDED) == ("a",)
    assert not LiveTasks().all_done
    assert not LiveTasks().can_be_cut


def test_a_source_that_is_not_there_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="'z'"):
        LiveTasks(["a"], ["z"])


def test_who_comes_in_the_place_of_another_has_not_reported_and_the_rest_stays_as_it_is() -> None:
    tasks = LiveTasks(["a", "b", "c"], ["a", "b"])
    for each in "abc":
        tasks.report(each, TaskEvent.END)
        tasks.final_acks[each] = Ack(0, each)
    tasks.final_id, tasks.remind_at_ms = 7, 1.0
    assert [each.attempt for each in tasks.replace({"a": "a2"})] == ["a"]
    assert tasks.phases == {"a2": TaskPhase.DEPLOYED, "b": TaskPhase.ENDED, "c": TaskPhase.ENDED}
    assert tasks.sources == ("a2", "b")
    assert list(tasks.final_acks) == ["b", "c"]
    assert (tasks.final_id, tasks.remind_at_ms) == (None, None)
