"""A buffer: a segment on loan, with a count of its holders.

Rules of this file:
- A buffer is born with one reference. Its holder calls `recycle` once; a holder who shares it
  calls `retain` first. At zero the segment goes home, exactly once.
- Shared buffers share memory and count, never positions: each reader has its own.
"""

from __future__ import annotations

from typing import Protocol

from refimpl.errors import LocalUsageError
from refimpl.memory.data_type import DataType
from refimpl.memory.segment import MemorySegment

__all__ = ["Buffer", "BufferSlice", "Recycler", "heap_buffer"]


class Recycler(Protocol):
    """The place a segment goes back to when nobody holds its buffer any more."""

    def recycle_segment(self, segment: MemorySegment) -> None: ...


class Buffer:
    """A counted reference to a segment, filled up to `size` bytes, which `is_compressed` says how to take.

    Ownership: the creator holds the first reference. `recycler` gets the segment when the last
    reference is given up.

    Raises (all methods):
        LocalUsageError: the buffer was already recycled.

    Flink:   NetworkBuffer (runtime.io.network.buffer), 1.11.4
    Differs: no Netty `ByteBuf` interface; readers take `data` and keep their own position.
    """

    __slots__ = ("segment", "recycler", "data_type", "size", "num_references", "is_compressed")

    def __init__(
        self,
        segment: MemorySegment,
        recycler: Recycler,
        data_type: DataType = DataType.DATA,
        size: int = 0,
    ) -> None:
        self.segment = segment
        self.recycler = recycler
        self.data_type = data_type
        self.size = size
        self.num_references = 1
        self.is_compressed = False

    def __repr__(self) -> str:
        return (
            f"Buffer(segment={self.segment.id}, {self.data_type.name}, {self.size} B, references={self.num_references})"
        )

    @property
    def is_buffer(self) -> bool:
        return self.data_type.is_buffer

    @property
    def is_recycled(self) -> bool:
        return self.num_references == 0

    @property
    def data(self) -> memoryview:
        """The filled bytes, without a copy."""
        return self.memory[: self.size]

    @property
    def memory(self) -> memoryview:
        """The whole segment's bytes, for a builder to write into."""
        view = self.segment.view
        if self.num_references == 0 or view is None:
            raise self.recycled_before()
        return view

    def retain(self) -> Buffer:
        """Add one reference; returns itself."""
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references += 1
        return self

    def recycle(self) -> None:
        """Give up one reference; the last one sends the segment home."""
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references -= 1
        if self.num_references == 0:
            self.recycler.recycle_segment(self.segment)

    def read_only_slice(self, start: int = 0, length: int | None = None) -> BufferSlice:
        """A window on this buffer. It does not retain; keep it only with a `retain` of its own."""
        end = self.size if length is None else start + length
        if not 0 <= start <= end <= self.segment.size:
            raise IndexError(f"bytes {start} to {end} are outside the buffer of {self.segment.size} B")
        return BufferSlice(self, start, end)

    def recycled_before(self) -> LocalUsageError:
        return LocalUsageError(f"segment {self.segment.id}: its buffer was recycled before")


class BufferSlice:
    """A read-only window on a buffer, with the buffer's life and a position of its own.

    `start` and `end` are bytes of the buffer; `Buffer.read_only_slice` checks that.

    Flink:   ReadOnlySlicedNetworkBuffer (runtime.io.network.buffer), 1.11.4
    """

    __slots__ = ("parent", "start", "end", "size", "is_buffer")

    def __init__(self, parent: Buffer, start: int, end: int) -> None:
        self.parent = parent
        self.start = start
        self.end = end
        self.size = end - start
        self.is_buffer = parent.data_type.is_buffer

    def __repr__(self) -> str:
        return f"BufferSlice({self.start}..{self.end} of {self.parent!r})"

    @property
    def segment(self) -> MemorySegment:
        return self.parent.segment

    @property
    def data_type(self) -> DataType:
        return self.parent.data_type

    @property
    def is_recycled(self) -> bool:
        return self.parent.is_recycled

    @property
    def data(self) -> memoryview:
        """The window's bytes; they cannot be written through it."""
        return self.parent.memory[self.start : self.end].toreadonly()

    def retain(self) -> BufferSlice:
        self.parent.retain()
        return self

    def recycle(self) -> None:
        """Give up one reference of the parent."""
        self.parent.recycle()


class _Heap:
    """The recycler of buffers outside all pools: their memory is simply dropped."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        segment.free()


_HEAP = _Heap()


def heap_buffer(data: bytes, data_type: DataType) -> Buffer:
    """A full buffer outside all pools, in which an event travels.

    An event must go out when every pool is empty, or a job could neither end nor be checkpointed.
    """
    return Buffer(MemorySegment(bytearray(data)), _HEAP, data_type, len(data))
