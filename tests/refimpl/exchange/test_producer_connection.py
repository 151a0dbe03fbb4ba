"""The producer's end: who speaks, when, in whose turn; what is refused, and what is left behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.config import Config, FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange import (
    HEADER_BYTES,
    AckAllUserRecordsProcessed,
    AddCredit,
    BacklogAnnouncement,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    NewBufferSize,
    PartitionRequest,
    ProducerConnection,
    ProducerConnectionSnapshot,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    SegmentId,
    TaskEventRequest,
    encode,
    read_java_error,
)
from refimpl.memory import BufferBuilder, DataType, LocalBufferPool, NetworkBufferPool
from refimpl.producer import PipelinedSubpartitionView, ResultPartition
from refimpl.records import Alignment, CheckpointBarrier, Event, event_from_bytes, event_to_bytes
from refimpl.trace import Trace
from tests.support.raw_frames import frame, frames_in

PARTITION = ResultPartitionId(b"\x11" * 16, 0, ProducerId(b"\x33" * 16))
UNKNOWN = ResultPartitionId(b"\x99" * 16, 0, ProducerId(b"\x33" * 16))
A, B, C = b"A" * 16, b"B" * 16, b"C" * 16
BLOCKING = CheckpointBarrier(1, 0, alignment=Alignment.ALIGNED)
LOOSE = CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE)
SEGMENT = 16


class Exchange:
    """A partition, its pool, a connection to it, and a consumer that only reads and writes bytes."""

    def __init__(
        self,
        num_subpartitions: int = 2,
        num_buffers: int = 8,
        version: FlinkVersion = FlinkVersion.V1_11,
        **options: int,
    ) -> None:
        self.config = Config(segment_size_bytes=SEGMENT, flink_version=version, **options)
        self.version = version
        self.home = NetworkBufferPool(num_buffers, SEGMENT)
        pool = LocalBufferPool(self.home, num_buffers, num_channels=num_subpartitions)
        self.partition = ResultPartition("map-0", num_subpartitions, pool, self.config)
        self.builders: dict[int, BufferBuilder] = {}
        self.events: list[tuple[ResultPartitionId, bytes]] = []
        self.wants_events = True
        self.trace = Trace()
        self.connection = ProducerConnection(self, self.config, "tm-2", self.on_task_event, self.trace)
        self.arrived = b""

    def find(self, partition: ResultPartitionId, subpartition: int) -> PipelinedSubpartitionView | None:
        return self.partition.create_view(subpartition) if partition == PARTITION else None

    def on_task_event(self, partition: ResultPartitionId, event: bytes) -> bool:
        self.events.append((partition, event))
        return self.wants_events

    # -- the producing task --------------------------------------------------------------------------

    def open(self, channel: int, data: bytes = b"") -> BufferBuilder:
        builder = self.partition.request_builder(channel)
        assert builder is not None
        self.partition.add(builder.create_consumer(), channel)
        builder.append_and_commit(data)
        self.builders[channel] = builder
        return builder

    def finish_open(self, channel: int) -> None:
        if channel in self.builders:
            self.builders.pop(channel).finish()

    def write(self, channel: int, *buffers: bytes) -> None:
        """Whole buffers, the last one flushed."""
        for data in buffers:
            self.finish_open(channel)
            self.open(channel, data)
        self.finish_open(channel)
        self.partition.flush(channel)

    def event(self, event: Event) -> None:
        for channel in list(self.builders):
            self.finish_open(channel)
        self.partition.broadcast_event(event)

    # -- the consuming end ---------------------------------------------------------------------------

    def tell(self, *messages: Message) -> None:
        self.connection.receive_data(b"".join(encode(message, self.version) for message in messages))

    def request(self, receiver: bytes, channel: int, credit: int, partition: ResultPartitionId = PARTITION) -> None:
        self.tell(PartitionRequest(partition, channel, channel, receiver, credit))

    def hear(self, max_bytes: int = 2**31 - 1) -> list[Message]:
        pieces = self.connection.data_to_send(max_bytes)
        heard = frames_in(b"".join(pieces), self.version)
        self.connection.data_sent()
        return heard

    def speakers(self) -> str:
        """Who sent a buffer or an event, in order."""
        return "".join(chr(message.receiver[0]) for message in self.hear())

    def refusal(self) -> tuple[str, str, bytes | None]:
        """Class, message and receiver of the one error that is sent."""
        (answer,) = self.hear()
        assert isinstance(answer, ErrorResponse)
        error = read_java_error(answer.error)
        return error.class_name.rsplit(".", 1)[-1], error.message or "", answer.receiver

    def reader(self, receiver: bytes) -> tuple[int, bool, int]:
        shot = self.connection.snapshot().readers[receiver]
        assert shot.receiver == receiver
        return shot.credit, shot.is_enqueued, shot.last_sequence_number

    def check_nothing_is_left(self) -> None:
        self.connection.connection_lost()
        for channel in list(self.builders):
            self.finish_open(channel)
        self.partition.release()
        assert self.home.num_free == len(self.home.segments)


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


def data(receiver: bytes, sequence: int, backlog: int, payload: bytes) -> BufferResponse:
    return BufferResponse(receiver, sequence, backlog, DataType.DATA, payload)


# -- credit ----------------------------------------------------------------------------------------


def test_a_buffer_costs_a_credit_and_carries_the_backlog(exchange: Exchange) -> None:
    """Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingBufferAndCredit` (P72)."""
    exchange.request(A, 0, 2)
    exchange.write(0, b"one", b"two", b"three")
    assert exchange.hear() == [data(A, 0, 2, b"one"), data(A, 1, 1, b"two")]
    assert exchange.reader(A) == (0, False, 1)
    assert not exchange.connection.has_data_to_send
    exchange.tell(AddCredit(5, A))
    assert exchange.hear() == [data(A, 2, 0, b"three")]
    assert exchange.reader(A) == (4, False, 2)


def test_an_event_needs_no_credit_and_is_counted(exchange: Exchange) -> None:
    """A job whose consumer has no room could not end otherwise.

    Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingEventBuffer` (P73).
    """
    exchange.request(A, 0, 0)
    exchange.event(LOOSE)
    exchange.partition.finish()
    barrier, end = exchange.hear()
    assert (barrier.data_type, barrier.sequence_number, barrier.backlog) == (DataType.EVENT, 0, 0)
    assert event_from_bytes(barrier.payload) == LOOSE
    assert (end.sequence_number, len(end.payload)) == (1, 4)
    assert exchange.reader(A) == (0, False, 1)


def test_an_event_waits_behind_data_that_has_no_credit(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.write(0, b"one", b"two")
    exchange.event(LOOSE)
    assert exchange.hear() == [data(A, 0, 1, b"one")]
    exchange.tell(AddCredit(1, A))
    assert [message.data_type for message in exchange.hear()] == [DataType.DATA, DataType.EVENT]


def test_data_behind_an_event_waits_for_credit(exchange: Exchange) -> None:
    exchange.request(A, 0, 0)
    exchange.event(LOOSE)
    exchange.write(0, b"one", b"two")
    assert [message.data_type for message in exchange.hear()] == [DataType.EVENT]
    assert exchange.reader(A) == (0, False, 0)


def test_data_that_waits_for_its_reader_is_served_at_once(exchange: Exchange) -> None:
    exchange.write(0, b"one", b"two")
    exchange.request(A, 0, 9)
    assert exchange.hear() == [data(A, 0, 1, b"one"), data(A, 1, 0, b"two")]


def test_a_flush_sends_the_new_bytes_of_an_open_buffer_only(exchange: Exchange) -> None:
    """Sequence number and credit are per piece."""
    exchange.request(A, 0, 3)
    builder = exchange.open(0, b"ab")
    exchange.partition.flush(0)
    assert exchange.hear() == [data(A, 0, 0, b"ab")]
    builder.append_and_commit(b"cd")
    exchange.partition.flush(0)
    assert exchange.hear() == [data(A, 1, 0, b"cd")]
    assert exchange.reader(A)[0] == 1


def test_many_frames_may_come_in_one_piece_or_in_many(exchange: Exchange) -> None:
    request = encode(PartitionRequest(PARTITION, 0, 0, A, 1))
    stream = request + encode(AddCredit(2, A)) + encode(AddCredit(3, A))
    for byte in stream[:-1]:
        exchange.connection.receive_data(bytes((byte,)))
    assert exchange.reader(A)[0] == 3
    exchange.connection.receive_data(memoryview(stream[-1:]))
    assert exchange.reader(A)[0] == 6
    other = Exchange()
    other.connection.receive_data(bytearray(stream))
    assert other.reader(A)[0] == 6


def test_sequence_numbers_go_on_below_zero_as_java_counts(exchange: Exchange) -> None:
    exchange.request(A, 0, 9)
    exchange.connection.readers[A].sequence_number = 2**31 - 2
    exchange.write(0, b"one", b"two", b"six")
    assert [message.sequence_number for message in exchange.hear()] == [2**31 - 1, -(2**31), 1 - 2**31]


# -- turns -----------------------------------------------------------------------------------------


def test_readers_take_turns_by_single_buffers(exchange: Exchange) -> None:
    """That they take turns shows in no value, only in the order.

    Flink: `PartitionRequestQueueTest#testDefaultBufferWriting`.
    """
    exchange.request(A, 0, 9)
    exchange.request(B, 1, 9)
    exchange.write(0, b"1", b"2", b"3")
    exchange.write(1, b"1", b"2", b"3")
    assert exchange.speakers() == "ABABAB"


def test_a_reader_stands_in_line_once_however_often_it_is_told(exchange: Exchange) -> None:
    """Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingBufferAndCredit` (P72)."""
    exchange.request(A, 0, 1)
    exchange.request(B, 1, 1)
    exchange.write(0, b"1", b"2", b"3")
    exchange.tell(AddCredit(1, A), AddCredit(1, A))
    exchange.write(1, b"1", b"2")
    exchange.tell(AddCredit(1, B))
    assert exchange.reader(A)[:2] == (3, True)
    assert exchange.connection.queue.num_in_line == 2
    assert exchange.speakers() == "ABABA"


def test_a_reader_without_credit_does_not_stand_in_line(exchange: Exchange) -> None:
    """Five buffers, no credit; then three credits.

    Flink: `PartitionRequestQueueTest#testEnqueueReaderByNotifyingBufferAndCredit` (P72).
    """
    exchange.request(A, 0, 0)
    exchange.write(0, *[b"x"] * 5)
    assert (exchange.reader(A), exchange.connection.has_data_to_send) == ((0, False, -1), False)
    exchange.tell(AddCredit(3, A))
    assert len(exchange.hear()) == 3
    assert (exchange.reader(A), exchange.connection.has_data_to_send) == ((0, False, 2), False)


def test_who_speaks_is_decided_when_bytes_are_fetched(exchange: Exchange) -> None:
    exchange.request(A, 0, 9)
    exchange.request(B, 1, 9)
    exchange.write(0, b"1", b"2")
    assert [message.receiver for message in exchange.hear(max_bytes=1)] == [A]
    exchange.write(1, b"1")
    assert exchange.speakers() == "AB"


def test_frames_are_whole_and_end_with_the_one_that_reaches_the_limit(exchange: Exchange) -> None:
    exchange.request(A, 0, 9)
    exchange.write(0, *[b"four"] * 5)
    frame = HEADER_BYTES + 30 + 4
    for limit, num_frames in ((0, 0), (1, 1), (frame, 1), (frame + 1, 2), (9 * frame, 1)):
        assert len(exchange.hear(limit)) == num_frames


def test_a_reader_with_nothing_but_empty_buffers_is_passed_over(exchange: Exchange) -> None:
    """Flink: `PartitionRequestQueueTest#testNotifyReaderNonEmptyOnEmptyReaders` (P74)."""
    exchange.request(A, 0, 9)
    exchange.request(B, 1, 9)
    exchange.open(0)
    exchange.finish_open(0)
    exchange.open(0)
    exchange.write(1, b"1")
    assert exchange.reader(A)[1]
    assert exchange.hear() == [data(B, 0, 0, b"1")]
    assert exchange.reader(A) == (9, False, -1)


# -- barriers --------------------------------------------------------------------------------------


def test_a_blocking_barrier_stops_a_reader_until_it_is_resumed(exchange: Exchange) -> None:
    """Flink: `PartitionRequestQueueTest#testEnqueueReaderByResumingConsumption` (P75)."""
    exchange.request(A, 0, 5)
    exchange.event(BLOCKING)
    exchange.write(0, b"one", b"two")
    (barrier,) = exchange.hear()
    assert (barrier.data_type, barrier.backlog) == (DataType.ALIGNED_BARRIER, 2)
    exchange.tell(AddCredit(1, A))
    assert exchange.hear() == []
    exchange.tell(ResumeConsumption(A))
    assert exchange.hear() == [data(A, 1, 1, b"one"), data(A, 2, 0, b"two")]


def test_resuming_what_is_not_blocked_is_fatal_to_the_consumer_not_to_us(exchange: Exchange) -> None:
    exchange.request(A, 0, 5)
    exchange.tell(ResumeConsumption(A))
    assert exchange.refusal() == ("IllegalStateException", "Should be blocked by checkpoint.", None)
    exchange.write(0, b"one")
    assert exchange.hear() == [data(A, 0, 0, b"one")]


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [AddCredit(1, C), ResumeConsumption(C)])
def test_an_unknown_receiver_is_a_fatal_error_and_the_connection_goes_on(exchange: Exchange, message: Message) -> None:
    exchange.request(A, 0, 1)
    exchange.tell(message)
    text = f"No reader for receiverId = {C.hex()} exists."
    assert exchange.refusal() == ("IllegalStateException", text, None)
    exchange.write(0, b"one")
    assert exchange.hear() == [data(A, 0, 0, b"one")]
    assert not exchange.connection.is_closed


def test_a_missing_partition_is_no_fatal_error_and_can_be_asked_for_again(exchange: Exchange) -> None:
    exchange.request(A, 0, 1, UNKNOWN)
    text = f"Partition {'99' * 16}#0@{'33' * 16} not found."
    assert exchange.refusal() == ("PartitionNotFoundException", text, A)
    exchange.request(A, 0, 1)
    exchange.write(0, b"one")
    assert exchange.hear() == [data(A, 0, 0, b"one")]


@pytest.mark.parametrize(
    ("receiver", "channel", "expected"),
    [(B, 0, "IllegalStateException"), (A, 1, "IllegalStateException"), (B, 7, "IndexOutOfBoundsException")],
    ids=["subpartition read already", "receiver in use", "no such subpartition"],
)
def test_a_request_that_cannot_be_is_fatal_and_hurts_no_other_reader(
    exchange: Exchange, receiver: bytes, channel: int, expected: str
) -> None:
    exchange.request(A, 0, 1)
    exchange.request(receiver, channel, 1)
    name, _text, to = exchange.refusal()
    assert (name, to) == (expected, None)
    exchange.write(0, b"one")
    assert exchange.hear() == [data(A, 0, 0, b"one")]
    assert list(exchange.connection.snapshot().readers) == [A]


def test_errors_leave_before_data(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.write(0, b"one")
    exchange.tell(AddCredit(1, C))
    assert [type(message) for message in exchange.hear()] == [ErrorResponse, BufferResponse]


def test_a_failed_producer_is_told_to_its_reader_alone(exchange: Exchange) -> None:
    """No credit is needed.

    Flink: `PartitionRequestQueueTest#testProducerFailedException`.
    """
    exchange.request(A, 0, 0)
    exchange.request(B, 1, 1)
    exchange.write(0, b"one", b"two")
    exchange.partition.subpartitions[0].release("disk full")
    exchange.write(1, b"one")
    error, buffer = exchange.hear()
    assert error.receiver == A
    assert str(read_java_error(error.error)).endswith("ProducerFailedException: disk full")
    assert buffer == data(B, 0, 0, b"one")
    exchange.tell(AddCredit(1, A))
    assert exchange.hear() == []


def test_a_failure_is_told_once_even_to_a_reader_in_line(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.write(0, b"one", b"two")
    exchange.partition.subpartitions[0].release("disk full")
    assert [type(message) for message in exchange.hear()] == [ErrorResponse]


def test_a_released_subpartition_without_a_failure_is_passed_over(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.write(0, b"one", b"two")
    assert exchange.connection.has_data_to_send
    exchange.partition.release()
    assert exchange.hear() == []


# -- task events -----------------------------------------------------------------------------------


def test_a_task_event_is_handed_over(exchange: Exchange) -> None:
    event = event_to_bytes(LOOSE)
    exchange.tell(TaskEventRequest(event, PARTITION, A))
    assert exchange.events == [(PARTITION, event)]
    assert exchange.hear() == []


@pytest.mark.parametrize("has_hook", [True, False])
def test_a_task_event_nobody_wants_is_answered(exchange: Exchange, has_hook: bool) -> None:
    exchange.wants_events = False
    if not has_hook:
        exchange.connection = ProducerConnection(exchange, exchange.config)
    exchange.tell(TaskEventRequest(b"", PARTITION, A))
    assert exchange.refusal() == ("IllegalArgumentException", "Task event receiver not found.", A)


# -- ends ------------------------------------------------------------------------------------------


def test_a_cancelled_reader_leaves_the_others_alone(exchange: Exchange) -> None:
    """Flink: `PartitionRequestQueueTest#testCancelPartitionRequestForAvailableView`."""
    exchange.request(A, 0, 9)
    exchange.request(B, 1, 9)
    exchange.write(0, b"1", b"2")
    exchange.write(1, b"1", b"2")
    exchange.tell(CancelPartitionRequest(A), CancelPartitionRequest(C))
    assert exchange.speakers() == "BB"
    assert list(exchange.connection.snapshot().readers) == [B]
    first, second = exchange.partition.subpartitions
    assert (first.view.is_consumed, second.view.is_consumed, exchange.partition.is_consumed) == (True, False, False)
    exchange.write(0, b"3")
    assert not exchange.connection.has_data_to_send


def test_a_close_request_ends_the_connection_without_a_word(exchange: Exchange) -> None:
    exchange.request(A, 0, 9)
    exchange.request(B, 1, 9)
    exchange.write(0, b"1")
    exchange.tell(AddCredit(1, C), CloseRequest(), AddCredit(1, A))
    assert exchange.connection.is_closed
    assert exchange.hear() == []
    assert exchange.connection.snapshot().readers == {}
    assert exchange.partition.is_consumed
    exchange.write(0, b"2")
    exchange.tell(AddCredit(1, A))
    assert not exchange.connection.has_data_to_send
    exchange.check_nothing_is_left()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (frame(bytes(20), magic=0xBADC0FFF), "IllegalStateException: Network stream corrupted: received"),
        (frame(b"", 99), "ProtocolException: Received unknown message from producer: "),
        (frame(b"", 8), "ProtocolException: Received unknown message from producer: "),
        (encode(BufferResponse(A, 0, 0, DataType.DATA, b"")), "ProtocolException: Received unknown message"),
        (encode(ErrorResponse(b"", A)), "ProtocolException: Received unknown message"),
        (frame(b"", length=2**31 - 1), "ProtocolException: a frame of 2147483647 B is not between 9 and 144"),
        (frame(b"", length=8), "ProtocolException: a frame of 8 B is not between"),
        (frame(b"", length=-1), "ProtocolException: a frame of -1 B is not between"),
        (frame(bytes(4) + A), "ProtocolException: a AddCredit has 0 where at least 1 must be"),
        (frame(bytes((0, 0, 0, 1))), "ProtocolException: the body of a AddCredit ends"),
        (frame(bytes((0, 0, 0, 1)) + A + bytes(4)), "ProtocolException: a AddCredit has 4 bytes too many"),
        (encode(PartitionRequest(PARTITION, 0, 0, A, -1)), "ProtocolException: a PartitionRequest has -1"),
    ],
)
def test_bytes_no_consumer_sends_end_the_connection_and_it_is_told_why(raw: bytes, text: str) -> None:
    exchange = Exchange()
    exchange.request(A, 0, 9)
    exchange.write(0, b"1")
    with pytest.raises(RemoteProtocolError):
        exchange.connection.receive_data(raw + encode(PartitionRequest(PARTITION, 1, 1, B, 9)))
    assert exchange.connection.is_closed
    assert exchange.connection.snapshot().readers == {}
    name, message, receiver = exchange.refusal()
    assert (name, receiver) == ("DecoderException", None)
    assert text in message
    exchange.tell(AddCredit(1, A))
    assert exchange.hear() == []
    exchange.check_nothing_is_left()


def test_a_consumer_that_only_sends_nonsense_and_reads_nothing_is_turned_out(exchange: Exchange) -> None:
    for _ in range(4096):
        exchange.tell(AddCredit(1, C))
    with pytest.raises(RemoteProtocolError, match="4096 errors wait"):
        exchange.tell(AddCredit(1, C))
    assert exchange.connection.is_closed
    assert len(exchange.hear()) == 4097


FLOODS: dict[str, list[Message]] = {
    "credit for nobody": [AddCredit(1, C)],
    "goodbyes of nobody": [CancelPartitionRequest(C)],
    "requests for an absent partition": [PartitionRequest(UNKNOWN, 0, 0, C, 1)],
    "requests and goodbyes": [PartitionRequest(PARTITION, 1, 1, B, 1), CancelPartitionRequest(B)],
    "requests for what is read": [PartitionRequest(PARTITION, 0, 0, B, 1)],
    "requests for no subpartition": [PartitionRequest(PARTITION, 7, 7, B, 1)],
    "resuming what is not blocked": [ResumeConsumption(A)],
    "resuming nobody": [ResumeConsumption(C)],
    "events nobody wants": [TaskEventRequest(b"", UNKNOWN, C)],
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_a_consumer_that_reads_its_answers_makes_only_so_many_mistakes(exchange: Exchange, flood: str) -> None:
    message, connection = b"".join(map(encode, FLOODS[flood])), exchange.connection

    def tell_and_hear(num: int) -> None:
        for _ in range(num):
            connection.receive_data(message)
            connection.data_to_send()
            connection.data_sent()

    exchange.wants_events = False
    exchange.request(A, 0, 1)
    tell_and_hear(5000 // len(FLOODS[flood]))
    assert not connection.is_closed
    with pytest.raises(RemoteProtocolError, match="goes on after 5000 mistakes"):
        tell_and_hear(5010)
    assert connection.is_closed
    exchange.hear()
    exchange.check_nothing_is_left()


# -- memory ----------------------------------------------------------------------------------------


def test_a_buffer_is_lent_until_its_frame_is_written(exchange: Exchange) -> None:
    exchange.request(A, 0, 9)
    exchange.write(0, b"one")
    (piece,) = exchange.partition.subpartitions[0].queue
    (whole,) = exchange.connection.data_to_send()
    assert bytes(whole).endswith(b"one")
    assert [lent.segment for lent in exchange.connection.lent_buffers] == [piece.buffer.segment]
    assert exchange.connection.snapshot().num_lent == 1
    assert exchange.partition.pool.lent
    exchange.connection.data_sent()
    assert not exchange.partition.pool.lent
    exchange.connection.data_sent()  # nothing is lent any more
    assert exchange.connection.lent_buffers == ()


@pytest.mark.parametrize("message", [CloseRequest(), CancelPartitionRequest(A)])
def test_what_the_transport_is_writing_outlives_its_reader(exchange: Exchange, message: Message) -> None:
    exchange.request(A, 0, 9)
    exchange.write(0, b"one")
    (whole,) = exchange.connection.data_to_send()
    exchange.tell(message)
    assert bytes(whole).endswith(b"one")
    assert exchange.connection.snapshot().num_lent == 1
    exchange.connection.data_sent()
    assert not exchange.partition.pool.lent


def test_a_lost_connection_leaves_nothing_behind(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.request(B, 1, 1)
    exchange.write(0, b"one", b"two")
    exchange.write(1, b"one", b"two")
    exchange.connection.data_to_send()
    exchange.tell(AddCredit(1, C))
    exchange.connection.receive_data(b"\0\0")
    assert exchange.connection.snapshot().num_lent == 2
    exchange.connection.connection_lost()
    assert exchange.connection.snapshot() == ProducerConnectionSnapshot({}, 0, 0, True)
    assert exchange.partition.is_consumed
    exchange.connection.connection_lost()
    exchange.connection.receive_data(b"\0\0")
    assert not exchange.connection.decoder.gathered
    exchange.check_nothing_is_left()


# -- limits ----------------------------------------------------------------------------------------


def test_a_consumer_that_has_spoken_is_waited_for_without_end(exchange: Exchange) -> None:
    deadline = exchange.connection.next_deadline(5.0)
    assert deadline == 5.0 + exchange.config.first_frame_timeout_ms
    exchange.connection.on_timeout(deadline - 1)
    exchange.request(A, 0, 1)
    assert exchange.connection.next_deadline(deadline) is None
    exchange.connection.on_timeout(2 * deadline)
    assert not exchange.connection.is_closed


@pytest.mark.parametrize("said", [b"", encode(PartitionRequest(PARTITION, 0, 0, A, 1))[:-1]])
def test_a_consumer_that_says_nothing_or_half_of_it_is_given_up(exchange: Exchange, said: bytes) -> None:
    exchange.connection.receive_data(said)
    deadline = exchange.connection.next_deadline(5.0)
    assert exchange.connection.next_deadline(99.0) == deadline, "the wait began with the first question"
    exchange.connection.on_timeout(deadline)
    assert exchange.connection.is_closed
    assert exchange.connection.next_deadline(deadline) is None
    exchange.check_nothing_is_left()


def test_a_consumer_may_read_so_many_channels_and_no_more() -> None:
    exchange = Exchange(num_subpartitions=3, max_channels_per_connection=2)
    exchange.request(A, 0, 1)
    exchange.request(B, 1, 1)
    with pytest.raises(RemoteProtocolError, match="asked for more than 2 channels"):
        exchange.request(C, 2, 1)
    assert exchange.connection.is_closed
    assert isinstance(exchange.hear()[-1], ErrorResponse)
    exchange.check_nothing_is_left()


def test_a_channel_that_was_given_up_makes_room_for_another() -> None:
    exchange = Exchange(num_subpartitions=2, max_channels_per_connection=1)
    exchange.request(A, 0, 1)
    exchange.tell(CancelPartitionRequest(A))
    exchange.request(B, 1, 1)
    assert set(exchange.connection.snapshot().readers) == {B}


def test_a_trace_tells_of_each_grant_and_once_of_each_wait_for_one(exchange: Exchange) -> None:
    exchange.request(A, 0, 1)
    exchange.write(0, b"one")
    exchange.hear()  # the last credit is spent, and nothing waits
    exchange.write(0, b"two")
    exchange.write(0, b"three")
    exchange.tell(AddCredit(2, A))
    told = [(event.kind, event.detail["target"], event.detail["credit"]) for event in exchange.trace]
    assert told == [("wait", 0, 0), ("grant", 0, 2)]
    assert {event.subject for event in exchange.trace} == {exchange.partition.name}
    assert repr(exchange.connection) == "ProducerConnection(tm-2, 1 readers, 1 in line)"


# -- 2.x -------------------------------------------------------------------------------------------


def test_the_second_codec_says_which_subpartition_and_ignores_advice() -> None:
    exchange = Exchange(version=FlinkVersion.V2_2)
    exchange.request(A, 1, 2)
    exchange.tell(AckAllUserRecordsProcessed(A), NewBufferSize(8, A), SegmentId(0, 1, A))
    exchange.write(1, b"one")
    assert exchange.hear() == [BufferResponse(A, 0, 0, DataType.DATA, b"one", subpartition=1)]
    exchange.tell(PartitionRequest(PARTITION, 0, 1, B, 1))
    assert exchange.refusal()[0] == "IllegalStateException"
    with pytest.raises(RemoteProtocolError, match="9 is no message id of a consumer"):
        exchange.tell(BacklogAnnouncement(1, A))


# -- whatever comes --------------------------------------------------------------------------------

receivers = st.sampled_from([A, B, C])
requests = st.builds(
    lambda partition, channel, receiver, credit: PartitionRequest(partition, channel, channel, receiver, credit),
    st.sampled_from([PARTITION, PARTITION, UNKNOWN]),
    st.integers(0, 3),
    receivers,
    st.integers(0, 3),
)
others = st.one_of(
    st.builds(AddCredit, st.integers(1, 4), receivers),
    st.builds(ResumeConsumption, receivers),
    st.builds(CancelPartitionRequest, receivers),
    st.builds(TaskEventRequest, st.binary(max_size=20), st.just(PARTITION), receivers),
)
deadly = st.one_of(
    st.just(encode(CloseRequest())),
    st.binary(max_size=40),
    st.binary(max_size=20).map(lambda body: frame(body, len(body) % 9)),
)
from_consumer = st.integers(0, 39).flatmap(
    lambda die: deadly if die == 13 else (requests if die % 2 else others).map(encode)
)
channels = st.integers(0, 2)
actions = st.one_of(
    st.tuples(st.just("receive"), from_consumer, st.integers(1, 64)),
    st.tuples(st.sampled_from(["open", "finish", "flush"]), channels, st.integers(0, SEGMENT)),
    st.tuples(st.sampled_from(["barrier", "block", "fetch", "sent", "end", "fail"]), channels, st.integers(0, 200)),
)


def act(exchange: Exchange, what: str, value: int | bytes, number: int) -> None:
    if what == "receive":
        for start in range(0, len(value), number):
            exchange.connection.receive_data(value[start : start + number])
    elif what == "open":
        exchange.finish_open(value)
        builder = exchange.partition.request_builder(value)
        if builder is not None:
            if exchange.partition.add(builder.create_consumer(), value):
                exchange.builders[value] = builder
                builder.append_and_commit(bytes(number))
            else:
                builder.finish()
    elif what == "finish":
        exchange.finish_open(value)
    elif what == "flush":
        exchange.partition.flush(value)
    elif what in ("barrier", "block"):
        exchange.event(BLOCKING if what == "block" else LOOSE)
    elif what == "fetch":
        exchange.arrived += b"".join(exchange.connection.data_to_send(number))
    elif what == "sent":
        exchange.connection.data_sent()
    elif what == "fail" and number > 150:
        exchange.partition.subpartitions[value].release("failed")
    elif what == "end" and not exchange.partition.is_finished and number < 50:
        for channel in list(exchange.builders):
            exchange.finish_open(channel)
        exchange.partition.finish()


def check_line(connection: ProducerConnection) -> None:
    """Each reader stands in line at most once, and only if it is one; nobody owes credit."""
    line = list(connection.queue._line)
    assert len({id(reader) for reader in line}) == len(line)
    assert all(reader.is_enqueued and connection.readers[reader.receiver] is reader for reader in line)
    for reader in connection.readers.values():
        assert reader.credit >= 0
        assert reader.is_enqueued == (reader in line)
        assert reader.is_enqueued or not reader.is_available, f"{reader} has been forgotten"
    assert not connection.is_closed or not (line or connection.readers)
    assert len(connection.decoder.gathered) <= SEGMENT + 128 + 64


def check_numbers(messages: list[Message]) -> None:
    """Each receiver's numbers go up by one, or start again because it was cancelled and asked anew."""
    last: dict[bytes, int] = {}
    for message in messages:
        if isinstance(message, BufferResponse):
            assert message.sequence_number in (0, last.get(message.receiver, -1) + 1)
            last[message.receiver] = message.sequence_number
            assert message.backlog >= 0


