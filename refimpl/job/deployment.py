"""A job made real in one process: its segments, queues, gates and tasks, connected and not yet run.

A driver runs it. Everything a widget draws and a law checks is reachable from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

from refimpl.consumer.input_gate import GateSnapshot, InputGate
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import LocalUsageError, UserCodeError, speaks_for_itself
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.job_graph import JobEdge, JobGraph
from refimpl.job.parts import Parts
from refimpl.job.stream import StreamEnvironment
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool, NetworkPoolSnapshot
from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import PartitionSnapshot, ResultPartition, max_buffers
from refimpl.producer.result_partition import required_buffers as required
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.task.chain import ChainEdge, ChainNode, OperatorChain
from refimpl.task.operators import FunctionOperator, OperatorContext
from refimpl.task.source import SourceInput
from refimpl.task.task import Task, TaskInput, TaskSnapshot
from refimpl.trace import Trace

__all__ = ["Deployment", "JobSnapshot"]


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A whole job at one moment; `time_ms` is the driver's clock, `num_steps` steps of all tasks."""

    time_ms: float
    num_steps: int
    pool: NetworkPoolSnapshot
    tasks: tuple[TaskSnapshot, ...]
    partitions: tuple[PartitionSnapshot, ...]
    gates: tuple[GateSnapshot, ...]


