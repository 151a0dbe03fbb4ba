"""Bytes become elements: across cuts, and with every buffer given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.consumer import Abort, AbortReason, InputGate, LocalInputChannel, NetworkInput
from refimpl.errors import RemoteProtocolError, SpillError
from refimpl.memory import BufferConsumer, DataType, LocalBufferPool, NetworkBufferPool, heap_buffer
from refimpl.producer import RecordWriter, ResultPartition, RoundRobinSelector
from refimpl.records import (
    LONG,
    STRING,
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfPartition,
    EndOfSuperstep,
    Event,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
    event_to_buffer,
)


class Bench:
    """One writer, its channels, and the input that reads them all."""

    def __init__(
        self,
        channels: int = 1,
        segment: int = 64,
        kind: TypeSerializer = LONG,
        **options: object,
    ) -> None:
        self.num_buffers = 2_400 // segment + 20
        self.config = Config(segment_size_bytes=segment, num_buffers=self.num_buffers, buffer_timeout_ms=-1, **options)
        self.home = NetworkBufferPool(self.num_buffers, segment)
        pool = LocalBufferPool(self.home, 1, num_channels=channels)
        self.partition = ResultPartition("map-0", channels, pool, self.config)
        elements = StreamElementSerializer(kind)
        self.writer = RecordWriter(self.partition, RoundRobinSelector(), elements)
        gate = InputGate("sink-0", [LocalInputChannel(i, s.view) for i, s in enumerate(self.partition.subpartitions)])
        self.input = NetworkInput(gate, elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(self.config))
        gate.open()

    def emit(self, *records: StreamRecord) -> None:
        for record in records:
            self.writer.emit(record)

    def add(self, data: bytes, channel: int = 0) -> None:
        """Put bytes into the queue of a channel, as if they had been written."""
        buffer = heap_buffer(data, DataType.DATA)
        self.partition.subpartitions[channel].add(BufferConsumer.of_buffer(buffer))

    def read(self, limit: int = 1) -> list[object]:
        """Everything there is now, as a task reads it, `limit` buffers at a time."""
        self.partition.flush_all()
        elements = []
        while self.input.take(limit):
            while (element := self.input.next_element()) is not None:
                elements.append(element)
            self.input.recycle()
        return elements

    @property
    def num_out(self) -> int:
        return len(self.partition.pool.lent)


def test_two_records_of_one_buffer_need_one_take() -> None:
    """Flink: `StreamTaskNetworkInputTest#testIsAvailableWithBufferedDataInDeserializer` (P100)."""
    bench = Bench()
    bench.emit(StreamRecord(1), StreamRecord(2))
    bench.partition.flush_all()
    assert bench.input.take(limit=8) == 1
    assert bench.input.next_element() == StreamRecord(1)
    assert (bench.input.is_ready, bench.input.gate.is_ready, bench.input.is_drained) == (True, False, False)
    assert bench.input.next_element() == StreamRecord(2)
    assert bench.input.next_element() is None
    assert bench.input.is_drained


def test_nothing_behind_a_barrier_is_read_with_it() -> None:
    """Flink: `StreamTaskNetworkInputTest#testNoDataProcessedAfterCheckpointBarrier` (P101)."""
    bench = Bench()
    bench.writer.broadcast_event(CheckpointBarrier(1, 0))
    bench.writer.emit(StreamRecord(1))
    bench.partition.flush_all()
    assert bench.input.take(limit=8) == 1
    assert bench.input.next_element() == CheckpointBarrier(1, 0)
    assert bench.input.next_element() is None
    assert bench.read() == [StreamRecord(1)]


def test_a_barrier_that_comes_twice_names_gate_and_channel() -> None:
    bench = Bench(channels=2)
    subpartition = bench.partition.subpartitions[1]
    for _ in range(2):
        subpartition.add(BufferConsumer.of_buffer(event_to_buffer(CheckpointBarrier(4, 0))))
    assert bench.input.take(limit=8) == 1
    subpartition.view.resume()  # without being told to go on
    with pytest.raises(RemoteProtocolError, match=r"^sink-0, channel 1: barrier 4 a second time"):
        bench.input.take(limit=8)


def put(bench: Bench, step: str) -> None:
    """One step of a `script`."""
    channel, what, number = "abc".index(step[0]), step[1], step[2:]
    match what:
        case "|":
            event: Event = CheckpointBarrier(int(number), 0)
        case "!":
            event = CancelCheckpointMarker(int(number))
        case ".":
            event = EndOfPartition()
        case _:
            bench.writer.emit_to(StreamRecord(int(step[1:])), channel)
            return
    bench.writer.copy.close(channel)
    bench.partition.subpartitions[channel].add(BufferConsumer.of_buffer(event_to_buffer(event)))


def script(bench: Bench, steps: str) -> list[object]:
    """What comes of channels a, b, c. `b2` is record 2 on b, `b|1` barrier 1, `b!1` its cancellation, `b.` the end."""
    for step in steps.split():
        put(bench, step)
    found = bench.read()
    return [each.value if isinstance(each, StreamRecord) else type(each).__name__ for each in found]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [("a|1 b!1", AbortReason.CANCELLED), ("a|1 b.", AbortReason.INPUT_ENDED), ("a|1 b|2", AbortReason.SUBSUMED)],
)
def test_that_a_checkpoint_will_not_be_is_handed_out_with_the_reason(steps: str, reason: AbortReason) -> None:
    bench = Bench(channels=3, segment=16)
    found: list[object] = []
    for each in steps.split():
        put(bench, each)
        found += bench.read()
    assert found == [Abort(1, reason)]


def test_blocked_channels_come_behind_the_last_barrier_and_before_what_is_new() -> None:
    """Their data stays in the queues of their producers. (1.5 keeps it at the consumer, and counts it.)

    Flink: `BarrierBufferTestBase#testMultiChannelWithBarriers` (P106).
    """
    bench = Bench(channels=3, segment=16)
    assert sorted(script(bench, "a1 b2 c3")) == [1, 2, 3]
    assert script(bench, "b|1 c|1 b4 b5 c6 a7 a8") == [7, 8]
    assert bench.input.alignment.snapshot().arrived == (1, 2)
    cut, *rest = script(bench, "a|1 a9 b10")
    assert (cut, sorted(rest[:3]), sorted(rest)) == ("CheckpointBarrier", [4, 6, 9], [4, 5, 6, 9, 10])
    assert script(bench, "c|2 b|2 a|2") == ["CheckpointBarrier"]
    assert script(bench, "b11") == [11]


@pytest.mark.parametrize("last", ["a!1", "a."])
def test_a_cancellation_or_an_end_gives_an_alignment_up_and_frees_who_waited(last: str) -> None:
    """No cut is made for it; the next barrier makes one.

    Flink: `BarrierBufferTestBase#testMultiChannelAbortCheckpoint` (P107),
    `BarrierBufferTestBase#testEndOfStreamWhileCheckpoint` (P107).
    """
    bench = Bench(channels=3, segment=16)
    assert script(bench, "b|1 c|1 b4 c6 a7") == [7]
    abort, *rest = script(bench, last)
    assert (abort, sorted(rest)) == ("Abort", [4, 6])
    assert bench.input.alignment.snapshot().num_completed == 0
    assert script(bench, "b|2 c|2" + (" a|2" if "!" in last else "")) == ["CheckpointBarrier"]


def test_a_barrier_behind_its_cancellation_stops_nobody() -> None:
    """Flink: `BarrierBufferTestBase#testMultiChannelAbortCheckpoint` (P107)."""
    bench = Bench(channels=3, segment=16)
    assert script(bench, "a!4") == ["Abort"]
    assert sorted(script(bench, "b|4 b1 c|4 c2 a3")) == [1, 2, 3]


def test_the_end_of_a_channel_lets_its_deserializer_go() -> None:
    """Flink: `StreamTaskNetworkInputTest#testReleasingDeserializerTimely` (P102)."""
    bench = Bench(channels=2)
    bench.writer.emit(StreamRecord(1))
    bench.writer.finish()
    assert bench.read() == [StreamRecord(1)]
    assert bench.input.is_finished
    assert bench.input._deserializers == [None, None]
    assert bench.num_out == 0


def test_half_records_of_two_channels_do_not_mix() -> None:
    """One deserializer for each channel."""
    bench = Bench(channels=2, segment=7)
    records = [StreamRecord(number, number) for number in range(10)]
    bench.emit(*records)
    bench.writer.finish()
    elements = bench.read()
    assert sorted(element.value for element in elements) == list(range(10))
    assert [element.value for element in elements if element.value % 2] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("segment", [64, 1_300])
def test_records_that_are_gathered_in_a_file_come_between_the_others(segment: int, tmp_path: Path) -> None:
    spilling = {"spill_threshold_bytes": 4, "spill_directory": str(tmp_path)}
    bench = Bench(1, segment, TupleType(LONG, LONG), **spilling)
    records = [StreamRecord((number, -number), number) for number in range(90)]
    bench.emit(*records)
    assert bench.read() == records


KINDS = {
    LONG: st.integers(-(2**63), 2**63 - 1),
    TupleType(LONG, LONG): st.tuples(st.integers(0, 9), st.integers(0, 9)),
    STRING: st.none() | st.text(max_size=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(data=st.data(), segment=st.integers(1, 400))
def test_elements_of_any_kind_come_out_as_they_went_in(kind: TypeSerializer, data: st.DataObject, segment: int) -> None:
    """Records with times and without, watermarks between them, cut anywhere."""
    timed = st.builds(StreamRecord, KINDS[kind], st.integers(0, 99))
    untimed, watermark = st.builds(StreamRecord, KINDS[kind]), st.builds(Watermark, st.integers(0, 10**6))
    elements = data.draw(st.lists(timed | untimed | watermark, max_size=80))
    bench = Bench(segment=segment, kind=kind)
    expected, last = [], -1
    for element in elements:
        if isinstance(element, Watermark):
            bench.writer.broadcast(element)
            if element.timestamp <= last:
                continue
            last = element.timestamp
        else:
            bench.writer.emit(element)
        expected.append(element)
    bench.writer.finish()
    assert bench.read() == expected
    assert bench.input.is_finished
    assert bench.num_out == 0


def test_a_watermark_is_that_of_all_channels() -> None:
    bench = Bench(channels=2)
    bench.writer.emit_to(Watermark(5), 0)
    assert bench.read() == []
    bench.writer.emit_to(Watermark(3), 1)
    assert bench.read() == [Watermark(3)]
    bench.writer.emit_to(StreamStatus.IDLE, 1)
    assert bench.read() == [Watermark(5)]
    bench.writer.emit_to(StreamStatus.IDLE, 0)
    assert bench.read() == [StreamStatus.IDLE]


def test_bytes_that_are_no_element_name_the_channel() -> None:
    bench = Bench(channels=2)
    bench.add(b"\0\0\0\1\x63", channel=1)
    with pytest.raises(RemoteProtocolError, match="sink-0, channel 1: 99 is no element tag"):
        bench.read()
    bench.input.close()
    bench.writer.close()
    bench.partition.release()
    assert bench.home.num_free == bench.num_buffers


def test_a_record_that_cannot_be_spilled_fails_and_gives_everything_back(tmp_path: object) -> None:
    bench = Bench(segment=8, spill_threshold_bytes=4, spill_directory=str(tmp_path / "missing"))
    bench.writer.emit(StreamRecord(1))
    with pytest.raises(SpillError, match="a record of 9 B must be spilled"):
        bench.read()
    bench.input.close()
    bench.writer.close()
    bench.partition.release()
    assert bench.home.num_free == bench.num_buffers


def test_held_buffers_are_those_not_given_back_yet() -> None:
    bench = Bench(segment=20)
    bench.emit(*[StreamRecord(number) for number in range(6)])
    bench.writer.broadcast_event(EndOfSuperstep())
    assert bench.input.take(limit=3) == 3
    assert len(bench.input.held_buffers) == 3
    while bench.input.next_element() is not None:
        assert len(bench.input.held_buffers) == 3
    bench.input.recycle()
    assert bench.input.held_buffers == []
    bench.input.take(limit=3)
    bench.input.close()
    assert (bench.input.held_buffers, bench.num_out) == ([], 0)


class Moody:
    """A type of the user's, with a mistake of his that shows at one value."""

    name, struct_format = "moody", None

    def serialize(self, value: int, target: bytearray) -> None:
        target.append(value)

    def deserialize(self, source: memoryview, position: int) -> tuple[int, int]:
        if source[position] == 3:
            raise ZeroDivisionError("three")
        return source[position], position + 1


