"""Records across buffers: every cut, every result, spilling to a file, and what is left over."""

from __future__ import annotations

import resource
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.errors import LocalUsageError, RemoteProtocolError, SpillError
from refimpl.memory import Buffer, BufferBuilder, DataType, MemorySegment, heap_buffer
from refimpl.records import (
    DeserializationResult,
    SerializationResult,
    SpanningRecordSerializer,
    SpillFile,
    SpillingAdaptiveSpanningRecordDeserializer,
)

PARTIAL = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
FULL_BOTH = SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
FULL = SerializationResult.FULL_RECORD
NONE = DeserializationResult.PARTIAL_RECORD
MORE = DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER
LAST = DeserializationResult.LAST_RECORD_FROM_BUFFER


def builder_of(size: int) -> BufferBuilder:
    buffer = heap_buffer(bytes(size), DataType.DATA)
    return BufferBuilder(buffer)


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


def deserializer(**options: object) -> SpillingAdaptiveSpanningRecordDeserializer:
    return SpillingAdaptiveSpanningRecordDeserializer(Config(**options))


def data(content: bytes) -> Buffer:
    return heap_buffer(content, DataType.DATA)


def read_all(reader: SpillingAdaptiveSpanningRecordDeserializer, buffers: Sequence[bytes]) -> Iterator[bytes]:
    for content in buffers:
        reader.set_next_buffer(data(content))
        while True:
            result, payload = reader.get_next_record()
            if payload is not None:
                yield bytes(payload)
            if result.is_buffer_consumed:
                break


# -- cutting ---------------------------------------------------------------------------------------


def test_a_record_is_pending_until_its_last_byte_is_copied() -> None:
    """Flink: `SpanningRecordSerializerTest#testHasSerializedData` (P34)."""
    serializer = SpanningRecordSerializer()
    assert not serializer.has_serialized_data
    serializer.serialize_record(bytes(4))
    assert serializer.has_serialized_data
    assert serializer.copy_to_buffer_builder(builder_of(16)) is FULL
    assert not serializer.has_serialized_data
    eight = builder_of(8)
    serializer.serialize_record(bytes(4))
    assert serializer.copy_to_buffer_builder(eight) is FULL_BOTH
    serializer.serialize_record(bytes(4))
    assert serializer.copy_to_buffer_builder(eight) is PARTIAL
    assert serializer.has_serialized_data


def test_empty_records_cost_four_bytes_and_can_be_cut() -> None:
    """Segments of 11 bytes.

    Flink: `SpanningRecordSerializerTest#testEmptyRecords` (P35).
    """
    serializer = SpanningRecordSerializer()
    builder = builder_of(11)
    assert serializer.copy_to_buffer_builder(builder) is FULL  # nothing pending commits nothing
    results = []
    for _ in range(3):
        serializer.serialize_record(b"")
        results.append(serializer.copy_to_buffer_builder(builder))
    assert results == [FULL, FULL, PARTIAL]
    following = builder_of(11)
    assert serializer.copy_to_buffer_builder(following) is FULL
    assert following.committed_bytes == 1


@pytest.mark.parametrize(("segment_size", "num_records"), [(1, 10), (64, 64), (31, 248)])
def test_results_follow_from_byte_arithmetic(segment_size: int, num_records: int) -> None:
    """Ints of 4 + 4 bytes.

    Flink: `SpanningRecordSerializerTest#testIntRecordsSpanningMultipleSegments` (P36).
    """
    serializer = SpanningRecordSerializer()
    builder = builder_of(segment_size)
    num_written = 0
    for number in range(num_records):
        serializer.serialize_record(struct.pack(">i", number))
        num_left = 8
        while True:
            num_copied = min(num_left, segment_size - num_written)
            num_left -= num_copied
            num_written += num_copied
            expected = PARTIAL if num_left else FULL_BOTH if num_written == segment_size else FULL
            assert serializer.copy_to_buffer_builder(builder) is expected, f"record {number}"
            if expected.is_full_buffer:
                builder, num_written = builder_of(segment_size), 0
            if expected.is_full_record:
                break


def test_a_record_is_serialised_once_for_many_channels() -> None:
    serializer = SpanningRecordSerializer()
    serializer.serialize_record(b"abc")
    copies = []
    for _ in range(3):
        serializer.reset()
        builder = builder_of(16)
        assert serializer.copy_to_buffer_builder(builder) is FULL
        copies.append(bytes(builder.memory[:7]))
    assert copies == [framed(b"abc")] * 3


