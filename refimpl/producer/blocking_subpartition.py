"""What a result that is read when it is finished is made of: its books, what is written to, and its readers.

What is written when, and from when on it can be read, are rules of their own: `BoundedBlockingSubpartition` has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.bounded_data import ENTRY_HEADER_BYTES, BoundedData, BoundedReader
from refimpl.producer.subpartition_snapshot import QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.records.compression import BlockCodec, compressed_block
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfPartition
from refimpl.transitions import next_state

__all__ = [
    "BLOCKING_TRANSITIONS",
    "BlockingEvent",
    "BlockingState",
    "BlockingSubpartition",
    "BoundedBlockingView",
]


class BlockingState(Enum):
    """How far a blocking result is."""

    WRITING = "being written"
    FINISHED = "finished"
    RELEASED = "released"


class BlockingEvent(Enum):
    """What can happen to a blocking result."""

    FINISH = "finish"
    READ = "be read"
    RELEASE = "be released"


BLOCKING_TRANSITIONS = {
    BlockingState.WRITING: {
        BlockingEvent.FINISH: BlockingState.FINISHED,
        BlockingEvent.RELEASE: BlockingState.RELEASED,
    },
    BlockingState.FINISHED: {
        BlockingEvent.READ: BlockingState.FINISHED,
        BlockingEvent.RELEASE: BlockingState.RELEASED,
    },
    BlockingState.RELEASED: {BlockingEvent.RELEASE: BlockingState.RELEASED},
}


def _nobody_waits() -> None:
    """Before it is opened nobody has asked a view for anything."""


class BlockingSubpartition(ABC):
    """One channel, kept in `data`, without the rules by which it is written and read.

    What is written is compressed by `codec`, if there is one, as far as that makes buffers smaller. `charge` is told
    how many bytes an entry takes before it is written, and may refuse them.

    Ownership: an added consumer belongs to the subpartition; `current` is the one that is not all written yet.
    `num_buffers` counts the entries with data, `num_events` the others. `release` drops what is kept; readers that are
    at it still come to their end.

    Flink:   BoundedBlockingSubpartition (runtime.io.network.partition), 1.11.4
    """

    def __init__(
        self,
        index: int,
        owner: str,
        data: BoundedData,
        codec: BlockCodec | None = None,
        charge: Callable[[int], None] | None = None,
    ) -> None:
        self.index = index
        self.owner = owner
        self.state = BlockingState.WRITING
        self.current: BufferConsumer | None = None
        self.num_buffers = 0
        self.num_events = 0
        self.num_bytes_written = 0
        self._data = data
        self._codec = codec
        self._charge = charge
        self._num_readers = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.owner}[{self.index}], {self.state.value})"

    # -- the rules, which are another class's --------------------------------------------------------

    @abstractmethod
    def add(self, consumer: BufferConsumer) -> bool:
        """Take a buffer or an event, and write the one before; false if nobody will read it."""

    @abstractmethod
    def flush(self) -> None:
        """Write what there is."""

    @abstractmethod
    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Write the end of the partition; from now on it can be read."""

    @abstractmethod
    def create_view(self) -> BoundedBlockingView:
        """Another reader, from the beginning."""

    # -- what the rules are made of ----------------------------------------------------------------

    def write(self, piece: BufferSlice) -> None:
        """Append a piece as an entry of its own; it stays the caller's to recycle."""
        block = compressed_block(self._codec, piece.data) if self._codec is not None and piece.is_buffer else None
        data = piece.data if block is None else memoryview(block)
        if self._charge is not None:
            self._charge(ENTRY_HEADER_BYTES + len(data))
        self._data.write(data, piece.data_type, block is not None)
        self.num_bytes_written += len(data)
        self.num_buffers += piece.is_buffer
        self.num_events += not piece.is_buffer

    def end_of_partition(self, version: FlinkVersion) -> BufferConsumer:
        """The event that is the last entry of every channel."""
        return BufferConsumer.of_buffer(event_to_buffer(EndOfPartition(), version))

    def seal(self) -> None:
        """Let nothing be written any more: from now on it can be read.

        Raises:
            LocalUsageError: it is sealed already, or released.
        """
        state = next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.FINISH, self)
        self._data.finish()
        self.state = state

    def new_view(self) -> BoundedBlockingView:
        """A reader with a position of its own, before the first entry."""
        self._num_readers += 1
        return BoundedBlockingView(self, self._data)

    # -- what others ask -----------------------------------------------------------------------------

    @property
    def queue(self) -> tuple[BufferConsumer, ...]:
        """What is not written yet."""
        return () if self.current is None else (self.current,)

    @property
    def num_queued(self) -> int:
        """How many buffers are not written yet."""
        return len(self.queue)

    @property
    def is_released(self) -> bool:
        return self.state is BlockingState.RELEASED

    def snapshot(self) -> SubpartitionSnapshot:
        queue = tuple(QueuedBufferSnapshot.of(each, each.is_finished) for each in self.queue)
        num_entries, is_finished = self.num_buffers + self.num_events, self.state is BlockingState.FINISHED
        return SubpartitionSnapshot(
            self.index, queue, self.num_buffers, False, False, is_finished, num_entries, self.num_bytes_written
        )

    def under_other_rules(self, rules: type[BlockingSubpartition]) -> BlockingSubpartition:
        """The same channel with the rules of another class; this one is of no use after that.

        Raises:
            LocalUsageError: it can be read already, and its readers know this one.
        """
        if self.state is not BlockingState.WRITING:
            raise LocalUsageError(f"{self!r} has its last rules")
        other = rules(self.index, self.owner, self._data, self._codec, self._charge)
        other.num_buffers, other.num_events = self.num_buffers, self.num_events
        other.num_bytes_written = self.num_bytes_written
        other.current, self.current = self.current, None
        return other

    def release(self, failure_cause: str | None = None) -> None:
        """Drop what is kept, as soon as nobody reads it; again is fine."""
        self.state = next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.RELEASE, self)
        if self.current is not None:
            self.current.close()
            self.current = None
        self._drop_unread()

    def reader_is_gone(self) -> None:
        """One of the readers has closed."""
        self._num_readers -= 1
        self._drop_unread()

    def _drop_unread(self) -> None:
        if self.state is BlockingState.RELEASED and self._num_readers == 0:
            self._data.close()


