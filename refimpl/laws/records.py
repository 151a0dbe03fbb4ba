"""Records: at the end, every exchange has delivered what was emitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.job.deployment import Deployment
from refimpl.producer.broadcast_writer import BroadcastCopy

__all__ = ["RecordCounts", "check_records"]


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """On one TaskManager, records emitted to and arrived at each job vertex, by its name."""

    emitted: Counter[str]
    delivered: Counter[str]

    @staticmethod
    def of(deployment: Deployment) -> RecordCounts:
        """The counts of one part of a job."""
        job = deployment.graph.job
        counts = RecordCounts(Counter(), Counter())
        for (index, _), writer in deployment.writers.items():
            is_broadcast = isinstance(writer.copy, BroadcastCopy)
            copies = len(writer.partition.subpartitions) if is_broadcast else 1
            counts.emitted[job.vertices[job.edges[index].target].name] += writer.num_records * copies
        for vertex, task in deployment.vertices_and_tasks:
            counts.delivered[vertex.name] += task.chain.num_records_in
        return counts


def check_records(parts: Sequence[RecordCounts]) -> None:
    """At the end, what all TaskManagers together emitted to a vertex has arrived there."""
    emitted = sum((part.emitted for part in parts), Counter())
    delivered = sum((part.delivered for part in parts), Counter())
    for name, num_emitted in emitted.items():
        assert num_emitted == delivered[name], (
            f"{num_emitted} records were emitted to {name}, {delivered[name]} arrived"
        )