@pytest.mark.parametrize(("kind", "wrong", "error", "words"), [
    (STRING, b"\0\0\0\3\1\x09a", RemoteProtocolError, "sink-0, channel 0: a string starts at byte 2"),
    (STRING, b"\0\0\0\4\1\2ab", RemoteProtocolError, "sink-0, channel 0: the element ends at byte 3"),
    (STRING, b"\0\0\0\2\x63\0", RemoteProtocolError, "sink-0, channel 0: 99 is no element tag"),
    (STRING, b"\xff\xff\xff\xff\1\0", RemoteProtocolError, "sink-0, channel 0: a record cannot have"),
    (Moody(), b"\0\0\0\2\1\3", ZeroDivisionError, "three"),
], ids=["cut off", "too long", "no tag", "negative", "of the user"])  # fmt: skip
def test_what_is_wrong_is_said_when_those_before_it_are_handed_out(
    kind: TypeSerializer, wrong: bytes, error: type[Exception], words: str
) -> None:
    bench = Bench(segment=400, kind=kind)
    records = [StreamRecord("abc"[:number] if kind is STRING else number, number) for number in range(3)]
    elements = StreamElementSerializer(kind)
    payloads = [elements.serialize(record) for record in records]
    right = b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)
    bench.add(right + wrong + right)
    bench.partition.flush_all()
    bench.input.take()
    assert [bench.input.next_element() for _ in records] == records
    with pytest.raises(error, match=words):
        bench.input.next_element()
