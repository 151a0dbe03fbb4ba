"""The global pool: promises, redistribution, segments outside the pools."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import UNBOUNDED, FlinkVersion
from refimpl.errors import InsufficientBuffersError, LocalUsageError
from refimpl.memory import Buffer, LocalBufferPool, NetworkBufferPool, allocate_pages


def sizes(*pools: LocalBufferPool) -> list[int]:
    return [pool.size for pool in pools]


def take(pool: LocalBufferPool, count: int) -> list[Buffer]:
    taken = [pool.request_buffer() for _ in range(count)]
    return [buffer for buffer in taken if buffer is not None]


def test_all_segments_exist_from_the_start() -> None:
    """Flink: `NetworkBufferPoolTest`."""
    pool = NetworkBufferPool(10, 16)
    assert [segment.id for segment in pool.segments] == list(range(10))
    assert {segment.size for segment in pool.segments} == {16}
    assert pool.num_free == 10
    pool.segments[3].put(0, b"x" * 16)
    assert pool.segments[2].get(0, 16) == pool.segments[4].get(0, 16) == bytes(16)


@pytest.mark.parametrize(("num_segments", "size"), [(3, 4_096), (5, 100), (1, 1)])
def test_segments_lie_side_by_side_from_the_beginning_of_a_page(num_segments: int, size: int) -> None:
    views = [segment.view for segment in NetworkBufferPool(num_segments, size).segments]
    places = [np.frombuffer(view, np.uint8).ctypes.data for view in views if view is not None]
    assert places[0] % mmap.PAGESIZE == 0
    assert places == [places[0] + index * size for index in range(num_segments)]


def test_pages_are_zero_and_nobody_elses() -> None:
    one, other = allocate_pages(5_000), allocate_pages(5_000)
    assert bytes(one) == bytes(other) == bytes(5_000)
    one[:] = b"x" * 5_000
    assert bytes(other) == bytes(5_000)


@pytest.mark.parametrize("num_segments", [2**31, 2**60])
def test_memory_that_is_not_there_is_an_error_with_its_size(num_segments: int) -> None:
    with pytest.raises(MemoryError, match=f"does not have {num_segments:,} MiB of memory"):
        NetworkBufferPool(num_segments, 2**20)


def test_segments_outside_the_pools_come_back() -> None:
    """Flink: `NetworkBufferPoolTest#testRequestMemorySegmentsLessThanTotalBuffers` (P1)."""
    pool = NetworkBufferPool(10, 16)
    segments = pool.request_unpooled(5, "channel")
    assert (len(segments or ()), pool.num_free, pool.promises.num_unpromised) == (5, 5, 5)
    pool.return_unpooled(segments or [])
    assert (pool.num_free, pool.promises.num_unpromised) == (10, 10)


def test_too_many_segments_outside_the_pools_leak_nothing() -> None:
    """Flink: `NetworkBufferPoolTest#testRequestMemorySegmentsMoreThanTotalBuffers` (P2)."""
    pool = NetworkBufferPool(10, 16)
    with pytest.raises(InsufficientBuffersError, match="11 buffers of 16 B, 10 of 10 are promised") as caught:
        pool.request_unpooled(11, "channel")
    assert (caught.value.num_required, caught.value.num_free, caught.value.num_total) == (11, 10, 10)
    assert (pool.num_free, pool.promises.num_unpromised) == (10, 10)


@pytest.mark.parametrize("count", [0, -1])
def test_asking_for_no_segments_is_a_mistake(count: int) -> None:
    """Flink: `NetworkBufferPoolTest#testRequestMemorySegmentsWithInvalidArgument`."""
    pool = NetworkBufferPool(10, 16)
    with pytest.raises(LocalUsageError, match="at least 1"):
        pool.request_unpooled(count, "channel")
    assert pool.promises.num_unpromised == 10


def test_segments_lent_to_a_pool_are_waited_for_without_keeping_the_promise() -> None:
    """We say "not now" where Flink waits; asking again after a recycle works.

    Flink: `NetworkBufferPoolTest#testRequestMemorySegmentsWithBuffersTaken` (P3),
    `NetworkBufferPoolTest#testRequestMemorySegmentsTimeout` (P5).
    """
    pool = NetworkBufferPool(10, 16)
    local = LocalBufferPool(pool, 5, 10)
    buffers = take(local, 10)
    assert len(buffers) == 10
    assert pool.request_unpooled(5, "channel") is None
    assert (pool.promises.num_unpromised, local.size) == (5, 10)
    for buffer in buffers[:5]:
        buffer.recycle()
    segments = pool.request_unpooled(5, "channel")
    assert len(segments or ()) == 5
    assert local.size == 5


def test_a_promise_that_cannot_be_kept_is_refused_and_leaves_nothing() -> None:
    """Flink: `BufferPoolFactoryTest#testRequireMoreThanPossible2` (P8)."""
    pool = NetworkBufferPool(10, 16)
    first = LocalBufferPool(pool, 6, name="map-0")
    with pytest.raises(InsufficientBuffersError, match="Insufficient number of network buffers") as caught:
        LocalBufferPool(pool, 6, name="map-1")
    assert caught.value.owner == "map-1"
    assert (list(pool.promises.pools), pool.promises.num_unpromised, first.size) == ([first], 4, 10)


def test_everything_drains_back_after_all_pools_are_destroyed() -> None:
    """Flink: `NetworkBufferPoolTest#testDestroyAll` (P6)."""
    pool = NetworkBufferPool(10, 16)
    locals_ = [LocalBufferPool(pool, 2, 2), LocalBufferPool(pool, 0, 1), LocalBufferPool(pool, 5)]
    buffers = [buffer for local in locals_ for buffer in take(local, 10)]
    assert len(buffers) == 10
    for local in locals_:
        local.destroy()
    assert pool.num_free == 0
    for buffer in buffers:
        buffer.recycle()
    assert pool.num_free == 10
    for local in locals_:
        with pytest.raises(LocalUsageError, match="destroyed"):
            local.request_buffer()
    assert LocalBufferPool(pool, 10).size == 10


def test_a_destroyed_global_pool_makes_no_new_pools() -> None:
    """Flink: `NetworkBufferPoolTest#testCreatePoolAfterDestroy`."""
    pool = NetworkBufferPool(10, 16)
    pool.destroy()
    with pytest.raises(LocalUsageError, match="destroyed"):
        LocalBufferPool(pool, 1)


def test_pools_without_bounds_share_evenly() -> None:
    """Flink: `BufferPoolFactoryTest#testUniformDistribution` (P9)."""
    pool = NetworkBufferPool(1024, 16)
    first = LocalBufferPool(pool, 0)
    assert sizes(first) == [1024]
    second = LocalBufferPool(pool, 0)
    assert sizes(first, second) == [512, 512]
    first.destroy()
    assert sizes(second) == [1024]


def test_three_segments_for_three_pools_are_one_each() -> None:
    """Flink: `BufferPoolFactoryTest#testUniformDistributionBounded3` (P10)."""
    pool = NetworkBufferPool(3, 16)
    one = LocalBufferPool(pool, 0, 10)
    assert sizes(one) == [3]
    two = LocalBufferPool(pool, 0, 10)
    assert sum(sizes(one, two)) == 3
    assert 3 not in sizes(one, two)
    three = LocalBufferPool(pool, 0, 10)
    assert sizes(one, two, three) == [1, 1, 1]


def test_pools_shrink_and_grow_around_segments_outside_them() -> None:
    """Flink: `BufferPoolFactoryTest#testUniformDistributionBounded4` (P11)."""
    pool = NetworkBufferPool(10, 16)
    one = LocalBufferPool(pool, 0, 10)
    seen = [sizes(one)]
    taken = [pool.request_unpooled(2, "channel")]
    seen.append(sizes(one))
    two = LocalBufferPool(pool, 0, 10)
    seen.append(sizes(one, two))
    for _ in range(2):
        taken.append(pool.request_unpooled(2, "channel"))
        seen.append(sizes(one, two))
    for segments in taken:
        pool.return_unpooled(segments or [])
        seen.append(sizes(one, two))
    assert seen == [[10], [8], [4, 4], [3, 3], [2, 2], [3, 3], [4, 4], [5, 5]]


def test_a_bounded_appetite_gets_its_share() -> None:
    """Flink: `BufferPoolFactoryTest#testBufferRedistributionMixed1` (P12)."""
    pool = NetworkBufferPool(1024, 16)
    pools = [LocalBufferPool(pool, 0, 10), LocalBufferPool(pool, 0, 10), LocalBufferPool(pool, 0)]
    for extra, divisor in ((False, 1044), (True, 2068)):
        if extra:
            pools.append(LocalBufferPool(pool, 0))
        for local in pools:
            fair = 1024 * min(1024, local.num_max) // divisor
            assert local.size in (fair, fair + 1)
        assert sum(sizes(*pools)) == 1024


def test_a_pool_holds_what_it_has_beyond_its_size_until_it_recycles() -> None:
    """Flink: `BufferPoolFactoryTest#testOverprovisioned` (P13)."""
    pool = NetworkBufferPool(1024, 16)
    one = LocalBufferPool(pool, 511, 1024)
    held = take(one, 513)
    two = LocalBufferPool(pool, 513, 1024)
    assert sizes(one, two) == [511, 513]
    assert one.request_buffer() is None
    assert len(take(two, 1024)) == 511
    held.pop().recycle()
    assert pool.num_free == 1
    assert two.request_buffer() is not None


@pytest.mark.parametrize(
    ("total", "pools", "expected"),
    [
        (1024, [(1, 10), (1, 10), (1, UNBOUNDED)], [9, 10, 1005]),
        (1024, [(1, 10), (1, 10), (1, UNBOUNDED), (1, UNBOUNDED)], [5, 5, 507, 507]),
        (10, [(2, 4), (1, 10), (1, 3)], [3, 4, 3]),
        (1024, [(24, 24), (1, UNBOUNDED)], [24, 1000]),
    ],
)
def test_the_known_shares_come_out(total: int, pools: list[tuple[int, int]], expected: list[int]) -> None:
    """In the order of creation.

    Flink: `BufferPoolFactoryTest`.
    """
    pool = NetworkBufferPool(total, 16)
    assert sizes(*[LocalBufferPool(pool, least, most) for least, most in pools]) == expected


@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 20)), max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from(FlinkVersion),
)
def test_shares_never_lose_or_invent_a_segment(
    total: int, wanted: list[tuple[int, int]], shuffle: object, version: FlinkVersion
) -> None:
    """In whatever order the pools are visited.

    Flink: `BufferPoolFactoryTest#testBufferRedistributionMixed1` (P12).
    """
    pool = NetworkBufferPool(total, 1, version)
    pool.promises.visit = lambda pools: sorted(pools, key=lambda _: shuffle.random())
    made = []
    for least, extra in wanted:
        if least <= pool.promises.num_unpromised:
            made.append(LocalBufferPool(pool, least, least + extra))
    for local in made:
        assert local.num_required <= local.size <= local.num_max
    rest = total - sum(local.num_required for local in made)
    appetite = sum(min(rest, local.num_max - local.num_required) for local in made)
    assert sum(sizes(*made)) == total - rest + min(rest, appetite)


def test_the_snapshot_is_the_pool_at_one_moment() -> None:
    pool = NetworkBufferPool(4, 16)
    local = LocalBufferPool(pool, 3)
    local.request_buffer()
    shot = pool.snapshot()
    local.request_buffer()
    assert (shot.num_total, shot.num_free, shot.num_required, shot.segment_size_bytes) == (4, 3, 3, 16)


@pytest.mark.parametrize(("segments", "size"), [(0, 16), (4, 0), (-1, 16)])
def test_a_pool_of_nothing_is_refused(segments: int, size: int) -> None:
    with pytest.raises(LocalUsageError, match="at least one segment"):
        NetworkBufferPool(segments, size)
