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
    """The one number the builder stores and the consumer loads, and the watchers of its next store."""

    __slots__ = ("partial_record_bytes", "value", "watchers")

    def __init__(self, value: int = 0, partial_record_bytes: int = 0) -> None:
        self.value = value
        self.partial_record_bytes = partial_record_bytes
        self.watchers: list[Callable[[], None]] = []

    @property
    def written(self) -> int:
        value = self.value
        if value >= 0:
            return value
        return 0 if value == _FINISHED_EMPTY else -value

    @property
    def is_finished(self) -> bool:
        return self.value < 0

    def tell(self) -> None:
        """Tell each watcher, once. Call it after the store: a watcher may look before it is told."""
        while self.watchers:
            self.watchers.pop()()


class BufferBuilder:
    """Fills one buffer from its start; the only writer it has.

    Ownership: takes over one reference of `buffer` and gives it up in `finish`. The consumer holds
    its own, so the segment goes home when both are done.
    `capacity` is in bytes. What is committed is counted once, in `published`.

    Flink:   BufferBuilder (runtime.io.network.buffer), 1.11.4
    Differs: both ends hold a reference, as in 2.x; in 1.11 the consumer alone owns the segment.
    """

    __slots__ = ("buffer", "memory", "capacity", "published", "_num_uncommitted", "_has_consumer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.memory = buffer.memory
        self.capacity = buffer.segment.size
        self.published = _PublishedPosition()
        self._num_uncommitted = 0
        self._has_consumer = False

    def __repr__(self) -> str:
        state = "finished" if self.is_finished else "open"
        return f"BufferBuilder({self.written_bytes} of {self.capacity} B, {state})"

    @property
    def written_bytes(self) -> int:
        """Bytes appended so far, committed or not."""
        value = self.published.value  # asked for each copy, where a second call would be felt
        return (value if value >= 0 else self.published.written) + self._num_uncommitted

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
        self._num_uncommitted += length
        return length

    def commit(self) -> None:
        """Publish everything appended so far, with one store."""
        if self.published.value >= 0:
            self.advance(0)

    def append_and_commit(self, source: bytes | bytearray | memoryview, offset: int = 0) -> int:
        """`append`, then `commit`."""
        copied = self.append(source, offset)
        self.commit()
        return copied

    def advance(self, num_bytes: int) -> None:
        """Commit `num_bytes` that the caller has written into `memory` at `written_bytes` itself."""
        published = self.published
        published.value += self._num_uncommitted + num_bytes
        self._num_uncommitted = 0
        if published.watchers:
            published.tell()

    def finish(self) -> int:
        """Commit, close for writing and return the bytes written; the second call changes nothing.

        Consumers notice at their next build.
        """
        if self.published.value < 0:
            return self.published.written
        published = self.published
        num_bytes = published.value + self._num_uncommitted
        published.value = -num_bytes or _FINISHED_EMPTY
        self._num_uncommitted = 0
        if published.watchers:
            published.tell()
        self.buffer.recycle()
        return num_bytes

    def trim(self, capacity: int) -> None:
        """Lower the capacity to `capacity` bytes, but never below what is written."""
        self.capacity = min(max(capacity, self.written_bytes), self.buffer.segment.size)

    def begin_inside_a_record(self, num_bytes: int) -> None:
        """The first `num_bytes` end a record that began in another buffer; -1 as long as its end is not here."""
        self.published.partial_record_bytes = num_bytes

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

    __slots__ = ("buffer", "is_buffer", "is_finished", "is_closed", "read_position", "written_bytes", "_published")

    def __init__(self, buffer: Buffer, published: _PublishedPosition, start: int) -> None:
        self.buffer = buffer
        self.is_buffer = buffer.data_type.is_buffer
        self.is_finished = False  # whether the builder had finished when this consumer last built
        self.is_closed = False
        self.read_position = start  # where the next build starts
        self.written_bytes = 0  # as of the last build
        self._published = published

    @classmethod
    def of_buffer(cls, buffer: Buffer, partial_record_bytes: int = 0) -> BufferConsumer:
        """A consumer of a buffer that is full already, such as an event: finished from birth."""
        size = buffer.size
        consumer = cls(buffer, _PublishedPosition(-size or _FINISHED_EMPTY, partial_record_bytes), 0)
        consumer.written_bytes, consumer.is_finished = size, True
        return consumer

    def __repr__(self) -> str:
        return f"BufferConsumer({self.read_position}..{self._published.written} of {self.buffer!r})"

    @property
    def is_data_available(self) -> bool:
        """Whether a build now would return bytes; looks at the builder's latest position."""
        value = self._published.value
        return (value if value >= 0 else self._published.written) > self.read_position

    @property
    def unread_bytes(self) -> int:
        """Bytes a build now would return."""
        return max(0, self._published.written - self.read_position)

    @property
    def unread(self) -> memoryview:
        """These bytes, without reading them."""
        return self.buffer.memory[self.read_position : self.read_position + self.unread_bytes]

    @property
    def partial_record_bytes(self) -> int:
        """So many bytes end a record that began in another buffer; -1: no record is known to begin in this one.

        Flink:   BufferConsumerWithPartialRecordLength (runtime.io.network.buffer), 1.12 and later
        """
        return self._published.partial_record_bytes

    def watch(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` once, when the builder publishes next; on the writer's thread, without exclusion."""
        self._published.watchers.append(on_news)

    def build(self) -> BufferSlice:
        """The bytes published since the last build, maybe none, as a slice the caller must recycle."""
        return self._build(self._published.value, self.buffer.retain())

    def take(self) -> BufferSlice:
        """`build`, and `close` if the builder has finished; the slice then has the reference that was held here."""
        if self.is_finished and not self.is_closed:  # as when it was born full: nothing has changed since
            self.is_closed = True
            start, end = self.read_position, self.written_bytes
            self.read_position = end
            return BufferSlice(self.buffer, min(end, start), end)
        value = self._published.value
        if value < 0 and not self.is_closed:
            self.is_closed = True
            return self._build(value, self.buffer)
        return self._build(value, self.buffer.retain())

    def _build(self, value: int, buffer: Buffer) -> BufferSlice:
        """`value` was loaded once: position and "finished" belong together."""
        self.is_finished = value < 0
        if value < 0:
            value = 0 if value == _FINISHED_EMPTY else -value
        self.written_bytes = value
        start = self.read_position
        if start > value:
            start = value
        else:
            self.read_position = value
        return BufferSlice(buffer, start, value)

    def skip(self, num_bytes: int) -> None:
        """Leave out the next `num_bytes` bytes."""
        self.read_position += num_bytes

    def copy(self) -> BufferConsumer:
        """Another reader of the same memory, starting where this one stands."""
        twin = BufferConsumer(self.buffer.retain(), self._published, self.read_position)
        twin.written_bytes = self.written_bytes
        twin.is_finished = self.is_finished
        return twin

    def copy_with_reader_position(self, position: int) -> BufferConsumer:
        """Another reader of the same memory, starting at `position`."""
        twin = self.copy()
        twin.read_position = position
        return twin

    def close(self) -> None:
        """Give up the reference; the second call changes nothing."""
        if not self.is_closed:
            self.is_closed = True
            self.buffer.recycle()
