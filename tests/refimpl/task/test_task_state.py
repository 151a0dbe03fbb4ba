"""An attempt on its TaskManager: one end, reported once, and those that do not want to end."""

from __future__ import annotations

from itertools import product

import pytest

from refimpl.errors import LocalUsageError
from refimpl.task import (
    CANCEL_AGAIN_MS,
    CANCEL_TIMEOUT_MS,
    TASK_LIFE_TRANSITIONS,
    TaskLife,
    TaskLifeEvent,
    TaskLifeState,
)

S, E = TaskLifeState, TaskLifeEvent


def life(*events: TaskLifeEvent) -> TaskLife:
    made = TaskLife("map-0")
    for event in events:
        made.on(event)
    return made


def test_the_way_of_a_task_that_ends_well() -> None:
    task = TaskLife("map-0")
    ends = [(task.on(event), task.state) for event in (E.DEPLOY, E.OPEN, E.FINISH)]
    assert ends == [(False, S.DEPLOYING), (False, S.RUNNING), (True, S.FINISHED)]


@pytest.mark.parametrize("begin", [(), (E.DEPLOY,), (E.DEPLOY, E.OPEN)], ids=["new", "deploying", "running"])
def test_an_end_is_reported_once_and_stays(begin: tuple[E, ...]) -> None:
    for way in product(E, repeat=4):
        task, ends = life(*begin), list[TaskLifeState]()
        for event in way:
            if event not in TASK_LIFE_TRANSITIONS[task.state]:
                with pytest.raises(LocalUsageError):
                    task.on(event)
            elif task.on(event):
                ends.append(task.state)
        assert ends == [task.state] * task.state.is_terminal, way


@pytest.mark.parametrize("begin", [(E.DEPLOY,), (E.DEPLOY, E.OPEN)])
def test_who_is_cancelled_ends_cancelled_though_it_fails_on_the_way(begin: tuple[E, ...]) -> None:
    """A reader whose producer was cancelled before it is no cause."""
    task = life(*begin, E.CANCEL)
    assert not task.on(E.FAIL, why="the connection has ended")
    assert not task.on(E.FAIL, why="later")
    assert not task.on(E.FINISH)
    assert task.on(E.UNWIND)
    assert (task.state, task.why) == (S.CANCELED, "the connection has ended")


def test_who_was_not_deployed_is_cancelled_at_once() -> None:
    task = life()
    assert task.on(E.CANCEL)
    assert task.state is S.CANCELED


def test_who_fails_first_has_failed() -> None:
    task = life(E.DEPLOY, E.OPEN)
    assert task.on(E.FAIL, why="user code")
    assert not task.on(E.CANCEL)
    assert not task.on(E.FAIL, why="later")
    assert (task.state, task.why) == (S.FAILED, "user code")


def test_cancelling_is_asked_again_and_given_up_after_three_minutes() -> None:
    """Flink: TaskTest#testWatchDogInterruptsTask, testFatalErrorAfterUninterruptibleInvoke."""
    task = life(E.DEPLOY, E.OPEN)
    task.on(E.CANCEL, 1_000)
    asked = []
    while (deadline := task.next_deadline) is not None:
        assert not task.on_timeout(deadline - 1)
        assert not task.is_stuck
        asked.append((deadline, task.on_timeout(deadline)))
    assert asked == [(1_000 + CANCEL_AGAIN_MS * number, number < 6) for number in range(1, 7)]
    assert asked[-1] == (1_000 + CANCEL_TIMEOUT_MS, False)
    assert task.is_stuck


def test_who_has_ended_in_time_is_not_asked_again() -> None:
    task = life(E.DEPLOY, E.OPEN)
    task.on(E.CANCEL, 0)
    task.on(E.CANCEL, 29_000)
    assert task.next_deadline == CANCEL_AGAIN_MS
    task.on(E.UNWIND, 29_500)
    assert task.next_deadline is None
    assert not task.on_timeout(10 * CANCEL_TIMEOUT_MS)
