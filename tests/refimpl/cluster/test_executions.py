"""An attempt at each of its states, and what is to be done about it."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    EXECUTION_TRANSITIONS,
    AskForASlot,
    Execution,
    ExecutionEvent,
    ExecutionId,
    ExecutionState,
    GiveSlotBack,
    ReleaseResults,
    SubmitTask,
    TellToCancel,
)

ID = ExecutionId("job", 1, 0)
_S, _E = ExecutionState, ExecutionEvent


def in_state(state: ExecutionState) -> Execution:
    execution = Execution(ID)
    execution.state = state
    return execution


def test_from_the_slot_to_the_end() -> None:
    execution = Execution(ID)
    assert execution.on(_E.SCHEDULE) == [AskForASlot(ID)]
    assert execution.on(_E.SLOT) == [SubmitTask(ID)]
    assert execution.on(_E.RUN) == []
    assert execution.on(_E.FINISH) == [GiveSlotBack(ID)]
    assert execution.on(_E.CANCEL) == [ReleaseResults(ID)]
    assert execution.state is _S.FINISHED


@pytest.mark.parametrize("event", [_E.FAIL, _E.CANCEL, _E.FINISH])
def test_who_waits_for_a_slot_gives_up_its_wish(event: ExecutionEvent) -> None:
    assert in_state(_S.SCHEDULED).on(event) == [GiveSlotBack(ID)]
    assert in_state(_S.CREATED).on(event) == []


@pytest.mark.parametrize("state", [_S.CREATED, _S.SCHEDULED])
def test_the_end_of_what_never_ran_is_a_lie(state: ExecutionState) -> None:
    execution = in_state(state)
    execution.on(_E.FINISH)
    assert execution.state is _S.FAILED


@pytest.mark.parametrize("state", [_S.DEPLOYING, _S.RUNNING])
def test_who_runs_is_told_to_stop_and_keeps_its_slot_until_it_has(state: ExecutionState) -> None:
    execution = in_state(state)
    assert execution.on(_E.CANCEL) == [TellToCancel(ID)]
    assert execution.on(_E.RUN) == [TellToCancel(ID)]
    assert execution.on(_E.CANCELED) == [GiveSlotBack(ID)]
    assert execution.state is _S.CANCELED


@pytest.mark.parametrize("event", [_E.FINISH, _E.FAIL])
def test_who_was_told_to_stop_ends_cancelled_however_it_ends(event: ExecutionEvent) -> None:
    execution = in_state(_S.CANCELING)
    finished = [ReleaseResults(ID)] if event is _E.FINISH else []
    assert execution.on(event) == [GiveSlotBack(ID), *finished]
    assert execution.state is _S.CANCELED


@pytest.mark.parametrize("state", [_S.CANCELED, _S.FAILED])
def test_a_task_that_has_not_heard_of_its_end_is_told_to_stop(state: ExecutionState) -> None:
    execution = in_state(state)
    assert execution.on(_E.RUN) == [TellToCancel(ID)]
    assert execution.on(_E.FAIL) == execution.on(_E.CANCELED) == execution.on(_E.FINISH) == []
    assert execution.state is state


def test_a_slot_is_given_back_once_on_every_way() -> None:
    """Every path of the table of up to six events."""
    paths = [[]]
    for _ in range(6):
        paths = [[*path, event] for path in paths for event in EXECUTION_TRANSITIONS[_after(path)]]
    for path in paths:
        execution, decisions = Execution(ID), []
        for event in path:
            decisions += execution.on(event)
        wished = decisions.count(AskForASlot(ID))
        assert decisions.count(GiveSlotBack(ID)) == (wished if execution.state.is_terminal else 0), path


def _after(path: list[ExecutionEvent]) -> ExecutionState:
    state = _S.CREATED
    for event in path:
        state = EXECUTION_TRANSITIONS[state][event]
    return state
