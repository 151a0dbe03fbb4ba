"""A channel of a result that is read when it is finished, by any number of readers, each from its beginning.

Its producer waits for nobody: what is written goes to where it is kept, and the buffer goes home. So one or two buffers
for each channel are enough, and a consumer that has failed reads again without the producer.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import Buffer
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.bounded_data import BoundedData, BoundedReader
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfPartition
from refimpl.transitions import next_state

__all__ = [
    "BLOCKING_TRANSITIONS",
    "BlockingEvent",
    "BlockingState",
    "BoundedBlockingSubpartition",
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


class BoundedBlockingSubpartition:
    """One channel, kept in `data`.

    Ownership: an added consumer belongs to the subpartition. `num_buffers` counts the entries with data, `num_events`
    the others. `release` drops what is kept; readers that are at it still come to their end.

    Flink:   BoundedBlockingSubpartition (runtime.io.network.partition), 1.11.4
    Differs: a flush writes what there is of an open buffer, and its rest later; in 1.11 the rest would be lost, so that
             nobody may flush, and 2.x ends the buffer.
    """

    def __init__(self, index: int, owner: str, data: BoundedData) -> None:
        self.index = index
        self.owner = owner
        self.state = BlockingState.WRITING
        self.num_buffers = 0
        self.num_events = 0
        self._data = data
        self._current: BufferConsumer | None = None
        self._num_readers = 0

    def __repr__(self) -> str:
        return f"BoundedBlockingSubpartition({self.owner}[{self.index}], {self.state.value})"

    def add(self, consumer: BufferConsumer) -> bool:
        """Take a buffer or an event, and write the one before; false if nobody will read it."""
        if self.state is not BlockingState.WRITING:
            consumer.close()
            return False
        self.flush()
        self._close_current()
        self._current = consumer
        return True

    def flush(self) -> None:
        """Write what there is."""
        if self._current is None:
            return
        piece = self._current.take()
        try:
            if piece.size:
                self._data.write(piece.data, piece.data_type)
                self.num_buffers += piece.is_buffer
                self.num_events += not piece.is_buffer
        finally:
            piece.recycle()
        if self._current.is_finished:
            self._current = None

    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Write the end of the partition; from now on it can be read.

        Raises:
            LocalUsageError: it has finished before, or is released.
        """
        state = next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.FINISH, self)
        self.add(BufferConsumer.of_buffer(event_to_buffer(EndOfPartition(), version)))
        self.flush()
        self._data.finish()
        self.state = state

    def create_view(self, on_data_available: Callable[[], None]) -> BoundedBlockingView:
        """Another reader, from the beginning.

        Raises:
            LocalUsageError: it is not finished, or is released.
        """
        next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.READ, self)
        self._num_readers += 1
        return BoundedBlockingView(self, self._data, on_data_available)

    def release(self) -> None:
        """Drop what is kept, as soon as nobody reads it; again is fine."""
        self.state = next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.RELEASE, self)
        self._close_current()
        self._drop_unread()

    def reader_is_gone(self) -> None:
        """One of the readers has closed."""
        self._num_readers -= 1
        self._drop_unread()

    def _drop_unread(self) -> None:
        if self.state is BlockingState.RELEASED and self._num_readers == 0:
            self._data.close()

    def _close_current(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None


class BoundedBlockingView:
    """One reader of a subpartition that is finished: it knows the next entry before it gives one.

    Ownership: what `poll` gives is the caller's to recycle.

    Flink:   BoundedBlockingSubpartitionReader (runtime.io.network.partition), 1.11.4
    """

    def __init__(
        self, subpartition: BoundedBlockingSubpartition, data: BoundedData, on_data_available: Callable[[], None]
    ) -> None:
        self._subpartition = subpartition
        self._on_data_available = on_data_available
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
