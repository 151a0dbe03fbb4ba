"""Calls itself for what may be chained, as Flink does."""

def build_chains(graph, can_chain):
    chains = {}

    def grow(chain, number):
        chain.append(number)
        for edge in graph.out_edges(number):
            if can_chain(edge):
                grow(chain, edge.target)

    for node in graph.in_order():
        if not any(can_chain(edge) for edge in graph.in_edges(node.id)):
            grow(chains.setdefault(node.id, []), node.id)
    return chains
