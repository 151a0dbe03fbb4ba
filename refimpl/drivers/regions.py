"""What the drivers share of a job that runs region by region: who begins when, and what becomes of a failure.

Such a job has no checkpoints. A region that begins again reads its blocking input once more, from the beginning, and
its sinks get once more what they have got.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from refimpl.cluster.region_scheduling import RegionSchedule
from refimpl.cluster.restart import GiveUp, NoRestart, RestartAt, Restarts, RestartStrategy
from refimpl.errors import (
    ConfigError,
    DiskBudgetError,
    InsufficientBuffersError,
    LocalUsageError,
    SluiceError,
)
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.laws.records import RecordCounts, check_records

__all__ = ["JobRegions", "refuse_regions", "runs_by_regions"]

_NOT_AGAIN = (ConfigError, DiskBudgetError, InsufficientBuffersError, LocalUsageError)
"""Errors that a region would meet again."""


def runs_by_regions(graph: ExecutionGraph, num_slots: int | None) -> bool:
    """Whether a job is not deployed as a whole: it has blocking exchanges, or there is a limit to its slots."""
    return graph.job.is_batch or num_slots is not None


def refuse_regions(graph: ExecutionGraph, why: str) -> None:
    """Refuse a job with blocking exchanges where nothing can run it; `why` in words.

    Raises:
        LocalUsageError: it is one.
    """
    if graph.job.is_batch:
        raise LocalUsageError(f"this job has blocking exchanges, see explain(): {why}")


class JobRegions:
    """A job on its way, region by region; `schedule` says how far each is.

    A region that fails begins again as `restart` says; without it, the first failure is the last.
    """

    def __init__(
        self, graph: ExecutionGraph, num_slots: int | None = None, restart: RestartStrategy | None = None
    ) -> None:
        self.schedule = RegionSchedule(graph, num_slots)
        self._restarts = Restarts(restart or NoRestart())
        self._counts: dict[int, list[RecordCounts]] = {}

    def ended(self, number: int, counts: Sequence[RecordCounts]) -> list[ResultPartitionId]:
        """A region has ended well, with these counts of its records: the results that nobody will read any more.

        Raises:
            AssertionError: it was the last, and what was emitted is not what has arrived.
        """
        self._counts[number] = list(counts)
        released = self.schedule.finished(number)
        if self.schedule.is_done:
            check_records([each for parts in self._counts.values() for each in parts])
        return released

    @property
    def num_regions(self) -> int:
        """How many regions the job has."""
        return len(self.schedule.states)

    def num_records_in(self, vertex: str) -> int:
        """Records that the subtasks of a job vertex took in, or read, in regions that have ended."""
        return sum(each.delivered[vertex] for parts in self._counts.values() for each in parts)

    def failed(
        self,
        failed: Collection[int],
        error: BaseException,
        now_ms: float,
        is_available: Callable[[ExecutionVertex], bool] = lambda _producer: True,
    ) -> tuple[RestartAt, list[int], list[ResultPartitionId]] | None:
        """Regions have failed: when to begin again, which ones, and which results are of no use; `None` if never."""
        is_recoverable = isinstance(error, SluiceError) and not isinstance(error, _NOT_AGAIN)
        decision = self._restarts.failed(now_ms, is_recoverable)
        if isinstance(decision, GiveUp):
            return None
        written = {each: self.schedule.results(each) for each in range(len(self.schedule.states))}
        numbers = self.schedule.failed(failed, is_available)
        for each in numbers:
            self._counts.pop(each, None)
        return decision, numbers, [partition for each in numbers for partition in written[each]]
