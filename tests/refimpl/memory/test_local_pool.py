"""A task's share of the segments: laziness, listeners, resizing, caps and overdraft."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, PoolDestroyedError
from refimpl.memory import Buffer, BufferBuilder, LocalBufferPool, NetworkBufferPool, NotificationResult

LAZY, AHEAD = FlinkVersion.V1_11, FlinkVersion.V2_2


class Waiting:
    """A listener that gives the buffer back inside its callback, as Flink's test does."""

    def __init__(self, num_wanted: int = 1, is_keeping: bool = False) -> None:
        self.num_wanted = num_wanted
        self.is_keeping = is_keeping
        self.buffers: list[Buffer] = []
        self.num_destroyed = 0

    def on_buffer_available(self, buffer: Buffer) -> NotificationResult:
        if len(self.buffers) == self.num_wanted:
            return NotificationResult.BUFFER_NOT_USED
        self.buffers.append(buffer)
        is_satisfied = len(self.buffers) == self.num_wanted
        if not self.is_keeping:
            buffer.recycle()
        return NotificationResult.BUFFER_USED_NO_NEED_MORE if is_satisfied else NotificationResult.BUFFER_USED_NEED_MORE

    def on_pool_destroyed(self) -> None:
        self.num_destroyed += 1


def make(total: int, least: int, most: int | None = None, version: FlinkVersion = LAZY, **more: int) -> LocalBufferPool:
    return LocalBufferPool(NetworkBufferPool(total, 16, version), least, most or total, **more)


def take(pool: LocalBufferPool, count: int) -> list[Buffer]:
    return [buffer for _ in range(count) if (buffer := pool.request_buffer()) is not None]


@pytest.mark.parametrize(("version", "expected"), [(LAZY, [0, 1, 2, 3, 4]), (AHEAD, [1, 2, 3, 4, 4])])
def test_segments_are_fetched_when_needed_and_in_2_one_ahead(version: FlinkVersion, expected: list[int]) -> None:
    """Flink: `LocalBufferPoolTest#testRequestMoreThanAvailable` (P14)."""
    pool = make(10, 1, 4, version)
    requested = [pool.num_requested]
    for _ in range(4):
        assert pool.request_buffer() is not None
        requested.append(pool.num_requested)
    assert requested == expected
    assert pool.request_buffer() is None


def test_shrinking_takes_lent_buffers_back_one_by_one() -> None:
    """Flink: `LocalBufferPoolTest#testRecycleExcessBuffersAfterRecycling` (P15)."""
    pool = make(10, 1, 10)
    buffers = take(pool, 10)
    pool.set_num_buffers(5)
    assert pool.num_requested == 10
    left = []
    for buffer in buffers:
        buffer.recycle()
        left.append(pool.num_requested)
    assert left == [9, 8, 7, 6, 5, 5, 5, 5, 5, 5]


def test_shrinking_returns_idle_segments_at_once() -> None:
    """Flink: `LocalBufferPoolTest#testRecycleExcessBuffersAfterChangingNumBuffers` (P16)."""
    pool = make(10, 1, 10)
    for buffer in take(pool, 10):
        buffer.recycle()
    assert len(pool.idle_segments) == 10
    pool.set_num_buffers(5)
    assert (len(pool.idle_segments), pool.num_requested) == (5, 5)


def test_a_waiting_listener_gets_the_buffer_and_then_the_next_one_does() -> None:
    """The buffer A gives back inside its callback reaches B, re-entrantly.

    Flink: `LocalBufferPoolTest#testPendingRequestWithListenersAfterRecycle` (P17).
    """
    pool = make(2, 2)
    first, second = take(pool, 2)
    a, b = Waiting(num_wanted=2), Waiting(num_wanted=1)
    assert pool.add_listener(a)
    assert pool.add_listener(b)
    first.recycle()
    assert (len(a.buffers), len(b.buffers)) == (1, 1)
    second.recycle()
    assert (len(a.buffers), len(b.buffers)) == (2, 1)
    assert (len(pool.lent), len(pool.idle_segments)) == (0, 2)


