"""Records: at the end, every exchange has delivered what was emitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from refimpl.consumer.network_input import NetworkInput
from refimpl.job.deployment import Deployment
from refimpl.producer.broadcast_writer import BroadcastCopy
from refimpl.records.spanning import LENGTH_BYTES

__all__ = ["RecordCounts", "check_records"]

_LEAST_RECORD_BYTES = LENGTH_BYTES + 1


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """On one TaskManager, records emitted to and arrived at each job vertex, by its name.

    `recovered` are bytes on the way there that a checkpoint has brought, at either end.
    """

    emitted: Counter[str]
    delivered: Counter[str]
    recovered: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def of(deployment: Deployment) -> RecordCounts:
        """The counts of one part of a job."""
        job = deployment.graph.job
        counts = RecordCounts(Counter(), Counter())
        for (index, _), writer in deployment.writers.items():
            is_broadcast = isinstance(writer.copy, BroadcastCopy)
            copies = len(writer.partition.subpartitions) if is_broadcast else 1
            counts.emitted[job.vertices[job.edges[index].target].name] += writer.num_records * copies
            counts.recovered[job.vertices[job.edges[index].target].name] += writer.partition.num_bytes_recovered
        for vertex, task in deployment.vertices_and_tasks:
            counts.delivered[vertex.name] += task.chain.num_records_in
            if isinstance(task.input, NetworkInput):
                counts.recovered[vertex.name] += task.input.num_bytes_recovered
        return counts


def check_records(parts: Sequence[RecordCounts]) -> None:
    """At the end, what all TaskManagers together emitted to a vertex has arrived there.

    With it comes what was in flight at a checkpoint that the job goes on from: nobody has emitted it since.
    """
    emitted = sum((part.emitted for part in parts), Counter())
    delivered = sum((part.delivered for part in parts), Counter())
    recovered = sum((part.recovered for part in parts), Counter())
    for name, num_emitted in emitted.items():
        most = num_emitted + recovered[name] // _LEAST_RECORD_BYTES
        more = f" and {recovered[name]} B recovered" if recovered[name] else ""
        assert num_emitted <= delivered[name] <= most, (
            f"{num_emitted} records were emitted to {name}{more}, {delivered[name]} arrived"
        )
