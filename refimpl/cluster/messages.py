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
from refimpl.task.checkpoint_reports import Report

__all__ = [
    "AllocationsReport",
    "AnswerOffer",
    "AnswerSlot",
    "AskAlive",
    "CancelSlot",
    "CancelTask",
    "CheckpointReport",
    "ClientAnswer",
    "ClientRequest",
    "FreeSlot",
    "GiveSlot",
    "JobWord",
    "Message",
    "NotifyTask",
    "OfferedSlots",
    "RegisterJobMaster",
    "RegisterTaskManager",
    "Registered",
    "ReleasePartitions",
    "RequestSlot",
    "RestoreFrom",
    "SlotFailed",
    "SlotReport",
    "SlotWasFreed",
    "StillAlive",
    "SubmittedTask",
    "TaskReport",
    "TaskState",
    "TriggerTask",
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
    """JobMaster → TaskManager, which it also asks whether it lives: the slots it knows of there.

    `results` are the attempts there whose blocking results it needs.
    """

    known: tuple[AllocationId, ...]
    results: tuple[ExecutionId, ...] = ()


@dataclass(frozen=True, slots=True)
class StillAlive:
    """The answer of a TaskManager to a JobMaster: the slots of its job here, and the attempts that have not ended.

    `results` are the attempts that have, and whose blocking results are here.
    """

    allocations: tuple[AllocationId, ...] = ()
    executions: tuple[ExecutionId, ...] = ()
    results: tuple[ExecutionId, ...] = ()


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
class RestoreFrom:
    """What an attempt goes on from: the checkpoint of job `job` whose manifest has this key, or none.

    `attempt` is in the names of the state files that the attempt writes; no other attempt of the job has had that
    number, under any leader. What is pickled in the checkpoint is read with `trust_pickle` only.
    """

    job: str
    attempt: int
    manifest: str | None
    trust_pickle: bool = False


@dataclass(frozen=True, slots=True)
class SubmittedTask:
    """JobMaster → TaskManager: run this attempt in that slot. `places` has for each slot of the job its TaskManager.

    `together` are the attempts of its region, which exchange records while they run: they live and end together.
    `reads` are those that have finished and whose blocking results the region reads, each with its TaskManager. What
    the attempt writes for who reads it later is kept when it has finished, if `keeps_results`.
    """

    execution: ExecutionId
    allocation: AllocationId
    places: tuple[str, ...] = field(default=())
    together: tuple[ExecutionId, ...] = ()
    restore: RestoreFrom | None = None
    reads: tuple[tuple[ExecutionId, str], ...] = ()
    keeps_results: bool = False


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
    """TaskManager → JobMaster; `why` is there for a failure.

    `missing` are the attempts whose blocking results it should have read, and could not reach.
    """

    execution: ExecutionId
    state: TaskState
    why: str = ""
    missing: tuple[ExecutionId, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleasePartitions:
    """JobMaster → TaskManager: drop the blocking results of these attempts, if they are there.

    Flink:   TaskExecutorGateway.releaseOrPromotePartitions (runtime.taskexecutor), 1.11.4
    """

    executions: tuple[ExecutionId, ...]


@dataclass(frozen=True, slots=True)
class TriggerTask:
    """JobMaster → TaskManager: let a source cut its stream, for a checkpoint, or for the savepoint of that name."""

    execution: ExecutionId
    checkpoint_id: int
    timestamp_ms: int
    savepoint: str = ""


@dataclass(frozen=True, slots=True)
class NotifyTask:
    """JobMaster → TaskManager: a checkpoint counts, or will never count."""

    execution: ExecutionId
    checkpoint_id: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """TaskManager → JobMaster: what an attempt has done of a checkpoint."""

    execution: ExecutionId
    report: Report


@dataclass(frozen=True, slots=True)
class JobWord:
    """JobMaster → TaskManager or back, about the attempts of one generation under the leader of `epoch`.

    What it says is for the drivers at both ends, who make `content` and read it: what the job is, and where its data is
    to be had.
    """

    job_id: str
    epoch: int
    generation: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Client → Dispatcher: `verb` about a job, with its argument; the answer has the same number.

    Flink:   DispatcherGateway (runtime.dispatcher), 1.11.4, which clients reach by REST
    """

    number: int
    verb: str
    job_id: str = ""
    argument: str = ""
    job: bytes = b""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """Dispatcher → client: what was asked for, as JSON; or why not, in `trouble`."""

    number: int
    content: str = ""
    trouble: str = ""


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
    | ReleasePartitions
    | TaskReport
    | JobWord
    | ClientRequest
    | ClientAnswer
    | TriggerTask
    | NotifyTask
    | CheckpointReport
)
