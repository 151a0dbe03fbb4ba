"""Who comes first decides whether somebody may follow."""

from refimpl.job import FORWARD, ChainingStrategy


def is_chainable(graph, edge, config):
    upstream, downstream = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        config.chaining
        and len(graph.in_edges(downstream.id)) == 1
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and edge.partitioner == FORWARD
        and upstream.parallelism == downstream.parallelism
    )
