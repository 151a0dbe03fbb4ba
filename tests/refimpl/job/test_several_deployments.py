"""Several deployments on one TaskManager share its pool: beside each other, one after the other, after a restart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.errors import BuffersStillOutError, InsufficientBuffersError, LocalUsageError
from refimpl.invariants import check_all, check_end
from refimpl.job import Deployment, ExecutionGraph, StreamEnvironment
from refimpl.laws import check_memory
from refimpl.memory import NetworkBufferPool
from refimpl.task import IterableReader

NUM_BUFFERS = 60
CONFIG = Config(segment_size_bytes=32, num_buffers=NUM_BUFFERS, buffers_per_channel=2, floating_buffers_per_gate=2)
EXPECTED = sorted(n + 1 for n in range(60))


def graph_of(results: list[object], num_task_managers: int = 1, parallelism: int = 2) -> ExecutionGraph:
    environment = StreamEnvironment(CONFIG, parallelism)
    source = environment.source(lambda i, n: IterableReader(range(i, 60, n)))
    source.rebalance().map(lambda n: n + 1).rebalance().sink(results.append)
    return environment.execution_graph(num_task_managers)


def pool_of(num_buffers: int = NUM_BUFFERS) -> NetworkBufferPool:
    return NetworkBufferPool(num_buffers, CONFIG.segment_size_bytes, CONFIG.flink_version)


class Cluster:
    """TaskManagers with a pool each, and what is deployed on them; one step of anything at a time, by a seed."""

    def __init__(self, num_task_managers: int, seed: int, num_buffers: int = NUM_BUFFERS) -> None:
        self.pools = [pool_of(num_buffers) for _ in range(num_task_managers)]
        self.deployments: list[Deployment] = []
        self.links: dict[int, list[Link]] = {}
        self._random = Random(seed)

    def deploy(self, graph: ExecutionGraph) -> list[Deployment]:
        sides = [Deployment(graph, number, pool=pool) for number, pool in enumerate(self.pools)]
        self.links[id(sides[0])] = [
            Link(side, sides[connection_id.task_manager], connection_id)
            for side in sides
            for connection_id in side.shuffle.remote_reads
        ]
        self.deployments += sides
        return sides

    def step(self) -> bool:
        """Whether something could move."""
        tasks = [task for each in self.deployments for task in each.tasks]
        moves: list[Callable[[], object]] = [task.step for task in tasks if task.is_runnable]
        for link in [link for links in self.links.values() for link in links]:
            for way in Way:
                if link.can_send(way):
                    moves.append(partial(link.send, way, 0.0))
                if link.next_arrival_ms(way) is not None:
                    moves.append(partial(link.deliver, way))
        partitions = [partition for each in self.deployments for partition in each.partitions]
        due = [partition for partition in partitions if partition.next_deadline(0.0) is not None]
        moves += [partial(partition.on_timeout, 1e9) for partition in due]
        if moves:
            self._random.choice(moves)()
        check_all(*self.deployments)
        return bool(moves)

    def run(self, most: int = 100_000) -> None:
        while self.step():
            most -= 1
            assert most, "it goes on for ever"

    def close(self, sides: list[Deployment]) -> None:
        for link in self.links.pop(id(sides[0])):
            link.lose()
        for side in sides:
            side.close()
            self.deployments.remove(side)
        check_all(*sides, *self.deployments)

    def num_out(self) -> list[int]:
        return [len(pool.segments) - pool.num_free for pool in self.pools]


@pytest.mark.parametrize("width", [1, 2])
def test_one_after_the_other_each_leaves_every_segment_at_home(width: int) -> None:
    cluster = Cluster(width, seed=1)
    for _ in range(3):
        results: list[object] = []
        sides = cluster.deploy(graph_of(results, width))
        cluster.run()
        check_end(*sides)
        cluster.close(sides)
        assert sorted(results) == EXPECTED
        assert cluster.num_out() == [0] * width


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_beside_each_other_they_share_the_pool_and_neither_sees_the_other(width: int, seed: int) -> None:
    print(f"seed {seed}")
    cluster = Cluster(width, seed)
    results: list[list[object]] = [[], []]
    first, second = (cluster.deploy(graph_of(each, width)) for each in results)
    cluster.run()
    check_end(*first, *second)
    assert [sorted(each) for each in results] == [EXPECTED] * 2
    cluster.close(first)
    cluster.close(second)
    assert cluster.num_out() == [0] * width


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("num_steps", range(0, 90, 13))
def test_one_that_is_given_up_anywhere_leaves_the_other_alone(width: int, num_steps: int) -> None:
    cluster = Cluster(width, seed=num_steps)
    results: list[object] = []
    given_up, kept = cluster.deploy(graph_of([], width)), cluster.deploy(graph_of(results, width))
    for _ in range(num_steps):
        cluster.step()
    cluster.close(given_up)
    cluster.run()
    check_end(*kept)
    cluster.close(kept)
    assert sorted(results) == EXPECTED
    assert cluster.num_out() == [0] * width


@pytest.mark.parametrize("num_steps", range(0, 90, 13))
def test_a_restart_goes_on_with_the_same_pool_and_new_connections(num_steps: int) -> None:
    cluster = Cluster(2, seed=num_steps)
    results: list[object] = []
    graph = graph_of(results, 2)
    old = cluster.deploy(graph)
    for _ in range(num_steps):
        cluster.step()
    cluster.close(old)
    assert cluster.num_out() == [0, 0]
    results.clear()
    new = cluster.deploy(graph.restarted())
    assert not old[0].shuffle.remote_reads.keys() & new[0].shuffle.remote_reads.keys()
    cluster.run()
    check_end(*new)
    assert sorted(results) == EXPECTED
    cluster.close(new)
    assert cluster.num_out() == [0, 0]


def test_connections_of_two_runs_have_two_names() -> None:
    environment = StreamEnvironment(CONFIG, parallelism=2)
    environment.source(lambda i, n: IterableReader(range(i, 60, n))).rebalance().sink(print)
    one, other = (Deployment(environment.execution_graph(2, run_id)) for run_id in (b"run no 1", b"run no 2"))
    assert not one.shuffle.remote_reads.keys() & other.shuffle.remote_reads.keys()
    assert [each.run_id for each in one.shuffle.remote_reads] == [b"run no 1"]


@pytest.mark.parametrize("num_free", range(40))
def test_one_that_cannot_start_leaves_nothing_behind(num_free: int) -> None:
    """Whatever is missing, be it for an output, a gate or its channels: the pool is as if nobody had asked."""
    graph = graph_of([], 2, parallelism=4)
    assert graph.num_required_buffers == 40
    pool = pool_of(num_free + 3)
    taken = pool.request_unpooled(3, "somebody else")
    assert taken is not None
    with pytest.raises(InsufficientBuffersError):
        Deployment(graph, 1, pool=pool)
    assert (pool.num_free, pool.promises.num_promised) == (num_free, 3)
    pool.return_unpooled(taken)
    assert pool.num_free == num_free + 3


def test_what_others_still_have_is_not_taken_from_them() -> None:
    """The promise can be kept, but not now: nothing is left behind, and later it goes well."""
    cluster = Cluster(1, seed=3, num_buffers=24)
    [busy] = cluster.deploy(graph_of([]))
    asked = [each.pool.request_buffer() for each in busy.partitions for _ in range(24)]
    held = [buffer for buffer in asked if buffer is not None]
    assert cluster.num_out() == [24]
    graph = graph_of([], 2)
    with pytest.raises(BuffersStillOutError) as caught:
        Deployment(graph, 1, pool=busy.pool)
    assert (caught.value.owner, caught.value.num_required, caught.value.num_free) == ("map-1", 2, 0)
    for buffer in held:
        buffer.recycle()
    check_all(busy)
    later = Deployment(graph, 1, pool=busy.pool)
    check_all(busy, later)
    later.close()
    busy.close()
    assert cluster.num_out() == [0]


@pytest.mark.parametrize(("size", "version", "said"), [
    (64, FlinkVersion.V1_11, "64 B"), (32, FlinkVersion.V2_2, "2.2"),
])  # fmt: skip
def test_a_pool_of_other_segments_or_other_rules_is_refused(size: int, version: FlinkVersion, said: str) -> None:
    with pytest.raises(LocalUsageError, match=said):
        Deployment(graph_of([]), pool=NetworkBufferPool(NUM_BUFFERS, size, version))


def test_a_pool_that_was_handed_in_lives_on_and_ones_own_does_not() -> None:
    pool = pool_of()
    handed, own = Deployment(graph_of([]), pool=pool), Deployment(graph_of([]))
    for each in (handed, own):
        each.close()
    Deployment(graph_of([]), pool=pool).close()
    with pytest.raises(LocalUsageError, match="destroyed"):
        Deployment(graph_of([]), pool=own.pool)


def test_a_share_shrinks_when_another_comes_drains_and_grows_when_it_has_gone() -> None:
    pool = pool_of(24)
    busy = Deployment(graph_of([]), pool=pool)
    held = [busy.partitions[index // 6].pool.request_buffer() for index in range(24)]
    other = Deployment(graph_of([]), pool=pool)
    assert [(each.pool.size, each.pool.num_requested) for each in busy.partitions] == [(3, 6)] * 4
    check_memory(busy, other)
    for buffer in held:
        assert buffer is not None
        buffer.recycle()
    check_all(busy, other)
    other.close()
    assert [each.pool.size for each in busy.partitions] == [6] * 4
    check_all(busy, other)
    busy.close()
    assert pool.num_free == 24
