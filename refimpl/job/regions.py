"""Pipelined regions: subtasks that exchange records while both run, and so start, live and die together.

A region that reads a blocking result starts when that is complete, and stands on nobody's feet after that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Exchange", "exchanges_in_a_circle", "regions"]

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Exchange(Generic[P]):
    """What `producer` sends to `consumer`: while both run, or `is_blocking`, when the producer has finished."""

    producer: P
    consumer: P
    is_blocking: bool = False


def regions(places: Sequence[P], exchanges: Iterable[Exchange[P]]) -> list[frozenset[P]]:
    """The subtasks at `places` by what connects them while they run; in the order of `places`.

    Flink:   PipelinedRegionComputeUtil (runtime.executiongraph.failover.flip1), 1.11.4
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(places)
    graph.add_edges_from((each.producer, each.consumer) for each in exchanges if not each.is_blocking)
    return [frozenset(each) for each in nx.connected_components(graph)]


def exchanges_in_a_circle(places: Sequence[P], exchanges: Sequence[Exchange[P]]) -> list[Exchange[P]]:
    """The blocking exchanges for which a region would wait that has to wait for itself, at last.

    Such as when a subtask reads one of its producers while it runs, and another one of the same region afterwards.

    Flink:   PipelinedRegionComputeUtil.mergeRegionsOnCycles (runtime.executiongraph.failover.flip1), 1.13
    """
    import networkx as nx

    region_of = {place: number for number, each in enumerate(regions(places, exchanges)) for place in each}
    graph = nx.DiGraph()
    graph.add_nodes_from(region_of.values())
    blocking = [each for each in exchanges if each.is_blocking]
    graph.add_edges_from((region_of[each.producer], region_of[each.consumer]) for each in blocking)
    circle_of = {
        region: number for number, circle in enumerate(nx.strongly_connected_components(graph)) for region in circle
    }
    return [each for each in blocking if circle_of[region_of[each.producer]] == circle_of[region_of[each.consumer]]]
