"""A job made real on one TaskManager: its segments, queues, gates and tasks, connected, not yet run.

A job may be spread over several TaskManagers. Each makes its own part of the same execution graph;
what a task reads from a task elsewhere it reads through a remote channel, which a driver connects.
Everything a widget draws and a law checks is reachable from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import assert_never

from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described, failure_of, is_engines
from refimpl.job.checkpoint_trigger import CheckpointTrigger
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction
from refimpl.job.environment import StreamEnvironment
from refimpl.job.execution_graph import ExecutionVertex
from refimpl.job.hot_swap import submit, swapped, swapped_function
from refimpl.job.job_graph import JobEdge, JobVertex
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.job.shuffle_environment import ShuffleEnvironment
from refimpl.job.snapshots import JobSnapshot, TaskManagerSnapshot
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.task.chain import ChainEdge, ChainNode, OperatorChain
from refimpl.task.operators import OperatorContext
from refimpl.task.task import Task, TaskInput
from refimpl.trace import Trace

__all__ = ["Deployment"]


class Deployment:
    """The tasks of a job that TaskManager `task_manager` of `num_task_managers` runs.

    `exclusion` is held by writers while they touch what other tasks see; a driver with one thread
    gives none. `run_id` is that of the execution graph. `buffers_per_step` is as in `Task`.
    `makers` makes the parts; without one they are the plain ones.

    Raises:
        InsufficientBuffersError: the pool is too small for the job; nothing is left behind.
        LocalUsageError: the job has no operators, or too few slots for so many TaskManagers.

    Flink:   TaskExecutor, NettyShuffleEnvironment (runtime), 1.11.4, the part that wires a task
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        exclusion: AbstractContextManager[object] | None = None,
        task_manager: int = 0,
        num_task_managers: int = 1,
        run_id: bytes = bytes(8),
        buffers_per_step: int = 1,
        makers: Makers | None = None,
    ) -> None:
        self.config = environment.config
        self.parts: Parts = environment.parts
        self.graph = environment.execution_graph(num_task_managers, run_id)
        self.task_manager = task_manager
        self.trace = trace
        self.shuffle = ShuffleEnvironment(self.graph, trace, makers or Makers())
        self.writers: dict[tuple[int, int], RecordWriter] = {}
        self.tasks: list[Task] = []
        self.is_paused = False  # its tasks are not to be stepped
        self._exclusion = exclusion
        self._buffers_per_step = buffers_per_step
        here = self._here
        try:
            for index, edge in enumerate(self.graph.job.edges):
                for execution in here:
                    if execution.vertex.id == edge.source:
                        self._produce(index, edge, execution)
            for execution in here:
                self.tasks.append(self._make_task(execution))
        except BaseException as error:
            self.close_after(error)
            raise
        self.checkpoints = CheckpointTrigger(self.tasks, self.config)
        for task in self.tasks:
            if isinstance(task.input, NetworkInput):
                task.input.gate.open()

    @property
    def pool(self) -> NetworkBufferPool:
        return self.shuffle.pool

    @property
    def partitions(self) -> Sequence[ResultPartition]:
        return tuple(self.shuffle.partitions.values())

    @property
    def gates(self) -> Sequence[InputGate]:
        """Those of all tasks, one for each exchange that a task reads."""
        return self.shuffle.gates

    @property
    def vertices_and_tasks(self) -> list[tuple[JobVertex, Task]]:
        """The tasks, each with its job vertex."""
        return [(each.vertex, task) for each, task in zip(self._here, self.tasks, strict=True)]

    @property
    def _here(self) -> list[ExecutionVertex]:
        return [each for each in self.graph.vertices if each.task_manager == self.task_manager]

    @property
    def is_done(self) -> bool:
        return all(task.is_done for task in self.tasks)

    def task(self, name: str) -> Task:
        """The task called `name`."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise LocalUsageError(f"no task {name!r}; there are {[task.name for task in self.tasks]}")

    def do(self, command: Command) -> None:
        """Carry a command out. A command that names a part of the job elsewhere changes nothing here.

        Raises:
            LocalUsageError: it names nothing in the job, or what cannot change while it runs; nothing has changed.
        """
        match command:
            case Pause():
                self.is_paused = True
            case Resume():
                self.is_paused = False
            case Slow(name, rest_ms):
                self._slow(name, rest_ms)
            case Swap(parts):
                self.parts, changes = swapped(self.tasks, self.parts, parts, self.config)
                submit(changes)
            case SwapFunction(operator_name, function):
                everywhere = [name for each in self.graph.vertices for name in _operators_of(each)]
                submit(swapped_function(self.tasks, operator_name, function, everywhere))
            case SetTimeout(timeout_ms):
                self._set_timeout(timeout_ms)
            case _:
                assert_never(command)

    def snapshot(self, time_ms: float = 0.0) -> JobSnapshot:
        """The whole job at this moment."""
        return JobSnapshot(
            time_ms,
            sum(task.num_steps for task in self.tasks),
            (
                TaskManagerSnapshot(
                    self.task_manager,
                    self.pool.snapshot(),
                    tuple(task.snapshot() for task in self.tasks),
                    tuple(partition.snapshot() for partition in self.partitions),
                    tuple(gate.snapshot() for gate in self.gates),
                    tuple(pool.snapshot() for pool in self.shuffle.gate_pools),
                    tuple(
                        reader
                        for connection in self.shuffle.producer_connections
                        for reader in connection.snapshot().readers.values()
                    ),
                    tuple(self.graph.placement.slot_of(each.vertex, each.subtask) for each in self._here),
                ),
            ),
        )

    def close(self) -> None:
        """Give everything back: buffers, readers, pools. Called at the end, good or bad."""
        with ExitStack() as last_first:  # one that cannot be closed does not keep the others open
            last_first.callback(self.shuffle.close)
            for task in self.tasks:
                last_first.callback(task.close)

    def close_after(self, error: BaseException) -> None:
        """Give everything back after `error`, which the caller raises; trouble on the way is noted on it."""
        try:
            self.close()
        except USER_CODE_RAISES as trouble:
            error.add_note(f"and while giving everything back: {described(trouble)}")

    # -- commands ----------------------------------------------------------------------------------

    def _slow(self, name: str, rest_ms: float) -> None:
        everywhere = self.graph.vertices
        if not any(name == each.name or name in _operators_of(each) for each in everywhere):
            tasks = ", ".join(each.name for each in everywhere)
            raise LocalUsageError(f"no task and no operator {name!r}; there are {tasks}")
        for execution, task in zip(self._here, self.tasks, strict=True):
            if name == task.name or name in _operators_of(execution):
                task.rest_ms = rest_ms

    def _set_timeout(self, timeout_ms: int) -> None:
        if self.config.buffer_timeout_ms == 0:
            raise LocalUsageError(
                f"buffer_timeout_ms={timeout_ms!r}: this job flushes each record, and goes on so: it was built with 0"
            )
        for partition in self.partitions:
            partition.buffer_timeout_ms = timeout_ms

    # -- wiring ------------------------------------------------------------------------------------

    def _produce(self, index: int, edge: JobEdge, execution: ExecutionVertex) -> None:
        """Build the partition and the writer of one producing subtask on one edge."""
        partition = self.shuffle.create_partition(index, execution, self.shuffle.makers.rules(self.parts))
        num_key_groups = self.graph.max_parallelism(self.graph.job.vertices[edge.target])
        selector = edge.partitioner.make(self.config.seed + execution.subtask, num_key_groups)
        elements = self._element_serializer(edge)
        self.writers[index, execution.subtask] = self.shuffle.makers.writer(
            partition, selector, elements, self.parts, self._exclusion
        )

    def _element_serializer(self, edge: JobEdge) -> StreamElementSerializer:
        node, tag = self.graph.job.stream_graph.nodes[edge.edge.source], edge.edge.tag
        value_type = node.value_type if tag is None else tag.value_type
        return StreamElementSerializer(value_type, self.config.flink_version)

    def _make_task(self, execution: ExecutionVertex) -> Task:
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
            source = self.shuffle.makers.source_input(head.name, subtask, reader, self.config.source_batch)
        else:
            source = self._consume(execution)
        edges = self.graph.job.edges
        writers = [self.writers[index, subtask] for index, edge in enumerate(edges) if edge.source == vertex.id]
        return self.shuffle.makers.task(execution.name, chain, source, writers, self._buffers_per_step, self.trace)

    def _consume(self, execution: ExecutionVertex) -> NetworkInput:
        """Build the gates of one consuming subtask and what reads elements from them."""
        gate = self.shuffle.create_input(execution)
        edge = next(edge for edge in self.graph.job.edges if edge.target == execution.vertex.id)
        makers, mode = self.shuffle.makers, self.config.checkpointing_mode
        make_deserializer = partial(makers.deserializer, self.parts, self.config)
        return makers.network_input(gate, self._element_serializer(edge), make_deserializer, mode)

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
            context = OperatorContext(node.name, subtask, node.parallelism, self.graph.max_parallelism(vertex))
            nodes.append(ChainNode(node.id, node.make_operator(), context, node.value_type, edges, node.select))
        return self.shuffle.makers.chain(nodes, self.config.object_reuse, self.parts.CopyingChainingOutput)


def _operators_of(execution: ExecutionVertex) -> list[str]:
    return [node.name for node in execution.vertex.nodes]
