"""The jobs of a simulated cluster, as whoever leads one of them finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refimpl.cluster.dispatcher import JobRecord, MemoryJobRegistry
from refimpl.cluster.job_plan import JobPlan
from refimpl.cluster.restart import FixedDelayRestart, NoRestart, RestartStrategy
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph

__all__ = ["ClusterJobs", "SubmittedJob"]


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job as it was submitted; each leader begins with a restart strategy of its own."""

    graph: JobGraph
    restart: Callable[[], RestartStrategy]

    @classmethod
    def of(cls, graph: JobGraph, restart: Callable[[], RestartStrategy] | None) -> SubmittedJob:
        """A job; without a strategy it begins again three times if it has checkpoints, and never if it has none."""
        if restart is not None:
            return cls(graph, restart)
        return cls(graph, lambda: FixedDelayRestart(3, 1_000.0) if graph.config.checkpoint_interval_ms else NoRestart())


@dataclass(slots=True)
class ClusterJobs:
    """What outlives every member: the registry of jobs, what they are made of, and who is to be cancelled."""

    registry: MemoryJobRegistry = field(default_factory=MemoryJobRegistry)
    graphs: dict[str, JobGraph] = field(default_factory=dict)
    plans: dict[str, JobPlan] = field(default_factory=dict)
    to_cancel: set[str] = field(default_factory=set)

    def add(self, record: JobRecord) -> SubmittedJob:
        """Know what a job is made of."""
        assert isinstance(record.job, SubmittedJob), f"{record.job_id} was submitted elsewhere"
        if record.job_id not in self.graphs:
            self.graphs[record.job_id] = record.job.graph
            self.plans[record.job_id] = JobPlan.of(record.job_id, ExecutionGraph(record.job.graph))
        return record.job
