"""What the components of a cluster say to each other: values, by who says them to whom.

Each is sent once and may be lost, and nobody waits for an answer. What must not stay lost is said again in the answers
to heartbeats, where each side says what it has, and the other puts right what it believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.slots import AllocationId, SlotId, SlotStatus

__all__ = [
    "AllocationsReport",
    "AnswerOffer",
    "AnswerSlot",
    "AskAlive",
    "CancelSlot",
    "CancelTask",
    "FreeSlot",
    "GiveSlot",
    "Message",
    "OfferedSlots",
    "RegisterJobMaster",
    "RegisterTaskManager",
    "Registered",
    "RequestSlot",
    "SlotFailed",
    "SlotReport",
    "SlotWasFreed",
    "StillAlive",
    "SubmittedTask",
    "TaskReport",
    "TaskState",
    "Wishes",
]


@dataclass(frozen=True, slots=True)
class RegisterTaskManager:
    """TaskManager → ResourceManager, with its slots; or → JobMaster, without."""

    slots: tuple[SlotStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterJobMaster:
    """JobMaster → ResourceManager."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Registered:
    """Whoever leads → who has registered."""


@dataclass(frozen=True, slots=True)
class AskAlive:
    """JobMaster, ResourceManager → TaskManager; ResourceManager → JobMaster."""


@dataclass(frozen=True, slots=True)
class AllocationsReport:
    """JobMaster → TaskManager, which it also asks whether it lives: the slots it knows of there."""

    known: tuple[AllocationId, ...]


@dataclass(frozen=True, slots=True)
class StillAlive:
    """The answer of a TaskManager to a JobMaster: the slots of its job here, and the attempts that have not ended."""

    allocations: tuple[AllocationId, ...] = ()
    executions: tuple[ExecutionId, ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """The answer of a JobMaster to the ResourceManager: all that it waits for."""

    allocations: tuple[AllocationId, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotReport:
    """The answer of a TaskManager to the ResourceManager."""

    slots: tuple[SlotStatus, ...]


@dataclass(frozen=True, slots=True)
class RequestSlot:
    """JobMaster → ResourceManager: a wish."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class CancelSlot:
    """JobMaster → ResourceManager: the wish is over."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class SlotFailed:
    """ResourceManager → JobMaster: there is no such slot, or no more."""

    allocation: AllocationId
    why: str


@dataclass(frozen=True, slots=True)
class GiveSlot:
    """ResourceManager → TaskManager: this slot is for that job, whose leader is `job_master` with this token."""

    slot: SlotId
    allocation: AllocationId
    job_master: str
    job_master_token: FencingToken


@dataclass(frozen=True, slots=True)
class AnswerSlot:
    """TaskManager → ResourceManager: of which wish a slot is, after it was asked for `asked`."""

    asked: SlotId
    slot: SlotId
    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class SlotWasFreed:
    """TaskManager → ResourceManager: nobody's any more, after it was `allocation`'s."""

    slot: SlotId
    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class OfferedSlots:
    """TaskManager → JobMaster."""

    offers: tuple[tuple[AllocationId, SlotId], ...]


@dataclass(frozen=True, slots=True)
class AnswerOffer:
    """JobMaster → TaskManager."""

    accepted: tuple[AllocationId, ...]
    rejected: tuple[AllocationId, ...]


@dataclass(frozen=True, slots=True)
class FreeSlot:
    """JobMaster → TaskManager: nobody there needs it."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class SubmittedTask:
    """JobMaster → TaskManager: run this attempt in that slot. `places` has for each slot of the job its TaskManager."""

    execution: ExecutionId
    allocation: AllocationId
    places: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class CancelTask:
    """JobMaster → TaskManager: stop this attempt, if there is one."""

    execution: ExecutionId


class TaskState(Enum):
    """What a TaskManager says of an attempt."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "cancelled"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """TaskManager → JobMaster; `why` is there for a failure."""

    execution: ExecutionId
    state: TaskState
    why: str = ""


Message = (
    RegisterTaskManager
    | RegisterJobMaster
    | Registered
    | AskAlive
    | AllocationsReport
    | StillAlive
    | Wishes
    | SlotReport
    | RequestSlot
    | CancelSlot
    | SlotFailed
    | GiveSlot
    | AnswerSlot
    | SlotWasFreed
    | OfferedSlots
    | AnswerOffer
    | FreeSlot
    | SubmittedTask
    | CancelTask
    | TaskReport
)
