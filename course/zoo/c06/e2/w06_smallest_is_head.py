"""A chain is named after its smallest id."""

def build_chains(graph, can_chain):
    head_of, chains = {}, {}
    for node in graph.in_order():
        head = node.id
        for edge in graph.in_edges(node.id):
            if can_chain(edge):
                head = head_of[edge.source]
        head_of[node.id] = head
        chains.setdefault(head, []).append(node.id)
    return {min(members): members for members in chains.values()}
