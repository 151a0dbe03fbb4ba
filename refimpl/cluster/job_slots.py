"""The slots of one job: where each is, if it is anywhere, and which attempts need it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.cluster.slots import AllocationId, SlotId

__all__ = ["JobSlot", "JobSlots"]


@dataclass(slots=True)
class JobSlot:
    """One of the slots of the job: where it is, if it is anywhere, and where it was before."""

    number: int
    allocation: AllocationId | None = None
    slot: SlotId | None = None
    before: AllocationId | None = None
    places: set[Place] = field(default_factory=set)  # of the attempts that need it

    @property
    def is_wanted(self) -> bool:
        """Whether it is to be wished for, as soon as somebody needs it: nobody does yet, and it is nowhere."""
        return not self.places and self.allocation is None

    def give_back(self) -> AllocationId:
        """Nobody needs it any more; which one it was."""
        assert self.allocation is not None, f"slot {self.number} is nowhere"
        self.before, self.allocation, self.slot = self.allocation, None, None
        return self.before


class JobSlots:
    """The slots of the job of `plan`, by their numbers.

    Flink:   SlotSharingManager (runtime.jobmaster.slotpool), 1.11.4
    """

    def __init__(self, plan: JobPlan) -> None:
        self._slot_of = plan.slot_of
        self._slots = [JobSlot(number) for number in range(plan.num_slots)]

    def __getitem__(self, number: int) -> JobSlot:
        return self._slots[number]

    def of(self, place: Place) -> JobSlot:
        """The slot of a subtask."""
        return self._slots[self._slot_of[place]]

    def known_as(self, allocations: Collection[AllocationId]) -> list[JobSlot]:
        """Those that the job has under one of these ids."""
        return [each for each in self._slots if each.allocation in allocations]

    def have_all(self, places: Iterable[Place]) -> bool:
        """Whether the slots of all these subtasks are there."""
        return all(self.of(place).allocation is not None for place in places)

    @property
    def where(self) -> tuple[str, ...]:
        """The TaskManager of each, or nothing."""
        return tuple(each.slot.task_manager if each.slot else "" for each in self._slots)

    def is_at(self, place: Place, task_manager: str) -> bool:
        """Whether the slot of a subtask is there."""
        slot = self.of(place).slot
        return slot is not None and slot.task_manager == task_manager

    @staticmethod
    def lose(slots: Iterable[JobSlot]) -> list[Place]:
        """These slots are nowhere any more; who was in them, or was to come."""
        found = list[Place]()
        for slot in slots:
            slot.allocation = slot.slot = None
            found += sorted(slot.places)
        return found
