"""Records of one width: packed with one call or as rows of an array, always the bytes of the readable path."""

from __future__ import annotations

import struct
from mmap import PAGESIZE

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.data.columns import record_batch_of
from refimpl.errors import LocalUsageError
from refimpl.memory import SAFE_SHIFT, BufferBuilder, DataType, heap_buffer
from refimpl.records import (
    ANY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    LONG,
    STRING,
    LatencyMarker,
    RecordBatch,
    SerializationResult,
    SpanningRecordSerializer,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
)
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.encoded_batch import EncodedBatch
from refimpl.shortcuts.fixed_width import RecordPacker, RecordUnpacker, VaryingUnpacker

PARTIAL = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
FULL_BOTH = SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
FULL = SerializationResult.FULL_RECORD
FLIGHT = TupleType(INT, DOUBLE, BOOLEAN, LONG)
ROWS = [(5, (1, 2.5, True, -(2**63))), (-1, (-(2**31), -0.0, False, 2**63 - 1)), (0, (0, 1e300, True, 0))]


def builder_of(size: int) -> BufferBuilder:
    return BufferBuilder(heap_buffer(bytes(size), DataType.DATA))


def filled(builder: BufferBuilder) -> bytes:
    return bytes(builder.memory[: builder.committed_bytes])


def framed(element: object, kind: TypeSerializer = LONG) -> bytes:
    """The element as the readable path writes it, its length in front."""
    serializer, builder = SpanningRecordSerializer(), builder_of(200)
    serializer.serialize_record(StreamElementSerializer(kind).serialize(element))
    assert serializer.copy_to_buffer_builder(builder) is FULL
    return filled(builder)


def batch_of(rows: list[tuple[int | None, object]]) -> RecordBatch:
    """The records as columns; all have a time, or none."""
    times, values = zip(*rows, strict=True)
    is_tuple = isinstance(values[0], tuple)
    columns = zip(*values, strict=True) if is_tuple else [values]
    timestamps = None if times[0] is None else np.array(times, np.int64)
    return RecordBatch([np.array(column) for column in columns], timestamps, is_tuple=is_tuple)


def rows_of(batch: RecordBatch | None) -> list[tuple[int | None, object]]:
    return [] if batch is None else [(record.timestamp, record.value) for record in batch.records()]


def encoded(kind: TypeSerializer, rows: list[tuple[int | None, object]]) -> EncodedBatch:
    wire = BatchCodec(kind).encode(batch_of(rows))
    assert wire is not None
    return EncodedBatch(wire.view(np.uint8).data, wire.itemsize)


def written(kind: TypeSerializer, rows: list[tuple[int | None, object]]) -> bytes:
    builder = builder_of(10_000)
    assert encoded(kind, rows).copy_to_buffer_builder(builder) is FULL
    return filled(builder)


# -- many records ----------------------------------------------------------------------------------


NAMED = TupleType(STRING, LONG, STRING)
PLAIN = [(5, ("EWR", 4, "")), (-1, ("JFK", -9, "")), (0, ("\0\x7fA", 0, ""))]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [(FLIGHT, ROWS), (LONG, [(7, -3), (8, 2**40)]), (DOUBLE, [(1, 0.1)]), (BOOLEAN, [(1, True), (2, False)]),
     (NAMED, PLAIN), (STRING, [(None, "x" * 126)]), (LONG, [(None, 1), (None, 2)]),
     (TupleType(INT), [(None, (-1,)), (None, (5,))])],
    ids=repr,
)  # fmt: skip
def test_columns_become_the_bytes_of_the_readable_path_and_come_back(
    kind: TypeSerializer, rows: list[tuple[int | None, object]]
) -> None:
    data = written(kind, rows)
    assert data == b"".join(framed(StreamRecord(value, time), kind) for time, value in rows)
    batch, end = BatchCodec(kind).decode(memoryview(data))
    assert (rows_of(batch), end) == (rows, len(data))
    assert [type(value) for _, value in rows_of(batch)] == [type(value) for _, value in rows]


FIELDS = {
    LONG: st.integers(-(2**63), 2**63 - 1), INT: st.integers(-(2**31), 2**31 - 1), BOOLEAN: st.booleans(),
    DOUBLE: st.floats(allow_nan=False), STRING: st.text("aZ\x7f\0é€😀", max_size=3),
}  # fmt: skip


