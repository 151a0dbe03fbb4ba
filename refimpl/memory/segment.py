"""A fixed piece of memory with an address and bounds that are checked.

Everything the engine sends lives in segments that were allocated once, at the start. Python's
`bytes` come and go with every record; a segment stays, is lent out, and comes back. That is why
the engine can say how much memory it uses, and why a full pool means something.
"""

from __future__ import annotations

import struct
import sys
from enum import Enum

from refimpl.errors import LocalUsageError

__all__ = ["ByteOrder", "MemorySegment"]


class ByteOrder(Enum):
    """Which byte of a number comes first; the value is `struct`'s sign for it."""

    LITTLE_ENDIAN = "<"
    BIG_ENDIAN = ">"
    NATIVE = "<" if sys.byteorder == "little" else ">"


class MemorySegment:
    """`size` bytes of memory that can be read and written as numbers.

    Indexes and lengths are in bytes. Numbers use the machine's own order unless one is named.
    `view` is the memory itself, for bulk copies; it is `None` once the segment is freed.

    Raises (all methods):
        LocalUsageError: the segment was freed. This comes before any complaint about an index.
        IndexError: the access would leave the segment.

    Flink:   MemorySegment, HybridMemorySegment (core.memory), 1.11.4
    Differs: one class; Python has no second kind of heap, so "off-heap" is a slice of the pool's
             one large allocation and "heap" is an allocation of its own.
    """

    __slots__ = ("id", "size", "view")

    def __init__(self, memory: bytearray | memoryview, segment_id: int = -1) -> None:
        self.id = segment_id
        self.view: memoryview | None = memoryview(memory)
        self.size = self.view.nbytes

    @classmethod
    def allocate(cls, size_bytes: int) -> MemorySegment:
        """A segment of its own, outside all pools, as events use."""
        return cls(bytearray(size_bytes))

    def __repr__(self) -> str:
        state = "freed" if self.view is None else f"{self.size} B"
        return f"MemorySegment({self.id}, {state})"

    @property
    def is_freed(self) -> bool:
        return self.view is None

    def free(self) -> None:
        """Give the memory back; freeing twice is allowed."""
        self.view = None

    def window(self, index: int, length: int) -> memoryview:
        """The memory of `length` bytes from `index`, without a copy: what is written to it is written here."""
        if self.view is None:
            raise LocalUsageError(f"segment {self.id} has been freed")
        if index < 0 or length < 0 or index + length > self.size:
            raise IndexError(f"bytes {index} to {index + length} are outside segment {self.id} of {self.size} B")
        return self.view[index : index + length]

    # -- bytes ---------------------------------------------------------------------------------

    def get(self, index: int, length: int) -> bytes:
        """A copy of `length` bytes from `index`."""
        return bytes(self.window(index, length))

    def put(self, index: int, source: bytes | bytearray | memoryview) -> None:
        """Copy all of `source` to `index`."""
        self.window(index, len(source))[:] = source

    def copy_to(self, index: int, target: MemorySegment, target_index: int, length: int) -> None:
        """Copy `length` bytes from `index` here to `target_index` in `target`, or nothing at all.

        `target` may be this segment: then the bytes arrive as they were before, even if the two ranges overlap.
        """
        target.window(target_index, length)[:] = self.window(index, length)

    def swap_bytes(self, index: int, other: MemorySegment, other_index: int, length: int) -> None:
        """Exchange `length` bytes with another segment."""
        mine = self.window(index, length)
        theirs = other.window(other_index, length)
        kept = bytes(mine)
        mine[:] = theirs
        theirs[:] = kept

    def compare(
        self,
        other: MemorySegment,
        index: int,
        other_index: int,
        length: int,
        other_length: int | None = None,
    ) -> int:
        """Below, at or above 0 as this range sorts before, with or after the other's.

        Bytes compare unsigned; where one range is a prefix of the other, the shorter comes first.
        """
        mine = bytes(self.window(index, length))
        theirs = bytes(other.window(other_index, length if other_length is None else other_length))
        if mine == theirs:
            return 0
        common = min(len(mine), len(theirs))
        if mine[:common] == theirs[:common]:
            return len(mine) - len(theirs)
        return -1 if mine < theirs else 1

    def equal_to(self, other: MemorySegment, index: int, other_index: int, length: int) -> bool:
        """Whether both ranges hold the same bytes."""
        return self.window(index, length) == other.window(other_index, length)

    # -- numbers -------------------------------------------------------------------------------

    def _get(self, index: int, code: str, order: ByteOrder) -> int | float:
        layout = order.value + code
        value: int | float = struct.unpack(layout, self.window(index, struct.calcsize(layout)))[0]
        return value

    def _put(self, index: int, code: str, order: ByteOrder, value: float) -> None:
        layout = order.value + code
        struct.pack_into(layout, self.window(index, struct.calcsize(layout)), 0, value)

    def get_byte(self, index: int) -> int:
        """One byte as a signed number, as Java has it: -128 to 127."""
        return int(self._get(index, "b", ByteOrder.NATIVE))

    def put_byte(self, index: int, value: int) -> None:
        self._put(index, "b", ByteOrder.NATIVE, value)

    def get_short(self, index: int, order: ByteOrder = ByteOrder.NATIVE) -> int:
        return int(self._get(index, "h", order))

    def put_short(self, index: int, value: int, order: ByteOrder = ByteOrder.NATIVE) -> None:
        self._put(index, "h", order, value)

    def get_int(self, index: int, order: ByteOrder = ByteOrder.NATIVE) -> int:
        """The four bytes from `index` as a signed number: -2**31 to 2**31 - 1."""
        value: int = struct.unpack(order.value + "i", self.window(index, 4))[0]
        return value

    def put_int(self, index: int, value: int, order: ByteOrder = ByteOrder.NATIVE) -> None:
        """Write a signed number into the four bytes from `index`."""
        struct.pack_into(order.value + "i", self.window(index, 4), 0, value)

    def get_long(self, index: int, order: ByteOrder = ByteOrder.NATIVE) -> int:
        return int(self._get(index, "q", order))

    def put_long(self, index: int, value: int, order: ByteOrder = ByteOrder.NATIVE) -> None:
        self._put(index, "q", order, value)

    def get_double(self, index: int, order: ByteOrder = ByteOrder.NATIVE) -> float:
        return float(self._get(index, "d", order))

    def put_double(self, index: int, value: float, order: ByteOrder = ByteOrder.NATIVE) -> None:
        self._put(index, "d", order, value)
