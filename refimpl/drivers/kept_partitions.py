"""The blocking results on one TaskManager of a cluster: of each job in a folder of its own, by who has written them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import SubmittedTask
from refimpl.config import Config
from refimpl.drivers.blocking_files import result_folder, results_in, results_of
from refimpl.drivers.bounded_files import ResultFolder
from refimpl.errors import PartitionNotFoundError
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex

__all__ = ["KeptPartitions", "missing_reads"]


class KeptPartitions:
    """What the attempts here have written for who reads it later, or write now.

    The folder of a job is there while the job has results here, or attempts that read or write some.

    Flink:   ResultPartitionManager, TaskExecutorPartitionTrackerImpl (runtime.io.network.partition), 1.11.4
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[ResultFolder, BlockingResults]] = {}
        self._written: dict[ExecutionId, list[ResultPartitionId]] = {}

    @property
    def num_bytes(self) -> int:
        """What they take now."""
        return sum(results.num_bytes for _, results in self._of.values())

    def of(self, job_id: str, config: Config) -> BlockingResults:
        """Those of one job.

        Raises:
            ConfigError: the job compresses, and the library for that is not there.
        """
        if job_id not in self._of:
            folder = result_folder(config)
            try:
                self._of[job_id] = folder, results_in(folder.path / "results", config)
            except BaseException:
                folder.close()
                raise
        return self._of[job_id][1]

    def writes(self, graph: ExecutionGraph, executions: Iterable[ExecutionId]) -> None:
        """These attempts of a graph begin to write."""
        places = {(each.vertex.id, each.subtask): each for each in graph.vertices}
        for each in executions:
            self._written[each] = results_of(graph, places[each.place])

    def has(self, execution: ExecutionId) -> bool:
        """Whether all that an attempt has written is here, and complete."""
        if execution not in self._written or execution.job_id not in self._of:
            return False
        found = [self._of[execution.job_id][1].find(each) for each in self._written[execution]]
        return all(each is not None and each.is_finished for each in found)

    def drop(self, executions: Collection[ExecutionId]) -> None:
        """Nobody needs what these have written; who reads it still comes to its end."""
        for each in executions:
            for partition in self._written.pop(each, []):
                if each.job_id in self._of:
                    self._of[each.job_id][1].release(partition)

    def tidy(self, at_work: Collection[str]) -> None:
        """Remove what belongs to jobs that have no results here, and are not `at_work`."""
        for job_id in [each for each, (_, results) in self._of.items() if not results.ids and each not in at_work]:
            self._of.pop(job_id)[0].close()
            self._written = {each: ids for each, ids in self._written.items() if each.job_id != job_id}

    def close(self) -> None:
        """Drop all."""
        for folder, results in self._of.values():
            results.close()
            folder.close()
        self._of.clear()
        self._written.clear()


def missing_reads(graph: ExecutionGraph, task: SubmittedTask, error: BaseException) -> tuple[ExecutionId, ...]:
    """Of what the region of a task reads, what was not found when the task failed with `error`."""
    if not isinstance(error, PartitionNotFoundError):
        return ()
    places = {(each.vertex.id, each.subtask): each for each in graph.vertices}
    return tuple(each for each, _ in task.reads if error.partition in _names(graph, places[each.place]))


def _names(graph: ExecutionGraph, execution: ExecutionVertex) -> list[str]:
    """What the results of an attempt are called where they are not found: far from here, and here."""
    edges = [each for each, edge in enumerate(graph.job.edges) if edge.source == execution.vertex.id]
    ids = [str(each) for each in results_of(graph, execution)]
    return ids + [graph.partition_name(each, execution.subtask) for each in edges]