@pytest.mark.slow
@given(st.data(), st.lists(st.sampled_from(list(FIELDS)), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_whatever_the_values_a_batch_has_the_bytes_of_its_records(
    data: st.DataObject, fields: list[TypeSerializer], is_tuple: bool, is_timed: bool
) -> None:
    """Or none, where they differ in length; and reading stops where the first one differs."""
    kind = TupleType(*fields) if is_tuple else fields[0]
    values = st.tuples(*(FIELDS[field] for field in fields)) if is_tuple else FIELDS[fields[0]]
    times = st.integers(-(2**63), 2**63 - 1) if is_timed else st.none()
    rows = data.draw(st.lists(st.tuples(times, values), min_size=1, max_size=5))
    texts = [part for _, value in rows for part in (value if is_tuple else (value,)) if isinstance(part, str)]
    if any(text.endswith("\0") for text in texts):
        return  # numpy's columns cannot hold them
    source = b"".join(framed(StreamRecord(value, time), kind) for time, value in rows)
    wire = BatchCodec(kind).encode(batch_of(rows))
    parts = [value if is_tuple else (value,) for _, value in rows]
    widths = {tuple(len(part) for part in fields if isinstance(part, str)) for fields in parts}
    assert (wire is not None) == (len(widths) == 1 and all(text.isascii() for text in texts))
    if wire is not None:
        assert wire.tobytes() == source
    batch, end = BatchCodec(kind).decode(memoryview(source))
    read = rows_of(batch)
    assert read == rows[: len(read)]
    assert end == len(b"".join(framed(StreamRecord(value, time), kind) for time, value in read))
    if wire is not None:
        assert len(read) == len(rows)


def test_a_batch_is_cut_anywhere_and_goes_on_with_the_next_byte() -> None:
    rows = [(time, time * 3) for time in range(4)]
    whole = written(LONG, rows)
    batch = encoded(LONG, rows)
    builders = [builder_of(50), builder_of(34), builder_of(1)]
    assert [batch.copy_to_buffer_builder(builder) for builder in builders] == [PARTIAL, FULL_BOTH, FULL]
    assert [filled(builder) for builder in builders] == [whole[:50], whole[50:], b""]


def test_a_batch_can_start_over_for_another_channel() -> None:
    batch = encoded(LONG, [(1, 2)])
    copies = []
    for _ in range(2):
        builder = builder_of(100)
        batch.copy_to_buffer_builder(builder)
        copies.append(filled(builder))
        batch.reset()
    assert copies == [framed(StreamRecord(2, 1))] * 2


@pytest.mark.parametrize(
    "other",
    [framed(Watermark(4)), framed(StreamStatus.IDLE), framed(StreamRecord(5)),
     framed(StreamRecord((1, 2), 3), TupleType(LONG, LONG)), struct.pack(">i", 17) + b"\1" + bytes(16), b"\0"],
    ids=["watermark", "status", "no time", "another width", "another tag", "one byte"],
)  # fmt: skip
def test_reading_stops_before_the_first_thing_that_is_no_such_record(other: bytes) -> None:
    rows = [framed(StreamRecord(number, -number)) for number in range(3)]
    source = memoryview(b"".join([*rows, other, *rows]))
    batch, end = BatchCodec(LONG).decode(source)
    assert rows_of(batch) == [(0, 0), (-1, 1), (-2, 2)]
    assert end == 3 * 21


@pytest.mark.parametrize("other", ["ab", "abcd", "", "abé", "ab\0", None], ids=repr)
def test_reading_stops_before_a_text_that_is_not_like_the_first(other: str | None) -> None:
    kind = TupleType(STRING, INT)
    first, then = framed(StreamRecord(("abc", 1)), kind), framed(StreamRecord((other, 2)), kind)
    batch, end = BatchCodec(kind).decode(memoryview(first + then + first))
    assert (rows_of(batch), end) == ([(None, ("abc", 1))], len(first))


@pytest.mark.parametrize("source", [b"", b"abc", framed(StreamRecord(5, 6))[:-1], framed(Watermark(7))], ids=repr)
def test_where_nothing_whole_begins_nothing_is_read(source: bytes) -> None:
    assert BatchCodec(LONG).decode(memoryview(source)) == (None, 0)


@pytest.mark.parametrize("source", [framed(StreamRecord(None), STRING), framed(StreamRecord("x" * 127), STRING)])
def test_no_text_and_a_long_one_go_the_way_of_single_records(source: bytes) -> None:
    assert BatchCodec(STRING).decode(memoryview(source * 20)) == (None, 0)


def test_too_few_records_are_left_to_others() -> None:
    source = memoryview(framed(StreamRecord(5, 6)) * 3)
    assert BatchCodec(LONG).decode(source, least=4) == (None, 0)
    assert BatchCodec(LONG).decode(source, least=3)[1] == len(source)


def test_what_was_read_does_not_look_into_the_buffer_any_more() -> None:
    source = bytearray(framed(StreamRecord((5, "ab", True), 6), TupleType(LONG, STRING, BOOLEAN)))
    batch, _ = BatchCodec(TupleType(LONG, STRING, BOOLEAN)).decode(memoryview(source))
    source[:] = bytes(len(source))
    assert rows_of(batch) == [(6, (5, "ab", True))]


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=4), st.integers(0, 3))
def test_pieces_are_joined_and_whole_buffers_begin_where_copies_are_fast(pieces: list[bytes], num_cut: int) -> None:
    """Where segments begin too, so far as copies can tell: behind a rest of a few bytes too. See `memory.pages`."""
    codec = BatchCodec(LONG)
    codec.joined([memoryview(bytes(5)), memoryview(b"what was joined before")], 5)
    num_first = sum(map(len, pieces[:num_cut]))
    joined = codec.joined([memoryview(piece) for piece in pieces], num_first)
    assert bytes(joined) == b"".join(pieces)
    if joined and len(pieces) > 1:
        assert (address_of(joined) + num_first) % SAFE_SHIFT == 0


