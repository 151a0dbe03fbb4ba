"""Why not, rather than why."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.job import FORWARD, ChainingStrategy, StreamEdge, StreamGraph

ALLOWS_NEXT = {ChainingStrategy.ALWAYS, ChainingStrategy.HEAD}


def is_chainable(graph: StreamGraph, edge: StreamEdge, config: Config) -> bool:
    up, down = (graph.nodes[number] for number in (edge.source, edge.target))
    reasons: list[str] = []
    if not config.chaining:
        reasons.append("off")
    if [each.source for each in graph.in_edges(edge.target)] != [edge.source]:
        reasons.append("inputs")
    if (up.slot_sharing_group, up.parallelism) != (down.slot_sharing_group, down.parallelism):
        reasons.append("place")
    if up.chaining not in ALLOWS_NEXT or down.chaining is not ChainingStrategy.ALWAYS:
        reasons.append("strategy")
    if edge.partitioner != FORWARD:
        reasons.append("way")
    return not reasons
