"""Which operators become one task.

Two operators are chained when the edge between them would gain nothing by being a network: same
number of subtasks, each record to the subtask with the same index, and nobody minds. All of these
must hold (Flink 1.11.4, StreamingJobGraphGenerator.isChainable):

1. chaining is on;
2. the downstream operator has one input edge;
3. both are in the same slot-sharing group;
4. the downstream operator may be chained to what is before it, the upstream one to what is after;
5. the edge is a forward edge;
6. both have the same parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.job.stream_graph import FORWARD, ChainingStrategy, Partitioner, StreamEdge, StreamGraph, StreamNode

__all__ = ["JobEdge", "JobGraph", "JobVertex", "reasons_not_to_chain"]


def reasons_not_to_chain(graph: StreamGraph, edge: StreamEdge, config: Config) -> list[str]:
    """Why the two ends of `edge` cannot share a task; empty if they can.

    Flink:   StreamingJobGraphGenerator.isChainable (streaming.api.graph), 1.11.4
    """
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    num_inputs = len(graph.in_edges(target.id))
    reasons = []
    if not config.chaining:
        reasons.append("chaining is turned off")
    if num_inputs != 1:
        reasons.append(f"{target.name} has {num_inputs} input edges")
    if source.slot_sharing_group != target.slot_sharing_group:
        reasons.append(
            f"slot-sharing groups differ: {source.slot_sharing_group!r} "
            f"and {target.slot_sharing_group!r}"
        )
    if target.chaining is not ChainingStrategy.ALWAYS:
        reasons.append(f"{target.name} may be chained {target.chaining.value}")
    if source.chaining is ChainingStrategy.NEVER:
        reasons.append(f"{source.name} may be chained {source.chaining.value}")
    if edge.partitioner is not None and edge.partitioner != FORWARD:
        reasons.append(f"the edge is {edge.partitioner.name}, not forward")
    if source.parallelism != target.parallelism:
        reasons.append(f"parallelism {source.parallelism} is not {target.parallelism}")
    return reasons


@dataclass(frozen=True, slots=True)
class JobVertex:
    """Operators that run in one task; `nodes[0]` is the head."""

    id: int
    nodes: tuple[StreamNode, ...]

    @property
    def name(self) -> str:
        return " → ".join(node.name for node in self.nodes)

    @property
    def parallelism(self) -> int:
        return self.nodes[0].parallelism


@dataclass(frozen=True, slots=True)
class JobEdge:
    """An edge that crosses the network, between two vertices."""

    source: int
    target: int
    edge: StreamEdge

    @property
    def partitioner(self) -> Partitioner:
        """How records choose a channel; a job graph's edges are resolved."""
        assert self.edge.partitioner is not None, f"{self.edge} has no partitioner yet"
        return self.edge.partitioner


class JobGraph:
    """The job as tasks: vertices are chains, edges are exchanges.

    Flink:   JobGraph (runtime.jobgraph), StreamingJobGraphGenerator, 1.11.4
    """

    def __init__(self, graph: StreamGraph, config: Config) -> None:
        graph = graph.resolved()
        self.stream_graph = graph
        self.config = config
        self._reasons = {
            index: reasons_not_to_chain(graph, edge, config)
            for index, edge in enumerate(graph.edges)
        }
        heads = self._chain_heads()
        self.vertices: dict[int, JobVertex] = {}
        for head in dict.fromkeys(heads.values()):
            members = [node for node in graph.in_order() if heads[node.id] == head]
            self.vertices[head] = JobVertex(head, tuple(members))
        self.edges: Sequence[JobEdge] = [
            JobEdge(heads[edge.source], heads[edge.target], edge)
            for index, edge in enumerate(graph.edges)
            if self._reasons[index]
        ]

    def _chain_heads(self) -> dict[int, int]:
        """For each operator, the head of its chain."""
        heads: dict[int, int] = {}
        for node in self.stream_graph.in_order():
            heads[node.id] = node.id
            for index, edge in enumerate(self.stream_graph.edges):
                if edge.target == node.id and not self._reasons[index]:
                    heads[node.id] = heads[edge.source]
        return heads

    def in_edges(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.target == vertex_id]

    def out_edges(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.source == vertex_id]

    def explain(self) -> str:
        """The tasks, and for every edge why it was or was not chained."""
        nodes = self.stream_graph.nodes
        lines = [f"{len(self.vertices)} tasks:"]
        lines += [f"  {vertex.name}  × {vertex.parallelism}" for vertex in self.vertices.values()]
        lines.append("edges:")
        for index, edge in enumerate(self.stream_graph.edges):
            reasons = self._reasons[index]
            verdict = "not chained: " + "; ".join(reasons) if reasons else "chained"
            lines.append(f"  {nodes[edge.source].name} → {nodes[edge.target].name}  {verdict}")
        return "\n".join(lines)
