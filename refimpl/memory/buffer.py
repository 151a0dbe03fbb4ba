"""A buffer: a segment on loan, with a count of who still needs it.

Rules of this file:
- A buffer is born with one reference. Whoever takes it calls `recycle` once; whoever shares it
  calls `retain` first. At zero the segment goes home, exactly once.
- Shared buffers share memory and count, never positions: each reader has its own.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.segment import MemorySegment

__all__ = ["Buffer", "BufferSlice", "DataType", "Recycler", "heap_buffer"]


class Recycler(Protocol):
    """Takes a segment back when nobody holds it any more."""

    def recycle_segment(self, segment: MemorySegment) -> None: ...


class DataType(Enum):
    """What the bytes of a buffer are: user data, or an event of a certain kind.

    The value is (name in 1.11, code in 1.11, name in 2.x, code in 2.x); the code is the byte a
    BufferResponse carries on the wire. `None` marks a kind that version does not have.

    Flink:   Buffer.DataType (runtime.io.network.buffer), 1.11.4 and 2.2.1
    """

    NONE = (None, None, "NONE", 0)
    DATA = ("DATA_BUFFER", 0, "DATA_BUFFER", 1)
    EVENT = ("EVENT_BUFFER", 1, "EVENT_BUFFER", 2)
    PRIORITY_EVENT = (None, None, "PRIORITIZED_EVENT_BUFFER", 3)
    ALIGNED_BARRIER = (
        "ALIGNED_EXACTLY_ONCE_CHECKPOINT_BARRIER",
        2,
        "ALIGNED_CHECKPOINT_BARRIER",
        4,
    )
    TIMEOUTABLE_BARRIER = (None, None, "TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER", 5)
    RECOVERY_COMPLETION = (None, None, "RECOVERY_COMPLETION", 6)
    END_OF_SEGMENT = (None, None, "END_OF_SEGMENT", 7)
    DATA_WITH_CLEAR_END = (None, None, "DATA_BUFFER_WITH_CLEAR_END", 8)
    END_OF_DATA = (None, None, "END_OF_DATA", 9)
    END_OF_PARTITION = (None, None, "END_OF_PARTITION", 10)
    RECOVERY_METADATA = (None, None, "RECOVERY_METADATA", 11)
    ALIGNED_WATERMARK = (None, None, "ALIGNED_WATERMARK_EVENT", 12)
    UNALIGNED_WATERMARK = (None, None, "UNALIGNED_WATERMARK_EVENT", 13)

    def __init__(self, *_codes: str | int | None) -> None:
        # Asked several times for each buffer: so these are attributes.
        self.is_buffer = self._name_ in ("DATA", "DATA_WITH_CLEAR_END")
        """User data: it costs credit and counts in the backlog. Events do neither."""
        self.is_event = self._name_ != "NONE" and not self.is_buffer
        self.blocks_upstream = self._name_ in (
            "ALIGNED_BARRIER",
            "TIMEOUTABLE_BARRIER",
            "RECOVERY_COMPLETION",
            "ALIGNED_WATERMARK",
        )
        """After this the producer stops the subpartition until the consumer says resume."""

    def flink_name(self, version: FlinkVersion) -> str | None:
        name: str | None = self.value[0 if version is FlinkVersion.V1_11 else 2]
        return name

    def code(self, version: FlinkVersion) -> int | None:
        """The byte on the wire, or `None` where that version has no such kind."""
        code: int | None = self.value[1 if version is FlinkVersion.V1_11 else 3]
        return code

    @property
    def has_priority(self) -> bool:
        return self is DataType.PRIORITY_EVENT

    @property
    def requires_announcement(self) -> bool:
        return self is DataType.TIMEOUTABLE_BARRIER

    @property
    def is_partial_record_possible(self) -> bool:
        """Whether a record may be cut at the end of such a buffer."""
        return self is DataType.DATA


class Buffer:
    """A counted reference to a segment, filled up to `size` bytes.

    Ownership: the creator holds the first reference. `recycler` gets the segment when the last
    reference is given up.

    Raises (all methods):
        LocalUsageError: the buffer was already recycled.

    Flink:   NetworkBuffer (runtime.io.network.buffer), 1.11.4
    Differs: no Netty `ByteBuf` interface; readers take `data` and keep their own position.
    """

    __slots__ = ("segment", "recycler", "data_type", "size", "num_references")

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
        """A window on this buffer. It does not retain: who keeps it must `retain` it."""
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
        # Asked several times on the way: so these are attributes.
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
    """A full buffer outside all pools, as events travel in.

    An event must go out when every pool is empty, or a job could neither end nor be checkpointed.
    """
    return Buffer(MemorySegment(bytearray(data)), _HEAP, data_type, len(data))
