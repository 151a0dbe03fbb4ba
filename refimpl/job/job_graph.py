"""The job as tasks: chains of operators, exchanges between them, and why each edge is the one or the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.job.parts import Parts
from refimpl.job.stream_graph import FORWARD, ChainingStrategy, Partitioner, StreamEdge, StreamGraph, StreamNode

__all__ = ["MAX_CHAINED_IN_A_ROW", "JobEdge", "JobGraph", "JobVertex", "reasons_not_to_chain"]

MAX_CHAINED_IN_A_ROW = 64
"""Operators that call each other in one task. Each takes about 5 calls, and Python allows 1000 within each other."""


def reasons_not_to_chain(graph: StreamGraph, edge: StreamEdge, config: Config) -> list[str]:
    """Why the two ends of `edge` cannot share a task, in words; empty if they can, see `is_chainable`."""
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    num_inputs = len(graph.in_edges(target.id))
    reasons = []
    if not config.chaining:
        reasons.append("chaining is turned off")
    if num_inputs != 1:
        reasons.append(f"{target.name} has {num_inputs} input edges")
    if source.slot_sharing_group != target.slot_sharing_group:
        reasons.append(f"slot-sharing groups differ: {source.slot_sharing_group!r} and {target.slot_sharing_group!r}")
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

    def __init__(self, graph: StreamGraph, config: Config, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        graph = graph.resolved()
        self.stream_graph = graph
        self.config = config
        self.parts = parts
        chained, self._cut = _chained_and_cut(graph, lambda edge: parts.is_chainable(graph, edge, config))
        chains = parts.build_chains(graph, chained.__contains__)
        self._heads = {member: head for head, members in chains.items() for member in members}
        self.vertices: dict[int, JobVertex] = {
            head: JobVertex(head, tuple(graph.nodes[member] for member in members)) for head, members in chains.items()
        }
        self.edges: Sequence[JobEdge] = [
            JobEdge(self._heads[edge.source], self._heads[edge.target], edge)
            for edge in graph.edges
            if self._heads[edge.source] != self._heads[edge.target]
        ]

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
        for edge in self.stream_graph.edges:
            is_inside = self._heads[edge.source] == self._heads[edge.target]
            reasons = reasons_not_to_chain(self.stream_graph, edge, self.config)
            if edge in self._cut:
                reasons.append(f"{MAX_CHAINED_IN_A_ROW} operators in a row are enough for Python's calls")
            verdict = "chained" if is_inside else f"not chained: {'; '.join(reasons) or 'by the rule of this job'}"
            lines.append(f"  {nodes[edge.source].name} → {nodes[edge.target].name}  {verdict}")
        lines += self._where_quiet_subtasks_hold_back()
        return "\n".join(lines)

    def _where_quiet_subtasks_hold_back(self) -> list[str]:
        """A line for every exchange that brings watermarks of several subtasks together, the first on their way."""
        nodes, lines = self.stream_graph.nodes, list[str]()
        held_back: dict[int, set[str]] = {}  # by node: who makes its watermarks, and came here without an exchange
        for node in self.stream_graph.in_order():
            makers: set[str] = {node.name} if node.is_held_back else set()
            for edge in self.stream_graph.in_edges(node.id):
                source, way = nodes[edge.source], edge.partitioner
                if way is None or way == FORWARD:
                    makers |= set() if node.is_held_back else held_back[edge.source]
                elif source.parallelism > 1:
                    lines += [
                        f"  {maker}, before the {way.name} to {node.name}: one quiet subtask of its "
                        f"{source.parallelism} holds event time back for all behind; with_idleness lets it not"
                        for maker in sorted(held_back[edge.source])
                    ]
            held_back[node.id] = makers
        return ["watermarks:", *lines] if lines else []


def _chained_and_cut(
    graph: StreamGraph, is_chainable: Callable[[StreamEdge], bool]
) -> tuple[set[StreamEdge], set[StreamEdge]]:
    """The edges within tasks, and those that would be if a row of operators were not too long for Python's calls.

    Differs: Flink chains any number.
    """
    num_in_a_row: dict[int, int] = {}
    chained, cut = set(), set()
    for node in graph.in_order():
        num_in_a_row[node.id] = 1
        for edge in filter(is_chainable, graph.in_edges(node.id)):
            if num_in_a_row[edge.source] < MAX_CHAINED_IN_A_ROW:
                num_in_a_row[node.id] = num_in_a_row[edge.source] + 1
                chained.add(edge)
            else:
                cut.add(edge)
    return chained, cut