def test_a_listener_that_needs_more_goes_to_the_end_of_the_line() -> None:
    """Buffers rotate over who waits.

    Flink: `LocalBufferPoolTest#testPendingRequestWithListenersAfterRecycle` (P17).
    """
    pool = make(4, 4)
    buffers = take(pool, 4)
    a, b = Waiting(num_wanted=3, is_keeping=True), Waiting(num_wanted=3, is_keeping=True)
    pool.add_listener(a)
    pool.add_listener(b)
    counts = []
    for buffer in buffers:
        buffer.recycle()
        counts.append((len(a.buffers), len(b.buffers)))
    assert counts == [(1, 0), (1, 1), (2, 1), (2, 2)]


def test_a_refused_buffer_goes_to_the_next_in_line_or_stays() -> None:
    pool = make(1, 1)
    (buffer,) = take(pool, 1)
    unwilling, willing = Waiting(num_wanted=0), Waiting(num_wanted=1, is_keeping=True)
    pool.add_listener(unwilling)
    pool.add_listener(willing)
    buffer.recycle()
    assert (len(unwilling.buffers), len(willing.buffers)) == (0, 1)
    pool.add_listener(Waiting(num_wanted=0))
    willing.buffers[0].recycle()
    assert (len(pool.idle_segments), len(pool.lent)) == (1, 0)


def test_nobody_waits_while_a_buffer_lies_idle() -> None:
    """Flink: `LocalBufferPoolTest#testPendingRequestWithListenersAfterRecycle` (P17)."""
    pool = make(1, 1)
    (buffer,) = take(pool, 1)
    buffer.recycle()
    assert not pool.add_listener(Waiting())


def test_a_listener_is_told_of_the_end_once_and_of_nothing_after() -> None:
    """Flink: `LocalBufferPoolTest#testCancelPendingRequestsAfterDestroy` (P18)."""
    pool = make(1, 1)
    (buffer,) = take(pool, 1)
    listener = Waiting()
    pool.add_listener(listener)
    pool.destroy()
    pool.destroy()
    buffer.recycle()
    assert (listener.num_destroyed, listener.buffers) == (1, [])
    assert not pool.add_listener(listener)


def test_a_bounded_pool_never_has_more_out_than_its_bound() -> None:
    """Flink: `LocalBufferPoolTest#testBoundedBuffer` (P19)."""
    pool = make(10, 1, 2)
    for size, expected in ((1, 1), (2, 2), (3, 2), (1, 1)):
        pool.set_num_buffers(size)
        buffers = take(pool, 5)
        assert len(buffers) == pool.size == expected
        for buffer in buffers:
            buffer.recycle()


def test_fewer_buffers_than_required_are_refused() -> None:
    """Flink: `LocalBufferPoolTest#testSetLessThanRequiredNumBuffers`."""
    pool = make(10, 3)
    with pytest.raises(LocalUsageError, match="fewer than the 3 required"):
        pool.set_num_buffers(2)
    assert pool.size == 10


@pytest.mark.parametrize(("version", "most"), [(LAZY, 1), (AHEAD, 2)])
def test_a_channel_over_its_cap_makes_the_pool_unavailable_but_not_empty(version: FlinkVersion, most: int) -> None:
    """1.11 trips above the maximum, 2.x at it.

    Flink: `LocalBufferPoolTest#testMaxBuffersPerChannelAndAvailability` (P20).
    """
    pool = make(10, 1, 10, version, num_channels=3, max_per_channel=most)
    seen = []

    def builder(channel: int) -> Buffer:
        buffer = pool.request_buffer(channel)
        assert buffer is not None
        seen.append(pool.is_available)
        return buffer

    zero_a, one_a, zero_b = builder(0), builder(1), builder(0)
    assert seen == [True, True, False]
    zero_c, two_a, two_b = builder(0), builder(2), builder(2)
    assert not pool.is_available
    recovered = []
    for buffer in (one_a, two_a, zero_b, zero_a):
        buffer.recycle()
        recovered.append(pool.is_available)
    assert recovered == [False, False, False, True]
    assert (zero_c.num_references, two_b.num_references) == (1, 1)


