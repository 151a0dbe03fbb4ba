"""What one task is made of: its outputs with their writers, its input, its chain of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from refimpl.batch_options import InputConstraint, ScheduleMode
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.two_inputs import FIRST, SECOND, TwoInputs
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.errors import USER_CODE_RAISES, failure_of, is_engines
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.job_graph import JobEdge
from refimpl.job.shuffle_environment import ShuffleEnvironment
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.state.subtask_state import RestoredStates
from refimpl.task.chain import ChainEdge, ChainNode, OperatorChain
from refimpl.task.checkpoint_reports import StatePlace
from refimpl.task.latency import LatencyMarksEmitter
from refimpl.task.operators import OperatorContext
from refimpl.task.task import Task, TaskInput
from refimpl.task.time_service import ProcessingTimeService

__all__ = ["Snapshots", "TaskFactory"]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """What checkpoints are to the tasks of a graph: how the files of each are called, and what each goes on from.

    `states` are by the task's name, then by the operator's uid.
    """

    place_of: Callable[[ExecutionVertex], StatePlace]
    states: Mapping[str, Mapping[str, RestoredStates]]


class TaskFactory:
    """Makes the tasks of one execution graph on the network memory of one TaskManager.

    `writers` are those made so far, by edge and subtask. `exclusion` is held by writers while they touch
    what other tasks see; `buffers_per_step` is as in `Task`. Without `snapshots` checkpoints keep no state.

    Ownership: partitions and gates belong to `shuffle`, a task to whoever asked for it.

    Flink:   Task, StreamTask (runtime.taskmanager, streaming.runtime.tasks), 1.11.4, their constructors
    Differs: outputs come first, for all tasks here: a local channel has its queue from the beginning. In
             Flink a task asks for what it reads when it begins, and again if it is not there yet.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        shuffle: ShuffleEnvironment,
        exclusion: AbstractContextManager[object] | None = None,
        buffers_per_step: int = 1,
        snapshots: Snapshots | None = None,
    ) -> None:
        self.graph = graph
        self.writers: dict[tuple[int, int], RecordWriter] = {}
        self._parts = graph.job.parts
        self._config = graph.job.config
        self._shuffle = shuffle
        self._makers = shuffle.makers
        self._exclusion = exclusion
        self._buffers_per_step = 1 if self._config.unaligned else buffers_per_step  # a barrier waits for one step
        self._snapshots = snapshots

    def make_outputs(self, execution: ExecutionVertex) -> None:
        """Make the partition and the writer of one subtask on each edge that leaves it.

        Raises:
            InsufficientBuffersError: the pool cannot promise what an output requires.
        """
        job = self.graph.job
        for index, edge in enumerate(job.edges):
            if edge.source != execution.vertex.id:
                continue
            partition = self._shuffle.create_partition(index, execution, self._makers.rules(self._parts))
            partition.use(self._parts.BoundedBlockingSubpartition)
            num_key_groups = self.graph.max_parallelism(job.vertices[edge.target])
            selector = edge.partitioner.make(self._config.seed + execution.subtask, num_key_groups)
            elements = self._element_serializer(edge)
            self.writers[index, execution.subtask] = self._makers.writer(
                partition, selector, elements, self._parts, self._exclusion
            )

    def make(self, execution: ExecutionVertex) -> Task:
        """One task; its outputs and the partitions it reads here must have been made.

        Raises:
            InsufficientBuffersError: the pool cannot promise what its input requires.
            BuffersStillOutError: as `ShuffleEnvironment.create_input`.
            UserCodeError: a source's reader, or an operator, could not be made.
            RestoreRefusedError: an operator cannot go on from what a checkpoint has of it.
        """
        vertex, subtask = execution.vertex, execution.subtask
        head = vertex.nodes[0]
        chain = self._chain(execution)
        source: TaskInput
        if head.make_reader is not None:
            try:
                reader = head.make_reader(subtask, vertex.parallelism)
            except USER_CODE_RAISES as error:
                if is_engines(error):
                    raise
                raise failure_of(head.name, subtask, None, error) from error
            source = self._makers.source_input(head.name, subtask, reader, self._config.source_batch)
            self._mark_latency(head.id, subtask, chain)
        else:
            source = self._network_input(execution)
            if self._config.unaligned:
                source.allow_unaligned(self._exclusion)
        edges = self.graph.job.edges
        writers = [self.writers[index, subtask] for index, edge in enumerate(edges) if edge.source == vertex.id]
        make = self._makers.two_input_task if isinstance(source, TwoInputs) else self._makers.task
        snapshots = self._snapshots
        place = None if snapshots is None else snapshots.place_of(execution)
        task = make(execution.name, chain, source, writers, self._buffers_per_step, self._shuffle.trace, place)
        if self._config.schedule_mode is ScheduleMode.LAZY_FROM_SOURCES and isinstance(source, NetworkInput):
            task.may_start = _first_input_of(source.gate, self._config.input_constraint)
        if snapshots is not None:
            task.checkpoints.restore(snapshots.states.get(execution.name, {}))
        return task

    def _element_serializer(self, edge: JobEdge) -> StreamElementSerializer:
        node, tag = self.graph.job.stream_graph.nodes[edge.edge.source], edge.edge.tag
        value_type = node.value_type if tag is None else tag.value_type
        return StreamElementSerializer(value_type, self._config.flink_version)

    def _mark_latency(self, source_id: int, subtask: int, chain: OperatorChain) -> None:
        """Let a source send latency markers, if the job has them."""
        if interval_ms := self._config.latency_tracking_interval_ms:
            LatencyMarksEmitter(chain.time, chain.head.output.emit_latency_marker, interval_ms, source_id, subtask)

    def _network_input(self, execution: ExecutionVertex) -> NetworkInput:
        """The gates of one consuming subtask and what reads elements from them."""
        gate = self._shuffle.create_input(execution)
        edges = self.graph.job.in_edges(execution.vertex.id)
        elements = {edge.edge.side: self._element_serializer(edge) for edge in edges}
        make_deserializer = partial(self._makers.deserializer, self._parts, self._config)
        mode = self._config.checkpointing_mode
        if SECOND not in elements:
            return self._makers.network_input(gate, elements[FIRST], make_deserializer, mode)
        assert isinstance(gate, UnionInputGate), f"{gate} is not of two inputs"
        return self._makers.two_inputs(gate, [elements[FIRST], elements[SECOND]], make_deserializer, mode)

    def _chain(self, execution: ExecutionVertex) -> OperatorChain:
        job = self.graph.job
        vertex, subtask = execution.vertex, execution.subtask
        members = {node.id for node in vertex.nodes}
        network = {id(edge.edge): index for index, edge in enumerate(job.edges)}
        nodes = []
        time = ProcessingTimeService()
        attempt = None if self._snapshots is None else self._snapshots.place_of(execution).attempt
        sources = {node.id: node.name for node in job.stream_graph.nodes.values() if node.is_source}
        for node in vertex.nodes:
            edges = [
                ChainEdge(None, self.writers[network[id(edge)], subtask], edge.tag, edge.names)
                if id(edge) in network
                else ChainEdge(edge.target, None, edge.tag, edge.names)
                for edge in job.stream_graph.out_edges(node.id)
            ]
            assert all(edge.writer or edge.target in members for edge in edges)
            num_groups = self.graph.max_parallelism(vertex)
            context = OperatorContext(
                node.name, subtask, node.parallelism, num_groups, time, self._config, sources, node.uid, attempt
            )
            nodes.append(ChainNode(node.id, node.make_operator(), context, node.value_type, edges, node.select))
        return self._makers.chain(nodes, self._config.object_reuse, self._parts.CopyingChainingOutput)


def _first_input_of(gate: InputGate | UnionInputGate, constraint: InputConstraint) -> Callable[[], bool]:
    """Whether a task may start that waits for the first it can read: of any of its inputs, or of all.

    Flink:   InputDependencyConstraintChecker (runtime.scheduler.strategy), 1.11.4; ResultPartition's
             notifyPipelinedConsumers, 1.11.4, which is told of the first buffer of each result, once
    Differs: its buffers are set aside, and its connections made, when its region is deployed.
    """
    if isinstance(gate, InputGate) or constraint is InputConstraint.ANY:
        return lambda: gate.is_ready
    gate.tells_of_each = True
    each_input = [_first_input_of(each, constraint) for each in gate.gates]
    return lambda: all(has_begun() for has_begun in each_input)
