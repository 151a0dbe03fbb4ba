"""Whoever may share a task may share it with several."""

from refimpl.job import FORWARD, ChainingStrategy


def is_chainable(graph, edge, config):
    upstream, downstream = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        config.chaining
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        and edge.partitioner == FORWARD
        and upstream.parallelism == downstream.parallelism
    )
