"""Each operator has one behind it; the second branch is a chain of its own."""

def build_chains(graph, can_chain):
    head_of, chains, taken = {}, {}, []
    for node in graph.in_order():
        head = node.id
        for edge in graph.in_edges(node.id):
            if can_chain(edge) and not any(each == edge.source for each in taken):
                taken.append(edge.source)
                head = head_of[edge.source]
        head_of[node.id] = head
        chains.setdefault(head, []).append(node.id)
    return chains
