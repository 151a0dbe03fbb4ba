"""A remote channel: order, what fails it, barriers, release."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.consumer import ChannelCapture
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange import AddCredit, BufferResponse, ResumeConsumption
from refimpl.memory import DataType, heap_buffer
from refimpl.records import Alignment, CheckpointBarrier, EndOfPartition, event_to_buffer
from tests.support.consumer_rig import SEGMENT_SIZE, Bench, receiver


def test_what_arrives_is_polled_in_order() -> None:
    bench = Bench().request()
    bench.data(0, payload=b"first")
    bench.event(1, CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE))
    bench.sent()
    bench.data(2, payload=b"second")
    channel = bench.channels[0]
    taken = [channel.poll() for _ in range(4)]
    assert taken.pop() is None
    assert [(item.sequence_number, item.is_more_available, item.is_event_next) for item in taken] == [
        (0, True, True),
        (1, True, False),
        (2, False, False),
    ]
    assert [bytes(item.buffer.data) for item in taken[::2]] == [b"first", b"second"]


def test_a_poll_tells_the_backlog() -> None:
    bench = Bench().request()
    bench.data(0, backlog=3)
    assert bench.channels[0].poll().backlog == 3


def test_the_gate_is_told_when_an_empty_queue_gets_something() -> None:
    bench = Bench()
    calls = []
    bench.channels[0].open(lambda: calls.append("data"))
    bench.request()
    bench.data(0)
    bench.data(1)
    assert calls == ["data"]
    bench.channels[0].poll()
    bench.channels[0].poll()
    bench.sent()
    bench.data(2)
    assert calls == ["data", "data"]


def test_each_backlog_gets_room_when_it_comes() -> None:
    bench = Bench(num_channels=2)
    calls = []
    for index, channel in enumerate(bench.channels):
        channel.open(lambda index=index: calls.append(index))
    bench.request()
    frames = [(0, 0, 4), (1, 0, 0), (0, 1, 1)]  # channel, sequence number, backlog
    bench.say(*(BufferResponse(receiver(who), number, backlog, DataType.DATA, b"x") for who, number, backlog in frames))
    assert calls == [0, 1]
    assert [bench.state(index) for index in (0, 1)] == [(1, 3, 3), (1, 0, 2)]  # a backlog of 4 has taken all
    bench.check()


def test_a_run_that_ends_in_a_mistake_is_queued_as_far_as_it_was_right() -> None:
    """Nothing is lost of what came with it.

    Flink: `RemoteInputChannelTest#testExceptionOnReordering` (P86).
    """
    bench = Bench().request()
    bench.say(*(BufferResponse(receiver(0), number, 0, DataType.DATA, b"x") for number in (0, 2)))
    assert bench.channels[0].snapshot().num_available == 1
    with pytest.raises(RemoteProtocolError, match="expected buffer with sequence number 1, but received 2"):
        bench.gate.poll_next()
    bench.check()


def test_an_end_waits_for_the_data_of_others_that_came_before_it() -> None:
    bench = Bench(num_channels=2).request()
    end = event_to_buffer(EndOfPartition())
    bench.say(
        BufferResponse(receiver(0), 0, 0, DataType.DATA, b"x"),
        BufferResponse(receiver(1), 0, 0, end.data_type, bytes(end.data)),
    )
    assert [bench.gate.poll_next().channel_index for _ in range(2)] == [0, 1]


def test_a_gate_that_opens_late_is_told_what_is_there() -> None:
    bench = Bench().request()
    bench.data(0)
    calls = []
    bench.channels[0].open(lambda: calls.append("data"))
    assert calls == ["data"]


@pytest.mark.parametrize("sequence_number", [1, -1, 29])
def test_a_gap_fails_the_channel_and_gives_the_buffer_back(sequence_number: int) -> None:
    """Flink: `RemoteInputChannelTest#testExceptionOnReordering` (P86)."""
    bench = Bench().request()
    bench.data(sequence_number)
    message = f"expected buffer with sequence number 0, but received {sequence_number}"
    with pytest.raises(RemoteProtocolError, match=message):
        bench.gate.poll_next()
    assert bench.state()[0] == 2
    bench.check()


def test_sequence_numbers_go_from_the_largest_int_to_the_smallest() -> None:
    """An `int` of Java overflows.

    Flink: `RemoteInputChannelTest#testGetInflightBuffersOverflow` (P90).
    """
    bench = Bench().request()
    bench.channels[0].received.sequence.expected = 2**31 - 1
    bench.data(2**31 - 1)
    bench.data(-(2**31))
    assert bench.channels[0].error is None


def test_data_without_credit_fails_the_channel_and_names_the_numbers() -> None:
    """As of 1.11; the sentence begins as Flink's does.

    Flink: `CreditBasedPartitionRequestClientHandlerTest#testThrowExceptionForNoAvailableBuffer` (P80).
    """
    bench = Bench(exclusive=1, floating=0).request()
    bench.data(0)
    bench.data(1)
    with pytest.raises(RemoteProtocolError) as caught:
        bench.gate.poll_next()
    assert str(caught.value).endswith(
        "The read buffer is null in credit-based input channel: the producer sent sequence number 1 with credit 0"
    )


def test_a_buffer_that_was_not_announced_yet_is_no_credit() -> None:
    """It is available, but the producer cannot know."""
    bench = Bench(exclusive=1, floating=1).request()
    bench.data(0)  # the floating buffer takes its place, and AddCredit has not gone out
    assert bench.state() == (0, 1, 1)
    bench.data(1)
    with pytest.raises(RemoteProtocolError, match="sequence number 1 with credit 0"):
        bench.gate.poll_next()


def test_only_the_first_error_counts() -> None:
    bench = Bench(exclusive=1, floating=0).request()
    bench.data(7)
    bench.data(0)
    bench.data(1)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="Buffer re-ordering"):
            bench.channels[0].poll()


def test_an_event_needs_no_credit() -> None:
    """Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingEventBuffer` (P73)."""
    bench = Bench(exclusive=1, floating=0).request()
    bench.data(0)
    bench.event(1, EndOfPartition())
    bench.gate.poll_next()
    assert isinstance(bench.gate.poll_next().event, EndOfPartition)
    assert bench.gate.is_finished


def test_an_events_backlog_counts() -> None:
    bench = Bench().request()
    bench.event(0, CheckpointBarrier(1, 0), backlog=2)
    assert (bench.state(), bench.sent()) == ((2, 2, 4), [AddCredit(2, receiver(0))])


def test_an_empty_buffer_uses_nothing_and_counts() -> None:
    """The next sequence number is expected, the backlog is read, nothing is queued.

    Flink: `PartitionRequestClientHandlerTest#testReceiveEmptyBuffer`.
    """
    bench = Bench().request()
    bench.data(0, backlog=1, payload=b"")
    assert bench.state() == (2, 1, 3)
    assert bench.gate.poll_next() is None
    bench.data(1)
    assert bench.gate.poll_next() is not None


def test_an_empty_buffer_out_of_order_fails_the_channel() -> None:
    bench = Bench().request()
    bench.data(3, payload=b"")
    assert "received 3" in str(bench.channels[0].error)


def test_a_payload_larger_than_a_segment_fails_the_channel_alone() -> None:
    bench = Bench(num_channels=2).request()
    bench.data(0, payload=bytes(SEGMENT_SIZE + 1))
    bench.data(0, payload=bytes(SEGMENT_SIZE), channel=1)
    assert "17 B do not fit a buffer of 16 B" in str(bench.channels[0].error)
    assert (bench.channels[1].error, bench.connection.error) == (None, None)
    assert bench.state() == (2, 0, 0)


def test_events_that_nobody_reads_are_bounded() -> None:
    """They need no credit, so nothing else would stop them."""
    bench = Bench(max_event_bytes=1_024).request()
    barrier = CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE)
    for number in range(1_000):
        bench.event(number, barrier)
    assert bench.channels[0].snapshot().num_available == 1_024 // (30 + 64)
    assert "max_event_bytes is 1024" in str(bench.channels[0].error)


def test_events_that_come_together_are_bounded_too() -> None:
    bench = Bench(max_event_bytes=1_024).request()
    bench.say(*(BufferResponse(receiver(0), number, 0, DataType.EVENT, bytes(300)) for number in range(4)))
    assert "an event of 300 B came while 728 B of events wait" in str(bench.channels[0].error)


def test_events_that_are_read_make_room() -> None:
    bench = Bench(max_event_bytes=1_024).request()
    barrier = CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE)
    for number in range(100):
        bench.event(number, barrier)
        assert bench.gate.poll_next().event == barrier
    bench.say(BufferResponse(receiver(0), 100, 0, DataType.EVENT, bytes(2_000)))
    assert "an event of 2000 B came while 0 B of events wait" in str(bench.channels[0].error)


def test_compressed_data_is_refused() -> None:
    bench = Bench().request()
    bench.say(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"squeezed", is_compressed=True))
    assert "compressed" in str(bench.channels[0].error)
    assert bench.state()[0] == 2


def test_a_barrier_blocks_until_the_producer_is_told_to_go_on() -> None:
    """The data behind it stay at the producer: the consumer buffers none.

    Flink: `CheckpointBarrierAlignerTestBase`.
    """
    bench = Bench().request()
    bench.event(0, CheckpointBarrier(1, 0))
    bench.gate.poll_next()
    bench.channels[0].resume()
    assert bench.sent() == [ResumeConsumption(receiver(0))]
    bench.data(1)
    assert bench.sent() == [AddCredit(1, receiver(0))]  # and does not resume again


def test_resume_is_refused_where_nothing_is_blocked() -> None:
    bench = Bench().request()
    channel = bench.channels[0]
    with pytest.raises(LocalUsageError, match="not resume"):
        channel.resume()
    bench.event(0, CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE))
    with pytest.raises(LocalUsageError, match="not resume"):
        channel.resume()
    bench.event(1, CheckpointBarrier(2, 0))
    bench.event(2, CheckpointBarrier(2, 0, alignment=Alignment.AT_LEAST_ONCE))
    channel.resume()
    with pytest.raises(LocalUsageError, match="not resume"):
        channel.resume()


def test_a_released_channel_reads_nothing_and_cannot_be_resumed() -> None:
    bench = Bench().request()
    bench.event(0, CheckpointBarrier(1, 0))
    bench.data(1)
    channel = bench.channels[0]
    channel.release()
    channel.release()
    assert (channel.poll(), channel.snapshot().num_available) == (None, 0)
    with pytest.raises(LocalUsageError, match="not resume"):
        channel.resume()
    bench.check()


def test_an_error_after_release_is_nobodys_business() -> None:
    bench = Bench().request()
    bench.channels[0].release()
    bench.channels[0].on_error(RemoteProtocolError("late"))
    assert (bench.channels[0].poll(), bench.channels[0].error) == (None, None)


def test_pieces_of_one_buffer_are_polled_one_by_one_and_go_home_together() -> None:
    """As of 2.x.

    Flink: `CreditBasedPartitionRequestClientHandlerTest`.
    """
    bench = Bench(exclusive=1, floating=0, flink_version=FlinkVersion.V2_2).request()
    bench.say(BufferResponse(receiver(0), 0, 1, DataType.DATA, b"abcde", partial_sizes=(2, 0, 3)))
    taken = [bench.channels[0].poll() for _ in range(2)]
    assert [(item.sequence_number, bytes(item.buffer.data)) for item in taken] == [(0, b"ab"), (2, b"cde")]
    taken[0].buffer.recycle()
    assert bench.sent() == []
    taken[1].buffer.recycle()
    assert bench.sent() == [AddCredit(1, receiver(0))]
    bench.check()


def test_pieces_that_were_not_polled_go_home_at_release() -> None:
    bench = Bench(exclusive=1, floating=0, flink_version=FlinkVersion.V2_2).request()
    bench.say(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"abcde", partial_sizes=(2, 3)))
    bench.channels[0].release()
    bench.check()
    assert bench.pool.num_free == bench.num_segments


def test_a_channel_says_what_it_reads() -> None:
    bench = Bench().request()
    assert repr(bench.channels[0]) == "RemoteInputChannel(0 reads map-0[0], 0 queued)"


@pytest.mark.parametrize("version", FlinkVersion)
def test_an_unaligned_barrier_goes_ahead_and_only_what_was_sent_before_it_is_captured(version: FlinkVersion) -> None:
    """Flink: `RemoteInputChannelTest#testPrioritySequenceNumbers` (P90)."""
    bench = Bench(exclusive=6, flink_version=version).request()
    channel, arrived = bench.channels[0], list[int]()
    channel.capture = ChannelCapture(0, arrived.append)
    bench.data(0, payload=b"zero")
    bench.data(1, payload=b"one")
    bench.event(2, CheckpointBarrier(5, 0, alignment=Alignment.UNALIGNED))
    bench.data(3, payload=b"three")
    assert arrived == [0]
    channel.begin_capture(5)
    assert channel.capture.copies == [b"zero", b"one"]
    bench.data(4, payload=b"four")
    assert channel.capture.copies == [b"zero", b"one"]
    assert channel.poll_priority().sequence_number == 2
    assert channel.poll_priority() is None
    assert [channel.poll().sequence_number for _ in range(4)] == [0, 1, 3, 4]


@pytest.mark.parametrize("version", FlinkVersion)
def test_what_overtakes_comes_first_and_in_its_own_order_and_the_others_in_theirs(version: FlinkVersion) -> None:
    """Flink: `PrioritizedDequeTest#testPrioritize` (P33)."""
    bench = Bench(exclusive=6, flink_version=version).request()
    channel = bench.channels[0]
    channel.capture = ChannelCapture(0, lambda index: None)
    for number in range(3):
        bench.data(number)
    bench.event(3, CheckpointBarrier(1, 0, alignment=Alignment.UNALIGNED))
    bench.event(4, CheckpointBarrier(2, 0, alignment=Alignment.UNALIGNED))
    assert [channel.poll().sequence_number for _ in range(5)] == [3, 4, 0, 1, 2]


def test_what_arrives_before_the_barrier_is_captured_and_nothing_behind_it() -> None:
    bench = Bench(exclusive=6).request()
    channel = bench.channels[0]
    channel.capture = ChannelCapture(0, lambda index: None)
    bench.data(0, payload=b"zero")
    channel.begin_capture(5)
    bench.data(1, payload=b"one")
    bench.event(2, CheckpointBarrier(4, 0, alignment=Alignment.UNALIGNED))
    bench.data(3, payload=b"three")
    bench.event(4, CheckpointBarrier(5, 0, alignment=Alignment.UNALIGNED))
    bench.data(5, payload=b"five")
    assert channel.capture.copies == [b"zero", b"one", b"three"]


def test_captured_numbers_go_from_the_largest_int_to_the_smallest() -> None:
    """Flink: `RemoteInputChannelTest#testGetInflightBuffersOverflow` (P90)."""
    capture = ChannelCapture(0, lambda index: None)
    pieces = [(heap_buffer(bytes([65 + n]), DataType.DATA).read_only_slice(), n) for n in range(4)]
    numbers = [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 2]
    capture.note_barrier(1, -(2**31) + 1)
    capture.begin(1, [(piece, number) for (piece, _), number in zip(pieces, numbers, strict=True)])
    assert capture.copies == [b"A", b"B", b"C"]


def timed(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0, alignment_timeout_ms=10)


def test_a_barrier_that_waits_here_goes_ahead_when_its_checkpoint_waits_no_more() -> None:
    bench = Bench(exclusive=6, flink_version=FlinkVersion.V2_2).request()
    channel, arrived, announced = bench.channels[0], list[int](), list[CheckpointBarrier]()
    channel.capture = ChannelCapture(0, arrived.append, announced.append)
    bench.data(0, payload=b"zero")
    bench.event(1, timed(5))
    assert (arrived, announced) == ([], [timed(5)])
    channel.begin_capture(5)
    assert arrived == [0]
    assert channel.capture.copies == [b"zero"]
    assert not channel.capture.is_copying
    assert channel.poll_priority().sequence_number == 1
    assert channel.poll().sequence_number == 0


def test_a_barrier_that_waits_goes_ahead_if_its_checkpoint_waits_no_more_by_then() -> None:
    bench = Bench(exclusive=6, flink_version=FlinkVersion.V2_2).request()
    channel, arrived, announced = bench.channels[0], list[int](), list[CheckpointBarrier]()
    channel.capture = ChannelCapture(0, arrived.append, announced.append)
    bench.data(0, payload=b"zero")
    channel.begin_capture(5)
    bench.event(1, timed(5))
    assert (arrived, announced) == ([0], [])
    assert channel.poll_priority().sequence_number == 1


def test_what_lies_between_two_barriers_is_not_of_the_older_one() -> None:
    bench = Bench(exclusive=6).request()
    channel = bench.channels[0]
    channel.capture = ChannelCapture(0, lambda index: None)
    bench.data(0, payload=b"zero")
    bench.event(1, CheckpointBarrier(1, 0, alignment=Alignment.UNALIGNED))
    bench.data(2, payload=b"two")
    bench.event(3, CheckpointBarrier(2, 0))
    channel.begin_capture(1)
    assert channel.capture.copies == [b"zero"]
