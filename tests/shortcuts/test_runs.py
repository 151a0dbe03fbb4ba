"""Several buffers in one step arrive as they do one after the other: whatever is queued, cut, promised or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import UNBOUNDED, Config, FlinkVersion
from refimpl.consumer import BufferManager, RemoteInputChannel
from refimpl.exchange import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    PartitionRequest,
    SubpartitionReader,
    encode,
    to_frame,
)
from refimpl.exchange.before_credit import UncreditedReader, WaterMarks
from refimpl.memory import BufferConsumer, DataType, LocalBufferPool, NetworkBufferPool
from refimpl.producer import PipelinedSubpartitionView
from refimpl.records import CheckpointBarrier, EndOfPartition, event_to_buffer
from refimpl.shortcuts.makers import FastMakers
from refimpl.shortcuts.partition import FastPipelinedSubpartition, FastResultPartition
from tests.support.consumer_rig import Bench, partition, receiver

SEGMENT_BYTES = 16
BARRIER = CheckpointBarrier(1, 0)


# -- the producer's end --------------------------------------------------------------------------------


class Producer:
    """Two subpartitions that one connection reads, with credits or without."""

    def __init__(self, version: FlinkVersion, credit_based: bool) -> None:
        self.config = Config(
            segment_size_bytes=SEGMENT_BYTES, buffer_timeout_ms=-1, flink_version=version, credit_based=credit_based
        )
        home = NetworkBufferPool(64, SEGMENT_BYTES, version)
        pool = LocalBufferPool(home, 4, 64, "map-0", 2)
        self.partition = FastResultPartition("map-0", 2, pool, self.config)
        self.connection = FastMakers().producer_connection(self, self.config, "to tm-2", None)
        for index in range(2):
            self.say(PartitionRequest(partition(0), index, index, receiver(index), 0))

    def find(self, _partition: object, subpartition: int) -> PipelinedSubpartitionView:
        return self.partition.create_view(subpartition)

    def say(self, message: PartitionRequest | AddCredit) -> None:
        self.connection.receive_data(encode(message, self.config.flink_version))

    def fill(self, channel: int, size: int) -> None:
        buffer = self.partition.pool.request_buffer(channel)
        if buffer is not None:
            buffer.segment.put(0, bytes(range(size)))
            buffer.size = size
            self.partition.add(BufferConsumer.of_buffer(buffer), channel)

    def open(self, channel: int) -> None:
        """A buffer out of a builder's hands; that it has finished the queue finds out when it is read."""
        builder = self.partition.request_builder(channel)
        if builder is not None:
            self.partition.add(builder.create_consumer(), channel)
            builder.append_and_commit(b"open")
            builder.finish()


STEPS = st.one_of(
    st.tuples(st.just("fill"), st.integers(0, 1), st.lists(st.integers(0, SEGMENT_BYTES), max_size=9)),
    st.tuples(st.just("open"), st.integers(0, 1)),
    st.tuples(st.just("flush"), st.integers(0, 1)),
    st.tuples(st.just("barrier")),
    st.tuples(st.just("credit"), st.integers(0, 1), st.integers(1, 20)),
    st.tuples(st.just("speak"), st.integers(1, 300)),
    st.tuples(st.just("speak"), st.just(UNBOUNDED)),
    st.tuples(st.just("written"), st.integers(0, 200)),
)


def act(producer: Producer, step: tuple, speak: Callable[[Producer, int], bytes]) -> bytes:
    match step:
        case "fill", channel, sizes:
            for size in sizes:
                producer.fill(channel, size)
        case "open", channel:
            producer.open(channel)
        case "flush", channel:
            producer.partition.flush(channel)
        case ("barrier",):
            producer.partition.broadcast_event(BARRIER)
        case "credit", channel, credit:
            producer.say(AddCredit(credit, receiver(channel)))
        case "speak", max_bytes:
            return speak(producer, max_bytes)
        case "written", num_bytes:
            connection = producer.connection
            connection.data_sent(min(num_bytes, connection.queue.lent.num_pending))
    return b""


def at_once(producer: Producer, max_bytes: int = UNBOUNDED) -> bytes:
    return b"".join(producer.connection.data_to_send(max_bytes))


def frame_by_frame(producer: Producer, max_bytes: int) -> bytes:
    said = b""
    while len(said) < max_bytes and (pieces := producer.connection.data_to_send(1)):
        said += b"".join(pieces)
    return said