def test_a_pool_becomes_available_when_it_grows_or_a_buffer_returns() -> None:
    """Flink: `LocalBufferPoolTest#testIsAvailableOrNot` (P21)."""
    pool = make(10, 1, 10)
    pool.set_num_buffers(1)
    (first,) = take(pool, 1)
    assert not pool.is_available
    pool.set_num_buffers(5)
    assert pool.is_available
    others = take(pool, 4)
    assert not pool.is_available
    others[0].recycle()
    assert pool.is_available
    for buffer in others[1:]:
        buffer.recycle()
    pool.set_num_buffers(1)
    assert not pool.is_available
    first.recycle()
    assert pool.is_available


@pytest.mark.parametrize(
    ("large", "small", "most_overdraft", "num_taken", "expected"),
    [
        (7, 5, 2, 5, (0, 5, False)),
        (6, 4, 2, 2, (0, 3, True)),
        (7, 5, 2, 7, (2, 5, False)),
        (9, 5, 3, 9, (4, 5, False)),
    ],
)
def test_shrinking_relabels_buffers_as_overdraft(
    large: int, small: int, most_overdraft: int, num_taken: int, expected: tuple[int, int, bool]
) -> None:
    """Flink: `LocalBufferPoolTest#testDecreasePoolSize` (P22)."""
    pool = make(30, 1, 30, AHEAD, max_overdraft=most_overdraft)
    pool.set_num_buffers(large)
    assert len(take(pool, num_taken)) == num_taken
    pool.set_num_buffers(small)
    assert (pool.num_overdraft, pool.num_requested - pool.num_overdraft, pool.is_available) == expected


def test_growing_relabels_overdraft_as_ordinary() -> None:
    """Size 5 with 2 overdrafts out, then 6, 7 and 8.

    Flink: `LocalBufferPoolTest#testIncreasePoolSize` (P22).
    """
    pool = make(30, 1, 30, AHEAD, max_overdraft=2)
    pool.set_num_buffers(5)
    assert len(take(pool, 9)) == 7
    seen = []
    for size in (5, 6, 7, 8):
        pool.set_num_buffers(size)
        seen.append((pool.num_overdraft, pool.is_available))
    assert seen == [(2, False), (1, False), (0, False), (0, True)]


@pytest.mark.parametrize("version", FlinkVersion)
def test_overdraft_never_makes_a_pool_available(version: FlinkVersion) -> None:
    """Flink: `LocalBufferPoolTest#testOverdraftBufferAndAvailability`."""
    pool = make(10, 2, 2, version, max_overdraft=3)
    for count in range(5):
        assert pool.request_buffer() is not None
        assert pool.is_available is (count < 1)
    assert (pool.request_buffer(), pool.num_overdraft, pool.can_request) == (None, 3, False)


def test_overdraft_may_be_denied_by_the_global_pool() -> None:
    """Flink: `LocalBufferPoolTest#testOverdraftBufferAndAvailability`."""
    pool = make(3, 2, 2, max_overdraft=5)
    assert len(take(pool, 9)) == 3


def test_overdraft_never_takes_what_another_pool_was_promised() -> None:
    """Found by the laws: with every pool at its minimum, such a segment waits for the task that waits for it."""
    home = NetworkBufferPool(5, 16)
    one = LocalBufferPool(home, 2, 2, max_overdraft=5)
    two = LocalBufferPool(home, 2, 2, max_overdraft=5)
    assert len(take(one, 9)) == 3
    assert not one.can_request
    assert len(take(two, 9)) == 2


def test_requests_on_a_destroyed_pool_fail() -> None:
    """Flink: `LocalBufferPoolTest#testRequestAfterDestroy`."""
    pool = make(2, 1)
    pool.destroy()
    with pytest.raises(PoolDestroyedError, match="has been destroyed"):
        pool.request_buffer()
    with pytest.raises(PoolDestroyedError):
        pool.request_builder()
    assert not pool.can_request


