"""Operators are numbered in the order of the job."""

def build_chains(graph, can_chain):
    head_of, chains = {}, {}
    for node in sorted(graph.nodes.values(), key=lambda node: node.id):
        head = node.id
        for edge in graph.in_edges(node.id):
            if can_chain(edge):
                head = head_of.get(edge.source, edge.source)
        head_of[node.id] = head
        chains.setdefault(head, []).append(node.id)
    return chains