class BoundedBlockingView:
    """One reader of a subpartition that is finished: it knows the next entry before it gives one.

    `failure_cause` is never set: what is finished does not fail any more.

    Ownership: what `poll` gives is the caller's to recycle.

    Flink:   BoundedBlockingSubpartitionReader (runtime.io.network.partition), 1.11.4
    """

    def __init__(self, subpartition: BlockingSubpartition, data: BoundedData) -> None:
        self.failure_cause: str | None = None
        self.index, self.owner = subpartition.index, subpartition.owner
        self._subpartition = subpartition
        self._on_data_available: Callable[[], None] = _nobody_waits
        self._reader: BoundedReader = data.reader(self._on_buffer)
        self._backlog = subpartition.num_buffers
        self._next_number = 0
        self._is_closed = False
        self._ahead: Buffer | None = self._reader.read()

    def __repr__(self) -> str:
        return f"BoundedBlockingView({self._subpartition!r}, {self._backlog} buffers to come)"

    @property
    def is_data_available(self) -> bool:
        """Whether a poll gives something, credit provided."""
        return self._ahead is not None

    @property
    def is_event_available(self) -> bool:
        """Whether the next entry is an event, which needs no credit."""
        return self._ahead is not None and not self._ahead.is_buffer

    @property
    def is_consumed(self) -> bool:
        """Whether the reader has gone."""
        return self._is_closed

    @property
    def has_priority_event(self) -> bool:
        """Never: nothing overtakes in a result that is complete."""
        return False

    @property
    def num_queued(self) -> int:
        """The buffers that this reader has before it."""
        return self._backlog

    @property
    def subpartition(self) -> BoundedBlockingView:
        """What its one reader sees of the subpartition: itself."""
        return self

    def open(self, on_data_available: Callable[[], None], on_priority: Callable[[], None] | None = None) -> None:
        """Begin to read: told at once, since the end is there at least, and when a buffer to read into is back."""
        self._on_data_available = on_data_available
        if self.is_data_available:
            on_data_available()

    def poll(self) -> BufferAndBacklog | None:
        """The next entry, or `None` at the end, or while no buffer is there to read it into."""
        self._look_ahead()
        buffer = self._ahead
        if buffer is None:
            return None
        self._ahead = None
        self._look_ahead()
        self._backlog -= buffer.is_buffer
        number, self._next_number = self._next_number, self._next_number + 1
        piece = buffer.read_only_slice()
        return BufferAndBacklog(piece, self._ahead is not None, self._backlog, self.is_event_available, number)

    def resume(self) -> None:
        """Refuse: nothing in a blocking result holds its reader up.

        Raises:
            LocalUsageError: always.
        """
        raise LocalUsageError(f"{self!r} is not held up, so it cannot go on")

    def close(self) -> None:
        """Leave for good; again is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._ahead is not None:
            self._ahead.recycle()
            self._ahead = None
        self._reader.close()
        self._subpartition.reader_is_gone()

    def _look_ahead(self) -> None:
        if self._ahead is None and not self._is_closed:
            self._ahead = self._reader.read()

    def _on_buffer(self) -> None:
        """A buffer of the reader is back that a read has waited for."""
        if self._is_closed:
            return
        self._look_ahead()
        if self._ahead is not None:
            self._on_data_available()