def test_one_piece_is_read_where_it_is() -> None:
    piece = memoryview(b"as it is")
    assert BatchCodec(LONG).joined([piece], 3) is piece


@pytest.mark.parametrize("count", [1, 5_000])
def test_rows_begin_where_copies_into_segments_are_fast(count: int) -> None:
    rows = BatchCodec(LONG).encode(RecordBatch([np.arange(count)], is_tuple=False))
    assert rows is not None
    assert rows.ctypes.data % PAGESIZE == 0


def address_of(memory: memoryview) -> int:
    address: int = np.frombuffer(memory, np.uint8).ctypes.data
    return address


@pytest.mark.parametrize("kind", [BYTES, ANY, TupleType(LONG, BYTES), TupleType(TupleType(LONG, LONG))], ids=repr)
def test_types_that_have_no_columns_are_refused(kind: TypeSerializer) -> None:
    assert BatchCodec.of(kind) is None
    with pytest.raises(LocalUsageError, match="differ in length; write them one by one"):
        BatchCodec(kind)


@pytest.mark.parametrize(
    ("kind", "batch"),
    [(LONG, RecordBatch([np.array([1.7])], is_tuple=False)), (LONG, RecordBatch([np.array([1])])),
     (LONG, RecordBatch([np.array([2**64 - 1], np.uint64)], is_tuple=False)),
     (TupleType(LONG), RecordBatch([np.array([1]), np.array([2])])),
     (TupleType(LONG), RecordBatch([np.array([1])], names=["n"])),
     (LONG, RecordBatch([np.ma.array([1, 2], mask=[False, True])], is_tuple=False)),
     (LONG, RecordBatch([np.array([[1]])], is_tuple=False)), (BOOLEAN, RecordBatch([np.array([1])], is_tuple=False)),
     (BOOLEAN, RecordBatch([np.array([2], np.uint8)], is_tuple=False)),
     (STRING, RecordBatch([np.array(["a", None], object)], is_tuple=False)),
     (LONG, RecordBatch([np.array([1])], np.array([1.5]), is_tuple=False))],
    ids=repr,
)  # fmt: skip
def test_columns_that_would_lose_something_are_not_written_at_once(kind: TypeSerializer, batch: RecordBatch) -> None:
    assert BatchCodec(kind).encode(batch) is None


def test_a_mask_that_hides_nothing_is_no_obstacle() -> None:
    masked = RecordBatch([np.ma.array([1, 2], mask=[False, False])], is_tuple=False)
    assert BatchCodec(LONG).encode(masked).tobytes() == b"".join(framed(StreamRecord(n)) for n in (1, 2))


OTHERS = [Watermark(4), StreamRecord((1, True)), LatencyMarker(1, 2, 3, 4)]  # one of them wider than a record
LENGTHS = [0, 1, 2, 3, 31, 32, 33, 63, 64, 200]


