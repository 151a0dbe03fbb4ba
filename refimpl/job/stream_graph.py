"""What the user wrote, as a graph: an operator at each node, a way to choose channels on each edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from refimpl.consumer.two_inputs import FIRST
from refimpl.errors import LocalUsageError
from refimpl.producer.selector import (
    BroadcastSelector,
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    RebalanceSelector,
    RescaleSelector,
    ShuffleSelector,
)
from refimpl.records.types import TypeSerializer
from refimpl.task.operators import Operator
from refimpl.task.outputs import OutputTag
from refimpl.task.sink_operators import HeldBack
from refimpl.task.source import ReaderFactory

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "BROADCAST",
    "FORWARD",
    "GLOBAL",
    "REBALANCE",
    "RESCALE",
    "SHUFFLE",
    "ChainingStrategy",
    "Partitioner",
    "StreamEdge",
    "StreamGraph",
    "StreamNode",
    "checked_parallelism",
]


class ChainingStrategy(Enum):
    """Whether an operator may share a task with its neighbours.

    Flink:   ChainingStrategy (streaming.api.operators), 1.11.4
    """

    ALWAYS = "with the one before and the one after"
    HEAD = "only with the one after"
    NEVER = "with neither"


@dataclass(frozen=True, slots=True)
class Partitioner:
    """How records choose a channel on an edge. Equal names are the same way.

    `make` builds the selector of one producing subtask from (seed, number of key groups).
    `is_pointwise`: each subtask is connected to some of the others, not to all.
    """

    name: str
    make: Callable[[int, int], ChannelSelector] = field(compare=False)
    is_pointwise: bool = False


FORWARD = Partitioner("forward", lambda _seed, _groups: ForwardSelector(), is_pointwise=True)
REBALANCE = Partitioner("rebalance", lambda seed, _groups: RebalanceSelector(seed))
RESCALE = Partitioner("rescale", lambda _seed, _groups: RescaleSelector(), is_pointwise=True)
SHUFFLE = Partitioner("shuffle", lambda seed, _groups: ShuffleSelector(seed))
GLOBAL = Partitioner("global", lambda _seed, _groups: GlobalSelector())
BROADCAST = Partitioner("broadcast", lambda _seed, _groups: BroadcastSelector())


@dataclass(slots=True)
class StreamNode:
    """One operator of the job. `make_reader` makes it a source; `sink` is the user's function of a sink.

    `held_sink` is that of a sink which holds values back until a checkpoint counts.
    `is_unbounded`: it is a source without an end.
    `is_held_back`: its subtasks make watermarks, each of what it sees itself, and none while it sees nothing.
    `on_job_finished` is called once, when the whole job has FINISHED. By `uid` a checkpoint knows it;
    that is its name, unless the user has given it another.
    """

    id: int
    name: str
    parallelism: int
    make_operator: Callable[[], Operator]
    value_type: TypeSerializer
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    slot_sharing_group: str = "default"
    make_reader: ReaderFactory | None = None
    select: Callable[[object], Iterable[str]] | None = None
    sink: Callable[[Any], object] | None = None
    is_held_back: bool = False
    is_unbounded: bool = False
    given_uid: str | None = None
    on_job_finished: Callable[[], None] | None = None
    held_sink: HeldBack | None = None

    @property
    def uid(self) -> str:
        return self.given_uid or self.name

    @property
    def is_source(self) -> bool:
        return self.make_reader is not None


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """Records of `source` go to `target`; `tag` and `names` say which, if not all.

    `side` is the input they come to, where `target` has two. It `breaks` the job: a mode that heeds that reads the
    result when it is complete.

    Where the user chose no partitioner it is `None` until the graph is resolved.
    """

    source: int
    target: int
    partitioner: Partitioner | None
    tag: OutputTag | None = None
    names: tuple[str, ...] = ()
    side: int = FIRST
    breaks: bool = False


class StreamGraph:
    """All operators of a job and the edges between them.

    Flink:   StreamGraph (streaming.api.graph), 1.11.4
    """

    def __init__(self) -> None:
        self.nodes: dict[int, StreamNode] = {}
        self.edges: list[StreamEdge] = []

    @property
    def next_id(self) -> int:
        """The id of the operator that is added next."""
        return len(self.nodes)

    def add_node(self, node: StreamNode) -> None:
        """Add an operator.

        Raises:
            LocalUsageError: another operator has this name; names are how results are told apart.
        """
        if any(other.name == node.name for other in self.nodes.values()):
            raise LocalUsageError(f"two operators are called {node.name!r}; give one another name")
        self.nodes[node.id] = node

    def add_edge(self, edge: StreamEdge) -> None:
        """Connect two operators."""
        self.edges.append(edge)

    def resolved(self) -> StreamGraph:
        """This graph with a partitioner on each edge: forward where parallelisms agree, else rebalance.

        What the user chose stays. This graph stays as it is too: parallelisms may still change.

        Raises:
            LocalUsageError: the user chose forward between different parallelisms.

        Flink:   StreamGraph.addEdgeInternal, 1.11.4
        """
        graph = StreamGraph()
        graph.nodes = self.nodes
        for edge in self.edges:
            source, target = self.nodes[edge.source], self.nodes[edge.target]
            is_same = source.parallelism == target.parallelism
            if edge.partitioner is None:
                graph.add_edge(replace(edge, partitioner=FORWARD if is_same else REBALANCE))
                continue
            if edge.partitioner == FORWARD and not is_same:
                raise LocalUsageError(
                    f"forward needs equal parallelism: {source.name} has {source.parallelism}, "
                    f"{target.name} has {target.parallelism}; use rebalance or rescale"
                )
            graph.add_edge(edge)
        return graph

    def in_edges(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.target == node_id]

    def out_edges(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.source == node_id]

    def in_order(self) -> list[StreamNode]:
        """The operators, each behind those it reads from; of several that could be next, the least id."""
        sorter = TopologicalSorter({each: [edge.source for edge in self.in_edges(each)] for each in self.nodes})
        sorter.prepare()
        in_order: list[StreamNode] = []
        ready: list[int] = []
        while sorter.is_active():
            for node_id in sorter.get_ready():
                heappush(ready, node_id)
            first = heappop(ready)
            in_order.append(self.nodes[first])
            sorter.done(first)
        return in_order

    def to_networkx(self) -> nx.MultiDiGraph:
        """The graph for drawing and searching; nodes are ids, with the `StreamNode` as `node`."""
        # Here, because it takes as long to load as the engine, and only who asks for such a graph needs it.
        import networkx as nx

        graph = nx.MultiDiGraph()
        for node in self.nodes.values():
            graph.add_node(node.id, node=node)
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, edge=edge)
        return graph


def checked_parallelism(parallelism: int) -> int:
    """`parallelism`, if it is one.

    Raises:
        LocalUsageError: it is no whole number from 1 on.
    """
    is_number = isinstance(parallelism, int) and not isinstance(parallelism, bool)
    if not is_number or parallelism < 1:
        raise LocalUsageError(f"a parallelism of {parallelism!r} is no parallelism; use 1 or more")
    return parallelism
