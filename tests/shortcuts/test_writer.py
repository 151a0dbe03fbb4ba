"""The fast writers: the bytes of the book's, in the same buffers, told of at the same moments."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.memory import BufferConsumer, allocate_pages
from refimpl.producer import (
    BroadcastSelector,
    ChannelCopy,
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    KeyGroupSelector,
    PipelinedSubpartition,
    RebalanceSelector,
    RoundRobinSelector,
    ShuffleSelector,
)
from refimpl.records import (
    BYTES,
    DOUBLE,
    INT,
    LONG,
    STRING,
    EndOfSuperstep,
    Field,
    RecordBatch,
    SpanningRecordSerializer,
    StreamElementSerializer,
    StreamRecord,
    TupleType,
    TypeSerializer,
    Watermark,
)
from refimpl.shortcuts import writer as writer_module
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.partition import FastBufferPool, FastResultPartition
from refimpl.shortcuts.writer import FastBroadcastRecordWriter, FastRecordWriter, serialize_with_length
from tests.support import writer_rig
from tests.support.compiled import refused
from tests.support.writer_rig import Counting, Door, Payload, element, emit_all, noted

ROW = TupleType(LONG, LONG)


class Bench(writer_rig.Bench):
    """The same with the fast writers, and whole buffers several at once."""

    pool_class, partition_class = FastBufferPool, FastResultPartition
    writers = (FastRecordWriter, FastBroadcastRecordWriter)
    writer: FastRecordWriter


def batch_of(rows: list[tuple[int, int, int]]) -> RecordBatch:
    """Records of (time, (key, value))."""
    times, keys, values = np.array(rows, np.int64).reshape(-1, 3).T
    return RecordBatch([keys, values], times)


@pytest.mark.parametrize(("kind", "value"), [(LONG, 7), (STRING, "seven")])
def test_a_timeout_of_zero_flushes_each_record(kind: TypeSerializer, value: object) -> None:
    """A flush does not cut the buffer, the rest goes into the same one."""
    bench = Bench(timeout=0, segment=64, kind=kind)
    for number in range(3):
        bench.writer.emit(StreamRecord(value, number))
        assert bench.num_told == [number + 1]
        bench.read_all()
    assert bench.pool.num_requested == 1


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(["record", "watermark", "event", "batch", "private"]), max_size=25),
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
                rows = [(0, number, 0)] * (number % 4)
                bench.writer.write_batch(batch_of(rows))
        results.append((bench.finish(), bench.events))
        assert bench.global_pool.num_free + bench.pool.snapshot().num_idle == buffers
    assert results[0] == results[1]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-9, 9), st.none() | st.integers(-9, 9)), max_size=30), st.integers(1, 70))
def test_packing_in_place_writes_the_bytes_of_the_readable_path(
    values: list[tuple[int, int | None]], segment: int
) -> None:
    class Readable(SpanningRecordSerializer):
        """Not the reference class, so the writer packs nothing in place."""

    results = []
    for serializer in (SpanningRecordSerializer(), Readable()):
        bench = Bench(channels=2, segment=segment, buffers=700 // segment + 10)
        bench.writer.swap_serializer(serializer)
        bench.writer.emit_many([StreamRecord(value, timestamp) for value, timestamp in values])
        queued = [
            [(entry.written_bytes, entry.is_finished) for entry in subpartition.snapshot().queue]
            for subpartition in bench.partition.subpartitions
        ]
        results.append((queued, bench.finish()))
    assert results[0] == results[1]


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3), max_size=40), st.integers(1, 100))
def test_a_batch_writes_the_bytes_of_its_rows(rows: list[tuple[int, int, int]], segment: int) -> None:
    enough = 1_200 // segment + 5
    one, many = Bench(segment=segment, buffers=enough, kind=ROW), Bench(segment=segment, buffers=enough, kind=ROW)
    for timestamp, *value in rows:
        one.writer.emit(StreamRecord(tuple(value), timestamp))
    many.writer.write_batch(batch_of(rows))
    assert one.queued() == many.queued()
    assert one.writer.num_records == many.writer.num_records == len(rows)
    ready = Bench(segment=segment, buffers=enough, kind=ROW)
    wire = BatchCodec(ROW).encode(batch_of(rows))
    assert wire is not None
    ready.writer.write_encoded(wire.view(np.uint8).data, len(rows), 0)
    assert (ready.queued(), ready.writer.num_records) == (one.queued(), len(rows))
    assert one.finish() == many.finish() == ready.finish()


@pytest.mark.slow
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8), st.integers(1, 40), st.integers(3, 8))
def test_a_long_record_fills_the_buffers_that_the_readable_path_fills(
    values: list[bytes], segment: int, buffers: int
) -> None:
    """Also where the pool runs dry in the middle of it, and to two channels in turn."""

    class Readable(SpanningRecordSerializer):
        """Not the reference class, so no buffer is filled at once."""

    results = []
    for serializer in (SpanningRecordSerializer(), Readable()):
        bench = Bench(channels=2, segment=segment, buffers=buffers, kind=Payload())  # type: ignore[arg-type]
        bench.writer.swap_serializer(serializer)
        bench.writer.emit_many([StreamRecord(value) for value in values])
        queued = [
            [(entry.written_bytes, entry.partial_record_bytes) for entry in subpartition.snapshot().queue]
            for subpartition in bench.partition.subpartitions
        ]
        results.append((queued, bench.finish(), bench.global_pool.num_free + bench.pool.num_requested))
    assert results[0] == results[1]


def test_a_record_of_two_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_ELEMENT_BYTES", 127)  # the record is not to be made
    bench = Bench(segment=64, buffers=4, kind=Payload())  # type: ignore[arg-type]
    bench.writer.emit(StreamRecord(bytes(127)))
    with pytest.raises(LocalUsageError, match="128 B do not fit a length of four bytes"):
        bench.writer.emit(StreamRecord(bytes(128)))


def test_a_long_record_is_in_memory_once_on_its_way_into_buffers() -> None:
    """Each copy of a megabyte is pages that the system has to clear: three of them made it cost five times as much."""
    bench = Bench(segment=32_768, buffers=64, kind=BYTES)
    record = StreamRecord(bytes(2**20), 7)
    bench.writer.emit(record)
    tracemalloc.start()
    try:
        bench.writer.emit(record)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bench.finish() == [2 * element(record.value, record.timestamp, BYTES)]
    assert most < 1.5 * 2**20


@pytest.mark.parametrize(("channels", "selector"), [(1, ForwardSelector()), (3, KeyGroupSelector(Field(0), 128))])
def test_a_batch_takes_the_exclusion_once_and_tells_each_reader_once(channels: int, selector: ChannelSelector) -> None:
    """However many buffers it fills: two threads that meet for each one spend their time on meeting."""
    bench = Bench(channels, 64, 100, kind=ROW, selector=selector)
    writer = FastRecordWriter(bench.partition, selector, StreamElementSerializer(ROW), exclusion=(door := Door()))
    writer.write_batch(batch_of([(time, time, time) for time in range(100)]))
    assert min(bench.queued()) > 5
    assert door.num_taken == 1
    assert bench.num_told == [1] * channels


@pytest.mark.parametrize("write", ["emit", "write_encoded"])
def test_the_buffers_a_record_fills_are_queued_under_the_exclusion(write: str) -> None:
    """The thread that reads the queue looks at it under the same one."""
    bench = Bench(segment=64, buffers=30, kind=Payload())  # type: ignore[arg-type]
    door, depths = Door(), []

    class Watched(PipelinedSubpartition):
        def add(self, consumer: BufferConsumer) -> bool:
            depths.append(door.depth)
            return super().add(consumer)

    bench.partition.use(Watched)
    elements = StreamElementSerializer(Payload())  # type: ignore[arg-type]
    bench.writer = FastRecordWriter(bench.partition, ForwardSelector(), elements, exclusion=door)
    if write == "emit":
        bench.writer.emit(StreamRecord(bytes(1_000)))
    else:
        bench.writer.write_encoded(memoryview(bytes(1_000)), 1, 0)
    assert len(depths) == 16
    assert min(depths) > 0


def test_what_was_written_and_filled_buffers_is_not_kept() -> None:
    bench = Bench(segment=64, buffers=30, kind=Payload())  # type: ignore[arg-type]
    data = bytearray(element(bytes(999), kind=Payload()))  # type: ignore[arg-type]
    written = bytes(data)
    bench.writer.write_encoded(memoryview(data), 1, 0)
    data.append(1)  # a BufferError as long as somebody looks into it
    assert bench.finish() == [written]


def test_the_full_buffers_of_a_batch_stop_where_the_pool_is_empty_and_go_on_later() -> None:
    bench = Bench(segment=64, buffers=4, kind=ROW)
    rows = [(time, time, -time) for time in range(20)]
    bench.writer.write_batch(batch_of(rows))
    assert bench.writer.is_blocked
    assert bench.queued() == [4]
    assert bench.finish() == [b"".join(element((key, value), time, ROW) for time, key, value in rows)]
    bench.partition.release()
    assert bench.global_pool.num_free == 4


SELECTORS = {
    "forward": ForwardSelector, "round robin": RoundRobinSelector, "rebalance": lambda: RebalanceSelector(3),
    "shuffle": lambda: ShuffleSelector(3), "global": GlobalSelector, "broadcast": BroadcastSelector,
    "key": lambda: KeyGroupSelector(Field(0), 128), "plain key": lambda: KeyGroupSelector(lambda v: v[0], 128),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("selector", SELECTORS)
@given(
    st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3), max_size=60),
    st.lists(st.integers(0, 20), max_size=4),
    st.integers(1, 100),
    st.integers(1, 5),
)
def test_each_record_of_a_batch_goes_where_it_would_go_alone(
    selector: str, rows: list[tuple[int, int, int]], cuts: list[int], segment: int, channels: int
) -> None:
    channels = 1 if selector == "forward" else channels
    benches = [
        Bench(channels, segment, 6_000 // segment + 20, kind=ROW, selector=SELECTORS[selector]()) for _ in range(2)
    ]
    one, many = benches
    one.writer.emit_many([StreamRecord((key, value), time) for time, key, value in rows])
    for start, end in itertools.pairwise([0, *sorted(cuts), len(rows)]):
        many.writer.write_batch(batch_of(rows[start:end]))
    assert one.writer.num_records == many.writer.num_records == len(rows)
    assert one.finish() == many.finish()


@pytest.mark.parametrize("selector", SELECTORS)
def test_all_ways_to_write_choose_in_one_sequence(selector: str) -> None:
    """A record alone, several and a batch: who takes turns goes on where the one before stopped."""
    channels = 1 if selector == "forward" else 3
    one, mixed = (Bench(channels, 64, 200, kind=ROW, selector=SELECTORS[selector]()) for _ in range(2))
    rows = [(time, 7 * time, -time) for time in range(40)]
    records = [StreamRecord((key, value), time) for time, key, value in rows]
    for record in records:
        one.writer.emit(record)
    mixed.writer.write_batch(batch_of(rows[:4]))
    for record in records[4:6]:
        mixed.writer.emit(record)
    mixed.writer.emit_many(records[6:17])
    mixed.writer.write_batch(batch_of(rows[17:18]))
    mixed.writer.write_batch(batch_of(rows[18:18]))
    mixed.writer.emit_from(iter(records[18:29]))
    mixed.writer.write_batch(batch_of(rows[29:]))
    assert mixed.writer.num_records == one.writer.num_records == len(rows)
    assert mixed.finish() == one.finish()


class OwnSelector:
    """As a user may write one: it knows single values only."""

    name, is_broadcast = "own", False

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: tuple[int, int]) -> int:
        return value[0] % 3


class Turning(RoundRobinSelector):
    """One of ours, and then a choice of its own."""

    def select_channel(self, value: object) -> int:
        return 2 - super().select_channel(value)


@pytest.mark.parametrize("write", ["emit", "emit_many"])
def test_a_selector_that_does_more_than_take_turns_is_asked(write: str) -> None:
    bench = Bench(3, kind=LONG, selector=Turning())
    records = [StreamRecord(number) for number in range(6)]
    if write == "emit":
        for record in records:
            bench.writer.emit(record)
    else:
        bench.writer.emit_many(records)
    assert bench.finish() == [element(n, None, LONG) + element(n + 3, None, LONG) for n in (2, 1, 0)]


def test_a_selector_that_knows_single_values_only_is_asked_for_each() -> None:
    bench = Bench(3, kind=ROW, selector=OwnSelector())
    bench.writer.write_batch(batch_of([(0, 4, 40), (0, 2, 20), (0, 1, 10)]))
    expected = [b"", element((4, 40), 0, ROW) + element((1, 10), 0, ROW), element((2, 20), 0, ROW)]
    assert bench.finish() == expected


def test_a_timeout_of_zero_flushes_what_each_channel_gets_of_a_batch() -> None:
    bench = Bench(3, segment=64, timeout=0, kind=ROW)
    for num_told in (1, 2):
        bench.writer.write_batch(batch_of([(0, 1, 1), (0, 2, 2)]))
        bench.read_all()
        assert sum(bench.num_told) == 2 * num_told
    assert list(map(len, bench.arrived)) == [2 * 29 if n == 0 else 29 for n in range(3)]


def test_a_batch_that_cannot_be_written_at_once_is_written_one_by_one() -> None:
    kind = TupleType(LONG, STRING)
    bench = Bench(2, kind=kind)
    bench.writer.write_batch(RecordBatch([np.array([1, 2, 3]), np.array(["a", "bb", "é"])]))
    expected = [element((1, "a"), None, kind) + element((3, "é"), None, kind), element((2, "bb"), None, kind)]
    assert bench.finish() == expected
    assert bench.writer.num_records == 3


def test_a_batch_of_another_type_is_refused_by_value() -> None:
    with pytest.raises(LocalUsageError, match=r"1\.5 is not a long"):
        Bench(kind=LONG).writer.write_batch(RecordBatch([np.array([1.5])], is_tuple=False))


@pytest.mark.parametrize("is_blocked", [False, True])
def test_a_batch_goes_through_another_part_record_by_record(is_blocked: bool) -> None:
    class Counting(SpanningRecordSerializer):
        num_records = 0

        def serialize_record(self, record: bytes) -> None:
            self.num_records += 1
            super().serialize_record(record)

    bench = Bench(segment=32, buffers=1 if is_blocked else 64, kind=ROW)
    if is_blocked:
        bench.writer.emit_many([StreamRecord((0, 0), 0)] * 3)
        assert bench.writer.is_blocked
    part = Counting()
    bench.writer.swap_serializer(part)
    bench.writer.write_batch(batch_of([(n, n, n) for n in range(20)]))
    bench.finish()
    assert part.num_records >= 20


def test_a_batch_takes_new_memory_only_while_another_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that runs dry in the middle of each batch is how a fast producer lives."""
    num_taken = 0

    def allocate(num_bytes: int) -> memoryview:
        nonlocal num_taken
        num_taken += 1
        return allocate_pages(num_bytes)

    monkeypatch.setattr("refimpl.shortcuts.columns.allocate_pages", allocate)
    bench = Bench(segment=64, buffers=3, kind=ROW, selector=ForwardSelector())
    rows = [[(number, number, turn) for number in range(20)] for turn in range(12)]
    for each in rows[:10]:
        bench.writer.write_batch(batch_of(each))
        assert bench.writer.is_blocked
        while not bench.writer.resume():
            bench.read_all()
    assert num_taken == 1
    for each in rows[10:]:
        bench.writer.write_batch(batch_of(each))
    assert num_taken == 2
    while not bench.writer.resume():
        bench.read_all()
    written = [element((key, value), time, ROW) for each in rows for time, key, value in each]
    assert bench.finish() == [b"".join(written)]