def test_pruning_forgets_the_record() -> None:
    serializer = SpanningRecordSerializer()
    for size in (3, 6 * 1024 * 1024):
        serializer.serialize_record(bytes(size))
        serializer.prune()
        serializer.reset()
        assert not serializer.has_serialized_data


def test_a_record_cannot_be_left_half_copied() -> None:
    serializer = SpanningRecordSerializer()
    serializer.serialize_record(b"abc")
    with pytest.raises(LocalUsageError, match="not been copied to its end"):
        serializer.serialize_record(b"d")
    builder = builder_of(16)
    serializer.copy_to_buffer_builder(builder)
    assert bytes(builder.memory[:7]) == framed(b"abc")


@pytest.mark.parametrize(
    ("result", "is_full_record", "is_full_buffer"),
    [(PARTIAL, False, True), (FULL_BOTH, True, True), (FULL, True, False)],
)
def test_a_result_answers_two_questions(
    result: SerializationResult, is_full_record: bool, is_full_buffer: bool
) -> None:
    assert (result.is_full_record, result.is_full_buffer) == (is_full_record, is_full_buffer)


# -- reading ---------------------------------------------------------------------------------------


@given(
    st.lists(st.binary(max_size=40), max_size=12),
    st.lists(st.integers(1, 50), min_size=1),
    st.sampled_from([1, 9, 100]),
)
def test_records_come_back_whole_from_any_cuts(payloads: list[bytes], cuts: list[int], threshold: int) -> None:
    """Pieces of any lengths, in memory and spilled.

    Flink: `SpanningRecordSerializerTest#testIntRecordsSpanningMultipleSegments` (P36).
    """
    stream = framed(*payloads)
    pieces = []
    position, number = 0, 0
    while position < len(stream):
        length = cuts[number % len(cuts)]
        pieces.append(stream[position : position + length])
        position, number = position + length, number + 1
    reader = deserializer(spill_threshold_bytes=threshold)
    assert list(read_all(reader, pieces)) == payloads
    assert reader.get_unconsumed() == b""


def test_the_three_results_tell_where_the_buffer_stands() -> None:
    """Last in this buffer, not last in the stream.

    Flink: `SpanningRecordSerializationTest`.
    """
    reader = deserializer()
    reader.set_next_buffer(data(framed(b"a", b"b") + b"\0\0"))
    assert [(r, bytes(p or b"")) for r, p in (reader.get_next_record() for _ in range(3))] == [
        (MORE, b"a"),
        (MORE, b"b"),
        (NONE, b""),
    ]
    reader.set_next_buffer(data(b"\0\0"))
    assert reader.get_next_record()[0] is LAST  # a record of no bytes is whole with its length


def test_a_record_inside_one_buffer_is_not_copied() -> None:
    reader = deserializer()
    buffer = data(framed(b"abc"))
    reader.set_next_buffer(buffer)
    _, payload = reader.get_next_record()
    assert payload is not None
    buffer.memory[4] = ord("x")
    assert bytes(payload) == b"xbc"


def test_unconsumed_bytes_are_everything_of_the_record_begun() -> None:
    """One byte at a time.

    Flink: `SpanningRecordSerializationTest#testSpanningRecordUnconsumedBuffer` (P38).
    """
    reader = deserializer()
    stream = framed(b"hello")
    for position in range(len(stream)):
        reader.set_next_buffer(data(stream[position : position + 1]))
        result, payload = reader.get_next_record()
        if position < len(stream) - 1:
            assert (result, payload) == (NONE, None)
            assert reader.get_unconsumed() == stream[: position + 1]
    assert bytes(payload or b"") == b"hello"
    assert reader.get_unconsumed() == b""


@pytest.mark.parametrize("threshold", [4, 1000])
def test_unconsumed_bytes_after_a_spanning_record_are_what_follows(threshold: int) -> None:
    """42, 43, 44 after the record.

    Flink: `SpanningRecordSerializationTest#testLargeSpanningRecordUnconsumedBufferWithLeftOverBytes` (P39).
    """
    reader = deserializer(spill_threshold_bytes=threshold)
    reader.set_next_buffer(data(framed(b"spanning")[:6]))
    assert reader.get_next_record()[0] is NONE
    assert reader.get_unconsumed() == framed(b"spanning")[:6]
    reader.set_next_buffer(data(framed(b"spanning")[6:] + bytes((42, 43, 44))))
    result, payload = reader.get_next_record()
    assert (result, bytes(payload or b"")) == (MORE, b"spanning")
    assert reader.get_unconsumed() == bytes((42, 43, 44))


