"""What a TaskManager says of its attempts, and to itself: who was cancelled ends cancelled, or it ends as a whole."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    AllocationId,
    AllocationsReport,
    AnswerOffer,
    AskAlive,
    CancelTask,
    DropResults,
    Envelope,
    ExecutionId,
    FencingToken,
    GiveSlot,
    Message,
    Registered,
    SlotId,
    StartTask,
    StopTask,
    SubmittedTask,
    TaskExecutor,
    TaskReport,
    TaskState,
)
from refimpl.task import CANCEL_AGAIN_MS, CANCEL_TIMEOUT_MS

ID, WISH = ExecutionId("job", 0, 0), AllocationId("job", 1, 1)
TOKEN = FencingToken(1)


class Rig:
    """A TaskManager with a ResourceManager and a JobMaster, and one attempt that was sent to it."""

    def __init__(self, keeps_results: bool = False) -> None:
        self.tm = TaskExecutor("tm", TOKEN, 1, 0)
        self.tm.resource_manager_is("rm", TOKEN, 0)
        self.hear("rm", Registered())
        self.hear("rm", GiveSlot(SlotId("tm", 0), WISH, "jm", TOKEN))
        self.hear("jm", Registered())
        self.hear("jm", AnswerOffer((WISH,), ()))
        self.hear("jm", SubmittedTask(ID, WISH, keeps_results=keeps_results))
        self.said()

    def hear(self, sender: str, message: Message, now_ms: float = 0) -> None:
        assert self.tm.receive(Envelope(sender, TOKEN, "tm", TOKEN, message), now_ms) is None

    def orders(self) -> list[object]:
        orders, self.tm.task_orders = list(self.tm.task_orders), []
        return orders

    def said(self) -> list[tuple[TaskState, str]]:
        messages = [each.message for each in self.tm.messages_to_send()]
        return [(each.state, each.why) for each in messages if isinstance(each, TaskReport)]


@pytest.mark.parametrize("end", [TaskState.FINISHED, TaskState.FAILED])
@pytest.mark.parametrize("runs", [True, False])
def test_an_attempt_is_said_to_run_and_how_it_ended_once(end: TaskState, runs: bool) -> None:
    rig = Rig()
    if runs:
        rig.tm.task_is(ID, TaskState.RUNNING, "", 0)
        rig.tm.task_is(ID, TaskState.RUNNING, "", 0)
    rig.tm.task_is(ID, end, "why", 0)
    rig.tm.task_is(ID, TaskState.FAILED, "again", 0)
    assert rig.said() == [(TaskState.RUNNING, "")] * runs + [(end, "why")]
    assert rig.tm.executions == ()


@pytest.mark.parametrize("last_word", [TaskState.FAILED, TaskState.FINISHED, TaskState.CANCELED])
def test_who_was_cancelled_ends_cancelled_whatever_it_says(last_word: TaskState) -> None:
    """Else a reader whose producer was cancelled before it would be the cause."""
    rig = Rig()
    rig.tm.task_is(ID, TaskState.RUNNING, "", 0)
    rig.hear("jm", CancelTask(ID))
    rig.tm.task_is(ID, TaskState.RUNNING, "", 0)
    rig.tm.task_is(ID, last_word, "the connection has ended", 0)
    assert rig.said() == [(TaskState.RUNNING, ""), (TaskState.CANCELED, "the connection has ended")]


def test_who_is_cancelled_and_not_here_is_said_to_be_cancelled() -> None:
    rig = Rig()
    rig.hear("jm", CancelTask(ExecutionId("job", 0, 1)))
    assert rig.said() == [(TaskState.CANCELED, "it is not there")]


def test_an_attempt_that_does_not_end_is_cancelled_again_and_ends_its_task_manager() -> None:
    rig = Rig()
    assert [type(each) for each in rig.orders()] == [StartTask]
    rig.tm.task_is(ID, TaskState.RUNNING, "", 0)
    rig.hear("jm", CancelTask(ID), 0)
    rig.orders()
    for number in range(1, 6):
        rig.hear("rm", AskAlive(), CANCEL_AGAIN_MS * number)
        rig.hear("jm", AllocationsReport((WISH,)), CANCEL_AGAIN_MS * number)
        rig.tm.on_timeout(CANCEL_AGAIN_MS * number)
        assert rig.orders() == [StopTask(ID, "it was cancelled, and has not ended")]
        assert not rig.tm.given_up
    rig.tm.on_timeout(CANCEL_TIMEOUT_MS)
    assert rig.tm.given_up == f"{ID} was cancelled, and does not end"


@pytest.mark.parametrize("is_followed", [True, False])
def test_what_a_finished_attempt_has_left_goes_with_the_lead_over_its_job(is_followed: bool) -> None:
    """Whoever leads the job next begins from nothing, and asks for none of it."""
    rig = Rig(keeps_results=True)
    rig.tm.task_is(ID, TaskState.FINISHED, "", 0)
    assert [type(each) for each in rig.orders()] == [StartTask]
    if is_followed:
        rig.tm.job_master_is("job", "jm-2", FencingToken(2), 0)
    else:
        rig.tm.peer_is_gone("jm", "it is gone", 0)
    assert rig.orders() == [DropResults((ID,))]
