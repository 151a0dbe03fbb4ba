"""One attempt to run one subtask, as its JobMaster sees it: from the wish for a slot to the last report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.transitions import next_state

__all__ = [
    "EXECUTION_TRANSITIONS",
    "AskForASlot",
    "Execution",
    "ExecutionDecision",
    "ExecutionEvent",
    "ExecutionId",
    "ExecutionState",
    "GiveSlotBack",
    "ReleaseResults",
    "SubmitTask",
    "TellToCancel",
]


@dataclass(frozen=True, slots=True, order=True)
class ExecutionId:
    """Attempt `attempt` of subtask `subtask` of job vertex `vertex`, in generation `generation` of the job's graph.

    `epoch` is that of the leader who made it: the next one counts its attempts from 0 again.

    Flink:   ExecutionAttemptID (runtime.executiongraph), 1.11.4
    Differs: random there.
    """

    job_id: str
    vertex: int
    subtask: int
    attempt: int = 0
    generation: int = 0
    epoch: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """The subtask, whichever attempt."""
        return self.vertex, self.subtask

    def next_attempt(self, generation: int) -> ExecutionId:
        """The attempt of the same subtask that follows on this one."""
        return ExecutionId(self.job_id, *self.place, self.attempt + 1, generation, self.epoch)

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.vertex}-{self.subtask}"


class ExecutionState(Enum):
    """How far an attempt is.

    Flink:   ExecutionState (runtime.execution), 1.11.4
    """

    CREATED = "created"
    SCHEDULED = "waiting for a slot"
    DEPLOYING = "being deployed"
    RUNNING = "running"
    CANCELING = "being cancelled"
    FINISHED = "finished"
    CANCELED = "cancelled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


class ExecutionEvent(Enum):
    """What can happen to an attempt, or is said of it."""

    SCHEDULE = "be scheduled"
    SLOT = "get a slot"
    RUN = "run"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "be told to stop"
    CANCELED = "have stopped"


_S, _E = ExecutionState, ExecutionEvent
_OVER = (_E.RUN, _E.FINISH, _E.FAIL, _E.CANCEL, _E.CANCELED)

EXECUTION_TRANSITIONS: dict[ExecutionState, dict[ExecutionEvent, ExecutionState]] = {
    _S.CREATED: {
        _E.SCHEDULE: _S.SCHEDULED,
        _E.FINISH: _S.FAILED,  # what never began cannot have ended: somebody is wrong
        _E.FAIL: _S.FAILED,
        _E.CANCEL: _S.CANCELED,
    },
    _S.SCHEDULED: {
        _E.SLOT: _S.DEPLOYING,
        _E.FINISH: _S.FAILED,
        _E.FAIL: _S.FAILED,
        _E.CANCEL: _S.CANCELED,
    },
    _S.DEPLOYING: {
        _E.RUN: _S.RUNNING,
        _E.FINISH: _S.FINISHED,  # a very short task
        _E.FAIL: _S.FAILED,
        _E.CANCEL: _S.CANCELING,
        _E.CANCELED: _S.CANCELED,
    },
    _S.RUNNING: {
        _E.RUN: _S.RUNNING,
        _E.FINISH: _S.FINISHED,
        _E.FAIL: _S.FAILED,
        _E.CANCEL: _S.CANCELING,
        _E.CANCELED: _S.CANCELED,
    },
    _S.CANCELING: {
        _E.RUN: _S.CANCELING,
        _E.FINISH: _S.CANCELED,
        _E.FAIL: _S.CANCELED,
        _E.CANCEL: _S.CANCELING,
        _E.CANCELED: _S.CANCELED,
    },
    _S.FINISHED: dict.fromkeys(_OVER, _S.FINISHED),
    _S.CANCELED: dict.fromkeys(_OVER, _S.CANCELED),
    _S.FAILED: dict.fromkeys(_OVER, _S.FAILED),
}


@dataclass(frozen=True, slots=True)
class AskForASlot:
    """Wish for a slot, then say `slot`."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True)
class SubmitTask:
    """Send the task to the TaskManager of its slot."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True)
class TellToCancel:
    """Tell the TaskManager to stop the task; told again it is no news."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True)
class GiveSlotBack:
    """The attempt has, or waits for, a slot that it does not need any more."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True)
class ReleaseResults:
    """What the attempt has produced is of no use to anybody."""

    execution: ExecutionId


ExecutionDecision = AskForASlot | SubmitTask | TellToCancel | GiveSlotBack | ReleaseResults


class Execution:
    """One attempt. Each event gives what is to be done about it.

    Only messages about this attempt come in here: who speaks of an older one is told to stop it.

    Flink:   Execution (runtime.executiongraph), 1.11.4
    Differs: RECONCILING is not there, nor anything that leads to it.
    """

    def __init__(self, execution_id: ExecutionId) -> None:
        self.id = execution_id
        self.state = ExecutionState.CREATED

    def on(self, event: ExecutionEvent) -> list[ExecutionDecision]:
        """One event.

        Raises:
            LocalUsageError: it cannot happen in this state.
        """
        before = self.state
        self.state = next_state(EXECUTION_TRANSITIONS, before, event, self.id)
        if before.is_terminal:
            return self._after_the_end(before, event)
        if event is _E.SCHEDULE:
            return [AskForASlot(self.id)]
        if event is _E.SLOT:
            return [SubmitTask(self.id)]
        if self.state.is_terminal:
            return self._at_the_end(before, event)
        if self.state is _S.CANCELING and event in (_E.CANCEL, _E.RUN):
            return [TellToCancel(self.id)]
        return []

    def _at_the_end(self, before: ExecutionState, event: ExecutionEvent) -> list[ExecutionDecision]:
        decisions: list[ExecutionDecision] = [] if before is _S.CREATED else [GiveSlotBack(self.id)]
        if before is _S.CANCELING and event is _E.FINISH:
            decisions.append(ReleaseResults(self.id))
        return decisions

    def _after_the_end(self, state: ExecutionState, event: ExecutionEvent) -> list[ExecutionDecision]:
        """What is left of an attempt that is over: results somewhere, or a task that has not heard of it."""
        if state is _S.FINISHED:
            return [ReleaseResults(self.id)] if event is _E.CANCEL else []
        return [TellToCancel(self.id)] if event is _E.RUN else []
