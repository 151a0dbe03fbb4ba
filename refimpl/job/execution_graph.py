"""The job with every subtask drawn out: who produces for whom, on which channel."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from refimpl.config import Config, FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.exchange.messages import ProducerId, ResultPartitionId
from refimpl.job.distribution_pattern import channels_of
from refimpl.job.job_graph import JobGraph, JobVertex
from refimpl.job.placement import Placement
from refimpl.producer.buffer_writing import required_buffers
from refimpl.producer.key_groups import default_max_parallelism

__all__ = ["MAX_ATTEMPT", "ChannelPlan", "ExecutionGraph", "ExecutionVertex", "required_input_buffers"]

MAX_ATTEMPT = 0xFFFF  # an attempt and the number of its subtask share 32 bits of an id
_NEVER_RESTARTED: Mapping[tuple[int, int], int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExecutionVertex:
    """One subtask of a job vertex, the number of the TaskManager that runs it, and how often it was restarted.

    Flink:   ExecutionVertex with its current Execution (runtime.executiongraph), 1.11.4
    """

    vertex: JobVertex
    subtask: int
    task_manager: int = 0
    attempt: int = 0

    @property
    def name(self) -> str:
        """Such as `map → filter-1`: what messages, traces and widgets call the task."""
        return f"{self.vertex.name}-{self.subtask}"


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """One channel of the job: who produces, which of its subpartitions this is, and who consumes.

    `edge` is the number of the job's edge; `partition_id` and `receiver` are its names on the wire.
    """

    edge: int
    producer: ExecutionVertex
    subpartition: int
    consumer: ExecutionVertex
    partition_id: ResultPartitionId
    receiver: bytes

    @property
    def is_remote(self) -> bool:
        return self.producer.task_manager != self.consumer.task_manager


class ExecutionGraph:
    """All subtasks of a job, the channels between them, where each subtask runs, and which attempt of it.

    A value: nothing in it changes. A restart makes another graph, in which whatever was restarted has
    the next attempt. `attempts` are those above 0, by job vertex and subtask; `generation` counts the restarts.

    `run_id` (8 bytes) tells this run from others, so that a connection to the wrong one finds
    nothing; and an attempt tells the ids of a task from those it had before. The rest of every id
    follows from the place in the job, so that all TaskManagers come to the same ids and a run can be
    repeated.

    Raises:
        LocalUsageError: an attempt of nothing in the job, or below 0 or above `MAX_ATTEMPT`.

    Flink:   ExecutionGraph (runtime.executiongraph), 1.11.4
    Differs: ids are random there, and the graph is one object, whose vertices get new executions.
    """

    def __init__(
        self,
        job: JobGraph,
        placement: Placement | None = None,
        attempts: Mapping[tuple[int, int], int] = _NEVER_RESTARTED,
        run_id: bytes = bytes(8),
        generation: int = 0,
    ) -> None:
        self.job = job
        self.placement = placement or Placement(job)
        self.run_id = run_id
        self.generation = generation
        self._attempts = _checked_attempts(job, attempts)
        self.vertices: Sequence[ExecutionVertex] = tuple(
            ExecutionVertex(
                vertex,
                subtask,
                self.placement.task_manager_of(vertex, subtask),
                self._attempts.get((vertex.id, subtask), 0),
            )
            for vertex in job.vertices.values()
            for subtask in range(vertex.parallelism)
        )
        self._matrices = [
            channels_of(
                job.vertices[edge.source].parallelism,
                job.vertices[edge.target].parallelism,
                edge.partitioner.is_pointwise,
            )
            for edge in job.edges
        ]

    def restarted(
        self, executions: Iterable[ExecutionVertex] | None = None, placement: Placement | None = None
    ) -> ExecutionGraph:
        """The graph after a restart of these subtasks, or of all: the next attempt of each, perhaps elsewhere.

        The others keep their attempts, and so their ids.

        Raises:
            LocalUsageError: one of them has been restarted since, or `MAX_ATTEMPT` times already.
        """
        attempts = dict(self._attempts)
        for execution in self.vertices if executions is None else executions:
            key = execution.vertex.id, execution.subtask
            if execution.attempt != attempts.get(key, 0):
                raise LocalUsageError(
                    f"attempt {execution.attempt} of {execution.name} is not the one that runs, "
                    f"which is {attempts.get(key, 0)}; take it from this graph"
                )
            attempts[key] = execution.attempt + 1
        return ExecutionGraph(self.job, placement or self.placement, attempts, self.run_id, self.generation + 1)

    def subtasks(self, vertex_id: int) -> list[ExecutionVertex]:
        """The subtasks of one job vertex, in order."""
        return [execution for execution in self.vertices if execution.vertex.id == vertex_id]

    def targets(self, edge: int, subtask: int) -> list[int]:
        """The consuming subtasks that producing subtask `subtask` has a channel to on edge `edge`."""
        return self._matrices[edge][subtask]

    def inputs(self, consumer: ExecutionVertex) -> list[list[ChannelPlan]]:
        """The channels into one subtask, for each edge that leads to it those of its gate, in order."""
        gates = []
        for index, edge in enumerate(self.job.edges):
            if edge.target != consumer.vertex.id:
                continue
            plans = []
            for producer in self.subtasks(edge.source):
                targets = self.targets(index, producer.subtask)
                if consumer.subtask in targets:
                    plans.append(self._plan(index, producer, targets.index(consumer.subtask), consumer))
            gates.append(plans)
        return gates

    def partition_id(self, edge: int, producer: ExecutionVertex) -> ResultPartitionId:
        """What the output of `producer` for edge `edge` is called on the wire."""
        vertex_id, subtask = producer.vertex.id, producer.subtask
        if self.job.config.flink_version is FlinkVersion.V1_11:
            attempt = ProducerId(self._id(vertex_id, subtask, producer.attempt))
        else:
            attempt = ProducerId(self._id(0), self._id(vertex_id), subtask, producer.attempt)
        return ResultPartitionId(self._id(edge), subtask, attempt)

    def partition_name(self, edge: int, subtask: int) -> str:
        """What it is called in words, such as `map-0 → sink`; numbered if several edges lead there."""
        edges, nodes = self.job.edges, self.job.stream_graph.nodes
        source, target = edges[edge].edge.source, edges[edge].target
        name = f"{nodes[source].name}-{subtask} → {self.job.vertices[target].nodes[0].name}"
        num_before = sum(e.edge.source == source and e.target == target for e in edges[:edge])
        return f"{name} #{num_before + 1}" if num_before else name

    def max_parallelism(self, vertex: JobVertex) -> int:
        """Key groups of a vertex."""
        config: Config = self.job.config
        return config.max_parallelism or default_max_parallelism(vertex.parallelism)

    @property
    def num_required_buffers(self) -> int:
        """The least `num_buffers` with which every TaskManager of this job can start."""
        required = [0] * self.placement.num_task_managers
        for execution in self.vertices:
            for index, edge in enumerate(self.job.edges):
                if edge.source == execution.vertex.id:
                    width = len(self.targets(index, execution.subtask))
                    required[execution.task_manager] += required_buffers(width)
            for plans in self.inputs(execution):
                num_remote = sum(plan.is_remote for plan in plans)
                required[execution.task_manager] += required_input_buffers(num_remote, self.job.config)
        return max(required)

    def _plan(self, edge: int, producer: ExecutionVertex, subpartition: int, consumer: ExecutionVertex) -> ChannelPlan:
        receiver = self._id(edge, producer.subtask, consumer.attempt << 16 | consumer.subtask)
        return ChannelPlan(edge, producer, subpartition, consumer, self.partition_id(edge, producer), receiver)

    def _id(self, first: int, second: int = 0, third: int = 0) -> bytes:
        """Sixteen bytes: the run, and up to three numbers."""
        return self.run_id + struct.pack(">HHI", first, second, third)


def _checked_attempts(job: JobGraph, attempts: Mapping[tuple[int, int], int]) -> Mapping[tuple[int, int], int]:
    for (vertex_id, subtask), attempt in attempts.items():
        vertex = job.vertices.get(vertex_id)
        if vertex is None or not 0 <= subtask < vertex.parallelism:
            raise LocalUsageError(f"an attempt of subtask {subtask} of vertex {vertex_id}, which the job does not have")
        if not 0 <= attempt <= MAX_ATTEMPT:
            raise LocalUsageError(f"attempt {attempt} of {vertex.name}-{subtask} cannot be: it is 0 to {MAX_ATTEMPT}")
    return MappingProxyType(dict(attempts))


def required_input_buffers(num_remote: int, config: Config) -> int:
    """Buffers a gate cannot start without: the exclusive ones and one that floats.

    Without credits one for each channel.

    Flink:   SingleInputGateFactory.createBufferPoolFactory, 1.11.4
    """
    if num_remote == 0 or not config.credit_based:
        return num_remote
    return num_remote * config.buffers_per_channel + min(1, config.floating_buffers_per_gate)