class Deployment:
    """All tasks of a job, in one process.

    `exclusion` is held by writers while they touch what other tasks see; a driver with one thread
    gives none.

    Raises:
        InsufficientBuffersError: the pool is too small for the job; nothing is left behind.

    Flink:   TaskExecutor, NettyShuffleEnvironment (runtime), 1.11.4, the part that wires a task
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        exclusion: AbstractContextManager[object] | None = None,
    ) -> None:
        if not environment.graph.nodes:
            raise LocalUsageError("the job has no operators; start with a source")
        self.config = environment.config
        self.parts: Parts = environment.parts
        self.graph = ExecutionGraph(JobGraph(environment.graph, self.config))
        self.trace = trace
        self.pool = NetworkBufferPool(
            self.config.num_buffers, self.config.segment_size_bytes,
            self.config.flink_version, trace,
        )  # fmt: skip
        self._exclusion = exclusion
        self._partitions: dict[tuple[int, int], ResultPartition] = {}
        self.writers: dict[tuple[int, int], RecordWriter] = {}
        for edge_index, edge in enumerate(self.graph.job.edges):
            for subtask in range(self.graph.job.vertices[edge.source].parallelism):
                self._produce(edge_index, edge, subtask)
        self.gates: list[InputGate] = []
        self.tasks: list[Task] = []
        try:
            for vertex in self.graph.vertices:
                self.tasks.append(self._make_task(vertex))
        except BaseException as error:
            self.close_after(error)
            raise
        for gate in self.gates:
            gate.open()

    @property
    def partitions(self) -> Sequence[ResultPartition]:
        return tuple(self._partitions.values())

    @property
    def is_done(self) -> bool:
        return all(task.is_done for task in self.tasks)

    def task(self, name: str) -> Task:
        """The task called `name`."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise LocalUsageError(f"no task {name!r}; there are {[task.name for task in self.tasks]}")

    def swap(self, **parts: object) -> None:
        """Put other parts into the running job, each task between two of its steps.

        Raises:
            LocalUsageError: no such part, or one that cannot change in a running job.
        """
        changed = self.parts.using(**parts)
        for name in parts:
            if name != "SpanningRecordSerializer":
                raise LocalUsageError(
                    f"{name} holds half-read records of its channel and cannot be swapped in a "
                    f"running job; build the job with use({name}=...)"
                )
        # All are made before the first goes in: a part that cannot be made changes nothing.
        writers = [(task, writer) for task in self.tasks for writer in task.writers]
        serializers = [changed.SpanningRecordSerializer() for _ in writers]
        self.parts = changed
        for (task, writer), serializer in zip(writers, serializers, strict=True):
            task.submit(partial(writer.swap_serializer, serializer))

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into the operator called `operator_name`, in every subtask.

        Raises:
            LocalUsageError: no operator of that name holds a function, or `function` is none.
        """
        if not callable(function):
            raise LocalUsageError(f"{function!r} is no function")
        found = False
        for task in self.tasks:
            for node in task.chain.nodes:
                operator = node.operator
                if node.context.name == operator_name and isinstance(operator, FunctionOperator):
                    found = True
                    task.submit(partial(operator.swap_function, function))
        if not found:
            raise LocalUsageError(f"no operator called {operator_name!r} holds a function")

    def snapshot(self, time_ms: float = 0.0) -> JobSnapshot:
        """The whole job at this moment."""
        return JobSnapshot(
            time_ms,
            sum(task.num_steps for task in self.tasks),
            self.pool.snapshot(),
            tuple(task.snapshot() for task in self.tasks),
            tuple(partition.snapshot() for partition in self._partitions.values()),
            tuple(gate.snapshot() for gate in self.gates),
        )

    def close(self) -> None:
        """Give everything back: buffers, readers, pools. Called at the end, good or bad."""
        with ExitStack() as last_first:  # one that cannot be closed does not keep the others open
            last_first.callback(self.pool.destroy)
            for partition in self._partitions.values():
                last_first.callback(partition.release)
            for gate in self.gates:
                last_first.callback(gate.release)
            for task in self.tasks:
                last_first.callback(task.close)

    def close_after(self, error: BaseException) -> None:
        """Give everything back after `error`, which the caller raises; trouble on the way is noted on it."""
        try:
            self.close()
        except Exception as trouble:  # noqa: BLE001
            error.add_note(f"and while giving everything back: {type(trouble).__name__}: {trouble}")

    # -- wiring ------------------------------------------------------------------------------------

    def _produce(self, edge_index: int, edge: JobEdge, subtask: int) -> None:
        """Build the partition and the writer of one producing subtask on one edge."""
        job = self.graph.job
        num_channels = len(self.graph.targets(edge, subtask))
        target = job.vertices[edge.target]
        name = f"{job.stream_graph.nodes[edge.edge.source].name}-{subtask} → {target.nodes[0].name}"
        same = [e.edge.source == edge.edge.source and e.target == edge.target for e in job.edges[:edge_index]]
        name += f" #{sum(same) + 1}" if any(same) else ""
        pool = LocalBufferPool(
            self.pool, required(num_channels), max_buffers(num_channels, self.config), name,
            num_channels, self.config.max_buffers_per_channel, self.config.max_overdraft_buffers,
        )  # fmt: skip
        partition = ResultPartition(name, num_channels, pool, self.config, self.trace)
        self._partitions[edge_index, subtask] = partition
        selector = edge.partitioner.make(
            self.config.seed + subtask, self.graph.max_parallelism(target)
        )
        make = BroadcastRecordWriter if selector.is_broadcast else RecordWriter
        self.writers[edge_index, subtask] = make(
            partition, selector, self._element_serializer(edge),
            self.parts.SpanningRecordSerializer(), self._exclusion,
        )  # fmt: skip

    def _element_serializer(self, edge: JobEdge) -> StreamElementSerializer:
        node, tag = self.graph.job.stream_graph.nodes[edge.edge.source], edge.edge.tag
        value_type = node.value_type if tag is None else tag.value_type
        return StreamElementSerializer(value_type, self.config.flink_version)

    def _make_task(self, execution: ExecutionVertex) -> Task:
        vertex, subtask = execution.vertex, execution.subtask
        head = vertex.nodes[0]
        source: TaskInput
        if head.make_reader is not None:
            try:
                reader = head.make_reader(subtask, vertex.parallelism)
            except Exception as error:
                if speaks_for_itself(error):
                    raise
                raise UserCodeError(head.name, subtask, None, error) from error
            source = SourceInput(head.name, subtask, reader, self.config.source_batch)
        else:
            source = self._consume(execution)
        edges = self.graph.job.edges
        writers = [
            self.writers[index, subtask]
            for index, edge in enumerate(edges)
            if edge.source == vertex.id
        ]
        return Task(
            execution.name, self._chain(execution), source, writers, trace=self.trace
        )

    def _consume(self, execution: ExecutionVertex) -> NetworkInput:
        """Build the gate of one consuming subtask: a channel from each producer that has one to it."""
        channels: list[LocalInputChannel] = []
        job_edges = self.graph.job.edges
        inputs = [(i, edge) for i, edge in enumerate(job_edges) if edge.target == execution.vertex.id]
        for edge_index, edge in inputs:
            for producer in range(self.graph.job.vertices[edge.source].parallelism):
                targets = self.graph.targets(edge, producer)
                if execution.subtask in targets:
                    partition = self._partitions[edge_index, producer]
                    subpartition = partition.subpartitions[targets.index(execution.subtask)]
                    channels.append(LocalInputChannel(len(channels), subpartition))
        gate = InputGate(execution.name, channels, self.config.flink_version)
        self.gates.append(gate)
        make = self.parts.SpillingAdaptiveSpanningRecordDeserializer
        return NetworkInput(
            gate, self._element_serializer(inputs[0][1]), lambda: make(self.config)
        )

    def _chain(self, execution: ExecutionVertex) -> OperatorChain:
        job = self.graph.job
        vertex, subtask = execution.vertex, execution.subtask
        members = {node.id for node in vertex.nodes}
        network = {id(edge.edge): index for index, edge in enumerate(job.edges)}
        nodes = []
        for node in vertex.nodes:
            edges = [
                ChainEdge(None, self.writers[network[id(edge)], subtask], edge.tag, edge.names)
                if id(edge) in network
                else ChainEdge(edge.target, None, edge.tag, edge.names)
                for edge in job.stream_graph.out_edges(node.id)
            ]
            assert all(edge.writer or edge.target in members for edge in edges)
            context = OperatorContext(
                node.name, subtask, node.parallelism, self.graph.max_parallelism(vertex)
            )
            nodes.append(
                ChainNode(node.id, node.make_operator(), context, node.value_type, edges, node.select)
            )
        return OperatorChain(nodes, self.config.object_reuse)
