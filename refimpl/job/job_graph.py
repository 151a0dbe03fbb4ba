"""The job as tasks: chains of operators, exchanges between them, and why each edge is the one or the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.job.edge_results import CrossingEdge, EdgeResult, kind_of_edge, results_of_edges, subtask_exchanges
from refimpl.job.exchange_mode import EdgeKind, ExecutionMode
from refimpl.job.parts import Parts
from refimpl.job.regions import Exchange, regions
from refimpl.job.stream_graph import FORWARD, ChainingStrategy, Partitioner, StreamEdge, StreamGraph, StreamNode

__all__ = ["MAX_CHAINED_IN_A_ROW", "JobEdge", "JobGraph", "JobVertex", "Place", "reasons_not_to_chain"]

MAX_CHAINED_IN_A_ROW = 64
"""Operators that call each other in one task. Each takes about 5 calls, and Python allows 1000 within each other."""

Place = tuple[int, int]
"""A subtask of a job, whichever attempt of it: the number of its vertex, and its own."""


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
    if _is_broken(edge, config):
        reasons.append("the job breaks here")
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

    @property
    def slot_sharing_group(self) -> str:
        return self.nodes[0].slot_sharing_group


@dataclass(frozen=True, slots=True)
class JobEdge:
    """An edge that crosses the network, between two vertices, and the kind of result that is written for it."""

    source: int
    target: int
    edge: StreamEdge
    result: EdgeResult

    @property
    def is_blocking(self) -> bool:
        """Whether it is read when it is complete, and not before."""
        return self.result.type.is_blocking

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
        chained, self._cut = _chained_and_cut(
            graph, lambda edge: not _is_broken(edge, config) and parts.is_chainable(graph, edge, config)
        )
        chains = parts.build_chains(graph, chained.__contains__)
        self._heads = {member: head for head, members in chains.items() for member in members}
        self.vertices: dict[int, JobVertex] = {
            head: JobVertex(head, tuple(graph.nodes[member] for member in members)) for head, members in chains.items()
        }
        crossing = [
            CrossingEdge(edge, source, target, self.vertices[source].parallelism, self.vertices[target].parallelism)
            for edge in graph.edges
            if (source := self._heads[edge.source]) != (target := self._heads[edge.target])
        ]
        results = results_of_edges(graph, crossing, config, parts.why_not)
        self.edges: Sequence[JobEdge] = [
            JobEdge(each.source, each.target, each.edge, result) for each, result in zip(crossing, results, strict=True)
        ]
        self.exchanges: Sequence[Exchange[Place]] = subtask_exchanges(crossing, results)

    @property
    def is_batch(self) -> bool:
        """Whether there is a result that is read when it is complete, so that some tasks run before others."""
        return any(edge.is_blocking for edge in self.edges)

    @property
    def places(self) -> list[Place]:
        """All subtasks."""
        return [(each.id, subtask) for each in self.vertices.values() for subtask in range(each.parallelism)]

    def regions(self) -> list[frozenset[Place]]:
        """The subtasks that run together; all of them, where no result is waited for.

        Flink:   PipelinedRegionComputeUtil (runtime.executiongraph.failover.flip1), 1.11.4
        """
        return regions(self.places, self.exchanges) if self.is_batch else [frozenset(self.places)]

    @property
    def num_slots(self) -> int:
        """The fewest slots this job runs in: those of its widest region, since regions may come one after another.

        A slot holds one subtask of every vertex of a slot-sharing group.
        """
        return max(len(self.slots_of(region)) for region in self.regions())

    def slots_of(self, places: Iterable[Place]) -> set[tuple[str, int]]:
        """The slots these subtasks are in, each by its slot-sharing group and its number among those of the group."""
        return {(self.vertices[vertex].slot_sharing_group, subtask) for vertex, subtask in places}

    def in_edges(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.target == vertex_id]

    def out_edges(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.source == vertex_id]

    def explain(self) -> str:
        """The tasks; for every edge why it was or was not chained, pipelined or blocking; and the slots."""
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
        lines += self._how_results_are_read()
        lines += self._where_quiet_subtasks_hold_back()
        return "\n".join(lines)

    def _how_results_are_read(self) -> list[str]:
        """A line for every exchange, and how many slots it takes to run them."""
        nodes, lines = self.stream_graph.nodes, ["exchanges:"]
        for edge in self.edges:
            kind = "blocking" if edge.is_blocking else "pipelined"
            names = f"{nodes[edge.edge.source].name} → {nodes[edge.edge.target].name}"
            lines.append(f"  {names}  {kind}: {edge.result.why}")
        num_all, num_regions = len(self.slots_of(self.places)), len(self.regions())
        how = f"{num_regions} regions, each in {self.num_slots} at most; {num_all} to run all at once"
        slots = f"slots: {self.num_slots}" + (f" ({how})" if self.is_batch else "")
        return [*(lines if self.edges else ()), slots]

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


def _is_broken(edge: StreamEdge, config: Config) -> bool:
    """Whether the job is to break at this edge, and its mode heeds that."""
    return kind_of_edge(edge) is EdgeKind.BREAKING and config.execution_mode is not ExecutionMode.PIPELINED_FORCED


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
