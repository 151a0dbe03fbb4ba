"""What the scheduler of a job wants done: values, carried out in the order in which they are handed out."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_status import JobState
from refimpl.cluster.messages import CancelTask, ReleasePartitions, SubmittedTask
from refimpl.cluster.slots import AllocationId

__all__ = [
    "AttemptsEnd",
    "AttemptsStart",
    "FindRestore",
    "GiveUpWish",
    "JobIsOver",
    "ReleaseSlot",
    "SchedulerDecision",
    "TellTaskManager",
    "WishForSlot",
]


@dataclass(frozen=True, slots=True)
class WishForSlot:
    """Slot `number` of the job is needed; best is the one it was before."""

    number: int
    before: AllocationId | None


@dataclass(frozen=True, slots=True)
class GiveUpWish:
    """Slot `number` of the job is not waited for any more."""

    number: int


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Nothing of the job is in this slot any more."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class TellTaskManager:
    """Send this to a TaskManager."""

    task_manager: str
    message: SubmittedTask | CancelTask | ReleasePartitions


@dataclass(frozen=True, slots=True)
class JobIsOver:
    """The job has come to its end; nothing of it runs, and it needs nothing."""

    state: JobState


@dataclass(frozen=True, slots=True)
class FindRestore:
    """Find out what the next attempts go on from, then say `restored`, or `job_failed`."""


@dataclass(frozen=True, slots=True)
class AttemptsStart:
    """These attempts are sent out."""

    executions: tuple[ExecutionId, ...]


@dataclass(frozen=True, slots=True)
class AttemptsEnd:
    """These attempts are to end, since one of them has failed, or the job is to end."""

    executions: tuple[ExecutionId, ...]


SchedulerDecision = (
    WishForSlot | GiveUpWish | ReleaseSlot | TellTaskManager | JobIsOver | FindRestore | AttemptsStart | AttemptsEnd
)
