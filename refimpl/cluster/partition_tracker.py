"""The blocking results that a TaskManager keeps, by the attempts that have written them, until it is told to drop them.

They outlive the slots they were written in, and not the leadership over their job: whoever leads it next begins from
nothing. Flink's batch jobs do the same up to 1.19, and from 1.20 on unless `execution.batch.job-recovery.enabled` is
set (FLIP-383, FLINK-33892).
"""

from __future__ import annotations

from collections.abc import Collection

from refimpl.cluster.executions import ExecutionId

__all__ = ["PartitionTracker"]


class PartitionTracker:
    """The attempts here whose results are read later: those that still write, and those that have finished.

    Flink:   TaskExecutorPartitionTrackerImpl (runtime.io.network.partition), and when the JobMaster is lost
             TaskExecutor.disassociateFromJobManager (runtime.taskexecutor), 1.11.4
    Differs: what is complete goes at once then; there it waits until all tasks of the job have ended.
    """

    def __init__(self) -> None:
        self._writing: set[ExecutionId] = set()
        self._kept: dict[ExecutionId, None] = {}

    def of(self, job_id: str) -> tuple[ExecutionId, ...]:
        """The attempts of a job whose results are complete, and here."""
        return tuple(each for each in self._kept if each.job_id == job_id)

    def begin(self, execution: ExecutionId) -> None:
        """An attempt begins whose results are to be kept."""
        self._writing.add(execution)

    def ended(self, execution: ExecutionId, *, has_finished: bool) -> tuple[ExecutionId, ...]:
        """An attempt has ended; it is named again if what it has written is of no use, since it has not finished."""
        if execution not in self._writing:
            return ()
        self._writing.discard(execution)
        if not has_finished:
            return (execution,)
        self._kept[execution] = None
        return ()

    def release(self, executions: Collection[ExecutionId]) -> tuple[ExecutionId, ...]:
        """Nobody needs the results of these; those that were here."""
        found = tuple(each for each in self._kept if each in executions)
        for each in found:
            del self._kept[each]
        return found

    def release_all_but(self, job_id: str, wanted: Collection[ExecutionId] = ()) -> tuple[ExecutionId, ...]:
        """Of a job only these are needed; those that were here beside them."""
        return self.release([each for each in self.of(job_id) if each not in wanted])
