"""Slots: one owner for each, the same on all three sides when nothing is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_master import JobMaster
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.cluster.slot_manager import ManagedSlotState
from refimpl.cluster.slot_table import SlotState
from refimpl.cluster.slots import AllocationId, SlotId
from refimpl.cluster.task_executor import TaskExecutor

__all__ = ["check_slots", "check_slots_at_rest"]


def check_slots(
    task_executors: Iterable[TaskExecutor],
    job_masters: Iterable[JobMaster],
    running: Mapping[str, Iterable[ExecutionId]],
) -> None:
    """What holds after each step. `running` are the attempts that really run, by the address of their TaskManager.

    An allocation is used in one slot only, a job has a slot once, and whatever runs at a TaskManager runs in a slot
    that its job has.
    """
    used: dict[AllocationId, SlotId] = {}
    for executor in task_executors:
        in_slots = set[object]()
        for index, status in enumerate(executor.slots.report()):
            state, tasks = executor.slots.state_of(index), executor.slots.tasks_of(index)
            in_slots.update(tasks)
            assert (state is SlotState.FREE) == (status.allocation is None), f"{status.slot} is {state.value}: {status}"
            if state is SlotState.ACTIVE and status.allocation is not None:
                other = used.setdefault(status.allocation, status.slot)
                assert other == status.slot, f"{status.allocation} is used in {other} and in {status.slot}"
            strangers = [each for each in tasks if _job_of(each) != getattr(status.allocation, "job_id", None)]
            assert not strangers, f"{status.slot} is for {status.allocation}, and {strangers} run in it"
        homeless = [each for each in running.get(executor.address, ()) if each not in in_slots]
        assert not homeless, f"{executor.address} runs {', '.join(map(str, homeless))} in no slot"
    for job_master in job_masters:
        slots = [each.slot for each in job_master.pool.slots]
        assert len(slots) == len(set(slots)), f"{job_master.address} has a slot twice: {sorted(slots)}"


def check_slots_at_rest(
    task_executors: Sequence[TaskExecutor], job_masters: Iterable[JobMaster], resource_manager: ResourceManager
) -> None:
    """When nothing is under way any more: all say the same of each slot, and what is not free is a job's."""
    there = {each.slot: each.allocation for executor in task_executors for each in executor.slots.report()}
    managed = resource_manager.slots.slots()
    believed = {
        status.slot: status.allocation if state is ManagedSlotState.ALLOCATED else None for status, state in managed
    }
    assert believed == there, f"the ResourceManager believes {believed}, and the TaskManagers have {there}"
    held = {each.slot: each.allocation for job_master in job_masters for each in job_master.pool.slots}
    lent = {slot: allocation for slot, allocation in there.items() if allocation is not None}
    assert held == lent, f"jobs have {held}, and the TaskManagers have lent {lent}"


def _job_of(task: object) -> str | None:
    return task.job_id if isinstance(task, ExecutionId) else None
