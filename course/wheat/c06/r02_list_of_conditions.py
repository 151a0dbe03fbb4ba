"""All of a list, with helpers in the cell."""

from refimpl.job import ChainingStrategy


def _counts(graph, edge):
    return sum(1 for other in graph.edges if other.target == edge.target)


def is_chainable(graph, edge, config):
    ends = [graph.nodes[edge.source], graph.nodes[edge.target]]
    conditions = [
        config.chaining,
        _counts(graph, edge) == 1,
        len({end.slot_sharing_group for end in ends}) == 1,
        ends[0].chaining in (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD),
        ends[1].chaining == ChainingStrategy.ALWAYS,
        edge.partitioner is not None and edge.partitioner.name == "forward",
        len({end.parallelism for end in ends}) == 1,
    ]
    return all(conditions)
