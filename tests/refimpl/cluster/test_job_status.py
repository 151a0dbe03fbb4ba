"""A job as a whole: which end it comes to, and that it comes to one."""

from __future__ import annotations

import pytest

from refimpl.cluster import JOB_TRANSITIONS, JobEvent, JobState, JobStatus
from refimpl.errors import LocalUsageError

_S, _E = JobState, JobEvent


def after(*events: JobEvent) -> JobStatus:
    status = JobStatus("job", 0)
    for now_ms, event in enumerate(events, 1):
        status.on(event, now_ms)
    return status


def test_a_restart_and_an_end_with_their_times() -> None:
    status = after(_E.START, _E.RECOVERABLE, _E.RECOVERABLE, _E.RESTARTED, _E.ALL_FINISHED)
    assert status.history == [
        (_S.CREATED, 0),
        (_S.RUNNING, 1),
        (_S.RESTARTING, 2),
        (_S.RUNNING, 4),
        (_S.FINISHED, 5),
    ]


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ((_E.START, _E.FINAL_FAILURE, _E.ALL_TERMINAL), _S.FAILED),
        ((_E.START, _E.CANCEL, _E.FINAL_FAILURE, _E.ALL_TERMINAL), _S.CANCELED),
        ((_E.START, _E.FINAL_FAILURE, _E.CANCEL, _E.ALL_TERMINAL), _S.CANCELED),
        ((_E.START, _E.RECOVERABLE, _E.CANCEL, _E.RESTARTED, _E.ALL_TERMINAL), _S.CANCELED),
        ((_E.START, _E.RECOVERABLE, _E.FINAL_FAILURE, _E.RESTARTED, _E.ALL_TERMINAL), _S.FAILED),
        ((_E.START, _E.LOSE_LEADERSHIP, _E.CANCEL, _E.ALL_TERMINAL), _S.SUSPENDED),
    ],
)
def test_which_end_it_comes_to(events: tuple[JobEvent, ...], end: JobState) -> None:
    assert after(*events).state is end


def test_suspended_is_an_end_here_and_for_nobody_else() -> None:
    assert [state for state in JobState if state.is_terminal and not state.is_globally_terminal] == [_S.SUSPENDED]
    for state in JobState:
        if not state.is_terminal:
            assert JOB_TRANSITIONS[state][_E.LOSE_LEADERSHIP] is _S.SUSPENDED
        else:
            assert set(JOB_TRANSITIONS[state].values()) == {state}


def test_what_cannot_happen_is_refused() -> None:
    with pytest.raises(LocalUsageError, match=r"job job is running: it can .* not begin again"):
        after(_E.START).on(_E.RESTARTED, 9)
