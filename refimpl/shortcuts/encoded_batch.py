"""Bytes of many records on their way into buffers: cut as one record is, anywhere, but many buffers at a time."""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.memory.buffer import Buffer
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.records.spanning import LENGTH_BYTES, SerializationResult

__all__ = ["EncodedBatch", "advance"]


def advance(builder: BufferBuilder, num_bytes: int) -> None:
    """Commit `num_bytes` that the caller has written into `builder.memory` itself, at `written_bytes`."""
    published = builder.published
    published.value += num_bytes
    if published.watchers:
        published.tell()


class EncodedBatch:
    """The bytes of many records, cut into buffers as one record is: anywhere.

    In the place of `SerializedRecord`; "record" in its results stands for the batch. `record_bytes` is how long each
    is, with its length; 0 if they differ.
    """

    def __init__(self, data: memoryview | bytes | bytearray, record_bytes: int = 0) -> None:
        self._data = memoryview(data)
        self._record_bytes = record_bytes
        self._position = 0

    def partial_record_bytes(self, most: int) -> int:
        """What is left of the record that the last copy cut; -1 if it is more than `most`, or nobody knows."""
        num_left = -self._position % self._record_bytes if self._record_bytes else -1
        return num_left if num_left <= most else -1

    def num_whole(self, buffer_bytes: int) -> int:
        """How many buffers of this size the rest fills; not the last, which stays open for what comes next."""
        return max(0, len(self._data) - self._position - 1) // buffer_bytes

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy on as far as `builder` has room; it notes where the record ends that the buffer before cut."""
        start, position, num_all = builder.written_bytes, self._position, len(self._data)
        if position:
            builder.begin_inside_a_record(self.partial_record_bytes(builder.capacity))
        num_copied = min(builder.capacity - start, num_all - position)
        self._position = position + num_copied
        builder.memory[start : start + num_copied] = self._data[position : self._position]
        advance(builder, num_copied)
        if self._position < num_all:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if start + num_copied == builder.capacity:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def fill(self, buffers: Sequence[Buffer]) -> list[BufferConsumer]:
        """Copy on into whole buffers, for which there is enough left.

        Full before anybody sees them, they need no builder, and nobody has to be told that it has finished.
        """
        full = []
        for buffer in buffers:
            size, start = buffer.segment.size, self._position
            partial_record_bytes = self.partial_record_bytes(size)
            buffer.memory[:] = self._data[start : start + size]
            buffer.size, self._position = size, start + size
            full.append(BufferConsumer.of_buffer(buffer, partial_record_bytes))
        return full

    def payloads(self) -> list[bytes]:
        """Each record without its length, for a part that takes one at a time."""
        payloads, start = [], 0
        while start < len(self._data):
            payload = start + LENGTH_BYTES
            start = payload + int.from_bytes(self._data[start:payload], "big")
            payloads.append(bytes(self._data[payload:start]))
        return payloads

    def keep_first(self) -> list[bytes]:
        """Keep the record that is begun, or the first; the payloads of those behind it are the caller's."""
        payloads, end, num_kept = self.payloads(), 0, 0
        while num_kept < len(payloads) and end < max(self._position, 1):
            end += LENGTH_BYTES + len(payloads[num_kept])
            num_kept += 1
        self._data = self._data[:end]
        return payloads[num_kept:]

    def reset(self) -> None:
        """Start over, for the next channel."""
        self._position = 0

    def prune(self) -> None:
        """Let go of the bytes."""
        self._data, self._position = memoryview(b""), 0