def test_memory_of_a_record_that_spans_stays_for_the_next_but_not_for_a_much_shorter_one() -> None:
    """New pages cost more than the copy into them; and who has read one long record must not hold its size for good."""
    reader, lengths, memories = deserializer(), [1000, 600, 1000, 499, 1000], []
    for number, length in enumerate(lengths):
        payload = bytes([number]) * length
        reader.set_next_buffer(data(framed(payload)[:9]))
        assert reader.get_next_record() == (NONE, None)
        reader.set_next_buffer(data(framed(payload)[9:]))
        _, record = reader.get_next_record()
        assert record == payload
        memories.append(record.obj)
    is_kept = [one is other for one, other in pairwise(memories)]
    assert is_kept == [True, True, False, False]
    assert list(map(len, memories)) == [1000, 1000, 1000, 499, 1000]


def test_a_negative_length_is_the_producers_mistake() -> None:
    reader = deserializer()
    reader.set_next_buffer(data(b"\xff\xff\xff\xff"))
    with pytest.raises(RemoteProtocolError, match="length of -1"):
        reader.get_next_record()


def test_clearing_gives_the_buffer_back_and_forgets_the_record() -> None:
    """Flink: `SpanningWrapperTest`."""
    reader = deserializer(spill_threshold_bytes=1)
    buffer = data(framed(b"abcdef")[:7])
    reader.set_next_buffer(buffer)
    reader.get_next_record()
    reader.clear()
    assert buffer.is_recycled
    assert reader.get_unconsumed() == b""
    assert list(read_all(reader, [framed(b"new")])) == [b"new"]


# -- spilling --------------------------------------------------------------------------------------


def test_large_and_small_records_mix_and_no_file_is_left(tmp_path: Path) -> None:
    """With a threshold of 100 bytes instead of 5 MiB.

    Flink: `SpanningRecordSerializationTest#testHandleMixedLargeRecords` (P37).
    """
    payloads = [bytes([i]) * (4 if i % 2 else 101 + i * 31) for i in range(99)]
    stream = framed(*payloads)
    pieces = [stream[i : i + 32] for i in range(0, len(stream), 32)]
    reader = deserializer(spill_threshold_bytes=100, spill_directory=str(tmp_path))
    assert list(read_all(reader, pieces)) == payloads
    assert list(tmp_path.iterdir()) == []


def test_a_spilled_record_stays_readable_while_the_next_one_arrives(tmp_path: Path) -> None:
    reader = deserializer(spill_threshold_bytes=4, spill_directory=str(tmp_path))
    reader.set_next_buffer(data(framed(b"first one")[:5]))
    reader.get_next_record()
    reader.set_next_buffer(data(framed(b"first one")[5:] + framed(b"second one")[:6]))
    _, first = reader.get_next_record()
    assert reader.get_next_record()[0] is NONE
    reader.set_next_buffer(data(framed(b"second one")[6:]))
    _, second = reader.get_next_record()
    assert (bytes(first or b""), bytes(second or b"")) == (b"first one", b"second one")


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, kind: str) -> None:
    directory = tmp_path / kind
    if kind == "file":
        directory.write_text("not a directory")
    with pytest.raises(SpillError, match="must be spilled to disk") as caught:
        SpillFile(6_000_000, str(directory))
    assert (caught.value.record_bytes, caught.value.directory) == (6_000_000, str(directory))


def test_a_record_larger_than_the_disk_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(SpillError, match="has only"):
        SpillFile(2**62, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_while_writing_is_an_error_with_its_size(tmp_path: Path) -> None:
    """The operating system's own limit on a file plays the full disk."""
    spill = SpillFile(100_000, str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(SpillError, match="refused to take more") as caught:
            spill.write(memoryview(bytes(100_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.record_bytes == 100_000
    assert list(tmp_path.iterdir()) == []


def test_memory_of_a_segment_of_one_byte_is_enough(tmp_path: Path) -> None:
    """Even the length is cut, into four buffers."""
    serializer = SpanningRecordSerializer()
    contents = []
    for payload in (b"", b"ab", b""):
        serializer.serialize_record(payload)
        while True:
            builder = BufferBuilder(Buffer(MemorySegment.allocate(1), _NOWHERE))
            result = serializer.copy_to_buffer_builder(builder)
            assert result is not FULL
            contents.append(bytes(builder.memory[:1]))
            if result.is_full_record:
                break
    reader = deserializer(spill_threshold_bytes=1, spill_directory=str(tmp_path))
    assert list(read_all(reader, contents)) == [b"", b"ab", b""]


class _Nowhere:
    def recycle_segment(self, segment: MemorySegment) -> None: ...


_NOWHERE = _Nowhere()
