"""A job made real on one TaskManager: its segments, queues, gates and tasks, connected, not yet run.

A job may be spread over several TaskManagers. Each makes its own part of the same execution graph;
what a task reads from a task elsewhere it reads through a remote channel, which a driver connects.
Everything a widget draws and a law checks is reachable from here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import assert_never

from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.checkpoint_trigger import CheckpointTrigger
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.hot_swap import submit, swapped, swapped_function
from refimpl.job.job_graph import JobVertex
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.job.shuffle_environment import ShuffleEnvironment
from refimpl.job.snapshots import JobSnapshot, TaskManagerSnapshot
from refimpl.job.task_factory import Snapshots, TaskFactory
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.record_writer import RecordWriter
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["Deployment"]


class Deployment:
    """The tasks of an execution graph that TaskManager `task_manager` runs.

    `exclusion` is held by writers while they touch what other tasks see; a driver with one thread
    gives none. `buffers_per_step` is as in `Task`. `makers` makes the parts; without one they are the
    plain ones. `pool` is the TaskManager's, for all its deployments, those beside this one and those that
    follow it; without one this deployment has one of its own, of `num_buffers` segments. So it is with `results`, the
    blocking ones. `region` are the subtasks that are made, of those that are here; without it all: of a job with
    blocking results not all run at one time, and a cluster may have them come one by one.

    Ownership: after `close` every segment comes home to the pool; one that was handed in lives on.

    Raises:
        InsufficientBuffersError: the pool is too small for the job; nothing is left behind.
        BuffersStillOutError: other deployments still have what the job needs to start; nothing is left behind.
        LocalUsageError: the pool has segments of another size, or is of another version.

    Flink:   TaskExecutor, NettyShuffleEnvironment (runtime), 1.11.4, the part that wires a task
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        task_manager: int = 0,
        trace: Trace | None = None,
        exclusion: AbstractContextManager[object] | None = None,
        buffers_per_step: int = 1,
        makers: Makers | None = None,
        pool: NetworkBufferPool | None = None,
        snapshots: Snapshots | None = None,
        results: BlockingResults | None = None,
        region: Collection[tuple[int, int]] | None = None,
    ) -> None:
        self.graph = graph
        self.config = graph.job.config
        self.parts: Parts = graph.job.parts
        self.task_manager = task_manager
        self.trace = trace
        self.shuffle = ShuffleEnvironment(graph, trace, makers or Makers(), pool, results)
        factory = TaskFactory(graph, self.shuffle, exclusion, buffers_per_step, snapshots)
        self.writers: Mapping[tuple[int, int], RecordWriter] = factory.writers
        self.tasks: list[Task] = []
        self.is_paused = False  # its tasks are not to be stepped
        own = [each for each in graph.vertices if each.task_manager == task_manager]
        self._here = here = [each for each in own if region is None or (each.vertex.id, each.subtask) in region]
        try:
            for execution in here:
                factory.make_outputs(execution)
            for execution in here:
                self.tasks.append(factory.make(execution))
        except BaseException as error:
            self.close_after(error)
            raise
        # Where state is saved, a coordinator tells the sources when.
        self.checkpoints = CheckpointTrigger(() if snapshots is not None else self.tasks, self.config)
        for task in self.tasks:
            if isinstance(task.input, NetworkInput):
                task.input.gate.open()

    @property
    def pool(self) -> NetworkBufferPool:
        return self.shuffle.pool

    @property
    def partitions(self) -> Sequence[BufferWritingResultPartition]:
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
            partition.flusher.timeout_ms = timeout_ms


def _operators_of(execution: ExecutionVertex) -> list[str]:
    return [node.name for node in execution.vertex.nodes]
