"""How a job is as a whole: it runs, begins again, is on its way to an end, or has come to one."""

from __future__ import annotations

from enum import Enum

from refimpl.transitions import next_state

__all__ = ["JOB_TRANSITIONS", "JobEvent", "JobState", "JobStatus"]


class JobState(Enum):
    """What is said of a job. `SUSPENDED` is an end for this leader only: another goes on with the job.

    Flink:   JobStatus (api.common), 1.11.4
    """

    CREATED = "created"
    RUNNING = "running"
    RESTARTING = "beginning again"
    FAILING = "failing"
    CANCELLING = "being cancelled"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "cancelled"
    SUSPENDED = "left to another leader"

    @property
    def is_globally_terminal(self) -> bool:
        """Whether the job is over for whoever leads it."""
        return self in (JobState.FINISHED, JobState.FAILED, JobState.CANCELED)

    @property
    def is_terminal(self) -> bool:
        return self.is_globally_terminal or self is JobState.SUSPENDED


class JobEvent(Enum):
    """What can happen to a job."""

    START = "be started"
    RECOVERABLE = "fail, and may begin again"
    FINAL_FAILURE = "fail for ever"
    RESTARTED = "begin again"
    ALL_FINISHED = "have all its tasks finished"
    CANCEL = "be cancelled"
    ALL_TERMINAL = "have all its tasks come to an end"
    LOSE_LEADERSHIP = "lose its leader"


_S, _E = JobState, JobEvent
_LATER = (
    _E.RECOVERABLE,
    _E.FINAL_FAILURE,
    _E.RESTARTED,
    _E.ALL_FINISHED,
    _E.CANCEL,
    _E.ALL_TERMINAL,
    _E.LOSE_LEADERSHIP,
)

JOB_TRANSITIONS: dict[JobState, dict[JobEvent, JobState]] = {
    _S.CREATED: {
        _E.START: _S.RUNNING,
        _E.FINAL_FAILURE: _S.FAILING,
        _E.CANCEL: _S.CANCELLING,
        _E.LOSE_LEADERSHIP: _S.SUSPENDED,
    },
    _S.RUNNING: {
        _E.RECOVERABLE: _S.RESTARTING,
        _E.FINAL_FAILURE: _S.FAILING,
        _E.ALL_FINISHED: _S.FINISHED,
        _E.CANCEL: _S.CANCELLING,
        _E.LOSE_LEADERSHIP: _S.SUSPENDED,
    },
    _S.RESTARTING: {
        _E.RECOVERABLE: _S.RESTARTING,
        _E.FINAL_FAILURE: _S.FAILING,
        _E.RESTARTED: _S.RUNNING,
        _E.CANCEL: _S.CANCELLING,
        _E.ALL_TERMINAL: _S.RESTARTING,
        _E.LOSE_LEADERSHIP: _S.SUSPENDED,
    },
    _S.FAILING: {
        _E.RECOVERABLE: _S.FAILING,
        _E.FINAL_FAILURE: _S.FAILING,
        _E.RESTARTED: _S.FAILING,
        _E.CANCEL: _S.CANCELLING,
        _E.ALL_TERMINAL: _S.FAILED,
        _E.LOSE_LEADERSHIP: _S.SUSPENDED,
    },
    _S.CANCELLING: {
        _E.RECOVERABLE: _S.CANCELLING,
        _E.FINAL_FAILURE: _S.CANCELLING,
        _E.RESTARTED: _S.CANCELLING,
        _E.ALL_FINISHED: _S.CANCELLING,
        _E.CANCEL: _S.CANCELLING,
        _E.ALL_TERMINAL: _S.CANCELED,
        _E.LOSE_LEADERSHIP: _S.SUSPENDED,
    },
    _S.FINISHED: dict.fromkeys(_LATER, _S.FINISHED),
    _S.FAILED: dict.fromkeys(_LATER, _S.FAILED),
    _S.CANCELED: dict.fromkeys(_LATER, _S.CANCELED),
    _S.SUSPENDED: dict.fromkeys(_LATER, _S.SUSPENDED),
}


class JobStatus:
    """The state of job `job_id`, and since when it is in each that it was in, in ms.

    Flink:   ExecutionGraph.transitionState, getStatusTimestamp (runtime.executiongraph), 1.11.4
    """

    def __init__(self, job_id: str, now_ms: float) -> None:
        self.job_id = job_id
        self.state = JobState.CREATED
        self.history: list[tuple[JobState, float]] = [(JobState.CREATED, now_ms)]

    def on(self, event: JobEvent, now_ms: float) -> bool:
        """One event; true if the state is another now.

        Raises:
            LocalUsageError: it cannot happen in this state.
        """
        before = self.state
        self.state = next_state(JOB_TRANSITIONS, before, event, f"job {self.job_id}")
        if self.state is before:
            return False
        self.history.append((self.state, now_ms))
        return True
