"""One writer, one reader, one segment: how a buffer is sent while it is still being filled.

The builder appends and then publishes how far it came, with a single store. The consumer reads
that position when it builds, and takes what was published since its last build. Neither waits for
the other; that is what lets a record be serialised without a lock.

The published position is one number: 0 or more while the builder writes, its negative once the
builder has finished. A builder that finishes with nothing written publishes a number of its own,
because minus zero is zero.
"""

from __future__ import annotations

from collections.abc import Callable

from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import Buffer, BufferSlice

__all__ = ["BufferBuilder", "BufferConsumer"]

_FINISHED_EMPTY = -(2**31)


class _PublishedPosition:
    """The one number the builder stores and the consumer loads, and who wants to know of the next store."""

    __slots__ = ("value", "watchers")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.watchers: list[Callable[[], None]] = []

    @property
    def written(self) -> int:
        return 0 if self.value == _FINISHED_EMPTY else abs(self.value)

    @property
    def is_finished(self) -> bool:
        return self.value < 0

    def tell(self) -> None:
        """Tell each watcher, once. After the store: who looks before it is told sees what was stored."""
        while self.watchers:
            self.watchers.pop()()


class BufferBuilder:
    """Fills one buffer from its start; the only writer it has.

    Ownership: takes over one reference of `buffer` and gives it up in `finish`. The consumer holds
    its own, so the segment goes home when both are done.
    `written_bytes` counts appended bytes, committed or not. `capacity` is in bytes.

    A writer that packs numbers straight into `memory` at `written_bytes` commits them as `advance`
    does, which it may do itself to save the call.

    Flink:   BufferBuilder (runtime.io.network.buffer), 1.11.4
    Differs: both ends hold a reference, as in 2.x; in 1.11 the consumer alone owns the segment.
    """

    __slots__ = ("buffer", "memory", "capacity", "written_bytes", "published", "_has_consumer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.memory = buffer.memory
        self.capacity = buffer.segment.size
        self.written_bytes = 0
        self.published = _PublishedPosition()
        self._has_consumer = False

    def __repr__(self) -> str:
        state = "finished" if self.is_finished else "open"
        return f"BufferBuilder({self.written_bytes} of {self.capacity} B, {state})"

    @property
    def room(self) -> int:
        """Bytes that can still be appended."""
        return self.capacity - self.written_bytes

    @property
    def is_full(self) -> bool:
        return self.written_bytes == self.capacity

    @property
    def is_finished(self) -> bool:
        return self.published.is_finished

    @property
    def committed_bytes(self) -> int:
        """Bytes a consumer may see."""
        return self.published.written

    def append(self, source: bytes | bytearray | memoryview, offset: int = 0) -> int:
        """Copy `source` from `offset` on, as far as there is room; return the bytes copied.

        The bytes stay invisible until `commit`.

        Raises:
            LocalUsageError: the builder has finished.
        """
        if self.published.value < 0:
            raise LocalUsageError("the builder has finished; nothing can be appended")
        start = self.written_bytes
        length = min(self.capacity - start, len(source) - offset)
        if length <= 0:
            return 0
        self.memory[start : start + length] = memoryview(source)[offset : offset + length]
        self.written_bytes = start + length
        return length

    def commit(self) -> None:
        """Publish everything appended so far, with one store."""
        if self.published.value >= 0:
            self.published.value = self.written_bytes
            self.published.tell()

    def append_and_commit(self, source: bytes | bytearray | memoryview, offset: int = 0) -> int:
        """`append`, then `commit`."""
        copied = self.append(source, offset)
        self.commit()
        return copied

    def advance(self, num_bytes: int) -> None:
        """Commit `num_bytes` that the caller has written into `memory` at `written_bytes` itself.

        For writers that pack numbers straight into the segment. No checks: it is on the hot path.
        """
        self.written_bytes += num_bytes
        self.published.value = self.written_bytes
        if self.published.watchers:
            self.published.tell()

    def finish(self) -> int:
        """Commit, close for writing and return the bytes written; the second call changes nothing.

        Consumers notice at their next build.
        """
        if self.published.value < 0:
            return self.published.written
        self.published.value = -self.written_bytes or _FINISHED_EMPTY
        self.published.tell()
        self.buffer.recycle()
        return self.written_bytes

    def trim(self, capacity: int) -> None:
        """Lower the capacity to `capacity` bytes, but never below what is written."""
        self.capacity = min(max(capacity, self.written_bytes), self.buffer.segment.size)

    def create_consumer(self) -> BufferConsumer:
        """The reader of this buffer, starting at what is committed now.

        Raises:
            LocalUsageError: there is one already; copy that one instead.
        """
        return self._create_consumer(self.published.written)

    def create_consumer_from_beginning(self) -> BufferConsumer:
        """The reader of this buffer, starting at byte 0."""
        return self._create_consumer(0)

    def _create_consumer(self, start: int) -> BufferConsumer:
        if self._has_consumer:
            raise LocalUsageError("a builder has one consumer; copy that one for further readers")
        self._has_consumer = True
        return BufferConsumer(self.buffer.retain(), self.published, start)


class BufferConsumer:
    """Reads a buffer while its builder may still be writing.

    Ownership: holds one reference until `close`; each slice it builds holds another.
    The consumer learns the builder's position, and whether it has finished, only in `build`:
    right after the builder finishes, `is_finished` is still false.

    Flink:   BufferConsumer (runtime.io.network.buffer), 1.11.4
    """

    __slots__ = ("buffer", "_published", "_read", "_cached_written", "_cached_finished", "_closed")

    def __init__(self, buffer: Buffer, published: _PublishedPosition, start: int) -> None:
        self.buffer = buffer
        self._published = published
        self._read = start
        self._cached_written = 0
        self._cached_finished = False
        self._closed = False

    @classmethod
    def of_buffer(cls, buffer: Buffer) -> BufferConsumer:
        """A consumer of a buffer that is full already, such as an event: finished from birth."""
        consumer = cls(buffer, _PublishedPosition(-buffer.size or _FINISHED_EMPTY), 0)
        consumer._cached_written = buffer.size
        consumer._cached_finished = True
        return consumer

    def __repr__(self) -> str:
        return f"BufferConsumer({self._read}..{self._published.written} of {self.buffer!r})"

    @property
    def is_finished(self) -> bool:
        """Whether the builder had finished when this consumer last built."""
        return self._cached_finished

    @property
    def is_buffer(self) -> bool:
        return self.buffer.data_type.is_buffer

    @property
    def is_data_available(self) -> bool:
        """Whether a build now would return bytes; looks at the builder's latest position."""
        return self._published.written > self._read

    @property
    def written_bytes(self) -> int:
        """Bytes written, as of the last build."""
        return self._cached_written

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def read_position(self) -> int:
        """Where the next build starts."""
        return self._read

    @property
    def unread_bytes(self) -> int:
        """Bytes a build now would return."""
        return max(0, self._published.written - self._read)

    def watch(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` once, when the builder publishes next; on the writer's thread, without exclusion."""
        self._published.watchers.append(on_news)

    def build(self) -> BufferSlice:
        """The bytes published since the last build, maybe none, as a slice the caller must recycle."""
        value = self._published.value  # one load: position and "finished" belong together
        self._cached_finished = value < 0
        self._cached_written = 0 if value == _FINISHED_EMPTY else abs(value)
        start = min(self._read, self._cached_written)
        self._read = max(self._read, self._cached_written)
        return BufferSlice(self.buffer.retain(), start, self._cached_written)

    def skip(self, num_bytes: int) -> None:
        """Leave out the next `num_bytes` bytes."""
        self._read += num_bytes

    def copy(self) -> BufferConsumer:
        """Another reader of the same memory, starting where this one stands."""
        twin = BufferConsumer(self.buffer.retain(), self._published, self._read)
        twin._cached_written = self._cached_written
        twin._cached_finished = self._cached_finished
        return twin

    def copy_with_reader_position(self, position: int) -> BufferConsumer:
        """Another reader of the same memory, starting at `position`."""
        twin = self.copy()
        twin._read = position
        return twin

    def close(self) -> None:
        """Give up the reference; the second call changes nothing."""
        if not self._closed:
            self._closed = True
            self.buffer.recycle()