MIXED = TupleType(LONG, INT, DOUBLE)


KINDS: dict[TypeSerializer, st.SearchStrategy[object]] = {
    LONG: st.integers(-(2**63), 2**63 - 1),
    ROW: st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    MIXED: st.tuples(st.integers(-9, 9), st.integers(-(2**31), 2**31 - 1), st.floats()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("timeout", [0, -1])
@given(data=st.data(), segment=st.sampled_from([7, 64, 1_300, 2_600, 5_000]), buffers=st.integers(2, 6))
def test_many_records_are_written_as_one_by_one(
    kind: TypeSerializer, timeout: int, data: st.DataObject, segment: int, buffers: int
) -> None:
    """Blocks and cuts, with a time and without, and a pool that runs dry on the way."""
    timed = st.builds(StreamRecord, KINDS[kind], st.integers(-(2**63), 2**63 - 1))
    untimed = st.builds(StreamRecord, KINDS[kind])
    pieces = data.draw(st.lists(st.tuples(timed | untimed, st.integers(1, 150)), max_size=8))
    records = [record for record, count in pieces for _ in range(count)]
    one, many = (Bench(1, segment, buffers, timeout, kind, ForwardSelector()) for _ in range(2))
    for record in records:
        one.writer.emit(record)
    many.writer.emit_many(records)
    assert many.writer.num_records == one.writer.num_records == len(records)
    assert many.writer.is_blocked == one.writer.is_blocked
    assert many.queued() == one.queued()
    expected = b"".join(element(record.value, record.timestamp, kind) for record in records)
    assert many.finish() == one.finish() == [expected]


@pytest.mark.slow
@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("selector", [ForwardSelector, RoundRobinSelector, BroadcastSelector])
@given(data=st.data(), segment=st.sampled_from([7, 64, 1_300]), buffers=st.integers(3, 9))
def test_whatever_else_lies_in_the_buffers_each_record_is_counted_once(
    kind: TypeSerializer, selector: Callable[[], ChannelSelector], data: st.DataObject, segment: int, buffers: int
) -> None:
    """The lanes count by the length of what they have packed; batches, cut records and watermarks lie between."""
    channels = 1 if selector is ForwardSelector else 3
    bench = Bench(channels, segment, buffers, kind=kind, selector=selector())
    num_records = 0
    for _ in range(data.draw(st.integers(1, 25))):
        step, count = data.draw(st.sampled_from(["emit", "many", "batch", "watermark", "one", "event", "read"])), 1
        time = data.draw(st.integers(-5, 5) | st.none())
        value = data.draw(KINDS[kind])
        if step == "emit":
            bench.writer.emit(StreamRecord(value, time))
        elif step == "many":
            count = data.draw(st.integers(0, 80))
            bench.writer.emit_many([StreamRecord(value, time)] * count)
        elif step == "batch":
            fields = [np.array([field] * 5) for field in (value if isinstance(value, tuple) else (value,))]
            batch = RecordBatch(fields, None if time is None else np.full(5, time), None, isinstance(value, tuple))
            bench.writer.write_batch(batch)
            count = 5
        elif step == "watermark":
            bench.writer.broadcast(Watermark(0))
        elif step == "one":
            bench.writer.emit_to(Watermark(0), channels - 1)
        elif step == "event":
            bench.writer.broadcast_event(EndOfSuperstep())
        else:
            bench.read_all()
            bench.writer.resume()
        num_records += count if step in ("emit", "many", "batch") else 0
        assert bench.writer.num_records == num_records, step


@pytest.mark.parametrize(
    ("selector", "channels"), [(ForwardSelector, 1), (RoundRobinSelector, 1), (RoundRobinSelector, 2)]
)
def test_what_must_wait_for_a_buffer_is_not_taken_from_the_records(
    selector: Callable[[], ChannelSelector], channels: int
) -> None:
    bench = Bench(channels, segment=2_000, buffers=2, selector=selector())
    left = iter([StreamRecord(number, number) for number in range(1_000)])
    bench.writer.emit_from(left)
    num_fit = 4_000 // 21
    assert bench.writer.is_blocked
    assert (bench.writer.num_records, next(left)) == (num_fit + 1, StreamRecord(num_fit + 1, num_fit + 1))


@pytest.mark.parametrize("num_records", [128, 129, 130, 192, 258, 300])
def test_many_at_once_open_and_close_buffers_as_one_by_one(num_records: int) -> None:
    """Also where a record ends with its buffer."""
    found = []
    for is_at_once in (True, False):
        bench = Bench(segment=129 * 29, kind=ROW, selector=ForwardSelector())
        records = [StreamRecord((number, number), number) for number in range(num_records)]
        if is_at_once:
            bench.writer.emit_many(records)
        else:
            for record in records:
                bench.writer.emit(record)
        open_bytes = [builder.written_bytes for builder in bench.writer.copy.open_builders]
        found.append((open_bytes, bench.queued(), bench.num_told))
    assert found[0] == found[1]


@pytest.mark.parametrize("selector", [ForwardSelector, RoundRobinSelector])
@pytest.mark.parametrize("position", [0, 5, 64, 90])
def test_of_a_record_that_cannot_leave_somebody_is_told(selector: Callable[[], ChannelSelector], position: int) -> None:
    """Alone, or in a block; what is told decides what is raised."""
    refused = []
    bench = Bench(1 if selector is ForwardSelector else 3, segment=5_000, kind=ROW, selector=selector())
    records = [StreamRecord((number, number), number) for number in range(130)]
    records[position].value = "no row"
    bench.writer.emit(StreamRecord((0, 0), 0))
    with pytest.raises(LocalUsageError, match="no row"):
        bench.writer.emit_from(iter(records), lambda record, error: refused.append((record, type(error))))
    assert refused == [(records[position], LocalUsageError)]


@pytest.mark.parametrize("wrong", [[1, 2], (1,), (1, 2, 3), (1, "b"), (1, 2**63), 5, None], ids=repr)
@pytest.mark.parametrize("position", [0, 40, 63, 64, 100])
def test_a_wrong_record_in_a_block_is_the_one_refused(wrong: object, position: int) -> None:
    """With the words it gets alone, and with all before it written."""
    bench = Bench(segment=5_000, kind=ROW, selector=ForwardSelector())
    records = [StreamRecord((number, number), number) for number in range(130)]
    records[position] = StreamRecord(wrong, 0)
    bench.writer.emit(records[1])
    with pytest.raises(LocalUsageError) as alone:
        StreamElementSerializer(ROW).serialize(records[position])
    with pytest.raises(LocalUsageError) as refused:
        bench.writer.emit_many(records)
    assert str(refused.value) == str(alone.value)
    assert bench.writer.num_records == 1 + position + 1
    bench.partition.flush_all()
    assert len(bench.read_all()[0]) == (1 + position) * 29


@pytest.mark.parametrize("wrong", [(1,), (1, 2, 3)], ids=repr)
def test_a_block_of_records_that_are_all_wrong_is_refused(wrong: object) -> None:
    bench = Bench(segment=5_000, kind=ROW, selector=ForwardSelector())
    bench.writer.emit(StreamRecord((0, 0), 0))
    with pytest.raises(LocalUsageError, match=r"is not a tuple\(long, long\)"):
        bench.writer.emit_many([StreamRecord(wrong, 0)] * 64)
    assert bench.writer.num_records == 2


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


def test_a_swap_while_blocked_reaches_records_that_would_fit_the_open_buffer() -> None:
    """What could be packed in place after a resume must go to the new part too."""
    bench = Bench(segment=50, buffers=1)
    bench.writer.emit_many([StreamRecord(1, 1), StreamRecord(2, 2), StreamRecord(3, 3)])
    assert bench.writer.is_blocked
    part = Counting()
    bench.writer.swap_serializer(part)
    bench.partition.flush_all()
    bench.read_all()
    assert bench.writer.resume()
    bench.writer.emit(StreamRecord(4, 4))
    bench.finish()
    assert part.num_records == 1


# -- the same as the book --------------------------------------------------------------------------

KINDS_OF_ANY_LENGTH = {**KINDS, STRING: st.text("aé", max_size=40), TupleType(LONG): st.tuples(st.integers(-9, 9))}


@pytest.mark.slow
@pytest.mark.parametrize("selector", SELECTORS)
@settings(max_examples=50)
@given(
    data=st.data(),
    kind=st.sampled_from([*KINDS_OF_ANY_LENGTH]),
    segment=st.sampled_from([1, 9, 33, 64, 700]),
    num_spare=st.sampled_from([0, 1, 4, 3_000]),
    timeout=st.sampled_from([0, -1]),
)
def test_whatever_is_done_to_it_a_fast_writer_does_as_the_writer_does(
    selector: str, data: st.DataObject, kind: TypeSerializer, segment: int, num_spare: int, timeout: int
) -> None:
    """Bytes, cuts, where records end in buffers, what readers are told, what waits, every count; parts come and go."""
    channels, buffers = (1 if selector == "forward" else 3), num_spare + 3
    is_alike = True  # a batch goes channel by channel: where buffers are few, another channel may get the last one
    make = SELECTORS[selector] if isinstance(kind, TupleType) or "key" not in selector else RoundRobinSelector
    slow = writer_rig.Bench(channels, segment, buffers, timeout, kind, make())
    fast = Bench(channels, segment, buffers, timeout, kind, make())
    for number in range(data.draw(st.integers(1, 15))):
        step = data.draw(
            st.sampled_from(["emit", "many", "batch", "mark", "one", "event", "read", "serializer", "copy", "swap"])
        )
        value, time = data.draw(KINDS_OF_ANY_LENGTH[kind]), data.draw(st.integers(-5, 5) | st.none())
        records = [StreamRecord(value, time)] * (data.draw(st.integers(2, 9)) if step in ("many", "batch") else 1)
        for bench in (slow, fast):
            if step == "batch" and bench is fast and kind is not STRING:
                fields = [
                    np.array([field] * len(records)) for field in (value if isinstance(value, tuple) else (value,))
                ]
                times = None if time is None else np.full(len(records), time)
                fast.writer.write_batch(RecordBatch(fields, times, None, isinstance(value, tuple)))
            elif step == "many" and bench is fast:
                fast.writer.emit_many(records)
            elif step in ("emit", "many", "batch"):
                emit_all(bench.writer, records)
            elif step == "mark":
                bench.writer.broadcast(Watermark(number))
            elif step == "one":
                bench.writer.emit_to(Watermark(number), channels - 1)
            elif step == "event":
                bench.writer.broadcast_event(EndOfSuperstep())
            elif step == "read":
                bench.read_all()
                bench.writer.resume()
            elif step == "serializer":
                bench.writer.swap_serializer(Counting() if number % 2 else SpanningRecordSerializer())
            elif not bench.selector.is_broadcast:
                part = ChannelCopy if step == "copy" else bench.writer.copies_with
                bench.writer.swap_copy(part)
        is_alike &= step != "batch" or channels == 1 or num_spare > 100
        assert fast.writer.num_records == slow.writer.num_records, step
        if is_alike:
            assert noted(fast.partition) == noted(slow.partition), step
            assert (fast.num_told, fast.writer.is_blocked) == (slow.num_told, slow.writer.is_blocked), step
    assert fast.finish() == slow.finish()
    assert fast.events == slow.events
    assert fast.global_pool.num_free + fast.pool.snapshot().num_idle == buffers


# -- another's part --------------------------------------------------------------------------------


class OwnCopy(ChannelCopy):
    """As a learner may write one: counts the records that are in."""

    num_records = 0

    def after_record(self, channel: int) -> None:
        self.num_records += 1
        super().after_record(channel)


@pytest.mark.parametrize("write", ["emit", "emit_many", "write_batch", "write_encoded"])
@pytest.mark.parametrize("is_waiting", [False, True])
def test_another_part_gets_each_record_however_it_is_written(write: str, is_waiting: bool) -> None:
    """Also those that were written before it came, and wait for a buffer behind the one in hand."""
    records = [StreamRecord((number, number), number) for number in range(20)]
    bench = Bench(segment=32, buffers=1 if is_waiting else 64, kind=ROW)
    num_before = 2 if is_waiting else 0
    emit_all(bench.writer, records[:num_before])
    assert bench.writer.is_blocked == is_waiting
    wire = b"".join(element(record.value, record.timestamp, ROW) for record in records)
    serializer = Counting()

    def put_in() -> None:
        bench.writer.swap_serializer(serializer)
        bench.writer.swap_copy(OwnCopy)

    if not is_waiting:
        put_in()
    if write == "emit":
        emit_all(bench.writer, records)
    elif write == "emit_many":
        bench.writer.emit_many(records)
    elif write == "write_batch":
        bench.writer.write_batch(batch_of([(number, number, number) for number in range(20)]))
    else:
        bench.writer.write_encoded(memoryview(wire), 20, 0)
    if is_waiting:
        put_in()
    assert bench.finish() == [wire[: num_before * 29] + wire]
    assert bench.writer.num_records == num_before + 20
    assert serializer.num_records == 20
    copy = bench.writer.copy
    assert isinstance(copy, OwnCopy)
    assert copy.num_records == 20 + is_waiting  # and the one that was in hand


def test_our_part_takes_the_short_way_again() -> None:
    bench = Bench(segment=1_000, kind=ROW)
    bench.writer.swap_copy(OwnCopy)
    bench.writer.emit(StreamRecord((1, 2), 3))
    assert not bench.writer.put(StreamRecord((1, 2), 3))
    bench.writer.swap_copy(bench.writer.copies_with)
    assert bench.writer.put(StreamRecord((1, 2), 3))
    assert bench.writer.num_records == 3
    assert bench.finish() == [3 * element((1, 2), 3, ROW)]


def test_a_selector_that_is_put_in_is_asked() -> None:
    bench = Bench(3, kind=ROW, selector=KeyGroupSelector(Field(0), 128))
    put = bench.writer.put
    bench.writer.swap_selector(OwnSelector())
    for record in (StreamRecord((5, 0)), StreamRecord((4, 0))):
        put(record)
    bench.writer.write_batch(RecordBatch([np.array([3]), np.array([0])]))
    assert bench.finish() == [element((n, 0), None, ROW) for n in (3, 4, 5)]


def test_an_element_serializer_of_another_kind_is_asked_for_each_record() -> None:
    class Bare(StreamElementSerializer):
        def serialize_into(self, element: object, target: bytearray) -> None:
            target += b"bare"

    bench = Bench(kind=ROW)
    writer = FastRecordWriter(bench.partition, RoundRobinSelector(), Bare(ROW))
    writer.emit(StreamRecord((1, 2), 3))
    writer.broadcast(Watermark(1))
    writer.write_batch(batch_of([(1, 2, 3)]))
    assert bench.read_all() == [b"\0\0\0\4bare" * 3]
    assert writer.num_records == 2


@pytest.mark.parametrize("time", [None, 0, -(2**63), 2**63 - 1])
def test_with_its_length_an_element_is_what_the_serializer_says(time: int | None) -> None:
    elements, record = StreamElementSerializer(STRING), StreamRecord("é", time)
    data = elements.serialize(record)
    assert serialize_with_length(elements, record) == len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("time", [2**63, "noon", 1.5])
def test_a_time_that_is_no_long_is_refused_in_the_words_of_the_serializer(time: object) -> None:
    elements, record = StreamElementSerializer(STRING), StreamRecord("é", time)  # type: ignore[arg-type]
    for serialize in (elements.serialize, lambda record: serialize_with_length(elements, record)):
        with refused(LocalUsageError, "an event time is a long"):
            serialize(record)
