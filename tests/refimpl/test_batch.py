"""Records of one width: packed with one call or as rows of an array, always the bytes of the readable path."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from refimpl.errors import LocalUsageError
from refimpl.memory import BufferBuilder, DataType, heap_buffer
from refimpl.records import (
    ANY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    BatchCodec,
    RecordPacker,
    SerializationResult,
    SpanningRecordSerializer,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
)

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


def rows_of(kind: TypeSerializer, rows: list[tuple[int, object]]) -> np.ndarray:
    flat = [(time, *value) if isinstance(value, tuple) else (time, value) for time, value in rows]
    return np.array(flat, BatchCodec(kind).row_dtype)


def encoded(kind: TypeSerializer, rows: list[tuple[int, object]]) -> bytes:
    builder = builder_of(1_000)
    assert BatchCodec(kind).encode(rows_of(kind, rows)).copy_to_buffer_builder(builder) is FULL
    return filled(builder)


# -- one record ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "rows"),
    [(FLIGHT, ROWS), (LONG, [(7, -3), (None, 4)]), (TupleType(LONG), [(7, (-3,)), (None, (0,))])],
)
def test_a_packed_record_has_the_bytes_of_the_readable_path(
    kind: TypeSerializer, rows: list[tuple[int, object]]
) -> None:
    packer, builder = RecordPacker(kind), builder_of(200)
    for time, value in rows:
        assert packer.pack(StreamRecord(value, time), builder)
    assert filled(builder) == b"".join(framed(StreamRecord(value, time), kind) for time, value in rows)


@pytest.mark.parametrize(("record", "width"), [(StreamRecord(1, 2), 21), (StreamRecord(1), 13)], ids=repr)
def test_a_record_is_packed_where_it_leaves_room_and_declined_where_it_fills_the_buffer(
    record: StreamRecord, width: int
) -> None:
    """Who fills a buffer must close it, which packing does not."""
    packer = RecordPacker(LONG)
    exact, roomy = builder_of(width), builder_of(width + 1)
    assert not packer.pack(record, exact)
    assert packer.pack(record, roomy)
    assert (exact.written_bytes, roomy.committed_bytes, roomy.room) == (0, width, 1)


@pytest.mark.parametrize(
    "record",
    [StreamRecord([1, 2]), StreamRecord([1, 2], 0), StreamRecord((1,), 0), StreamRecord((1, 2, 3), 0),
     StreamRecord(("a", 2), 0), StreamRecord((1, 2**63), 0), StreamRecord(None, 0), StreamRecord(5, 0),
     StreamRecord((1, 2), 2**63), StreamRecord((1, 2), 0.5)],
    ids=repr,
)  # fmt: skip
def test_what_the_packer_declines_leaves_the_buffer_as_it_was(record: StreamRecord) -> None:
    """Another type: the serializers say what is wrong with it."""
    packer, builder = RecordPacker(TupleType(LONG, LONG)), builder_of(200)
    assert packer.pack(StreamRecord((8, 9), 1), builder)
    assert not packer.pack(record, builder)
    assert filled(builder) == framed(StreamRecord((8, 9), 1), TupleType(LONG, LONG))
    assert builder.written_bytes == builder.committed_bytes


# -- many records ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "width", "names"),
    [(LONG, 21, ("timestamp", "f0")), (BOOLEAN, 14, ("timestamp", "f0")),
     (FLIGHT, 34, ("timestamp", "f0", "f1", "f2", "f3"))],
    ids=repr,
)  # fmt: skip
def test_a_row_is_as_wide_as_its_length_tag_time_and_fields(
    kind: TypeSerializer, width: int, names: tuple[str, ...]
) -> None:
    codec = BatchCodec(kind)
    assert (codec.width, codec.row_dtype.names) == (width, names)


@pytest.mark.parametrize(("kind", "rows"), [(FLIGHT, ROWS), (LONG, [(7, -3), (8, 2**40)]), (DOUBLE, [(1, 0.1)])])
def test_rows_become_the_bytes_of_the_readable_path_and_come_back(
    kind: TypeSerializer, rows: list[tuple[int, object]]
) -> None:
    data = encoded(kind, rows)
    assert data == b"".join(framed(StreamRecord(value, time), kind) for time, value in rows)
    batch, end = BatchCodec(kind).decode(memoryview(data))
    assert (batch.tolist(), end) == (rows_of(kind, rows).tolist(), len(data))


def test_a_batch_is_cut_anywhere_and_goes_on_with_the_next_byte() -> None:
    rows = [(time, time * 3) for time in range(4)]
    whole = encoded(LONG, rows)
    batch = BatchCodec(LONG).encode(rows_of(LONG, rows))
    builders = [builder_of(50), builder_of(34), builder_of(1)]
    assert [batch.copy_to_buffer_builder(builder) for builder in builders] == [PARTIAL, FULL_BOTH, FULL]
    assert [filled(builder) for builder in builders] == [whole[:50], whole[50:], b""]


def test_a_batch_can_start_over_for_another_channel() -> None:
    batch = BatchCodec(LONG).encode(rows_of(LONG, [(1, 2)]))
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
def test_reading_stops_before_the_first_thing_that_is_no_plain_row(other: bytes) -> None:
    rows = [framed(StreamRecord(number, -number)) for number in range(3)]
    source = memoryview(b"".join([*rows, other, *rows]))
    batch, end = BatchCodec(LONG).decode(source)
    assert batch.tolist() == [(0, 0), (-1, 1), (-2, 2)]
    assert end == 3 * 21


def test_reading_starts_at_a_position_and_may_find_nothing() -> None:
    row = framed(StreamRecord(5, 6))
    codec = BatchCodec(LONG)
    assert codec.decode(memoryview(b"xyz" + row + row[:-1]), 3)[0].tolist() == [(6, 5)]
    for source, position in ((b"", 0), (b"abc", 0), (row, 21), (row[:-1], 0)):
        batch, end = codec.decode(memoryview(source), position)
        assert (batch.tolist(), end) == ([], position)


def test_what_was_read_does_not_look_into_the_buffer_any_more() -> None:
    source = bytearray(framed(StreamRecord(5, 6)))
    batch, _ = BatchCodec(LONG).decode(memoryview(source))
    source[:] = bytes(len(source))
    assert batch.tolist() == [(6, 5)]


@pytest.mark.parametrize("kind", [STRING, ANY, TupleType(LONG, STRING), TupleType(TupleType(LONG, LONG))], ids=repr)
def test_values_that_differ_in_length_are_refused(kind: TypeSerializer) -> None:
    with pytest.raises(LocalUsageError, match="differ in length; write them one by one"):
        BatchCodec(kind)


def test_rows_with_other_fields_are_refused_by_name() -> None:
    rows = rows_of(TupleType(LONG, LONG), [(1, (2, 3))])
    with pytest.raises(LocalUsageError, match=r"rows are .*'f1'.*, this type needs "):
        BatchCodec(LONG).encode(rows)


def test_rows_of_a_kind_that_would_lose_something_are_refused() -> None:
    rows = np.array([(1, 1.7)], [("timestamp", "i8"), ("f0", "f8")])
    with pytest.raises(LocalUsageError, match="this type needs"):
        BatchCodec(LONG).encode(rows)


def test_booleans_are_not_packed_unseen() -> None:
    assert RecordPacker.of(TupleType(LONG, BOOLEAN)) is None
    assert isinstance(RecordPacker.of(TupleType(LONG, INT)), RecordPacker)
