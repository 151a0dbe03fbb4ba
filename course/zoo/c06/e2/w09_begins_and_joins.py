"""Every operator begins a chain; some join another one too."""

def build_chains(graph, can_chain):
    head_of, chains = {}, {}
    for node in graph.in_order():
        head = node.id
        for edge in graph.in_edges(node.id):
            if can_chain(edge):
                head = head_of[edge.source]
        head_of[node.id] = head
        chains[node.id] = [node.id]
        if head != node.id:
            chains[head].append(node.id)
    return chains