def test_lent_buffers_of_a_destroyed_pool_drain_to_the_global_pool() -> None:
    """Flink: `LocalBufferPoolDestroyTest`."""
    home = NetworkBufferPool(3, 16)
    pool = LocalBufferPool(home, 3)
    out, idle, _ = take(pool, 3)
    idle.recycle()
    pool.destroy()
    assert home.num_free == 1
    out.recycle()
    assert home.num_free == 2
    assert home.promises.num_unpromised == 3


def test_a_builder_comes_from_the_pool_and_goes_back() -> None:
    pool = make(1, 1)
    builder = pool.request_builder()
    assert isinstance(builder, BufferBuilder)
    assert (pool.request_builder(), pool.is_available) == (None, False)
    builder.finish()
    assert pool.is_available


def test_a_pool_of_2_fetches_when_the_global_pool_has_one_again() -> None:
    home = NetworkBufferPool(4, 16, AHEAD)
    one = LocalBufferPool(home, 2, 4)
    held = take(one, 4)
    two = LocalBufferPool(home, 2, 4)
    assert (two.is_available, two.num_requested) == (False, 0)
    held[0].recycle()
    assert (two.is_available, two.num_requested) == (True, 1)


def test_a_pool_that_may_use_less_than_it_requires_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="requires 3 buffers but may use at most 2"):
        make(10, 3, 2)


def test_the_snapshot_counts_what_is_in_use() -> None:
    pool = make(4, 2, 3, name="map-0")
    buffers = take(pool, 3)
    buffers[0].recycle()
    shot = pool.snapshot()
    assert (shot.name, shot.num_required, shot.num_max, shot.size) == ("map-0", 2, 3, 3)
    assert (shot.num_requested, shot.num_idle, shot.num_in_use, shot.is_available) == (3, 1, 2, True)


# -- who waits is told ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [LAZY, AHEAD])
def test_who_waits_is_told_once_when_a_buffer_comes_home(version: FlinkVersion) -> None:
    pool = make(2, 1, 2, version)
    buffers = take(pool, 2)
    told: list[bool] = []

    def tell() -> None:
        told.append(pool.is_available)

    pool.call_when_available(tell)
    pool.call_when_available(tell)
    assert told == []
    for buffer in buffers:
        buffer.recycle()
    assert told == [True]


def test_who_waits_is_told_when_another_pool_gives_a_segment_back() -> None:
    """Flink: `NetworkBufferPoolTest#testIsAvailableOrNotAfterRequestAndRecycleSingleSegment` (P7)."""
    home = NetworkBufferPool(4, 16)
    one = LocalBufferPool(home, 1, 4)
    held = take(one, 4)
    two = LocalBufferPool(home, 1, 4)
    told: list[bool] = []
    two.call_when_available(lambda: told.append(two.can_request))
    held[0].recycle()
    assert told == [True]


def test_who_waits_is_told_when_the_pool_may_use_more_and_when_it_is_destroyed() -> None:
    pool = make(4, 1, 4)
    told: list[str] = []
    pool.set_num_buffers(1)
    held = take(pool, 1)
    pool.call_when_available(lambda: told.append("room"))
    pool.set_num_buffers(2)
    assert (told, pool.can_request) == (["room"], True)
    pool.call_when_available(lambda: told.append("gone"))
    pool.destroy()
    assert told == ["room", "gone"]
    held[0].recycle()


def test_a_channel_above_its_cap_that_gives_back_lets_who_waits_look_again() -> None:
    pool = make(9, 1, 9, num_channels=2, max_per_channel=2)
    buffers = [pool.request_buffer(0) for _ in range(3)]
    assert not pool.is_available
    told: list[bool] = []
    pool.call_when_available(lambda: told.append(pool.is_available))
    assert buffers[0] is not None
    buffers[0].recycle()
    assert told == [True]
