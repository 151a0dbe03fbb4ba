"""Bytes become elements: whole runs at once, across cuts, and with every buffer given back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel, NetworkInput
from refimpl.errors import RemoteProtocolError, SpillError
from refimpl.memory import BufferConsumer, LocalBufferPool, NetworkBufferPool
from refimpl.producer import RecordWriter, ResultPartition, RoundRobinSelector
from refimpl.records import (
    INT,
    LONG,
    STRING,
    CheckpointBarrier,
    EndOfSuperstep,
    LatencyMarker,
    RecordBatch,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
    event_to_buffer,
)
from refimpl.shortcuts.encoded_batch import EncodedBatch


class Bench:
    """One writer, its channels, and the input that reads them all."""

    def __init__(
        self,
        channels: int = 1,
        segment: int = 64,
        kind: TypeSerializer = LONG,
        takes_batches: bool = False,
        **options: object,
    ) -> None:
        self.num_buffers = 2_400 // segment + 20
        self.config = Config(segment_size_bytes=segment, num_buffers=self.num_buffers, buffer_timeout_ms=-1, **options)
        self.home = NetworkBufferPool(self.num_buffers, segment)
        pool = LocalBufferPool(self.home, 1, num_channels=channels)
        self.partition = ResultPartition("map-0", channels, pool, self.config)
        elements = StreamElementSerializer(kind)
        self.writer = RecordWriter(self.partition, RoundRobinSelector(), elements)
        gate = InputGate("sink-0", [LocalInputChannel(i, s) for i, s in enumerate(self.partition.subpartitions)])
        self.input = NetworkInput(
            gate, elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(self.config), takes_batches
        )
        gate.open()

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
    """Flink: `StreamTaskNetworkInputTest#testIsAvailableWithBufferedDataInDeserializer`."""
    bench = Bench()
    bench.writer.emit_many([StreamRecord(1), StreamRecord(2)])
    bench.partition.flush_all()
    assert bench.input.take(limit=8) == 1
    assert bench.input.next_element() == StreamRecord(1)
    assert (bench.input.is_ready, bench.input.gate.is_ready, bench.input.is_drained) == (True, False, False)
    assert bench.input.next_element() == StreamRecord(2)
    assert bench.input.next_element() is None
    assert bench.input.is_drained


def test_nothing_behind_a_barrier_is_read_with_it() -> None:
    """Flink: `StreamTaskNetworkInputTest#testNoDataProcessedAfterCheckpointBarrier`."""
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
    subpartition.resume()  # without being told to go on
    with pytest.raises(RemoteProtocolError, match=r"^sink-0, channel 1: barrier 4 a second time"):
        bench.input.take(limit=8)


def test_the_end_of_a_channel_lets_its_deserializer_go() -> None:
    """Flink: `StreamTaskNetworkInputTest#testReleasingDeserializerTimely`."""
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
    bench.writer.emit_many(records)
    bench.writer.finish()
    elements = bench.read()
    assert sorted(element.value for element in elements) == list(range(10))
    assert [element.value for element in elements if element.value % 2] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("segment", [64, 1_300])
@pytest.mark.parametrize("takes_batches", [False, True])
def test_a_record_that_is_gathered_in_a_file_is_no_part_of_a_run(
    segment: int, takes_batches: bool, tmp_path: Path
) -> None:
    spilling = {"spill_threshold_bytes": 4, "spill_directory": str(tmp_path)}
    bench = Bench(1, segment, TupleType(LONG, LONG), takes_batches, **spilling)
    records = [StreamRecord((number, -number), number) for number in range(90)]
    bench.writer.emit_many(records)
    found = [each.records() if isinstance(each, RecordBatch) else [each] for each in bench.read()]
    assert [record for part in found for record in part] == records


KINDS = {
    LONG: st.integers(-(2**63), 2**63 - 1),
    TupleType(LONG, LONG): st.tuples(st.integers(0, 9), st.integers(0, 9)),
    STRING: st.none() | st.text(max_size=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(data=st.data(), segment=st.integers(1, 400))
def test_runs_of_plain_rows_are_read_as_one_by_one(kind: TypeSerializer, data: st.DataObject, segment: int) -> None:
    """Rows at once, watermarks and untimed records between them: the same elements in the same order."""
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
    bench.writer._write(b"\0\0\0\1\x63", (1,))
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
    bench.writer.emit_many([StreamRecord(number) for number in range(6)])
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


# -- batches ---------------------------------------------------------------------------------------


def apart(elements: list[object]) -> list[object]:
    """The elements, with the records of batches one by one."""
    single: list[object] = []
    for each in elements:
        single.extend(each.records() if isinstance(each, RecordBatch) else [each])
    return single


NAMED = TupleType(LONG, STRING)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.text("aé", max_size=2)).map(StreamRecord)
        | st.tuples(st.integers(0, 99), st.just("ab")).map(lambda value: StreamRecord(value, 7))
        | st.sampled_from([Watermark(3), StreamStatus.IDLE, EndOfSuperstep(), CheckpointBarrier(1, 0)])
        | st.sampled_from([StreamRecord((number, "x" * 5_000)) for number in range(3)])
        | st.integers(8, 60).map(lambda n: [StreamRecord((number, "abc"), number) for number in range(n)]),
        max_size=12,
    ),
    st.integers(1, 300),
    st.integers(1, 3),
    st.integers(1, 9),
    st.booleans(),
)
def test_batches_hold_what_single_records_would_be(
    items: list[object], segment: int, channels: int, limit: int, is_flushed: bool
) -> None:
    """For each channel: nothing lost, doubled or out of order, events where they were, every buffer home."""
    answers = []
    for takes_batches in (False, True):
        bench = Bench(channels, segment, NAMED, takes_batches, spill_threshold_bytes=1_000)
        read: list[object] = []
        for item in items:
            if isinstance(item, EndOfSuperstep | CheckpointBarrier):
                bench.writer.broadcast_event(item)
            elif isinstance(item, StreamRecord | list):
                bench.writer.emit_many(item if isinstance(item, list) else [item])
            else:
                bench.writer.broadcast(item)
            if is_flushed:
                bench.partition.flush_all()
            while bench.writer.is_blocked:
                read += resumed(bench, limit)
                bench.writer.resume()
        bench.writer.finish()
        read += resumed(bench, limit)
        assert bench.input.is_finished
        assert bench.num_out == 0
        answers.append(apart(read))
    if channels == 1:
        assert answers[0] == answers[1]
    assert Counter(map(repr, answers[0])) == Counter(map(repr, answers[1]))


def resumed(bench: Bench, limit: int) -> list[object]:
    """What there is, also behind barriers."""
    read = []
    while True:
        found = bench.read(limit)
        read += found
        for channel in bench.input.gate.channels:
            if channel.subpartition.snapshot().is_blocked:
                channel.resume()
                found.append(None)
        if not found:
            return read


def test_buffers_of_one_channel_become_one_batch_and_a_record_cut_in_two_is_in_it() -> None:
    bench = Bench(segment=50, kind=TupleType(LONG, LONG), takes_batches=True)
    records = [StreamRecord((number, -number), number) for number in range(40)]  # 29 bytes each
    bench.writer.emit_many(records)
    bench.partition.flush_all()
    assert bench.input.take(limit=8) == 8
    first = bench.input.next_element()
    assert isinstance(first, RecordBatch)
    assert list(first.records()) == records[: 8 * 50 // 29]
    assert bench.input.next_element() is None
    bench.input.recycle()
    assert bench.num_out == 40 * 29 // 50 + 1 - 8
    [rest] = bench.read(limit=16)
    assert list(rest.records()) == records[8 * 50 // 29 :]
    assert bench.num_out == 1  # the last buffer is still open


def test_large_buffers_become_several_batches() -> None:
    """One of all would be so large that the system has to clear new memory for each."""
    segment = 128 * 1024
    bench = Bench(segment=segment, kind=TupleType(LONG, LONG), takes_batches=True)
    records = [StreamRecord((number, -number), number) for number in range(12 * segment // 29)]
    bench.writer.emit_many(records)
    batches = bench.read(limit=16)
    most = 28 + segment + 512 * 1024  # a record begun, the rest of which is at hand, and what is read with that
    assert len(batches) == 3
    assert all(len(batch) * 29 <= most for batch in batches)
    assert [record for batch in batches for record in batch.records()] == records
    assert bench.num_out <= 1


def test_a_batch_ends_where_a_watermark_stands() -> None:
    bench = Bench(segment=500, takes_batches=True)
    bench.writer.emit_many([StreamRecord(number, number) for number in range(10)])
    bench.writer.broadcast(Watermark(5))
    bench.writer.emit_many([StreamRecord(number, number) for number in range(9)])
    batch, watermark, rest = bench.read()
    assert (len(batch), watermark, len(rest)) == (10, Watermark(5), 9)


def test_few_records_are_handed_out_one_by_one() -> None:
    bench = Bench(takes_batches=True)
    bench.writer.emit_many([StreamRecord(1, 1), StreamRecord(2, 2)])
    assert bench.read() == [StreamRecord(1, 1), StreamRecord(2, 2)]


def test_records_next_to_each_other_are_handed_out_as_a_run_or_one_by_one() -> None:
    bench = Bench(segment=400)
    records = [StreamRecord(number, number) for number in range(15)]
    bench.writer.emit_many(records)
    bench.partition.flush_all()
    bench.input.take()
    assert bench.input.next_element() == records[0]
    run = bench.input.next_records()
    assert [next(run), next(run)] == records[1:3]
    assert bench.input.next_element() == records[3]
    assert not bench.input.is_drained
    assert next(bench.input.next_values()) == (4, 4)
    assert list(bench.input.next_records()) == records[5:]
    assert bench.input.is_drained
    assert (list(bench.input.next_records()), bench.input.next_element()) == ([], None)


def test_a_run_ends_where_something_else_stands() -> None:
    """A watermark, and a record without a time."""
    bench = Bench(segment=2_000)
    timed = [StreamRecord(number, number) for number in range(10)]
    bench.writer.emit_many(timed)
    bench.writer.broadcast(Watermark(9))
    bench.writer.emit_many([*timed[:8], *(StreamRecord(number) for number in range(9)), timed[0]])
    bench.partition.flush_all()
    bench.input.take()
    runs = []
    while not bench.input.is_drained:
        runs.append((len(list(bench.input.next_records())), bench.input.next_element()))
    assert runs == [(10, Watermark(9)), (8, StreamRecord(0)), (8, timed[0])]


@pytest.mark.parametrize("position", [1, 7, 8, 30])
@pytest.mark.parametrize("other", [StreamRecord(5), Watermark(9)], ids=repr)
def test_values_come_with_their_times_up_to_what_is_no_such_record(position: int, other: object) -> None:
    bench = Bench(segment=2_000)
    for number in range(40):
        bench.writer.emit(StreamRecord(number, -number))
        if number == position:
            bench.writer.emit_to(other, 0)
    bench.partition.flush_all()
    bench.input.take()
    found = []
    while not bench.input.is_drained:
        found += bench.input.next_values()
        element = bench.input.next_element()
        found.append((element.value, element.timestamp) if isinstance(element, StreamRecord) else element)
    expected = [(number, -number) for number in range(40)]
    expected.insert(position + 1, (5, None) if isinstance(other, StreamRecord) else other)
    assert [item for item in found if item is not None] == expected


@pytest.mark.parametrize("position", [0, 1, 31, 32, 33, 38])
def test_what_is_as_long_as_a_record_and_is_none_ends_a_run(position: int) -> None:
    """A latency marker has 29 bytes, and so has a record of three longs and an int."""
    bench = Bench(segment=2_000, kind=TupleType(LONG, LONG, LONG, INT))
    elements: list[object] = [StreamRecord((number, -number, 2**40, 7)) for number in range(40)]
    elements.insert(position, LatencyMarker(1, 2, 3, 4))
    for element in elements:
        bench.writer.emit_to(element, 0)
    assert bench.read() == elements


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
    bench.writer.emit_many(records)
    bench.writer._write(EncodedBatch(memoryview(wrong)), (0,))
    bench.writer.emit_many(records)
    bench.partition.flush_all()
    bench.input.take()
    assert [bench.input.next_element() for _ in records] == records
    with pytest.raises(error, match=words):
        bench.input.next_element()


def test_a_run_that_was_begun_is_forgotten_when_the_input_closes() -> None:
    bench = Bench(segment=400)
    bench.writer.emit_many([StreamRecord(number) for number in range(20)])
    bench.partition.flush_all()
    bench.input.take()
    next(bench.input.next_records())
    bench.input.close()
    assert (bench.input.is_drained, list(bench.input.next_records())) == (True, [])
    bench.writer.close()
    bench.partition.release()
    assert bench.num_out == 0
