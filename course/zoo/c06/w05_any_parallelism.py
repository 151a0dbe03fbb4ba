"""A forward edge says it all."""

from refimpl.job import FORWARD, ChainingStrategy


def is_chainable(graph, edge, config):
    upstream, downstream = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        config.chaining
        and len(graph.in_edges(downstream.id)) == 1
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        and edge.partitioner == FORWARD
    )
