"""Which TaskManager runs which subtask.

A *slot* is a share of a TaskManager. It holds one subtask of every operator of a slot-sharing group:
so the slots of a group are as many as its widest operator has subtasks, and subtask i stands in the
i-th. What is in one slot exchanges records without a network. Groups get their slots in the order in
which the job first names them, and the TaskManagers are filled one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from refimpl.errors import LocalUsageError
from refimpl.job.job_graph import JobGraph, JobVertex, Place

__all__ = ["Placement", "check_num_task_managers"]


def check_num_task_managers(number: object) -> None:
    """Refuse what no job can be dealt out to, whatever its slots.

    Raises:
        LocalUsageError: it is no whole number above 0.
    """
    if type(number) is not int or number < 1:
        raise LocalUsageError(f"num_task_managers={number!r} cannot work: it must be a whole number above 0")


class Placement:
    """The slots of a job, dealt out to `num_task_managers` in equal parts, or as `dealt` has it: by slot, a number.

    The subtasks of `elsewhere` are not where their slot is, but at the TaskManager of that number: they ran there
    before the slot was dealt to another, and what they have written is still there.

    Raises:
        LocalUsageError: no whole number of TaskManagers above 0, or more than the job has slots; a slot is dealt to
            nobody, or to one that there is not.

    Flink:   SlotSharingManager, SlotManagerImpl (runtime), 1.11.4, without
             cluster.evenly-spread-out-slots
    Differs: the number of slots of a TaskManager follows from the job; there it is configured.
    """

    def __init__(
        self,
        job: JobGraph,
        num_task_managers: int = 1,
        dealt: Sequence[int] | None = None,
        elsewhere: Mapping[Place, int] | None = None,
    ) -> None:
        widths: dict[str, int] = {}
        for vertex in job.vertices.values():
            group = _group_of(vertex)
            widths[group] = max(widths.get(group, 0), vertex.parallelism)
        self.num_slots = sum(widths.values())
        self.num_task_managers = num_task_managers
        self._elsewhere = elsewhere or {}
        most = self.num_slots + len(self._elsewhere)
        if type(num_task_managers) is not int or not 1 <= num_task_managers <= most:
            raise LocalUsageError(
                f"{num_task_managers!r} TaskManagers cannot share the {self.num_slots} slots of this job; "
                f"give 1 to {self.num_slots}, or the job more parallelism"
            )
        equally = [slot * num_task_managers // self.num_slots for slot in range(self.num_slots)]
        self._dealt = tuple(equally if dealt is None else dealt)
        if len(self._dealt) != self.num_slots or not all(0 <= each < num_task_managers for each in self._dealt):
            raise LocalUsageError(f"{self.num_slots} slots, {num_task_managers} TaskManagers: dealt as {self._dealt}")
        ends = accumulate(widths.values())
        self._first_slot = {group: end - widths[group] for group, end in zip(widths, ends, strict=True)}

    def slot_of(self, vertex: JobVertex, subtask: int) -> int:
        """The number of the slot, from 0, among all slots of the job."""
        return self._first_slot[_group_of(vertex)] + subtask

    def task_manager_of(self, vertex: JobVertex, subtask: int) -> int:
        """The number of the TaskManager, from 0."""
        return self._elsewhere.get((vertex.id, subtask), self._dealt[self.slot_of(vertex, subtask)])


def _group_of(vertex: JobVertex) -> str:
    return vertex.nodes[0].slot_sharing_group