@settings(max_examples=300, deadline=None)
@given(st.lists(actions, max_size=60))
def test_whatever_comes_only_a_protocol_error_goes_out_and_no_buffer_is_lost(
    script: list[tuple[str, int | bytes, int]],
) -> None:
    exchange = Exchange(num_subpartitions=3, num_buffers=6)
    num_errors = 0
    for what, value, number in script:
        try:
            act(exchange, what, value, number)
        except RemoteProtocolError:
            assert what == "receive"
            assert exchange.connection.is_closed
            num_errors += 1
        check_line(exchange.connection)
    assert num_errors <= 1
    exchange.arrived += b"".join(exchange.connection.data_to_send())
    check_numbers(frames_in(exchange.arrived))
    exchange.check_nothing_is_left()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.integers(1, 50))
def test_noise_is_nothing_or_a_protocol_error(noise: bytes, size: int) -> None:
    exchange = Exchange()
    try:
        for start in range(0, len(noise), size):
            exchange.connection.receive_data(noise[start : start + size])
    except RemoteProtocolError:
        assert exchange.connection.is_closed
    exchange.check_nothing_is_left()


def test_a_mistake_of_the_callers_own_parts_passes_through(exchange: Exchange) -> None:
    """The frame that met it is gone; those behind it are not."""

    def fails(_partition: ResultPartitionId, _event: bytes) -> bool:
        raise LocalUsageError("our own mistake")

    exchange.connection = ProducerConnection(exchange, exchange.config, on_task_event=fails)
    with pytest.raises(LocalUsageError, match="our own mistake"):
        exchange.tell(TaskEventRequest(b"", PARTITION, A), PartitionRequest(PARTITION, 0, 0, A, 4))
    exchange.tell()
    assert exchange.reader(A) == (4, False, -1)
