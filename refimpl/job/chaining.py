"""Which operators become one task: the rule for two of them, and the chains that follow from it.

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

from collections.abc import Callable

from refimpl.config import Config
from refimpl.job.stream_graph import FORWARD, ChainingStrategy, StreamEdge, StreamGraph

__all__ = ["build_chains", "is_chainable"]


def is_chainable(graph: StreamGraph, edge: StreamEdge, config: Config) -> bool:
    """Whether the two ends of `edge` may share a task: each of six conditions must hold.

    `graph.nodes[edge.source]` is the upstream operator, `graph.nodes[edge.target]` the downstream one; both have
    `parallelism`, `slot_sharing_group` and `chaining`. `graph.in_edges(id)` are the edges into an operator.

    Flink:   StreamingJobGraphGenerator.isChainable (streaming.api.graph), 1.11.4
    """
    upstream, downstream = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        config.chaining
        and len(graph.in_edges(downstream.id)) == 1
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        and edge.partitioner == FORWARD
        and upstream.parallelism == downstream.parallelism
    )


def build_chains(graph: StreamGraph, can_chain: Callable[[StreamEdge], bool]) -> dict[int, list[int]]:
    """The ids of the operators of each chain, by the id of its head; each behind the one it reads from.

    `graph.in_order()` gives the operators, sources first; `graph.in_edges(id)` the edges into one of them.
    `can_chain(edge)` says whether the two ends of an edge share a task. Every operator is in one chain.

    Flink:   StreamingJobGraphGenerator.createChain, 1.11.4
    Differs: goes along the operators; Flink starts at each source and calls itself.
    """
    head_of: dict[int, int] = {}
    chains: dict[int, list[int]] = {}
    for node in graph.in_order():
        head = node.id
        for edge in graph.in_edges(node.id):
            if can_chain(edge):
                head = head_of[edge.source]
        head_of[node.id] = head
        chains.setdefault(head, []).append(node.id)
    return chains
