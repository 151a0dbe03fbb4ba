"""Exclusive and floating buffers: which are used first, which go back, and whose turn it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refimpl.exchange import AddCredit, ResumeConsumption
from refimpl.memory import NotificationResult
from refimpl.records import CheckpointBarrier
from tests.support.consumer_rig import Bench, receiver


def take(bench: Bench, count: int = 1) -> list:
    """What the task polls."""
    return [bench.gate.poll_next().buffer for _ in range(count)]


def test_a_channel_starts_with_its_exclusive_buffers_and_wants_none() -> None:
    """As of 1.11; until then it wants as many as it has."""
    bench = Bench().request()
    assert bench.state() == (2, 0, 0)
    bench.check()


def test_a_floating_buffer_is_used_before_an_exclusive_one() -> None:
    bench = Bench().request()
    bench.data(0, backlog=1)  # used one exclusive, got two floating
    assert bench.state() == (1, 2, 3)
    bench.sent()
    bench.data(1, backlog=1)
    assert bench.state() == (1, 2, 3)  # one floating went, another came for it
    bench.check()


def test_as_many_floating_buffers_are_taken_as_the_backlog_asks_for() -> None:
    """Available = required, all announced in one number.

    Flink: `RemoteInputChannelTest#testAvailableBuffersLessThanRequiredBuffers` (P82).
    """
    bench = Bench(floating=8).request()
    bench.data(0, backlog=5)
    assert bench.state() == (1, 6, 7)
    assert bench.sent() == [AddCredit(6, receiver(0))]


def test_a_smaller_backlog_lowers_what_is_wanted_and_returns_nothing() -> None:
    """Flink: `RemoteInputChannelTest#testAvailableBuffersMoreThanRequiredBuffers` (P84)."""
    bench = Bench(floating=8).request()
    bench.data(0, backlog=5)
    bench.sent()
    bench.data(1, backlog=0)
    assert bench.state() == (1, 5, 2)
    assert bench.sent() == []


def test_the_backlog_is_a_level() -> None:
    """Each backlog replaces the last."""
    bench = Bench(floating=8).request()
    required = []
    for number, backlog in enumerate((3, 1, 0)):
        bench.data(number, backlog=backlog)
        bench.sent()
        required.append(bench.state()[2])
    assert required == [5, 3, 2]


def test_a_backlog_below_zero_says_nothing() -> None:
    bench = Bench().request()
    bench.data(0, backlog=2)
    bench.sent()
    bench.data(1, backlog=-1)
    assert bench.state()[2] == 4


def test_an_exclusive_buffer_that_comes_home_is_announced_if_it_is_needed() -> None:
    """Flink: `RemoteInputChannelTest#testAvailableBuffersEqualToRequiredBuffers` (P83)."""
    bench = Bench(floating=0).request()
    bench.data(0)
    [buffer] = take(bench)
    assert bench.sent() == []
    buffer.recycle()
    assert (bench.state(), bench.sent()) == ((2, 0, 2), [AddCredit(1, receiver(0))])


def test_an_exclusive_buffer_that_comes_home_sends_a_floating_one_away_if_there_are_enough() -> None:
    """Nothing is announced, since one promise took the other's place.

    Flink: `RemoteInputChannelTest#testAvailableBuffersEqualToRequiredBuffers` (P83).
    """
    bench = Bench(floating=1).request()
    bench.data(0)  # an exclusive one is used, the floating one takes its place
    assert (bench.state(), bench.sent()) == ((1, 1, 2), [AddCredit(1, receiver(0))])
    [buffer] = take(bench)
    buffer.recycle()
    assert (bench.state(), bench.sent()) == ((2, 0, 2), [])
    assert bench.floating.snapshot().num_in_use == 0
    bench.check()


def test_a_floating_buffer_goes_home_to_the_pool() -> None:
    bench = Bench(floating=4).request()
    bench.data(0, backlog=2)
    bench.sent()
    bench.data(1, backlog=0)
    first, second = take(bench, 2)
    second.recycle()
    assert bench.floating.snapshot().num_in_use == 2
    first.recycle()
    bench.check()


def test_a_channel_stands_in_the_pools_line_once() -> None:
    """Flink: `RemoteInputChannelTest#testAvailableBuffersLessThanRequiredBuffers` (P82)."""
    bench = Bench(floating=1).request()
    bench.data(0, backlog=4)
    bench.sent()
    bench.data(1, backlog=4)
    assert bench.channels[0].snapshot().buffers.is_waiting_for_floating
    assert bench.floating.snapshot().num_listeners == 1


def test_a_floating_buffer_goes_to_the_first_in_line_who_then_goes_to_its_end() -> None:
    """Three channels, three floating buffers, each gets one.

    Flink: `RemoteInputChannelTest#testFairDistributionFloatingBuffers` (P85).
    """
    bench = Bench(num_channels=4, exclusive=1, floating=3).request()
    bench.data(0, backlog=2, channel=3)  # holds all three
    for channel in range(3):
        bench.data(0, backlog=8, channel=channel)
    bench.sent()
    bench.data(1, backlog=0, channel=3)
    bench.data(2, backlog=0, channel=3)
    bench.data(3, backlog=0, channel=3)
    polled = [bench.gate.poll_next() for _ in range(7)]
    floating = [arrived.buffer for arrived in polled if arrived.buffer.parent.recycler is bench.floating]
    assert len(floating) == 3
    granted = []
    for buffer in floating:
        buffer.recycle()
        granted += bench.sent()
    assert granted == [AddCredit(1, receiver(channel)) for channel in range(3)]
    bench.check()


def test_who_needs_none_any_more_leaves_the_line_and_the_next_is_asked() -> None:
    bench = Bench(num_channels=2, exclusive=1, floating=2).request()
    bench.data(0, backlog=2, channel=0)
    bench.data(0, backlog=2, channel=1)  # in line behind channel 0
    bench.sent()
    bench.data(1, backlog=0, channel=0)  # channel 0 has one floating buffer left, and wants one
    polled = [bench.gate.poll_next() for _ in range(3)]
    mine = [arrived.buffer for arrived in polled if arrived.channel_index == 0]
    mine[1].recycle()
    assert bench.sent() == [AddCredit(1, receiver(1))]
    assert not bench.channels[0].snapshot().buffers.is_waiting_for_floating
    bench.check()


def test_a_released_channel_takes_no_floating_buffer() -> None:
    bench = Bench(num_channels=2, exclusive=1, floating=1).request()
    bench.data(0, backlog=1, channel=0)
    bench.data(0, backlog=1, channel=1)
    bench.channels[1].release()
    assert bench.channels[1].buffers.on_buffer_available(None) is NotificationResult.BUFFER_NOT_USED
    bench.channels[1].on_backlog(9)
    assert bench.channels[1].buffers.num_available == 0
    bench.check()


def test_a_released_channel_gives_back_what_it_has_and_later_what_its_task_held() -> None:
    """The task's buffers return one by one, wherever they came from."""
    bench = Bench(floating=4).request()
    bench.data(0, backlog=2)
    bench.sent()
    bench.data(1)
    bench.data(2)
    held = take(bench, 2)  # one exclusive, one floating; the third is in the queue
    bench.channels[0].release()
    assert (bench.state()[:2], bench.pool.promises.num_unpromised) == ((0, 0), bench.num_segments - 1)
    for buffer in held:
        buffer.recycle()
    assert bench.floating.snapshot().num_in_use == 0
    assert bench.pool.num_free + bench.floating.num_requested == bench.num_segments
    assert bench.pool.promises.num_unpromised == bench.num_segments
    bench.check()


