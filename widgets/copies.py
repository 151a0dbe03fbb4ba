"""Records cut into buffers as the engine's record writer does it, one copy at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from refimpl.memory import BufferBuilder, DataType, heap_buffer
from refimpl.records import RecordSerializer, SerializationResult, SpanningRecordSerializer

__all__ = ["Copy", "copies_of"]


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
    """Cut records into buffers of `segment_size` bytes; without end if the serializer never finishes a record."""
    serializer = make_serializer()
    builder, buffer = None, -1
    for number, record in enumerate(records):
        serializer.serialize_record(record)
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