@pytest.mark.parametrize("behind", [0, 1, 2, 40])
@pytest.mark.parametrize("other", [*OTHERS, None], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("count", LENGTHS[1:])
def test_a_run_ends_before_the_first_that_is_not_alike(count: int, other: StreamElement | None, behind: int) -> None:
    """However many there are, and behind it: the few are read in another way than the many."""
    kind = TupleType(LONG, BOOLEAN)
    records = [StreamRecord((number, number % 2 == 0), -number) for number in range(count + behind)]
    framed_ones = [framed(record, kind) for record in records]
    between = b"" if other is None else framed(other, kind)
    cut = framed(StreamRecord((1, True), 1), kind)[:-1]
    source = b"".join([*framed_ones[:count], between, *framed_ones[count:], cut])
    num_read = count if other is not None else count + behind
    num_bytes, values, times = RecordUnpacker(kind).unpack(memoryview(source))
    assert [StreamRecord(*each) for each in zip(values, times, strict=True)] == records[:num_read]
    assert num_bytes == sum(map(len, framed_ones[:num_read]))


@pytest.mark.parametrize("behind", [
    b"", b"\0", b"\0\0\0\3\1", b"\0\0\0\3\1\2", b"\0\0\0\0", b"\0\0\0\0\1\2x", b"\x80\0\0\0\1",
    framed(Watermark(7), STRING), framed(StreamRecord("b", 1), STRING)[:-1],
])  # fmt: skip
def test_a_run_of_any_lengths_ends_before_what_is_no_whole_record(behind: bytes) -> None:
    records = [StreamRecord("a" * (number % 5), number if number % 3 else None) for number in range(20)]
    whole = b"".join(framed(record, STRING) for record in records)
    num_bytes, values, times = VaryingUnpacker(STRING).unpack(memoryview(whole + behind))
    assert [StreamRecord(*each) for each in zip(values, times, strict=True)] == records
    assert num_bytes == len(whole)


class Trusting:
    """So many bytes, or what there is of them: it never looks where its record ends."""

    struct_format = None

    def __init__(self, num_bytes: int) -> None:
        self.name, self.num_bytes = f"{num_bytes} bytes", num_bytes

    def serialize(self, value: bytes, target: bytearray) -> None:
        target += value

    def deserialize(self, source: memoryview, position: int) -> tuple[bytes, int]:
        return bytes(source[position : position + self.num_bytes]), position + self.num_bytes


@pytest.mark.parametrize("num_bytes", [0, 3])
@pytest.mark.parametrize("other", ["watermark", "cut", "nothing"])
def test_a_run_takes_whole_records_and_nothing_else_whatever_the_type_would_read(num_bytes: int, other: str) -> None:
    kind = Trusting(num_bytes)
    record = framed(StreamRecord(b"x" * num_bytes), kind)
    behind = {"watermark": framed(Watermark(7), kind) + record, "cut": record[:-1], "nothing": b""}[other]
    run = VaryingUnpacker(kind).unpack(memoryview(2 * record + behind))
    assert run == (2 * len(record), [b"x" * num_bytes] * 2, [None] * 2)


@pytest.mark.parametrize("count", LENGTHS)
def test_a_run_without_times_has_none(count: int) -> None:
    source = memoryview(framed(StreamRecord(5), LONG) * count)
    num_bytes, values, times = RecordUnpacker(LONG).unpack(source)
    assert (num_bytes, list(values), list(times)) == (len(source), [5] * count, [None] * count)


@pytest.mark.parametrize("time", [7, None])
def test_a_record_that_is_to_be_cut_has_the_bytes_of_the_readable_path(time: int | None) -> None:
    for kind, value in ((TupleType(LONG, INT), (5, -1)), (LONG, 2**63 - 1)):
        record = StreamRecord(value, time)
        assert RecordPacker(kind).to_bytes(record) == framed(record, kind)


@pytest.mark.parametrize("value", [[1, 2], (1,), (1, 2, 3), ("a", 1), 5], ids=repr)
def test_no_record_of_another_type_is_packed_to_be_cut(value: object) -> None:
    assert RecordPacker(TupleType(LONG, LONG)).to_bytes(StreamRecord(value, 1)) is None


def test_booleans_are_not_packed_unseen() -> None:
    assert RecordPacker.of(TupleType(LONG, BOOLEAN)) is None
    assert isinstance(RecordPacker.of(TupleType(LONG, INT)), RecordPacker)


# -- what Spark gives --------------------------------------------------------------------------------


def test_numbers_and_text_of_one_length_from_arrow_can_be_written_at_once() -> None:
    named = record_batch_of(pa.record_batch({"origin": ["EWR", "JFK"], "delay": pa.array([3, -4], pa.int32())}))
    assert BatchCodec(TupleType(STRING, LONG)).encode(RecordBatch(named.columns)) is not None
