"""The writer: where bytes go, when they leave, and that being blocked loses nothing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError, SluiceError
from refimpl.memory import BufferBuilder, BufferConsumer
from refimpl.producer import (
    BroadcastSelector,
    ForwardSelector,
    PipelinedSubpartition,
    RecordWriter,
    RoundRobinSelector,
)
from refimpl.records import (
    DOUBLE,
    LONG,
    STRING,
    CheckpointBarrier,
    EndOfPartition,
    EndOfSuperstep,
    SerializationResult,
    SpanningRecordSerializer,
    StreamElementSerializer,
    StreamRecord,
    TupleType,
    TypeSerializer,
    Watermark,
    element_serializer,
)
from tests.support.writer_rig import Bench, Counting, Door, Payload, element, emit_all

ROW = TupleType(LONG, LONG)


# -- events and records ----------------------------------------------------------------------------


def test_an_event_reaches_every_channel_and_costs_no_buffer() -> None:
    """Flink: `RecordWriterTest#testBroadcastEventNoRecords` (P40)."""
    bench = Bench(channels=4)
    bench.writer.broadcast_event(EndOfSuperstep())
    assert bench.queued() == [1, 1, 1, 1]
    assert bench.pool.num_requested == 0
    bench.read_all()
    assert bench.events == [[EndOfSuperstep()]] * 4


def test_an_event_follows_the_records_before_it() -> None:
    """Payloads of 16, 33 and 28 bytes over four channels, then a barrier.

    Flink: `RecordWriterTest#testBroadcastEventMixedRecords` (P41).
    """
    bench = Bench(channels=4, segment=32, kind=Payload())
    for size in (16, 33, 28):
        bench.writer.emit(StreamRecord(bytes(size)))
    bench.writer.broadcast_event(CheckpointBarrier(1, 0))
    assert bench.pool.num_requested == 4
    assert bench.queued() == [2, 3, 2, 1]
    assert [len(data) for data in bench.read_all()] == [20, 37, 32, 0]
    assert bench.writer.copy.open_builders == ()


def test_one_broadcast_buffer_serves_four_channels() -> None:
    """Three buffers, and each queue holds them and the barrier.

    Flink: `RecordWriterTest#testBroadcastEventMixedRecords` (P41).
    """
    bench = Bench(channels=4, segment=32, kind=Payload(), selector=BroadcastSelector())
    for size in (16, 33, 28):
        bench.writer.emit(StreamRecord(bytes(size)))
    bench.writer.broadcast_event(CheckpointBarrier(1, 0))
    assert bench.pool.num_requested == 3
    assert bench.queued() == [4, 4, 4, 4]


def test_a_shared_event_lives_until_its_last_reader() -> None:
    """Flink: `RecordWriterTest#testBroadcastEventBufferReferenceCounting` (P42)."""
    bench = Bench(channels=2)
    bench.writer.broadcast_event(EndOfPartition())
    first = bench.partition.subpartitions[0].poll().buffer
    second = bench.partition.subpartitions[1].poll().buffer
    assert first.parent is second.parent
    first.recycle()
    assert not second.is_recycled
    second.recycle()
    assert second.is_recycled


def test_copies_of_a_broadcast_have_positions_of_their_own() -> None:
    """Flink: `RecordWriterTest#testBroadcastEmitBufferIndependence` (P43)."""
    bench = Bench(channels=2, selector=BroadcastSelector())
    bench.writer.emit(StreamRecord(1))
    bench.read(0)
    bench.writer.emit(StreamRecord(2))
    bench.read(0)
    assert bench.read_all() == [element(1) + element(2)] * 2


@pytest.mark.parametrize(("is_broadcast", "num_buffers"), [(False, 8), (True, 2)])
def test_a_broadcast_writer_needs_the_buffers_of_one_channel(is_broadcast: bool, num_buffers: int) -> None:
    """8 records of 8 bytes, 32-byte buffers, 4 channels.

    Flink: `RecordWriterTest#testBroadcastEmitRecord` (P44).
    """
    selector = BroadcastSelector() if is_broadcast else RoundRobinSelector()
    bench = Bench(channels=4, segment=32, kind=Payload(), selector=selector)
    for number in range(8):
        record = StreamRecord(bytes((0, number, 0, 0)))
        if is_broadcast:
            bench.writer.emit(record)
        else:
            bench.writer.broadcast(record)
    assert bench.pool.num_requested == num_buffers
    assert bench.queued() == [2, 2, 2, 2]
    expected = b"".join(struct.pack(">iBBBB", 4, 1, number, 0, 0) for number in range(8))
    assert bench.finish() == [expected] * 4


def test_private_and_shared_records_keep_their_order() -> None:
    """Flink: `BroadcastRecordWriterTest#testBroadcastMixedRandomEmitRecord` (P45)."""
    bench = Bench(channels=4, segment=32, selector=BroadcastSelector())
    expected = [b""] * 4
    for number in range(8):
        if number % 2 == 0:
            bench.writer.emit_to(StreamRecord(number), number % 4)
            expected[number % 4] += element(number)
        else:
            bench.writer.emit(StreamRecord(number))
            expected = [data + element(number) for data in expected]
    assert bench.finish() == expected
    assert bench.global_pool.num_free + bench.pool.snapshot().num_idle == 64


def test_a_shared_buffer_goes_home_when_all_channels_have_read_it() -> None:
    """Two buffers of two records each; the private one is seen by channel 0 alone.

    Flink: `BroadcastRecordWriterTest#testRandomEmitAndBufferRecycling` (P46).
    """
    bench = Bench(channels=2, segment=26, buffers=2, selector=BroadcastSelector())
    bench.writer.emit_to(StreamRecord(1), 0)
    bench.writer.emit(StreamRecord(2))
    bench.writer.emit(StreamRecord(3))
    assert len(bench.pool.lent) == 2
    bench.partition.flush_all()
    bench.read(0)
    assert len(bench.pool.lent) == 2
    bench.read(1)
    assert len(bench.pool.lent) == 1  # the second one is still open
    assert bench.read_all() == [element(1) + element(2) + element(3), element(2) + element(3)]


def test_a_pool_of_one_is_available_until_a_buffer_is_out() -> None:
    """Flink: `RecordWriterTest#testIsAvailableOrNot` (P47)."""
    bench = Bench(buffers=1)
    assert bench.writer.is_available
    bench.writer.emit(StreamRecord(1))
    assert not bench.writer.is_available
    bench.writer.broadcast_event(EndOfSuperstep())
    bench.read_all()
    assert bench.writer.is_available


def test_a_blocked_writer_gives_everything_up_when_closed() -> None:
    """Flink: `RecordWriterTest#testClearBuffersAfterInterruptDuringBlockingBufferRequest` (P48)."""
    bench = Bench(segment=8, buffers=1)
    bench.writer.emit(StreamRecord(1))
    bench.writer.emit(StreamRecord(2))
    assert bench.writer.is_blocked
    bench.writer.close()
    bench.partition.release()
    assert not bench.writer.is_blocked
    assert bench.global_pool.num_free == 1


# -- when a buffer leaves --------------------------------------------------------------------------


def test_a_full_buffer_is_told_of_when_the_next_one_opens() -> None:
    """A record that ends with its buffer asks for no next one."""
    bench = Bench(segment=13)
    bench.writer.emit(StreamRecord(1))
    assert (bench.num_told, bench.pool.num_requested, bench.writer.copy.open_builders) == ([0], 1, ())
    bench.writer.emit(StreamRecord(2))
    assert (bench.num_told, bench.pool.num_requested) == ([1], 2)


@pytest.mark.parametrize(("kind", "value"), [(LONG, 7), (STRING, "seven")])
def test_a_timeout_of_zero_flushes_each_record(kind: TypeSerializer, value: object) -> None:
    """A flush does not cut the buffer, the rest goes into the same one."""
    bench = Bench(timeout=0, segment=64, kind=kind)
    for number in range(3):
        bench.writer.emit(StreamRecord(value, number))
        assert bench.num_told == [number + 1]
        bench.read_all()
    assert bench.pool.num_requested == 1


def test_a_timeout_flushes_what_nobody_was_told_of() -> None:
    """The driver passes the time in."""
    bench = Bench(timeout=100, segment=64)
    assert bench.writer.partition.next_deadline(0.0) is None
    bench.writer.emit(StreamRecord(1))
    assert bench.writer.partition.next_deadline(10.0) == 110.0
    assert bench.writer.partition.next_deadline(50.0) == 110.0
    bench.writer.partition.on_timeout(109.0)
    assert bench.num_told == [0]
    bench.writer.partition.on_timeout(110.0)
    assert bench.num_told == [1]
    assert bench.writer.partition.next_deadline(120.0) is None


def test_a_timeout_of_minus_one_never_flushes() -> None:
    bench = Bench(timeout=-1, segment=64)
    bench.writer.emit(StreamRecord(1))
    assert bench.writer.partition.next_deadline(1e9) is None
    assert bench.num_told == [0]


def test_an_event_pushes_the_open_buffer_out() -> None:
    """A record written before a barrier would arrive behind it otherwise."""
    bench = Bench(segment=64)
    bench.writer.emit(StreamRecord(1))
    bench.writer.broadcast_event(EndOfSuperstep())
    assert bench.num_told == [1]
    bench.read(0, 1)
    assert (bytes(bench.arrived[0]), bench.events) == (element(1), [[]])


def test_a_watermark_reaches_all_channels() -> None:
    bench = Bench(channels=3, segment=64)
    bench.writer.broadcast(Watermark(7))
    watermark = StreamElementSerializer(LONG).serialize(Watermark(7))
    assert bench.finish() == [struct.pack(">i", len(watermark)) + watermark] * 3
    assert bench.events == [[EndOfPartition()]] * 3


# -- being blocked ---------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(["record", "watermark", "event", "records", "private"]), max_size=25),
    st.integers(1, 40),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_blocked_writer_resumes_without_loss(
    actions: list[str], segment: int, channels: int, is_broadcast: bool
) -> None:
    """Whatever is emitted while the pool is empty arrives later, in order, as with an endless pool."""
    results = []
    for buffers in (channels + 1, 6_000 // segment + 100):
        selector = BroadcastSelector() if is_broadcast else RoundRobinSelector()
        bench = Bench(channels, segment, buffers, kind=ROW, selector=selector)
        for number, action in enumerate(actions):
            if action == "record":
                bench.writer.emit(StreamRecord((number, -number), number if number % 3 else None))
            elif action == "watermark":
                bench.writer.broadcast(Watermark(number))
            elif action == "private":
                bench.writer.emit_to(Watermark(-number), number % channels)
            elif action == "event":
                bench.writer.broadcast_event(EndOfSuperstep())
            else:
                emit_all(bench.writer, [StreamRecord((number, 0), 0)] * (number % 4))
        results.append((bench.finish(), bench.events))
        assert bench.global_pool.num_free + bench.pool.snapshot().num_idle == buffers
    assert results[0] == results[1]


def test_a_blocked_writer_cannot_finish() -> None:
    bench = Bench(segment=8, buffers=1)
    bench.writer.emit(StreamRecord(1))
    with pytest.raises(LocalUsageError, match="still wait for buffers"):
        bench.writer.finish()


def test_resume_without_a_buffer_stays_blocked() -> None:
    bench = Bench(segment=8, buffers=1)
    bench.writer.emit(StreamRecord(1))
    assert (bench.writer.resume(), bench.writer.resume()) == (False, False)
    bench.partition.flush_all()
    bench.read_all()
    assert bench.writer.resume()


# -- what cannot be written ------------------------------------------------------------------------


def test_a_record_of_two_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert element_serializer.MAX_ELEMENT_BYTES == 2**31 - 1
    monkeypatch.setattr(element_serializer, "MAX_ELEMENT_BYTES", 100)  # the record is not to be made
    bench = Bench(segment=64, buffers=4, kind=Payload())  # type: ignore[arg-type]
    bench.writer.emit(StreamRecord(bytes(100)))
    with pytest.raises(LocalUsageError, match="101 B do not fit a length of four bytes"):
        bench.writer.emit(StreamRecord(bytes(101)))


def test_an_int_too_large_for_a_double_is_refused_in_place_as_elsewhere() -> None:
    bench = Bench(segment=64, kind=DOUBLE)
    bench.writer.emit(StreamRecord(1.0))
    with pytest.raises(LocalUsageError, match="is not a double"):
        bench.writer.emit(StreamRecord(10**400))


@pytest.mark.parametrize("num_before", [0, 1])
@pytest.mark.parametrize("value", [(1,), (1, 2, 3), ("a", 2), [1, 2], (1, 2**63), None], ids=repr)
def test_a_value_of_another_type_is_refused_wherever_it_would_stand(num_before: int, value: object) -> None:
    bench = Bench(segment=256, kind=ROW)
    for _ in range(num_before):
        bench.writer.emit(StreamRecord((0, 0), 0))
    with pytest.raises(LocalUsageError, match=r"is not a (long|tuple\(long, long\))"):
        bench.writer.emit(StreamRecord(value, 1))
    bench.writer.emit(StreamRecord((3, 4), 1))
    assert bench.finish() == [element((0, 0), 0, ROW) * num_before + element((3, 4), 1, ROW)]


def test_the_buffers_a_record_fills_are_queued_under_the_exclusion() -> None:
    """The thread that reads the queue looks at it under the same one."""
    bench = Bench(segment=64, buffers=30, kind=Payload())  # type: ignore[arg-type]
    door, depths = Door(), []

    class Watched(PipelinedSubpartition):
        def add(self, consumer: BufferConsumer) -> bool:
            depths.append(door.depth)
            return super().add(consumer)

    bench.partition.use(Watched)
    elements = StreamElementSerializer(Payload())  # type: ignore[arg-type]
    RecordWriter(bench.partition, ForwardSelector(), elements, exclusion=door).emit(StreamRecord(bytes(1_000)))
    assert len(depths) == 16
    assert min(depths) > 0


# -- another serializer ----------------------------------------------------------------------------


def test_the_serializer_and_the_selector_are_called_for_each_record() -> None:
    class Asked(RoundRobinSelector):
        num_asked = 0

        def select_channel(self, value: object) -> int:
            self.num_asked += 1
            return super().select_channel(value)

    bench = Bench(channels=2, segment=64, selector=(selector := Asked()))
    bench.writer.swap_serializer(part := Counting())
    emit_all(bench.writer, [StreamRecord(number) for number in range(100)])
    assert (part.num_records, selector.num_asked, bench.writer.num_records) == (100, 100, 100)


def test_a_swap_closes_the_open_buffer_and_starts_the_next() -> None:
    bench = Bench(segment=64)
    bench.writer.emit(StreamRecord(1, 1))
    part = Counting()
    bench.writer.swap_serializer(part)
    assert bench.writer.serializer is part
    assert bench.writer.copy.open_builders == ()
    bench.writer.emit(StreamRecord(2, 2))
    assert part.num_records == 1
    assert bench.queued() == [2]
    assert bench.finish() == [element(1, 1) + element(2, 2)]


def test_a_swap_while_blocked_waits_for_the_record_in_hand_and_no_longer() -> None:
    bench = Bench(segment=20, buffers=1)
    bench.writer.emit(StreamRecord(1, 1))
    assert bench.writer.is_blocked
    part = Counting()
    bench.writer.swap_serializer(part)
    assert bench.writer.serializer is not part
    bench.partition.flush_all()
    bench.read_all()
    assert bench.writer.resume()
    bench.writer.emit(StreamRecord(2))
    bench.partition.flush_all()
    bench.read_all()
    bench.writer.resume()
    assert (bench.writer.serializer, part.num_records) == (part, 1)
    assert bench.finish() == [element(1, 1) + element(2)]


def test_a_swap_while_blocked_reaches_records_that_would_fit_the_open_buffer() -> None:
    """What could be packed in place after a resume must go to the new part too."""
    bench = Bench(segment=50, buffers=1)
    emit_all(bench.writer, [StreamRecord(1, 1), StreamRecord(2, 2), StreamRecord(3, 3)])
    assert bench.writer.is_blocked
    part = Counting()
    bench.writer.swap_serializer(part)
    bench.partition.flush_all()
    bench.read_all()
    assert bench.writer.resume()
    bench.writer.emit(StreamRecord(4, 4))
    bench.finish()
    assert part.num_records == 1


def test_a_part_that_copies_nothing_is_stopped() -> None:
    class Stuck(SpanningRecordSerializer):
        def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL

    bench = Bench()
    bench.writer.swap_serializer(Stuck())
    with pytest.raises(SluiceError, match="Stuck copied nothing into an empty buffer of 32 B"):
        bench.writer.emit(StreamRecord(1))
