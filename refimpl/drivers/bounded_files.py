"""Blocking results in files: read into buffers, or mapped into memory, or written into the map at once.

A file goes when the result is released and the last byte that was lent of it is home. What a crash has left goes at the
next start: see `ResultFolder`.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from refimpl.errors import LocalUsageError, SluiceError
from refimpl.memory.buffer import Buffer, Recycler
from refimpl.memory.data_type import DataType
from refimpl.memory.segment import MemorySegment
from refimpl.producer.bounded_data import (
    ENTRY_HEADER_BYTES,
    BoundedReader,
    EntryHeader,
    pack_entry_header,
    unpack_entry_header,
)

__all__ = ["FileBoundedData", "MappedBoundedData", "ResultFolder", "WrittenMapBoundedData"]

_NUM_READ_BUFFERS = 2
_LEAST_MAP_BYTES = 64 * 1024


class _EntryFile:
    """The file of one subpartition: written front to back, then read by whoever has it open."""

    def __init__(self, path: Path, max_entry_bytes: int) -> None:
        self.path = path
        self.num_bytes = 0
        self.max_entry_bytes = max_entry_bytes
        self._file: BinaryIO | None = None
        try:
            self._file = path.open("xb")
        except OSError as error:
            raise SluiceError(f"no file {path.name} for a blocking result: {error.strerror}") from error

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        """Append one entry.

        Raises:
            LocalUsageError: it is finished, or the entry is too long or of a type that does not go in.
            SluiceError: the disk is full, or refuses.
        """
        if self._file is None:
            raise LocalUsageError(f"{self.path.name} is finished and takes no more entries")
        self.check_size(len(data))
        header = pack_entry_header(data_type, len(data), is_compressed)
        try:
            self._file.write(header)
            self._file.write(data)
        except OSError as error:
            raise _refused(self.path, error) from error
        self.num_bytes += len(data)

    def finish(self) -> None:
        """Nothing is appended any more."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                raise _refused(self.path, error) from error
            self._file = None

    def flush(self) -> None:
        """Let whoever opens the file now find what was written."""
        if self._file is not None:
            self._file.flush()

    def check_size(self, num_bytes: int) -> None:
        if num_bytes > self.max_entry_bytes:
            raise LocalUsageError(f"an entry of {num_bytes} bytes, where {self.max_entry_bytes} are the most")

    def check_finished(self) -> None:
        if self._file is not None:
            raise LocalUsageError(f"{self.path.name} is read when it is finished, and it is not")

    def remove(self) -> None:
        """Close and delete it; again is fine."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.path.unlink(missing_ok=True)


class _OnFile:
    """What is written the same way, however it is read."""

    def __init__(self, path: Path, max_entry_bytes: int) -> None:
        self._entries = _EntryFile(path, max_entry_bytes)

    @property
    def num_bytes(self) -> int:
        return self._entries.num_bytes

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        """Append one entry."""
        self._entries.write(data, data_type, is_compressed)


class FileBoundedData(_OnFile):
    """Entries in a file, read into two buffers that each reader has of its own.

    Flink:   FileChannelBoundedData (runtime.io.network.partition), 1.11.4
    """

    def finish(self) -> None:
        """Nothing is appended any more."""
        self._entries.finish()

    def reader(self, on_available: Callable[[], None]) -> BoundedReader:
        """A reader from the beginning."""
        self._entries.check_finished()
        return FileBoundedReader(self._entries.path, self._entries.max_entry_bytes, on_available)

    def close(self) -> None:
        """Delete the file; readers that have it open go on."""
        self._entries.remove()


class FileBoundedReader:
    """A position in a file, and two buffers to read into: with both out there is nothing until one is back."""

    def __init__(self, path: Path, max_entry_bytes: int, on_available: Callable[[], None]) -> None:
        self._file = path.open("rb")
        self._size = os.fstat(self._file.fileno()).st_size
        self._name = path.name
        self._max_entry_bytes = max_entry_bytes
        self._on_available = on_available
        self._free = deque(MemorySegment.allocate(max_entry_bytes) for _ in range(_NUM_READ_BUFFERS))
        self._is_waiting = False
        self._is_closed = False

    @property
    def is_at_end(self) -> bool:
        return self._is_closed or self._file.tell() == self._size

    def read(self) -> Buffer | None:
        """The next entry; `None` at the end, or while both buffers are out.

        Raises:
            SluiceError: the file is damaged.
        """
        if self.is_at_end:
            return None
        if not self._free:
            self._is_waiting = True
            return None
        header = unpack_entry_header(self._file.read(ENTRY_HEADER_BYTES), self._max_entry_bytes, self._name)
        segment = self._free.popleft()
        if self._file.readinto(segment.window(0, header.size)) != header.size:
            raise SluiceError(f"{self._name} is damaged: it ends within an entry")
        return _buffer_of(segment, self, header)

    def recycle_segment(self, segment: MemorySegment) -> None:
        """One of the two is back: whoever has read in vain is told, if there is more to read."""
        self._free.append(segment)
        if self._is_waiting and not self.is_at_end:
            self._is_waiting = False
            self._on_available()

    def close(self) -> None:
        """Read no more."""
        self._is_closed = True
        self._file.close()


class MappedBoundedData(_OnFile):
    """Entries in a file that is mapped into memory when it is finished: what is read is the file itself.

    Flink:   BoundedBlockingSubpartitionType.FILE_MMAP, MemoryMappedBoundedData (runtime.io.network.partition), 1.11.4
    """

    def __init__(self, path: Path, max_entry_bytes: int) -> None:
        super().__init__(path, max_entry_bytes)
        self._map: mmap.mmap | None = None
        self._num_lent = 0
        self._is_closed = False

    def finish(self) -> None:
        """Map what was written; an entry for the end is always among it."""
        self._entries.finish()
        with self._entries.path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def reader(self, on_available: Callable[[], None]) -> BoundedReader:
        """A reader from the beginning."""
        self._entries.check_finished()
        if self._map is None:
            raise LocalUsageError(f"{self._entries.path.name} is released and read no more")
        return MappedBoundedReader(self, self._map, self._entries.path.name, self._entries.max_entry_bytes)

    def close(self) -> None:
        """Delete the file, and unmap it when the last that was lent of it is home."""
        self._is_closed = True
        self._entries.remove()
        self._unmap()

    def lend(self) -> None:
        """A piece of the map is out."""
        self._num_lent += 1

    def recycle_segment(self, segment: MemorySegment) -> None:
        """A piece of the map is back."""
        if segment.view is not None:
            segment.view.release()
        segment.free()
        self._num_lent -= 1
        self._unmap()

    def _unmap(self) -> None:
        if self._is_closed and self._num_lent == 0 and self._map is not None:
            with suppress(BufferError):  # somebody still looks at bytes it gave back: the map goes with the last look
                self._map.close()
            self._map = None


class WrittenMapBoundedData(MappedBoundedData):
    """Entries that are written into the map at once, which grows with them.

    Flink:   BoundedBlockingSubpartitionType.MMAP, MemoryMappedBoundedData (runtime.io.network.partition), 1.11.4
    Differs: one map that is made anew, twice as long, when it is full; Flink adds regions of up to 2 GiB.
    """

    def __init__(self, path: Path, max_entry_bytes: int) -> None:
        super().__init__(path, max_entry_bytes)
        self._entries.finish()
        self._num_written = 0
        self._num_entry_bytes = 0
        self._capacity = 0
        self._is_written = False
        self._writing: mmap.mmap | None = None

    @property
    def num_bytes(self) -> int:
        return self._num_entry_bytes

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        """Append one entry.

        Raises:
            LocalUsageError: it is finished, or the entry is too long or of a type that does not go in.
            SluiceError: the disk is full, or refuses.
        """
        if self._is_written:
            raise LocalUsageError(f"{self._entries.path.name} is finished and takes no more entries")
        self._entries.check_size(len(data))
        header = pack_entry_header(data_type, len(data), is_compressed)
        end = self._num_written + len(header) + len(data)
        if self._writing is None or end > self._capacity:
            self._grow(end)
        assert self._writing is not None, "it has just been made"
        self._writing[self._num_written : end] = header + data
        self._num_written = end
        self._num_entry_bytes += len(data)

    def finish(self) -> None:
        """Cut off what was not needed, and map what was written."""
        self._close_writing()
        self._is_written = True
        os.truncate(self._entries.path, self._num_written)
        super().finish()

    def close(self) -> None:
        """Delete the file, and unmap it when the last that was lent of it is home."""
        self._close_writing()
        super().close()

    def _grow(self, num_bytes: int) -> None:
        self._close_writing()
        capacity = max(num_bytes, 2 * self._capacity, _LEAST_MAP_BYTES)
        try:
            with self._entries.path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, capacity)  # or a full disk would be met by a signal
                self._writing = mmap.mmap(file.fileno(), capacity)
        except OSError as error:
            raise _refused(self._entries.path, error) from error
        self._capacity = capacity

    def _close_writing(self) -> None:
        if self._writing is not None:
            self._writing.close()
            self._writing = None


class MappedBoundedReader:
    """A position in a map; what it gives are windows on it."""

    def __init__(self, data: MappedBoundedData, memory: mmap.mmap, name: str, max_entry_bytes: int) -> None:
        self._data = data
        self._map = memory
        self._name = name
        self._max_entry_bytes = max_entry_bytes
        self._position = 0
        self._end = len(memory)

    @property
    def is_at_end(self) -> bool:
        return self._position == self._end

    def read(self) -> Buffer | None:
        """The next entry, `None` at the end.

        Raises:
            SluiceError: the file is damaged.
        """
        if self.is_at_end:
            return None
        start = self._position + ENTRY_HEADER_BYTES
        header = unpack_entry_header(self._map[self._position : start], self._max_entry_bytes, self._name)
        if start + header.size > self._end:
            raise SluiceError(f"{self._name} is damaged: it ends within an entry")
        with memoryview(self._map) as whole:
            window = whole[start : start + header.size]
        self._position = start + header.size
        self._data.lend()
        return _buffer_of(MemorySegment(window), self._data, header)

    def close(self) -> None:
        """Read no more."""
        self._position = self._end


class ResultFolder:
    """The folder of one TaskManager's results, below `parent`: removed at its end, and, after a crash, by others.

    Whoever lives holds a lock in its own folder; a folder that nobody holds is of a dead one.
    """

    def __init__(self, parent: Path, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.path = parent / name
        with _one_at_a_time(parent):  # or a sweep could meet a folder between its beginning and its lock
            self._sweep(parent)
            self.path.mkdir(exist_ok=True)
            self._lock = (self.path / ".lock").open("wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._lock.close()
                raise LocalUsageError(
                    f"somebody else keeps results in {name}; give each TaskManager its own"
                ) from error

    def close(self) -> None:
        """Remove it with all that is left in it, and what those have left who died meanwhile."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        with suppress(FileNotFoundError), _one_at_a_time(self.path.parent):
            self._sweep(self.path.parent)

    @staticmethod
    def _sweep(parent: Path) -> None:
        for lock in parent.glob("*/.lock"):
            with lock.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                shutil.rmtree(lock.parent, ignore_errors=True)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let no other process be in here for this folder."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _buffer_of(segment: MemorySegment, home: Recycler, header: EntryHeader) -> Buffer:
    buffer = Buffer(segment, home, header.data_type, header.size)
    buffer.is_compressed = header.is_compressed
    return buffer


def _refused(path: Path, error: OSError) -> SluiceError:
    why = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
    return SluiceError(f"the blocking result {path.name} could not be written: {why}")
