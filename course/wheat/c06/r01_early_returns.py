"""One question after the other."""

from refimpl.job import FORWARD, ChainingStrategy


def is_chainable(graph, edge, config):
    before, after = graph.nodes[edge.source], graph.nodes[edge.target]
    if not config.chaining:
        return False
    if len(graph.in_edges(after.id)) > 1:
        return False
    if before.slot_sharing_group != after.slot_sharing_group:
        return False
    if before.chaining is ChainingStrategy.NEVER or after.chaining is not ChainingStrategy.ALWAYS:
        return False
    if edge.partitioner != FORWARD:
        return False
    return before.parallelism == after.parallelism
