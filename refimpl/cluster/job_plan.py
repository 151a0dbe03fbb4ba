"""What a scheduler has to know of a job: which subtask goes into which slot, and who reads whom."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.regions import Exchange

__all__ = ["JobPlan", "Place"]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What has to be known of job `job_id`: which subtask goes into which of its slots, and who reads whom.

    A slot holds one subtask of each vertex of a group at most; the slots are numbered from 0.
    """

    job_id: str
    slot_of: dict[Place, int]
    exchanges: tuple[Exchange[Place], ...] = ()

    @classmethod
    def of(cls, job_id: str, graph: ExecutionGraph) -> JobPlan:
        """The plan of a job as its graph has it: its slots, and every channel once."""
        placement = graph.placement
        slot_of = {
            (each.vertex.id, each.subtask): placement.slot_of(each.vertex, each.subtask) for each in graph.vertices
        }
        return cls(job_id, slot_of, tuple(graph.job.exchanges))

    @property
    def num_slots(self) -> int:
        return max(self.slot_of.values()) + 1
