"""Subtasks drawn out: who has a channel to whom, names, key groups, and the least number of buffers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import InsufficientBuffersError
from refimpl.job import ExecutionGraph, JobGraph, StreamEnvironment, channels_of

COUNTS = st.integers(1, 30)


def graph_of(environment: StreamEnvironment) -> ExecutionGraph:
    return ExecutionGraph(JobGraph(environment.graph, environment.config))


@pytest.mark.parametrize(
    ("producers", "consumers", "channels"),
    [
        (1, 1, [[0]]),
        (3, 3, [[0], [1], [2]]),
        (1, 3, [[0, 1, 2]]),
        (2, 4, [[0, 1], [2, 3]]),
        (2, 5, [[0, 1, 2], [3, 4]]),
        (2, 3, [[0, 1], [2]]),
        (3, 1, [[0], [0], [0]]),
        (4, 2, [[0], [0], [1], [1]]),
        (3, 2, [[0], [1], [1]]),
        (5, 2, [[0], [0], [1], [1], [1]]),
    ],
)
def test_pointwise_each_subtask_has_channels_to_the_nearby_ones(
    producers: int, consumers: int, channels: list[list[int]]
) -> None:
    assert channels_of(producers, consumers, is_pointwise=True) == channels


@given(COUNTS, COUNTS)
def test_all_to_all_is_every_pair(producers: int, consumers: int) -> None:
    assert channels_of(producers, consumers, is_pointwise=False) == [list(range(consumers))] * producers


@given(COUNTS, COUNTS)
def test_pointwise_channels_are_even_and_leave_nobody_out(producers: int, consumers: int) -> None:
    channels = channels_of(producers, consumers, is_pointwise=True)
    pairs = [(producer, consumer) for producer, targets in enumerate(channels) for consumer in targets]
    assert pairs == sorted(set(pairs))
    assert len(pairs) == max(producers, consumers)
    for side, count in ((0, producers), (1, consumers)):
        degrees = [sum(pair[side] == subtask for pair in pairs) for subtask in range(count)]
        assert min(degrees) >= 1
        assert max(degrees) - min(degrees) <= 1
    assert [consumer for _, consumer in pairs] == sorted(consumer for _, consumer in pairs)


def test_every_subtask_has_a_vertex_named_after_its_chain() -> None:
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection([1]).map(abs).filter(abs).sink(print).set_parallelism(1)
    assert [vertex.name for vertex in graph_of(environment).vertices] == [
        "source-0", "map → filter-0", "map → filter-1", "sink-0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("route", "targets"),
    [("rebalance", [[0, 1, 2], [0, 1, 2]]), ("rescale", [[0, 1], [2]]), ("broadcast", [[0, 1, 2], [0, 1, 2]]),
     ("shuffle", [[0, 1, 2], [0, 1, 2]]), ("to_first", [[0, 1, 2], [0, 1, 2]])],
)  # fmt: skip
def test_only_rescale_and_forward_are_pointwise(route: str, targets: list[list[int]]) -> None:
    environment = StreamEnvironment(parallelism=2)
    source = environment.source(lambda _i, _n: iter(()))
    getattr(source, route)().map(abs).set_parallelism(3)
    graph = graph_of(environment)
    assert len(graph.job.edges) == 1
    assert [graph.targets(0, subtask) for subtask in range(2)] == targets
    forward = StreamEnvironment(Config(chaining=False), parallelism=3)
    forward.source(lambda _i, _n: iter(())).map(abs)
    graph = graph_of(forward)
    assert [graph.targets(0, subtask) for subtask in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize(("configured", "groups"), [(None, [128, 256]), (100, [100, 100])])
def test_key_groups_are_configured_or_follow_from_the_parallelism(configured: int | None, groups: list[int]) -> None:
    environment = StreamEnvironment(Config(max_parallelism=configured))
    environment.from_collection([1]).map(abs).set_parallelism(90)
    graph = graph_of(environment)
    assert [graph.max_parallelism(vertex) for vertex in graph.job.vertices.values()] == groups


def simple(num_buffers: int) -> StreamEnvironment:
    """3 sources, each with a channel to 2 maps; each map with one to 1 sink."""
    environment = StreamEnvironment(Config(num_buffers=num_buffers, segment_size_bytes=16), parallelism=2)
    source = environment.source(lambda _i, _n: Empty(), parallelism=3)
    source.rebalance().map(abs).rescale().sink(print).set_parallelism(1)
    return environment


class Empty:
    def read(self, max_records: int) -> None:
        return None

    def close(self) -> None: ...


def test_the_least_number_of_buffers_starts_the_job_and_one_less_does_not() -> None:
    """Behaviours 6 and 16: a buffer for each channel of each output, and one more."""
    least = graph_of(simple(99)).num_required_buffers
    assert least == 3 * (2 + 1) + 2 * (1 + 1)
    with Simulation(simple(least)) as simulation:
        simulation.run()
    with pytest.raises(InsufficientBuffersError) as caught:
        Simulation(simple(least - 1))
    assert (caught.value.num_free, caught.value.num_total) == (1, least - 1)