def test_buffers_released_by_one_channel_go_to_those_who_wait() -> None:
    bench = Bench(num_channels=2, exclusive=1, floating=2).request()
    bench.data(0, backlog=1, channel=0)
    bench.data(0, backlog=1, channel=1)
    bench.sent()
    bench.channels[0].release()
    assert AddCredit(2, receiver(1)) in bench.sent()
    bench.check()


def test_a_destroyed_pool_ends_the_waiting() -> None:
    bench = Bench(floating=1).request()
    bench.data(0, backlog=5)
    bench.floating.destroy()
    assert not bench.channels[0].snapshot().buffers.is_waiting_for_floating
    bench.sent()
    bench.data(1, backlog=5)  # nobody to ask, nothing happens
    assert bench.channels[0].error is None


def test_resizing_the_pool_does_not_lose_a_buffer() -> None:
    bench = Bench(floating=4).request()
    bench.data(0, backlog=2)
    bench.floating.set_num_buffers(1)
    [buffer] = take(bench)
    buffer.recycle()
    bench.check()


def test_the_manager_says_what_it_has() -> None:
    bench = Bench().request()
    assert repr(bench.channels[0].buffers).startswith("BufferManager(2 exclusive, 0 floating")
    assert bench.channels[0].snapshot().buffers.num_available == 2
    assert len(bench.channels[0].held_buffers) == 2


