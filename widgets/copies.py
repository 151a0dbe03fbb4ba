"""Records cut into buffers as the engine's record writer does it, one copy at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from refimpl.errors import LocalUsageError
from refimpl.memory import BufferBuilder, DataType, heap_buffer
from refimpl.records import RecordSerializer, SerializationResult, SpanningRecordSerializer

__all__ = ["Copy", "check_segment_size", "copies_of"]


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a record into a buffer: what was written, and what the serializer answered."""

    record: int
    buffer: int
    written: bytes
    result: SerializationResult

    def __repr__(self) -> str:
        return f"record {self.record}  buffer {self.buffer}  {self.written.hex(' '):<24} {self.result.value}"


def copies_of(
    records: Iterable[bytes],
    segment_size: int,
    make_serializer: Callable[[], RecordSerializer] = SpanningRecordSerializer,
) -> Iterator[Copy]:
    """Cut records into buffers of `segment_size` bytes; without end if the serializer never finishes a record.

    Raises:
        LocalUsageError: `segment_size` is not positive, a record is not bytes, or there is no serializer.
    """
    check_segment_size(segment_size)
    if not callable(make_serializer):
        raise LocalUsageError(f"{make_serializer!r} makes no serializer; give a class, or a function without arguments")
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise LocalUsageError(f"records={records!r} cannot work: several of bytes, such as [b'hello', b'to']")
    return _copies_of(records, segment_size, make_serializer())


def check_segment_size(segment_size: object) -> None:
    """Refuse buffers that cannot be.

    Raises:
        LocalUsageError: it is no positive whole number.
    """
    if isinstance(segment_size, bool) or not isinstance(segment_size, int) or segment_size < 1:
        raise LocalUsageError(f"segment_size={segment_size!r} cannot work: a buffer has at least one byte")


def _copies_of(records: Iterable[bytes], segment_size: int, serializer: RecordSerializer) -> Iterator[Copy]:
    builder, buffer = None, -1
    for number, record in enumerate(records):
        if not isinstance(record, bytes | bytearray | memoryview):
            raise LocalUsageError(f"record {number} is {record!r}, and not bytes")
        serializer.serialize_record(bytes(record))
        is_done = False
        while not is_done:
            if builder is None:
                builder = BufferBuilder(heap_buffer(bytes(segment_size), DataType.DATA))
                buffer += 1
            start = builder.written_bytes
            result = serializer.copy_to_buffer_builder(builder)
            yield Copy(number, buffer, bytes(builder.memory[start : builder.written_bytes]), result)
            is_done = result.is_full_record
            if result.is_full_buffer:
                builder = None
        serializer.prune()