@pytest.mark.parametrize("credit_based", [True, False])
@given(st.sampled_from(FlinkVersion), st.lists(STEPS, max_size=40))
def test_a_producer_says_the_same_at_once_and_frame_by_frame(
    credit_based: bool, version: FlinkVersion, steps: list[tuple]
) -> None:
    one, other = Producer(version, credit_based), Producer(version, credit_based)
    for step in [*steps, ("speak", UNBOUNDED)]:
        assert act(one, step, at_once) == act(other, step, frame_by_frame), step
        assert one.connection.snapshot() == other.connection.snapshot()
        assert one.partition.snapshot() == other.partition.snapshot()


def test_a_run_leaves_credit_for_one_and_two_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is `poll`'s, which alone decides whether the reader may go on."""
    producer = Producer(FlinkVersion.V1_11, credit_based=True)
    for _ in range(9):
        producer.fill(0, SEGMENT_BYTES)
    producer.say(AddCredit(5, receiver(0)))
    polled: list[int] = []
    poll_run = FastPipelinedSubpartition.poll_run

    def counting(self: FastPipelinedSubpartition, most: int) -> list:
        run = poll_run(self, most)
        polled.append(len(run))
        return run

    monkeypatch.setattr(FastPipelinedSubpartition, "poll_run", counting)
    assert len(at_once(producer)) > 5 * SEGMENT_BYTES
    producer.say(AddCredit(9, receiver(0)))
    at_once(producer)
    assert polled == [4, 2]  # 5 credits, then 4 entries


def test_behind_a_barrier_that_blocks_there_is_no_run() -> None:
    producer = Producer(FlinkVersion.V1_11, credit_based=True)
    producer.partition.broadcast_event(BARRIER)
    for _ in range(4):
        producer.fill(0, SEGMENT_BYTES)
    queue = producer.partition.subpartitions[0]
    queue.poll()
    assert queue.poll_run(9) == []
    queue.view.resume()
    assert len(queue.poll_run(9)) == 2


# -- the consumer's end --------------------------------------------------------------------------------


class FastBench(Bench):
    makers = FastMakers()


FRAMES = st.lists(
    st.tuples(
        st.sampled_from(["data"] * 8 + ["barrier", "end", "too large", "twice", "compressed"]),
        st.integers(0, 1),
        st.integers(0, SEGMENT_BYTES),
        st.integers(0, 5),
    ),
    max_size=16,
)


def stream_of(frames: list[tuple[str, int, int, int]], version: FlinkVersion) -> bytes:
    """What a producer says, also one that is wrong."""
    numbers = [0, 0]
    data = b""
    for what, channel, size, backlog in frames:
        kind, payload = DataType.DATA, bytes(range(size))
        if what in ("barrier", "end"):
            buffer = event_to_buffer(BARRIER if what == "barrier" else EndOfPartition(), version)
            kind, payload = buffer.data_type, bytes(buffer.data)
        elif what == "too large":
            payload = bytes(SEGMENT_BYTES + 1)
        number = numbers[channel] - (what == "twice")
        numbers[channel] = number + 1
        frame = BufferResponse(receiver(channel), number, backlog, kind, payload, what == "compressed")
        data += encode(frame, version)
    return data


def arrived(version: FlinkVersion, pieces: list[bytes]) -> tuple[list[list[object]], list[int], list[list[int]]]:
    """For each channel what comes out of it, an error last; what it wants; and when the gate was told."""
    bench = FastBench(num_channels=2, exclusive=6, flink_version=version)
    told: list[list[int]] = [[], []]
    for index, channel in enumerate(bench.channels):
        channel.open(lambda at=told[index], channel=channel: at.append(len(channel.held_buffers)))
    bench.request()
    for piece in pieces:
        bench.connection.receive_data(piece)
        bench.check()
    return [list(everything(channel)) for channel in bench.channels], [bench.state(n)[2] for n in (0, 1)], told


def everything(channel: RemoteInputChannel) -> Iterator[object]:
    error, channel.error = channel.error, None
    while (taken := channel.poll()) is not None:
        yield taken.sequence_number, taken.buffer.data_type, bytes(taken.buffer.data), taken.is_more_available
        taken.buffer.recycle()
    yield str(error)


