"""Finds the heads first, then walks down from each."""

def build_chains(graph, can_chain):
    joined = {edge.target: edge.source for edge in graph.edges if can_chain(edge)}
    order = [node.id for node in graph.in_order()]

    def head(number):
        while number in joined:
            number = joined[number]
        return number

    return {each: [n for n in order if head(n) == each] for each in order if each not in joined}
