"""The job with every subtask drawn out: who produces for whom, on which channel."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.config import Config, FlinkVersion
from refimpl.exchange.messages import ProducerId, ResultPartitionId
from refimpl.job.job_graph import JobGraph, JobVertex
from refimpl.job.placement import Placement
from refimpl.producer.key_groups import default_max_parallelism
from refimpl.producer.result_partition import required_buffers

__all__ = ["ChannelPlan", "ExecutionGraph", "ExecutionVertex", "channels_of", "required_input_buffers"]


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
    """One subtask of a job vertex, and the number of the TaskManager that runs it."""

    vertex: JobVertex
    subtask: int
    task_manager: int = 0

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
    """All subtasks of a job, the channels between them, and where each subtask runs.

    `run_id` (8 bytes) tells this run from others, so that a connection to the wrong one finds
    nothing. The rest of every id follows from the place in the job, so that all TaskManagers come to
    the same ids and a run can be repeated.

    Flink:   ExecutionGraph (runtime.executiongraph), 1.11.4
    Differs: ids are random there.
    """

    def __init__(self, job: JobGraph, num_task_managers: int = 1, run_id: bytes = bytes(8)) -> None:
        self.job = job
        self.placement = Placement(job, num_task_managers)
        self.vertices: Sequence[ExecutionVertex] = [
            ExecutionVertex(vertex, subtask, self.placement.task_manager_of(vertex, subtask))
            for vertex in job.vertices.values()
            for subtask in range(vertex.parallelism)
        ]
        self._run_id = run_id
        self._matrices = [
            channels_of(
                job.vertices[edge.source].parallelism,
                job.vertices[edge.target].parallelism,
                edge.partitioner.is_pointwise,
            )
            for edge in job.edges
        ]

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
            attempt = ProducerId(self._id(vertex_id, subtask))
        else:
            attempt = ProducerId(self._id(0), self._id(vertex_id), subtask)
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
        receiver = self._id(edge, producer.subtask, consumer.subtask)
        return ChannelPlan(edge, producer, subpartition, consumer, self.partition_id(edge, producer), receiver)

    def _id(self, first: int, second: int = 0, third: int = 0) -> bytes:
        """Sixteen bytes: the run, and up to three numbers."""
        return self._run_id + struct.pack(">HHI", first, second, third)


def required_input_buffers(num_remote: int, config: Config) -> int:
    """Buffers a gate cannot start without: the exclusive ones and one that floats.

    Without credits one for each channel.

    Flink:   SingleInputGateFactory.createBufferPoolFactory, 1.11.4
    """
    if num_remote == 0 or not config.credit_based:
        return num_remote
    return num_remote * config.buffers_per_channel + min(1, config.floating_buffers_per_gate)
