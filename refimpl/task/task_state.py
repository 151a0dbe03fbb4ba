"""How an attempt is on its TaskManager, from its deployment to its one end, and what becomes of one that does not end.

Who is asked to cancel ends cancelled, whatever goes wrong on the way: a reader whose producer was cancelled first finds
a broken connection, and would else name itself the cause.
"""

from __future__ import annotations

from enum import Enum

from refimpl.transitions import next_state

__all__ = [
    "CANCEL_AGAIN_MS",
    "CANCEL_TIMEOUT_MS",
    "TASK_LIFE_TRANSITIONS",
    "TaskLife",
    "TaskLifeEvent",
    "TaskLifeState",
]

CANCEL_AGAIN_MS = 30_000.0
CANCEL_TIMEOUT_MS = 180_000.0


class TaskLifeState(Enum):
    """What an attempt is.

    Flink:   ExecutionState (runtime.execution), 1.11.4
    """

    CREATED = "made"
    DEPLOYING = "being deployed"
    RUNNING = "running"
    CANCELING = "being cancelled"
    FINISHED = "finished"
    CANCELED = "cancelled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        return self in (TaskLifeState.FINISHED, TaskLifeState.CANCELED, TaskLifeState.FAILED)


class TaskLifeEvent(Enum):
    """What can happen to it."""

    DEPLOY = "be deployed"
    OPEN = "have its operators opened"
    FINISH = "have its input ended and its outputs finished"
    FAIL = "fail"
    CANCEL = "be cancelled"
    UNWIND = "have unwound"


_S, _E = TaskLifeState, TaskLifeEvent

TASK_LIFE_TRANSITIONS: dict[TaskLifeState, dict[TaskLifeEvent, TaskLifeState]] = {
    _S.CREATED: {_E.DEPLOY: _S.DEPLOYING, _E.FAIL: _S.FAILED, _E.CANCEL: _S.CANCELED},
    _S.DEPLOYING: {_E.OPEN: _S.RUNNING, _E.FAIL: _S.FAILED, _E.CANCEL: _S.CANCELING},
    _S.RUNNING: {_E.FINISH: _S.FINISHED, _E.FAIL: _S.FAILED, _E.CANCEL: _S.CANCELING},
    _S.CANCELING: {
        **dict.fromkeys(_E, _S.CANCELING),  # too late, or a consequence
        _E.UNWIND: _S.CANCELED,
    },
    _S.FINISHED: dict.fromkeys(_E, _S.FINISHED),
    _S.CANCELED: dict.fromkeys(_E, _S.CANCELED),
    _S.FAILED: dict.fromkeys(_E, _S.FAILED),
}


class TaskLife:
    """One attempt; times are the driver's, in ms. `why` is there for a failure, and for the first one while cancelled.

    One that was cancelled three minutes ago and has not ended `is_stuck`: only the end of its TaskManager ends it.

    Flink:   Task.transitionState, cancelOrFailAndCancelInvokable, TaskCancelerWatchDog (runtime.taskmanager), 1.11.4
    """

    def __init__(self, name: str) -> None:
        self.state = TaskLifeState.CREATED
        self.why = ""
        self.is_stuck = False
        self.next_deadline: float | None = None
        """When `on_timeout` wants to be called, in ms."""
        self._name = name
        self._give_up_at_ms = 0.0

    def on(self, event: TaskLifeEvent, now_ms: float = 0, why: str = "") -> bool:
        """One event; true if the attempt has ended with it, which is to be reported, and comes once.

        Raises:
            LocalUsageError: it cannot happen in this state.
        """
        before = self.state
        self.state = next_state(TASK_LIFE_TRANSITIONS, before, event, self._name)
        if event is _E.FAIL and not before.is_terminal:
            self.why = self.why or why
        if self.state is not before:
            is_cancelled = self.state is _S.CANCELING
            self.next_deadline = now_ms + CANCEL_AGAIN_MS if is_cancelled else None
            self._give_up_at_ms = now_ms + CANCEL_TIMEOUT_MS
        return self.state.is_terminal and not before.is_terminal

    def on_timeout(self, now_ms: float) -> bool:
        """Whether to cancel once more."""
        if self.next_deadline is None or now_ms < self.next_deadline:
            return False
        self.is_stuck = now_ms >= self._give_up_at_ms
        self.next_deadline = None if self.is_stuck else min(now_ms + CANCEL_AGAIN_MS, self._give_up_at_ms)
        return not self.is_stuck