def test_a_buffer_is_in_use_from_its_backlog_until_it_is_polled() -> None:
    """What the producer says waits there counts as well as what waits here.

    Flink: `RemoteInputChannelTest#testBuffersInUseCount` (P91).
    """
    bench = Bench(floating=8).request()

    def num_in_use() -> int:
        shot = bench.channels[0].snapshot()
        return shot.num_available + shot.buffers.num_required - 2

    counts = []
    for number, backlog in enumerate((1, 3)):
        bench.data(number, backlog)
        bench.sent()
        counts.append(num_in_use())
    for _ in range(2):
        take(bench)
        counts.append(num_in_use())
    assert counts == [2, 5, 4, 3]
    assert bench.gate.poll_next() is None
    assert num_in_use() == 3


def test_a_blocked_producer_keeps_the_buffers_it_was_promised() -> None:
    """It needs them when it goes on. (A channel without buffers of its own, which 2.x may have, gives them back.)

    Flink: `RemoteInputChannelTest#testOnUpstreamBlockedAndResumed` (P89).
    """
    bench = Bench(floating=8).request()
    bench.data(0, backlog=2)
    [buffer] = take(bench)
    buffer.recycle()
    assert bench.state() == (2, 2, 4)
    bench.event(1, CheckpointBarrier(1, 0))
    bench.gate.poll_next()
    bench.sent()
    assert bench.state() == (2, 2, 2)  # nothing waits there that may come, and nothing goes back for that
    bench.channels[0].resume()
    assert bench.sent() == [ResumeConsumption(receiver(0))]
    bench.data(2, backlog=4)
    assert bench.state() == (2, 4, 6)
    bench.check(*take(bench))


@given(
    st.lists(st.tuples(st.sampled_from(["data", "take", "recycle", "release"]), st.integers(0, 2), st.integers(0, 6)))
)
def test_backlogs_buffers_coming_home_and_releases_leak_nothing_in_any_order(steps: list[tuple[str, int, int]]) -> None:
    """In Flink several threads do it at once; here every order of theirs may come.

    Flink: `RemoteInputChannelTest#testConcurrentOnSenderBacklogAndRelease` (P88), and two beside it.
    """
    bench = Bench(num_channels=3, floating=5).request()
    numbers, held = [0, 0, 0], []
    for what, channel, backlog in steps:
        reader = bench.channels[channel]
        match what:
            case "data" if not reader.is_released and reader.snapshot().buffers.num_promised:
                bench.data(numbers[channel], backlog, channel=channel)
                numbers[channel] += 1
            case "take" if (arrived := bench.gate.poll_next()) is not None:
                held.append(arrived.buffer)
            case "recycle" if held:
                held.pop(backlog % len(held)).recycle()
            case "release":
                reader.release()
        bench.sent()
        bench.check(*held)
    for buffer in held:
        buffer.recycle()
    for reader in bench.channels:
        reader.release()
    bench.floating.destroy()
    assert bench.pool.num_free == bench.num_segments
