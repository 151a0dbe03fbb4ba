"""Attempts: of each subtask one at a time, and no channel between two generations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from refimpl.cluster.executions import ExecutionId, ExecutionState
from refimpl.cluster.job_master import JobMaster

__all__ = ["check_attempts"]

_NOT_SENT = (ExecutionState.CREATED, ExecutionState.SCHEDULED)


def check_attempts(job_masters: Iterable[JobMaster], running: Mapping[str, Iterable[ExecutionId]]) -> None:
    """What holds after each step. `running` are the attempts that really run, by the address of their TaskManager.

    Among the TaskManagers that a JobMaster counts on, no subtask of its making runs twice, and while the next attempt
    is still to be sent the last one has ended. It counts on those that it hears and has slots of: the ResourceManager
    may know first that one is gone, and what runs there is cut off then.
    """
    for job_master in job_masters:
        scheduler = job_master.scheduler
        if job_master.is_over:
            continue
        found: dict[tuple[int, int], ExecutionId] = {}
        has_slots = {each.slot.task_manager for each in job_master.pool.slots}
        for address in has_slots.intersection(job_master.peers):
            for each in running.get(address, ()):
                if (each.job_id, each.epoch) != (scheduler.plan.job_id, job_master.token.epoch):
                    continue
                other = found.setdefault(each.place, each)
                assert other == each, f"{other} and {each} run at the same time"
                known = scheduler.executions[each.place]
                assert each == known.id or known.state not in _NOT_SENT, f"{each} still runs, and {known.id} is to come"
