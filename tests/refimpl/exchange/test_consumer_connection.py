"""The consumer's end of a connection: requests, credit, ends, errors, and asking again."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, PartitionNotFoundError, RemoteProtocolError, RemoteTransportError
from refimpl.exchange import (
    AddCredit,
    BacklogAnnouncement,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ConnectionState,
    ErrorResponse,
    PartitionRequest,
    ResumeConsumption,
    WireFormat,
    encode,
)
from refimpl.memory import DataType
from refimpl.records import CheckpointBarrier, EndOfPartition
from tests.support.consumer_rig import Bench, java_error, partition, receiver

NOT_FOUND = "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException"
FAILED = "org.apache.flink.runtime.io.network.partition.ProducerFailedException"
STRANGER = b"nobody's receiver"[:16]


# -- requests and credit ---------------------------------------------------------------------------


def test_each_channel_asks_for_its_partition_with_its_exclusive_buffers_as_credit() -> None:
    """Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingBufferAndCredit` (P72)."""
    bench = Bench(num_channels=2, exclusive=3)
    bench.connection.request(bench.channels[0], partition(5), 7)
    bench.connection.request(bench.channels[1], partition(6), 0)
    assert bench.sent() == [
        PartitionRequest(partition(5), 7, 7, receiver(0), 3),
        PartitionRequest(partition(6), 0, 0, receiver(1), 3),
    ]
    assert bench.sent() == []


def test_two_channels_cannot_have_one_receiver() -> None:
    bench = Bench().request()
    with pytest.raises(LocalUsageError, match="already"):
        bench.connection.request(bench.channels[0], partition(0), 0)


def test_credit_that_gathers_goes_out_as_one_number_when_it_can() -> None:
    """The amount is read when it is sent.

    Flink: `CreditBasedPartitionRequestClientHandlerTest#testNotifyCreditAvailable` (P78).
    """
    bench = Bench(exclusive=3, floating=4).request()
    bench.data(0)
    bench.data(1)
    bench.data(2, backlog=1)
    assert bench.sent() == [AddCredit(4, receiver(0))]
    assert bench.sent() == []


def test_channels_announce_in_the_order_in_which_they_had_something() -> None:
    bench = Bench(num_channels=3).request()
    for channel in (2, 0, 2, 1):
        bench.data(bench.channels[channel].received.sequence.expected, channel=channel)
    assert [message.receiver for message in bench.sent()] == [receiver(2), receiver(0), receiver(1)]


def test_a_channel_may_announce_credit_and_resume_at_once() -> None:
    bench = Bench().request()
    bench.event(0, CheckpointBarrier(1, 0), backlog=1)
    bench.channels[0].resume()
    assert bench.sent() == [AddCredit(1, receiver(0)), ResumeConsumption(receiver(0))]


def test_a_backlog_that_is_announced_alone_is_heard() -> None:
    """As of 2.x.

    Flink: `PartitionRequestQueueTest#testAnnounceBacklog` (P76).
    """
    bench = Bench(num_channels=1, flink_version=FlinkVersion.V2_2).request()
    bench.say(BacklogAnnouncement(2, receiver(0)), BacklogAnnouncement(2, STRANGER))
    assert bench.sent() == [AddCredit(2, receiver(0))]


# -- ends ------------------------------------------------------------------------------------------


def test_the_end_of_a_channel_cancels_it_and_the_end_of_the_last_closes_the_connection() -> None:
    """Flink: `NettyPartitionRequestClientTest#testPartitionRequestClientReuse`."""
    bench = Bench(num_channels=2).request()
    bench.event(0, EndOfPartition())
    bench.event(0, EndOfPartition(), channel=1)
    bench.gate.poll_next()
    assert bench.sent() == [CancelPartitionRequest(receiver(0))]
    assert not bench.connection.is_closed
    bench.gate.poll_next()
    assert bench.sent() == [CloseRequest()]
    assert (bench.connection.state, bench.connection.error) == (ConnectionState.CLOSED, None)
    bench.connection.receive_end()
    assert (bench.connection.error, bench.channels[0].error) == (None, None)


def test_a_released_channel_announces_nothing() -> None:
    """Flink: `CreditBasedPartitionRequestClientHandlerTest#testNotifyCreditAvailableAfterReleased` (P79)."""
    bench = Bench(num_channels=2).request()
    bench.data(0, backlog=3)
    bench.channels[0].release()
    assert bench.sent() == [CancelPartitionRequest(receiver(0))]


def test_data_for_a_released_channel_is_dropped_and_cancelled_once() -> None:
    """Flink: `CreditBasedPartitionRequestClientHandlerTest#testReadBufferResponseAfterReleasingChannel`."""
    bench = Bench(num_channels=2).request()
    bench.channels[0].release()
    bench.data(0)
    assert bench.sent() == [CancelPartitionRequest(receiver(0))]
    bench.data(1)
    bench.event(2, EndOfPartition())
    assert bench.sent() == []
    bench.check()


def test_data_for_an_unknown_receiver_is_dropped_and_cancelled_once() -> None:
    """Flink: `CreditBasedPartitionRequestClientHandlerTest#testReadBufferResponseAfterReleasingChannel`."""
    bench = Bench().request()
    for number in range(3):
        bench.say(BufferResponse(STRANGER, number, 0, DataType.DATA, b"data"))
    assert bench.sent() == [CancelPartitionRequest(STRANGER)]
    bench.data(0)
    assert bench.gate.poll_next() is not None


def test_data_for_ever_more_unknown_receivers_ends_the_connection() -> None:
    bench = Bench().request()
    for number in range(1_001):
        bench.say(BufferResponse(b"stranger" + number.to_bytes(8, "big"), 0, 0, DataType.DATA, b""))
    with pytest.raises(RemoteProtocolError, match="1001 receivers nobody asked for"):
        bench.gate.poll_next()


def test_a_channel_released_while_its_payload_arrives_gets_its_buffer_back() -> None:
    bench = Bench(num_channels=2).request()
    frame = encode(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"data"))
    bench.connection.receive_data(frame[:-2])
    bench.channels[0].release()
    bench.check()
    bench.connection.receive_data(frame[-2:])
    bench.check()
    assert not bench.channels[0].buffers.lent


def test_the_last_channel_released_while_its_payload_arrives_gets_its_buffer_back() -> None:
    bench = Bench().request()
    frame = encode(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"data"))
    bench.connection.receive_data(frame[:-2])
    bench.channels[0].release()
    assert bench.sent() == [CloseRequest()]
    bench.connection.receive_data(frame[-2:])
    assert bench.pool.num_free == bench.num_segments


def test_a_channel_that_was_released_before_it_asked_ends_the_connection_at_once() -> None:
    bench = Bench()
    bench.channels[0].release()
    bench.connection.request(bench.channels[0], partition(0), 0)
    assert [type(message) for message in bench.sent()] == [PartitionRequest, CloseRequest]


def test_a_closed_connection_takes_no_channel() -> None:
    bench = Bench().request()
    bench.channels[0].release()
    bench.sent()
    with pytest.raises(LocalUsageError, match="new connection"):
        bench.connection.request(bench.make_channel(1, exclusive=1), partition(1), 0)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [b"this is no frame", encode(CloseRequest()), encode(AddCredit(1, receiver(0)))])
def test_what_no_producer_sends_fails_every_channel(stream: bytes) -> None:
    bench = Bench(num_channels=2).request()
    bench.data(0)
    bench.connection.receive_data(stream)
    assert bench.connection.state is ConnectionState.FAILED
    for channel in bench.channels:
        with pytest.raises(RemoteProtocolError):
            channel.poll()
    bench.channels[0].release()
    assert bench.sent() == []


def test_a_failed_connection_reads_nothing_more_and_gives_back_the_buffer_it_was_filling() -> None:
    bench = Bench().request()
    frame = encode(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"data"))
    bench.connection.receive_data(frame[:-2])
    bench.connection.receive_end()
    bench.connection.receive_data(frame[-2:])
    assert bench.state()[0] == 2
    with pytest.raises(RemoteTransportError, match="unexpectedly closed by remote task manager, in the middle"):
        bench.gate.poll_next()
    bench.check()


def test_frames_after_the_one_that_ended_the_connection_are_not_read() -> None:
    bench = Bench().request()
    fatal = ErrorResponse(java_error("java.lang.Error", "out of memory"))
    bench.say(fatal, BufferResponse(receiver(0), 0, 0, DataType.DATA, b"data"))
    assert bench.channels[0].snapshot().num_available == 0


def test_an_error_with_a_receiver_fails_that_channel() -> None:
    """Flink: `PartitionRequestQueueTest#testProducerFailedException`."""
    bench = Bench(num_channels=2).request()
    bench.fail(FAILED, "division by zero", receiver(0))
    with pytest.raises(RemoteTransportError, match=r"to tm-1: Error at remote task manager: .*division by zero"):
        bench.gate.poll_next()
    assert (bench.channels[1].error, bench.connection.error) == (None, None)


def test_an_error_without_a_receiver_fails_all() -> None:
    """Flink: `NettyMessageClientSideSerializationTest#testErrorResponseWithFatalError`."""
    bench = Bench(num_channels=2).request()
    bench.fail("java.lang.IllegalStateException", "no credit")
    for channel in bench.channels:
        with pytest.raises(RemoteTransportError, match=r"Fatal error at remote task manager: .*no credit"):
            channel.poll()
    assert bench.connection.is_closed


def test_an_error_for_a_channel_that_is_gone_is_ignored() -> None:
    bench = Bench().request()
    bench.fail(FAILED, "late", STRANGER)
    assert (bench.channels[0].error, bench.connection.error) == (None, None)


def test_one_channels_trouble_is_not_its_neighbours() -> None:
    """Flink: `CreditBasedPartitionRequestClientHandlerTest#testDoNotFailHandlerOnSingleChannelFailure`."""
    bench = Bench(num_channels=2, exclusive=1, floating=0).request()
    for number in range(3):
        bench.data(number)  # without credit
    bench.data(0, channel=1)
    assert bench.channels[0].error is not None
    assert bench.channels[1].poll() is not None
    assert not bench.connection.is_closed


def test_an_empty_connection_ends_quietly() -> None:
    bench = Bench()
    bench.connection.receive_end()
    assert "unexpectedly closed" in str(bench.connection.error)
    assert bench.channels[0].error is None
    assert repr(bench.connection) == "ConsumerConnection(to tm-1, failed, 0 channels)"


# -- asking again ----------------------------------------------------------------------------------


def waits(bench: Bench) -> list[float]:
    """How long the channel waits before each time it asks again, until it gives up."""
    found = []
    now = 1_000.0
    while bench.channels[0].error is None:
        bench.fail(NOT_FOUND, "not here", receiver(0))
        deadline = bench.connection.next_deadline(now)
        if deadline is None:
            break
        found.append(deadline - now)
        bench.connection.on_timeout(deadline - 1)
        assert bench.sent() == []
        now = deadline
        bench.connection.on_timeout(now)
        assert bench.sent() == [PartitionRequest(partition(0), 0, 0, receiver(0), 2)]
    return found


@pytest.mark.parametrize(
    ("initial", "longest", "expected"),
    [
        (500, 3_000, [500, 1_000, 2_000, 3_000]),
        (500, 500, [500]),
        (0, 0, []),
        (137, 1_001, [137, 274, 548, 1_001]),
        (100, 10_000, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000]),
    ],
)
def test_the_wait_doubles_up_to_the_longest_and_then_the_channel_fails(
    initial: int, longest: int, expected: list[float]
) -> None:
    """Flink: `RemoteInputChannelTest#testPartitionRequestExponentialBackoff` (P87).

    And `SingleInputGateTest#testRequestBackoffConfiguration` (P93).
    """
    bench = Bench(request_backoff_initial_ms=initial, request_backoff_max_ms=longest).request()
    assert waits(bench) == expected
    with pytest.raises(PartitionNotFoundError, match=f"asked {len(expected) + 1} times") as caught:
        bench.gate.poll_next()
    assert caught.value.num_requests == len(expected) + 1
    assert caught.value.partition == f"{bytes(16).hex()}#0@{b'producer of data'.hex()}"


def test_a_wait_begins_when_somebody_with_a_clock_asks() -> None:
    bench = Bench().request()
    assert bench.connection.next_deadline(0) is None
    bench.fail(NOT_FOUND, "not here", receiver(0))
    assert [bench.connection.next_deadline(now) for now in (50, 60)] == [150, 150]


def test_whoever_sends_is_called_when_a_wait_begins() -> None:
    """It may be asleep without a deadline; it has nothing to send, but then it asks for the time."""
    bench = Bench().request()
    assert not bench.connection.has_data_to_send
    bench.fail(NOT_FOUND, "not here", receiver(0))
    assert bench.connection.has_data_to_send
    assert bench.connection.data_to_send() == b""
    assert not bench.connection.has_data_to_send
    assert bench.connection.retries.num_not_found.total() == 1


def test_the_next_deadline_is_the_earliest() -> None:
    bench = Bench(num_channels=2).request()
    bench.fail(NOT_FOUND, "not here", receiver(1))
    bench.connection.next_deadline(0)
    bench.fail(NOT_FOUND, "not here", receiver(0))
    assert bench.connection.next_deadline(30) == 100
    bench.connection.on_timeout(100)
    assert [message.receiver for message in bench.sent()] == [receiver(1)]
    assert bench.connection.next_deadline(100) == 130


def test_a_second_answer_to_one_request_does_not_lengthen_the_wait() -> None:
    bench = Bench().request()
    bench.fail(NOT_FOUND, "not here", receiver(0))
    bench.fail(NOT_FOUND, "not here", receiver(0))
    assert bench.connection.next_deadline(0) == 100


def test_another_error_while_it_waits_fails_the_channel_at_once() -> None:
    bench = Bench().request()
    bench.fail(NOT_FOUND, "not here", receiver(0))
    bench.fail(FAILED, "the producer is gone", receiver(0))
    with pytest.raises(RemoteTransportError, match="the producer is gone"):
        bench.gate.poll_next()


def test_another_hand_may_write_and_read_what_a_channel_says() -> None:
    class Loud(WireFormat):
        def resume(self, receiver: bytes) -> bytes:
            return b"go on!"

        def read_response(self, header: bytes) -> tuple[bytes, int, int, int, int, int]:
            receiver, number, *rest = super().read_response(header)
            return (receiver, number - 7, *rest)  # type: ignore[return-value]

    bench = Bench().request()
    bench.connection.decoder.wire = Loud()
    bench.sent()
    bench.event(7, CheckpointBarrier(1, 0))
    bench.channels[0].resume()
    assert bench.connection.data_to_send() == b"go on!"


def test_a_released_channel_does_not_ask_again() -> None:
    bench = Bench(num_channels=2).request()
    bench.fail(NOT_FOUND, "not here", receiver(0))
    bench.channels[0].release()
    assert bench.connection.next_deadline(0) is None
    bench.sent()
    bench.connection.on_timeout(1e9)
    assert bench.sent() == []


def test_a_failed_connection_waits_for_nothing() -> None:
    bench = Bench().request()
    bench.fail(NOT_FOUND, "not here", receiver(0))
    bench.connection.receive_end()
    assert bench.connection.next_deadline(0) is None
    bench.connection.on_timeout(1e9)
    assert bench.sent() == []


def test_a_partition_that_has_sent_data_cannot_be_missing() -> None:
    bench = Bench().request()
    bench.data(0)
    bench.fail(NOT_FOUND, "gone", receiver(0))
    with pytest.raises(RemoteProtocolError, match="has sent something"):
        bench.gate.poll_next()


# -- who carries the bytes is told ----------------------------------------------------------------------


def test_whoever_sends_is_told_when_there_is_something_to_send() -> None:
    bench = Bench(2, floating=0).request()
    told: list[bool] = []
    bench.connection.on_data_to_send = lambda: told.append(bench.connection.has_data_to_send)
    for channel in range(2):
        bench.data(0, channel=channel)
        bench.data(1, channel=channel)
    assert told == []  # buffers went as they were promised
    for channel in bench.channels:
        while (taken := channel.poll()) is not None:
            taken.buffer.recycle()
    assert told == [True, True]  # once for each channel, however many of its buffers came home
    assert len(bench.sent()) == 2
    bench.fail("org.apache.flink.runtime.io.network.partition.PartitionNotFoundException", "gone", receiver(0))
    assert len(told) == 3  # a deadline, or the channel's end, is a reason too
