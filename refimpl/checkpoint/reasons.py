"""Why a checkpoint is not, and whether that speaks against the job.

Most checkpoints that do not complete are nobody's fault: a newer one was faster, the job was about to restart, a
task had just ended. Only what a task or the store could not do is counted, see `failures`.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointFailureReason"]


class CheckpointFailureReason(Enum):
    """Why a checkpoint was never begun, or was given up; the value is Flink's name for it.

    `CheckpointFailureReason(reason.value)` is the one of an `AbortReason`, with which a task declines.

    Flink:   CheckpointFailureReason (runtime.checkpoint), 1.11.4
    """

    # Before it had an id.
    TIMER_STOPPED = "PERIODIC_SCHEDULER_SHUTDOWN"
    TOO_MANY_REQUESTS = "TOO_MANY_CHECKPOINT_REQUESTS"
    MIN_PAUSE = "MINIMUM_TIME_BETWEEN_CHECKPOINTS"
    NOT_ALL_RUNNING = "NOT_ALL_REQUIRED_TASKS_RUNNING"

    # Under way.
    EXPIRED = "CHECKPOINT_EXPIRED"
    SUBSUMED = "CHECKPOINT_SUBSUMED"
    SUSPENDED = "CHECKPOINT_COORDINATOR_SUSPEND"
    TASK_FAILED = "TASK_FAILURE"
    FINALIZE = "FINALIZE_CHECKPOINT_FAILURE"

    # Declined by a task.
    DECLINED = "CHECKPOINT_DECLINED"
    IO = "CHECKPOINT_ASYNC_EXCEPTION"
    DECLINED_NOT_READY = "CHECKPOINT_DECLINED_TASK_NOT_READY"
    DECLINED_SUBSUMED = "CHECKPOINT_DECLINED_SUBSUMED"
    DECLINED_CANCELLED = "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER"
    DECLINED_INPUT_ENDED = "CHECKPOINT_DECLINED_INPUT_END_OF_STREAM"

    @property
    def is_counted(self) -> bool:
        """Whether a checkpoint that ended for this reason counts as a failure.

        Flink:   CheckpointFailureManager.checkFailureCounter (runtime.checkpoint), 1.11.4
        """
        return self in _COUNTED


_COUNTED = frozenset({CheckpointFailureReason.DECLINED, CheckpointFailureReason.IO, CheckpointFailureReason.EXPIRED})
