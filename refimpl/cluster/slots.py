"""What a slot is called, by all who speak of it: the TaskManager that has it, the JobMaster, the ResourceManager."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AllocationId", "SlotId", "SlotStatus"]


@dataclass(frozen=True, slots=True, order=True)
class AllocationId:
    """One wish of a job for one slot, number `number` under its leader's epoch; no two wishes are equal.

    Flink:   AllocationID (runtime.clusterframework.types), 1.11.4
    Differs: random there.
    """

    job_id: str
    epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.job_id}/{self.epoch}.{self.number}"


@dataclass(frozen=True, slots=True, order=True)
class SlotId:
    """Slot `index`, from 0, of one TaskManager.

    Flink:   SlotID (runtime.clusterframework.types), 1.11.4
    """

    task_manager: str
    index: int

    def __str__(self) -> str:
        return f"{self.task_manager}[{self.index}]"


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """A slot as its TaskManager reports it: whose it is, or nobody's.

    Flink:   SlotStatus, SlotReport (runtime.taskexecutor), 1.11.4
    """

    slot: SlotId
    allocation: AllocationId | None = None
