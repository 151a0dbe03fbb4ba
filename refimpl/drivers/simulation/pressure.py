"""Where the pressure in a timed simulation comes from: what each subtask did with its time, and who holds all up."""

from __future__ import annotations

from refimpl.cluster.bottleneck import Bottleneck, Load, find_bottleneck
from refimpl.cluster.scheduler import JobPlan, Place
from refimpl.config import CheckpointingMode
from refimpl.drivers.simulation.run import Simulation
from refimpl.drivers.simulation.work import TaskTimes
from refimpl.errors import LocalUsageError
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
        self._exchanges = JobPlan.of("job", run.graph).exchanges
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
                is_aligning = _is_aligning(self._run.tasks.get(name))
                loads[self._places[name]] = Load(
                    busy_ms / total_ms, idle_ms / total_ms, held_ms / total_ms, is_aligning
                )
        return loads

    def bottleneck(self) -> Bottleneck:
        """Who has held the job back since this, or `loads`, was asked last."""
        loads = self.loads()
        there = [each for each in self._exchanges if each.producer in loads and each.consumer in loads]
        return find_bottleneck(loads, there)

    def is_held_back(self, task: object) -> bool | None:
        """Whether a task has an output without a buffer right now, by name; `None` if it has ended, or never was."""
        found = self._run.tasks.get(str(task))
        if found is None or found.is_done:
            return None
        return not all(writer.is_available and not writer.is_blocked for writer in found.writers)


def _is_aligning(task: Task | None) -> bool:
    if task is None or task.input.alignment is None:
        return False
    standing = task.input.alignment.snapshot()
    return standing.mode is CheckpointingMode.EXACTLY_ONCE and bool(standing.arrived)
