"""The job with every subtask drawn out: who produces for whom, on which channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.job.job_graph import JobEdge, JobGraph, JobVertex
from refimpl.producer.key_groups import default_max_parallelism
from refimpl.producer.result_partition import required_buffers

__all__ = ["ExecutionGraph", "ExecutionVertex", "channels_of"]


def channels_of(num_producers: int, num_consumers: int, is_pointwise: bool) -> list[list[int]]:
    """For each producing subtask, the consuming subtasks it has a channel to, in order.

    Flink:   ExecutionVertex.connectAllToAll, connectPointwise (runtime.executiongraph), 1.11.4
    Differs: exact whole numbers; Flink divides 32-bit floats, which for a few uneven pairs, such as
             14 producers and 16 consumers, moves a channel by one.
    """
    if not is_pointwise:
        return [list(range(num_consumers)) for _ in range(num_producers)]
    targets: list[list[int]] = [[] for _ in range(num_producers)]
    for consumer in range(num_consumers):
        if num_producers <= num_consumers:
            producers = range(
                consumer * num_producers // num_consumers,
                consumer * num_producers // num_consumers + 1,
            )
        else:
            producers = range(
                consumer * num_producers // num_consumers,
                (consumer + 1) * num_producers // num_consumers,
            )
        for producer in producers:
            targets[producer].append(consumer)
    return targets


@dataclass(frozen=True, slots=True)
class ExecutionVertex:
    """One subtask of a job vertex."""

    vertex: JobVertex
    subtask: int

    @property
    def name(self) -> str:
        """Such as `map → filter-1`: what messages, traces and widgets call the task."""
        return f"{self.vertex.name}-{self.subtask}"


class ExecutionGraph:
    """All subtasks of a job and the channels between them.

    Flink:   ExecutionGraph (runtime.executiongraph), 1.11.4
    """

    def __init__(self, job: JobGraph) -> None:
        self.job = job
        self.vertices: Sequence[ExecutionVertex] = [
            ExecutionVertex(vertex, subtask)
            for vertex in job.vertices.values()
            for subtask in range(vertex.parallelism)
        ]

    def targets(self, edge: JobEdge, subtask: int) -> list[int]:
        """The consuming subtasks that producing subtask `subtask` has a channel to."""
        vertices = self.job.vertices
        matrix = channels_of(
            vertices[edge.source].parallelism,
            vertices[edge.target].parallelism,
            edge.partitioner.is_pointwise,
        )
        return matrix[subtask]

    def max_parallelism(self, vertex: JobVertex) -> int:
        """Key groups of a vertex."""
        config: Config = self.job.config
        return config.max_parallelism or default_max_parallelism(vertex.parallelism)

    @property
    def num_required_buffers(self) -> int:
        """The least `num_buffers` this job can start with."""
        return sum(
            required_buffers(len(self.targets(edge, subtask)))
            for edge in self.job.edges
            for subtask in range(self.job.vertices[edge.source].parallelism)
        )
