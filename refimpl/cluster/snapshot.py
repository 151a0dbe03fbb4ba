"""A cluster at one moment, as values: who is there, whose each slot is, and how far each job is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.executions import ExecutionId, ExecutionState
from refimpl.cluster.job_master import JobMaster
from refimpl.cluster.job_status import JobState
from refimpl.cluster.peer_links import PeerLink
from refimpl.cluster.slot_table import SlotState
from refimpl.cluster.slots import AllocationId, SlotId
from refimpl.cluster.task_executor import TaskExecutor

__all__ = ["ClusterSnapshot", "JobInCluster", "MemberKind", "MemberSnapshot", "MemberState", "SlotSnapshot"]


class MemberKind(Enum):
    """What a member of a cluster is."""

    DISPATCHER = "Dispatcher"
    RESOURCE_MANAGER = "ResourceManager"
    JOB_MASTER = "JobMaster"
    TASK_MANAGER = "TaskManager"


class MemberState(Enum):
    """How a member is: `ZOMBIE` believes to lead, and another does."""

    ALIVE = "alive"
    PAUSED = "paused"
    ZOMBIE = "a leader that is none any more"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class SlotSnapshot:
    """A slot as its TaskManager has it, with the attempts that run in it."""

    slot: SlotId
    state: SlotState
    allocation: AllocationId | None
    executions: tuple[ExecutionId, ...]

    @classmethod
    def all_of(cls, executor: TaskExecutor) -> tuple[SlotSnapshot, ...]:
        """The slots of a TaskManager."""
        table = executor.slots
        return tuple(
            cls(
                each.slot,
                table.state_of(index),
                each.allocation,
                tuple(task for task in table.tasks_of(index) if isinstance(task, ExecutionId)),
            )
            for index, each in enumerate(table.report())
        )


@dataclass(frozen=True, slots=True)
class MemberSnapshot:
    """A member: `epoch` is that of its leadership or life, `slots` are those of a TaskManager.

    `is_current` says that nobody has taken its place. `links` are those it deals with, as it knows them. `num_refused`
    envelopes were not for this leadership, or not of the sender's, and `refusal` says why the last was not.
    """

    address: str
    kind: MemberKind
    state: MemberState
    epoch: int
    slots: tuple[SlotSnapshot, ...] = ()
    job_id: str | None = None
    is_current: bool = True
    links: tuple[PeerLink, ...] = ()
    num_refused: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class JobInCluster:
    """A job: `epoch` is that of its leader, if somebody leads it, and `executions` are the attempts that count."""

    job_id: str
    state: JobState
    epoch: int | None
    executions: tuple[tuple[ExecutionId, ExecutionState], ...] = ()
    completed: tuple[int, ...] = ()
    failure: str | None = None

    @classmethod
    def of(cls, job_master: JobMaster, completed: tuple[int, ...] = ()) -> JobInCluster:
        """The job that this one leads; `completed` are its checkpoints that are kept."""
        scheduler = job_master.scheduler
        executions = tuple((each.id, each.state) for each in scheduler.executions.values())
        job_id, state = scheduler.plan.job_id, scheduler.status.state
        return cls(job_id, state, job_master.token.epoch, executions, completed, scheduler.failure)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """All members, also those that are gone and may come back, and all jobs, also those that are over.

    `vacant` are the addresses at which somebody else will lead. `num_messages` are under way between members.
    """

    time_ms: float
    members: tuple[MemberSnapshot, ...]
    jobs: tuple[JobInCluster, ...]
    num_messages: int = 0
    vacant: tuple[str, ...] = ()
    num_steps: int = 0