@given(st.sampled_from(FlinkVersion), FRAMES, st.data())
def test_a_consumer_reads_the_same_at_once_in_pieces_and_byte_by_byte(
    version: FlinkVersion, frames: list[tuple[str, int, int, int]], draw: st.DataObject
) -> None:
    stream = stream_of(frames, version)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    at_once, in_pieces = arrived(version, [stream]), arrived(version, pieces)
    single = arrived(version, [stream[at : at + 1] for at in range(len(stream))])
    assert at_once[:2] == in_pieces[:2] == single[:2]
    assert [len(told) for told in at_once[2]] == [len(told) for told in single[2]]


def test_frames_of_several_channels_are_taken_in_one_step() -> None:
    bench = FastBench(num_channels=2, exclusive=4).request()
    frames = [BufferResponse(receiver(n % 2), n // 2, 0, DataType.DATA, b"ab") for n in range(8)]
    assert list(bench.connection.decoder.receive(b"".join(map(encode, frames)))) == []
    assert [channel.received.sequence.expected for channel in bench.channels] == [4, 4]
    bench.check()


@pytest.mark.parametrize("credit_based", [True, False])
def test_a_released_channel_takes_nothing_in(credit_based: bool) -> None:
    bench = FastBench(exclusive=4 if credit_based else 0, credit_based=credit_based).request()
    bench.channels[0].release()
    bench.say(*(BufferResponse(receiver(0), number, 0, DataType.DATA, b"late") for number in range(3)))
    assert bench.pool.num_free == bench.num_segments
    assert bench.gate.poll_next() is None


def test_a_payload_that_looks_like_a_frame_is_a_payload() -> None:
    inner = encode(BufferResponse(receiver(0), 0, 0, DataType.DATA, b"inner"))
    bench = FastBench(segment_size_bytes=len(inner)).request()
    outer = encode(BufferResponse(receiver(0), 0, 0, DataType.DATA, inner))
    for piece in (outer[: -len(inner)], inner):
        bench.connection.receive_data(piece)
    assert bytes(bench.gate.poll_next().buffer.data) == inner
    assert bench.gate.poll_next() is None


class TracedBench(FastBench):
    """Channel 0 notes what comes to it and what is taken from it."""

    def make_channel(self, index: int, exclusive: int = 2) -> RemoteInputChannel:
        self.received: list[tuple[int, int]] = []
        self.taken: list[tuple[int, int]] = []
        segments = self.pool.request_unpooled(exclusive, f"channel {index}")
        assert segments is not None
        return self.makers.remote_channel(
            index,
            receiver(index),
            f"map-{index}[0]",
            segments,
            self.pool,
            self.floating,
            self.config,
            lambda _segment=-1, number=-1, size=-1: self.received.append((number, size)),
            lambda _segment=-1, number=-1, size=-1: self.taken.append((number, size)),
        )


def test_a_trace_notes_each_buffer_of_a_run() -> None:
    bench = TracedBench(exclusive=6).request()
    bench.say(*(BufferResponse(receiver(0), number, 0, DataType.DATA, bytes(number + 1)) for number in range(4)))
    assert len(bench.gate.poll_run(9)[1]) == 3
    bench.gate.poll_next()
    assert bench.received == bench.taken == [(0, 1), (1, 2), (2, 3), (3, 4)]


# -- the gate ------------------------------------------------------------------------------------------


def test_a_gate_gives_a_run_only_while_one_channel_stands_in_line() -> None:
    bench = FastBench(num_channels=2, exclusive=4).request()
    for number in range(3):
        bench.data(number, payload=bytes([number]))
    index, run = bench.gate.poll_run(9)
    assert (index, [bytes(buffer.data) for buffer in run]) == (0, [b"\0", b"\1"])  # the last says what is next
    bench.data(0, channel=1)
    bench.data(3)
    assert bench.gate.poll_run(9) == (0, [])
    order = [(taken.channel_index, bytes(taken.buffer.data)) for taken in iter(bench.gate.poll_next, None)]
    assert order == [(0, b"\2"), (1, b"data"), (0, b"data")]


def test_a_run_ends_before_an_event_and_at_its_limit() -> None:
    bench = FastBench(exclusive=6).request()
    for number in range(4):
        bench.data(number)
    bench.event(4, BARRIER)
    bench.data(5)
    assert len(bench.gate.poll_run(2)[1]) == 2
    assert len(bench.gate.poll_run(9)[1]) == 2
    assert bench.gate.poll_run(9) == (0, [])
    assert bench.gate.poll_next().event == BARRIER


def test_what_came_together_is_told_once_and_only_the_last_backlog_gets_room() -> None:
    bench = FastBench(num_channels=2)
    calls = []
    for index, channel in enumerate(bench.channels):
        channel.open(lambda index=index: calls.append(index))
    bench.request()
    frames = [(0, 0, 4), (1, 0, 0), (0, 1, 1)]  # channel, sequence number, backlog
    bench.say(*(BufferResponse(receiver(who), number, backlog, DataType.DATA, b"x") for who, number, backlog in frames))
    assert calls == [0, 1]
    assert [bench.state(index) for index in (0, 1)] == [(0, 3, 3), (1, 1, 2)]  # a backlog of 4 would have taken all
    bench.check()


# -- the producer's end, one subpartition --------------------------------------------------------------


def test_a_payload_is_a_view_of_its_segment_lent_until_it_is_sent() -> None:
    producer = Producer(FlinkVersion.V1_11, credit_based=True)
    producer.say(AddCredit(9, receiver(0)))
    producer.fill(0, 3)
    producer.partition.flush(0)
    (piece,) = producer.partition.subpartitions[0].queue
    memory = piece.buffer.memory
    head, payload = producer.connection.data_to_send()
    assert isinstance(head, bytes)
    assert isinstance(payload, memoryview)
    assert payload.readonly
    memory[:3] = b"two"
    assert payload == b"two"
    assert [lent.segment for lent in producer.connection.lent_buffers] == [piece.buffer.segment]
    producer.say(CancelPartitionRequest(receiver(0)))  # what the transport is writing outlives its reader
    assert payload == b"two"
    producer.connection.data_sent()
    assert not producer.partition.pool.lent
    assert producer.connection.lent_buffers == ()


def test_a_function_in_the_place_of_to_frame_wraps_each_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped: list[int] = []

    def counting(frame_id: int, body: bytes) -> bytes:
        wrapped.append(frame_id)
        return to_frame(frame_id, body)

    monkeypatch.setattr("refimpl.exchange.frames.to_frame", counting)
    producer = Producer(FlinkVersion.V1_11, credit_based=True)
    producer.say(AddCredit(9, receiver(0)))
    for _ in range(4):
        producer.fill(0, 3)
    wrapped.clear()
    at_once(producer)
    assert wrapped == [0, 0, 0, 0]
    producer.connection.data_sent()


# -- parts that a learner puts in ----------------------------------------------------------------------


@pytest.mark.parametrize("credit_based", [True, False])
def test_a_reader_of_another_class_is_asked_for_each_buffer(credit_based: bool) -> None:
    producer = Producer(FlinkVersion.V1_11, credit_based)
    before = producer.connection.readers[receiver(0)]
    calls = []

    class Mine(SubpartitionReader if credit_based else UncreditedReader):
        def poll(self) -> object:
            calls.append(1)
            return super().poll()

    mine = Mine(before.view, PartitionRequest(partition(0), 0, 0, receiver(0), 0))
    before.hand_over_to(mine)
    producer.connection.queue.replace(mine)
    for _ in range(6):
        producer.fill(0, 1)
    producer.say(AddCredit(6, receiver(0)))
    producer.partition.flush(0)
    for _ in range(6):
        at_once(producer)
        producer.connection.data_sent()
    assert len(calls) >= 6


def test_marks_of_another_class_are_told_of_each_frame() -> None:
    producer = Producer(FlinkVersion.V1_11, credit_based=False)
    handed_out = []

    class Mine(WaterMarks):
        def hand_out(self, num_bytes: int) -> None:
            handed_out.append(num_bytes)
            super().hand_out(num_bytes)

    producer.connection.marks = Mine(SEGMENT_BYTES + 1, 1_000)
    for _ in range(4):
        producer.fill(0, 1)
    producer.partition.flush(0)
    at_once(producer)
    assert len(handed_out) == 4


def test_a_manager_of_another_class_hears_of_each_backlog() -> None:
    bench = FastBench(exclusive=6).request()
    channel = bench.channels[0]
    heard = []

    class Mine(BufferManager):
        def on_backlog(self, backlog: int) -> None:
            heard.append(backlog)
            super().on_backlog(backlog)

    before = channel.buffers
    segments = [buffer.segment for buffer in before.exclusive_buffers]
    channel.buffers = Mine(segments, bench.pool, bench.floating, channel.call_for_attention)
    before.hand_over_to(channel.buffers)
    bench.say(*(BufferResponse(receiver(0), number, number, DataType.DATA, b"x") for number in range(4)))
    assert heard == [0, 1, 2, 3]
    bench.check()
