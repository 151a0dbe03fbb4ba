"""What a blocking result is kept in: entries that are written once, and then read as often as one likes.

    entry: kind 2 | compressed 2 | size 4 | bytes of that size

all in the machine's own order of bytes, since nobody else reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from refimpl.errors import LocalUsageError, SluiceError
from refimpl.memory.buffer import Buffer, heap_buffer
from refimpl.memory.data_type import DataType

__all__ = [
    "ENTRY_HEADER_BYTES",
    "BoundedData",
    "BoundedReader",
    "EntryHeader",
    "MemoryBoundedData",
    "pack_entry_header",
    "unpack_entry_header",
]

_HEADER = struct.Struct("=hhi")
ENTRY_HEADER_BYTES = _HEADER.size

_KINDS = (
    DataType.DATA,
    DataType.EVENT,
    DataType.END_OF_SEGMENT,
    DataType.END_OF_DATA,
    DataType.END_OF_PARTITION,
    DataType.DATA_WITH_CLEAR_END,
)


class BoundedReader(Protocol):
    """One reader, with a position of its own. Ownership: what `read` gives is the caller's to recycle."""

    def read(self) -> Buffer | None:
        """The next entry; `None` at the end, or while the reader's own buffers are all out."""

    @property
    def is_at_end(self) -> bool: ...

    def close(self) -> None: ...


class BoundedData(Protocol):
    """Where the entries of one subpartition are; `num_bytes` are those of the entries, without headers.

    Flink:   BoundedData (runtime.io.network.partition), 1.11.4
    """

    @property
    def num_bytes(self) -> int: ...

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        """Append one entry."""

    def finish(self) -> None:
        """Nothing is appended any more."""

    def reader(self, on_available: Callable[[], None]) -> BoundedReader:
        """A reader from the beginning; told when a read gave nothing for want of a buffer, and there is one again."""

    def close(self) -> None:
        """Nobody will ask for a reader any more; what the last of them holds stays until it gives that back."""


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """What stands before the bytes of an entry."""

    data_type: DataType
    is_compressed: bool
    size: int


def pack_entry_header(data_type: DataType, size: int, is_compressed: bool = False) -> bytes:
    """The header of an entry.

    Raises:
        LocalUsageError: entries of this type do not go into a blocking result, such as a barrier that holds up.

    Flink:   BufferReaderWriterUtil (runtime.io.network.partition), 2.2.1; in 1.11 the kinds above 1 are 1
    """
    if data_type not in _KINDS:
        raise LocalUsageError(f"{data_type.name} does not go into a blocking result: there are no checkpoints with one")
    return _HEADER.pack(_KINDS.index(data_type), is_compressed, size)


def unpack_entry_header(data: bytes | memoryview, limit: int, where: str) -> EntryHeader:
    """What a header says; `where` names the result in words.

    Raises:
        SluiceError: it is cut off, of no kind there is, or of more than `limit` bytes: no writer of ours has made it.
    """
    if len(data) < ENTRY_HEADER_BYTES:
        raise SluiceError(f"{where} is damaged: it ends within the header of an entry")
    kind, compressed, size = _HEADER.unpack_from(data)
    if not 0 <= kind < len(_KINDS) or compressed not in (0, 1) or not 0 <= size <= limit:
        raise SluiceError(f"{where} is damaged: an entry of kind {kind} and {size} bytes, where {limit} are the most")
    return EntryHeader(_KINDS[kind], compressed == 1, size)


class MemoryBoundedData:
    """Entries in memory, for simulations and for results that are small."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._entries: list[tuple[bytes, DataType, bool]] = []
        self._is_finished = False

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        """Append one entry.

        Raises:
            LocalUsageError: it is finished, or entries of this type do not go in.
        """
        if self._is_finished:
            raise LocalUsageError("a finished result takes no more entries")
        pack_entry_header(data_type, len(data), is_compressed)
        self._entries.append((bytes(data), data_type, is_compressed))
        self.num_bytes += len(data)

    def finish(self) -> None:
        """Nothing is appended any more."""
        self._is_finished = True

    def reader(self, on_available: Callable[[], None]) -> MemoryBoundedReader:
        """A reader from the beginning."""
        return MemoryBoundedReader(self._entries)

    def close(self) -> None:
        """Drop all; who reads still has what was there."""
        self._entries = []


class MemoryBoundedReader:
    """A position in entries in memory."""

    def __init__(self, entries: list[tuple[bytes, DataType, bool]]) -> None:
        self._entries = entries
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        return self._next == len(self._entries)

    def read(self) -> Buffer | None:
        """The next entry, `None` at the end."""
        if self.is_at_end:
            return None
        data, data_type, is_compressed = self._entries[self._next]
        self._next += 1
        buffer = heap_buffer(data, data_type)
        buffer.is_compressed = is_compressed
        return buffer

    def close(self) -> None:
        """Read no more."""
        self._next = len(self._entries)
