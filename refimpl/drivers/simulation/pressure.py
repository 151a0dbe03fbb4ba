"""Where the pressure in a timed simulation comes from: what each subtask did with its time, and who holds all up."""

from __future__ import annotations

from refimpl.cluster.bottleneck import Bottleneck, Load, find_bottleneck
from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.config import CheckpointingMode
from refimpl.consumer.network_input import NetworkInput
from refimpl.drivers.simulation.run import Simulation
from refimpl.errors import LocalUsageError
from refimpl.task.snapshot import TaskTimes
from refimpl.task.task import Task

__all__ = ["PressureWatch"]


class PressureWatch:
    """Looks at `run` now and then; what it tells is of the time since it looked last.

    Raises:
        LocalUsageError: work takes no time in this run, so nobody is ever busy.

    Flink:   TaskIOMetricGroup, JobVertexBackPressureHandler (runtime.metrics.groups, runtime.rest.handler.job), 1.13
    """

    def __init__(self, run: Simulation) -> None:
        if not run.task_times:
            raise LocalUsageError('nobody is busy where work takes no time; make the Simulation with policy="timed"')
        self._run = run
        self.exchanges = JobPlan.of("job", run.graph).exchanges
        self._places: dict[str, Place] = {each.name: (each.vertex.id, each.subtask) for each in run.graph.vertices}
        self._seen: dict[str, TaskTimes] = {}
        self.loads()

    def loads(self) -> dict[Place, Load]:
        """How each subtask has spent the time since this was asked last; of one that has ended nothing is told."""
        loads = {}
        for name, times in self._run.task_times.items():
            before, self._seen[name] = self._seen.get(name, TaskTimes()), times
            busy_ms, idle_ms = times.busy_ms - before.busy_ms, times.idle_ms - before.idle_ms
            held_ms = times.backpressured_ms - before.backpressured_ms
            total_ms = busy_ms + idle_ms + held_ms
            if total_ms > 0:
                task = self._run.tasks.get(name)
                shares = busy_ms / total_ms, idle_ms / total_ms, held_ms / total_ms
                loads[self._places[name]] = Load(*shares, _is_aligning(task), _num_queued(task))
        return loads

    def bottleneck(self) -> Bottleneck:
        """Who has held the job back since this, or `loads`, was asked last."""
        loads = self.loads()
        there = [each for each in self.exchanges if each.producer in loads and each.consumer in loads]
        return find_bottleneck(loads, there, self._waiting())

    def _waiting(self) -> dict[tuple[Place, Place], int]:
        """How many buffers wait to be sent from one subtask to another, right now."""
        graph, waiting = self._run.graph, dict[tuple[Place, Place], int]()
        for reader in graph.vertices:
            for plan in (each for gate in graph.inputs(reader) for each in gate):
                shuffle = self._run.deployments[plan.producer.task_manager].shuffle
                if (partition := shuffle.partitions.get((plan.edge, plan.producer.subtask))) is not None:
                    pair = (plan.producer.vertex.id, plan.producer.subtask), (reader.vertex.id, reader.subtask)
                    waiting[pair] = waiting.get(pair, 0) + partition.subpartitions[plan.subpartition].num_queued
        return waiting

    def is_held_back(self, task: object) -> bool | None:
        """Whether a task has an output without a buffer right now, by name; `None` if it has ended, or never was."""
        found = self._run.tasks.get(str(task))
        if found is None or found.is_done:
            return None
        return found.is_held_back


def _is_aligning(task: Task | None) -> bool:
    if task is None or task.input.alignment is None:
        return False
    standing = task.input.alignment.snapshot()
    return standing.mode is CheckpointingMode.EXACTLY_ONCE and bool(standing.arrived)


def _num_queued(task: Task | None) -> int:
    """Flink: InputBuffersGauge (runtime.io.network.metrics), the metric `inputQueueLength`, 1.11.4."""
    if task is None or not isinstance(task.input, NetworkInput):
        return 0
    return sum(each.snapshot().num_available for each in task.input.gate.channels)
