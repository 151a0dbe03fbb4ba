"""A whole job at one moment, as plain data: what widgets draw and recordings keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from refimpl.checkpoint.stats import CheckpointStatsSnapshot
from refimpl.consumer.input_gate import GateSnapshot
from refimpl.exchange.producer_credit import ReaderSnapshot
from refimpl.exchange.wire_snapshot import WireSnapshot
from refimpl.memory.pool_snapshots import LocalPoolSnapshot, NetworkPoolSnapshot
from refimpl.producer.buffer_writing import PartitionSnapshot
from refimpl.task.latency import LatencySnapshot
from refimpl.task.snapshot import TaskSnapshot, TaskTimes

__all__ = ["JobSnapshot", "TaskManagerSnapshot"]


@dataclass(frozen=True, slots=True)
class TaskManagerSnapshot:
    """What one TaskManager runs and holds at one moment; segments are numbered on each by itself.

    `gate_pools` are those its remote channels share; `readers` are those that other TaskManagers have here. `slots`
    has the number of each task's slot. `process_id` is that of a process of its own, or 0; `is_lost` says that it has
    ended before its time, `is_silent` that it does not answer, and both that all else is as it was seen last.
    """

    number: int
    pool: NetworkPoolSnapshot
    tasks: tuple[TaskSnapshot, ...]
    partitions: tuple[PartitionSnapshot, ...]
    gates: tuple[GateSnapshot, ...]
    gate_pools: tuple[LocalPoolSnapshot, ...]
    readers: tuple[ReaderSnapshot, ...]
    slots: tuple[int, ...] = ()
    process_id: int = 0
    is_lost: bool = False
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A whole job at one moment; `time_ms` is the driver's clock, `num_steps` steps of all tasks.

    `wires` are the connections between TaskManagers, of a driver that can look at what is on its way. `checkpoints` are
    those of a run with a store.
    """

    time_ms: float
    num_steps: int
    task_managers: tuple[TaskManagerSnapshot, ...]
    wires: tuple[WireSnapshot, ...] = ()
    checkpoints: CheckpointStatsSnapshot | None = None

    @staticmethod
    def joined(parts: Sequence[JobSnapshot]) -> JobSnapshot:
        """One snapshot of the parts that the TaskManagers run."""
        return JobSnapshot(
            max(part.time_ms for part in parts),
            sum(part.num_steps for part in parts),
            tuple(each for part in parts for each in part.task_managers),
        )

    def with_times(self, times: Mapping[str, TaskTimes]) -> JobSnapshot:
        """The same, with how the time of these tasks went, by name."""
        if not times:
            return self
        return replace(
            self,
            task_managers=tuple(
                replace(each, tasks=tuple(replace(task, times=times.get(task.name, task.times)) for task in each.tasks))
                for each in self.task_managers
            ),
        )

    @property
    def tasks(self) -> tuple[TaskSnapshot, ...]:
        return tuple(task for each in self.task_managers for task in each.tasks)

    @property
    def latencies(self) -> tuple[LatencySnapshot, ...]:
        """How old the markers of each source were when they came to each subtask of each operator."""
        return tuple(each for task in self.tasks for each in task.latencies)

    @property
    def partitions(self) -> tuple[PartitionSnapshot, ...]:
        return tuple(partition for each in self.task_managers for partition in each.partitions)

    @property
    def gates(self) -> tuple[GateSnapshot, ...]:
        return tuple(gate for each in self.task_managers for gate in each.gates)
