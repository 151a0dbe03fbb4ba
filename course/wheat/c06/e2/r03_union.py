"""Every operator alone at first, then joined edge by edge."""

from collections import defaultdict


def build_chains(graph, can_chain):
    chain_of = {number: number for number in graph.nodes}
    for node in graph.in_order():
        for edge in graph.out_edges(node.id):
            if can_chain(edge):
                chain_of[edge.target] = chain_of[node.id]
    chains = defaultdict(list)
    for node in graph.in_order():
        chains[chain_of[node.id]].append(node.id)
    return chains
