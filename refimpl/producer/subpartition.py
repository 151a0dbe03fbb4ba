"""The queue of one channel on the producer's side, and the rules for telling the consumer.

Buffers join the queue empty, as soon as they are opened, and are filled while they stand in it. Only
the last one can still be open: opening the next is what proves it finished. So the consumer is told

- when the second buffer joins, because the first is then complete;
- when a flush finds bytes in the last buffer that nobody was told about;
- when an event joins an empty queue, since an event is complete from birth;
- always when the subpartition ends.

A flush looks only at channels that are *dirty*: where something was published since the reader, or
the last flush, took note. The writer says so itself, with the first record after that.

The backlog is the number of data buffers a consumer should make room for. Events do not count, and
neither does the last buffer while it may still be growing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.subpartition_views import (
    BufferAndBacklog,
    QueuedBufferSnapshot,
    SubpartitionSnapshot,
)
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfPartition
from refimpl.trace import Trace

__all__ = ["PipelinedSubpartition"]


class PipelinedSubpartition:
    """A queue that is read while it is written, once, by one consumer.

    Ownership: an added consumer belongs to the queue, also when it is refused. `poll` hands out
    slices the caller recycles.

    Flink:   PipelinedSubpartition, PipelinedSubpartitionView (runtime.io.network.partition), 1.11.4
    Differs: queue and view are one object, since the core has no second thread to keep apart.
    """

    def __init__(
        self,
        index: int,
        owner: str = "partition",
        trace: Trace | None = None,
        dirty: deque[PipelinedSubpartition] | None = None,
    ) -> None:
        self.index = index
        self.owner = owner
        self.num_buffers_total = 0
        self.num_bytes_total = 0
        self.failure_cause: str | None = None
        self.is_consumed = False  # whether its one reader has come and gone
        self._trace = trace
        self._dirty = deque() if dirty is None else dirty  # those of the partition, each at most once
        self._is_dirty = False
        self._watched: BufferConsumer | None = None
        self._queue: deque[BufferConsumer] = deque()
        self._on_data_available: Callable[[], None] | None = None
        self._has_view = False
        self._num_data_buffers = 0
        self._sequence_number = 0
        self._is_flush_requested = False
        self._is_blocked = False
        self._is_finished = False
        self._is_released = False

    def __repr__(self) -> str:
        return f"PipelinedSubpartition({self.owner}[{self.index}], {len(self._queue)} queued)"

    # -- state -------------------------------------------------------------------------------------

    @property
    def num_queued(self) -> int:
        """Entries in the queue, events included."""
        return len(self._queue)

    @property
    def consumers(self) -> tuple[BufferConsumer, ...]:
        return tuple(self._queue)

    @property
    def is_finished(self) -> bool:
        return self._is_finished

    @property
    def is_released(self) -> bool:
        return self._is_released

    @property
    def is_data_available(self) -> bool:
        """Whether the consumer has been, or should be, told to poll."""
        return not self._is_blocked and (self._is_flush_requested or self._num_finished > 0)

    @property
    def is_event_available(self) -> bool:
        """Whether the head is an event, which needs no credit."""
        return not self._is_blocked and bool(self._queue) and not self._queue[0].is_buffer

    @property
    def has_unannounced_data(self) -> bool:
        """Whether a flush now would make bytes available that are not yet."""
        return (
            not self._is_flush_requested
            and len(self._queue) == 1
            and not self._is_blocked
            and self._num_finished == 0
            and self._queue[0].is_data_available
        )

    @property
    def backlog(self) -> int:
        """Data buffers the consumer should make room for; 2.x says 0 while blocked, 1.11 does not."""
        if self._is_flush_requested or self._is_finished:
            return self._num_data_buffers
        return max(0, self._num_data_buffers - 1)

    @property
    def _num_finished(self) -> int:
        if len(self._queue) == 1 and self._queue[0].is_finished:
            return 1
        return max(0, len(self._queue) - 1)

    def snapshot(self) -> SubpartitionSnapshot:
        queue = tuple(
            QueuedBufferSnapshot(
                consumer.buffer.segment.id,
                consumer.buffer.data_type,
                consumer.unread_bytes + consumer.read_position,
                consumer.unread_bytes,
                consumer.buffer.segment.size,
                consumer.is_finished or index < len(self._queue) - 1,
            )
            for index, consumer in enumerate(self._queue)
        )
        return SubpartitionSnapshot(
            self.index, queue, self.backlog, self._is_flush_requested, self._is_blocked,
            self._is_finished, self.num_buffers_total, self.num_bytes_total,
        )

    # -- the producer ------------------------------------------------------------------------------

    def add(self, consumer: BufferConsumer) -> bool:
        """Queue a buffer or an event; false, and the consumer closed, if nobody will read it."""
        if self._is_finished or self._is_released:
            consumer.close()
            return False
        self._enqueue(consumer)
        if not self._is_flush_requested and not self._is_blocked and self._num_finished == 1:
            self._notify()
        return True

    def flush(self) -> None:
        """Make what is written so far available, without waiting for the buffer to be full.

        While blocked, a single buffer is left as it is: 1.11 forgets that flush, 2.x does not.
        """
        if not self._queue or self._is_flush_requested:
            return
        is_new_data = (
            not self._is_blocked and len(self._queue) == 1 and self._queue[0].is_data_available
        )
        self._is_flush_requested = len(self._queue) > 1 or is_new_data
        if is_new_data:
            self._notify()

    def flush_dirty(self) -> None:
        """Flush, after it was taken from the dirty ones; go back there if it is blocked and has more to say."""
        self._is_dirty = False  # first: what is published from here on is seen below, or marks it again
        self.flush()
        if self._queue and not self._is_flush_requested and self._queue[0].is_data_available:
            self._mark_dirty()

    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Queue the end of the partition as the last entry.

        Raises:
            LocalUsageError: it has finished before.
        """
        if self._is_finished:
            raise LocalUsageError(f"{self} has finished before")
        if not self._is_released:
            self._enqueue(BufferConsumer.of_buffer(event_to_buffer(EndOfPartition(), version)))
            self._is_finished = True
            self._notify()

    def release(self, failure_cause: str | None = None) -> None:
        """Drop everything queued; nothing can be added or read from now on.

        If that is because the producer failed, the reader is told, and finds `failure_cause`.
        """
        self._is_released = True
        self.failure_cause = self.failure_cause or failure_cause
        while self._queue:
            self._queue.popleft().close()
        self._num_data_buffers = 0
        self._is_flush_requested = False
        if failure_cause is not None:
            self._notify()
        self._on_data_available = None

    def _enqueue(self, consumer: BufferConsumer) -> None:
        self._queue.append(consumer)
        self.num_buffers_total += 1
        self._num_data_buffers += consumer.is_buffer
        self._watch(consumer)
        if self._trace is not None:
            self._trace.add(
                "queue", self.owner, segment=consumer.buffer.segment.id, target=self.index,
                type=consumer.buffer.data_type.name,
            )

    # -- the consumer ------------------------------------------------------------------------------

    def open_view(self, on_data_available: Callable[[], None]) -> None:
        """Become the one reader; told at once if something is queued.

        Raises:
            LocalUsageError: there was a reader before; a pipelined result is read once.
        """
        if self._has_view:
            raise LocalUsageError(f"{self} is read already; a pipelined result is read once")
        self._has_view = True
        self._on_data_available = on_data_available
        if self._queue:
            self._notify()

    def close_view(self) -> None:
        """The reader leaves for good. What is queued stays; the owner decides what becomes of it."""
        self.is_consumed = self._has_view
        self._on_data_available = None

    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, or `None` if there are none now.

        An open buffer stays in the queue and may give more later: one buffer can be delivered in
        several pieces. Entries without bytes are skipped.
        """
        if self._is_blocked:
            return None
        if not self._queue:
            self._is_flush_requested = False
        while self._queue:
            consumer = self._queue[0]
            piece = consumer.build()
            is_finished = consumer.is_finished
            if len(self._queue) == 1:
                self._is_flush_requested = False  # what it asked for is being delivered
            else:
                assert is_finished, f"{self}: the buffer at the head is open, but another stands behind it"
            if is_finished:
                self._queue.popleft().close()
                self._num_data_buffers -= consumer.is_buffer
            else:
                self._watch(consumer)
            if piece.end > piece.start:
                return self._deliver(piece)
            piece.recycle()
            if not is_finished:
                break
        return None

    def resume(self) -> None:
        """Go on after an event that blocked.

        Raises:
            LocalUsageError: it was not blocked.
        """
        if not self._is_blocked:
            raise LocalUsageError(f"{self} is not blocked")
        self._is_blocked = False
        if self.is_data_available or self.is_event_available:
            self._notify()

    def _deliver(self, piece: BufferSlice) -> BufferAndBacklog:
        self._is_blocked = piece.data_type.blocks_upstream
        self.num_bytes_total += piece.size
        number = self._sequence_number
        self._sequence_number += 1
        if self._trace is not None:
            self._trace.add(
                "deliver", self.owner, segment=piece.segment.id, target=self.index,
                sequence=number, bytes=piece.size,
            )
        return BufferAndBacklog(
            piece, self.is_data_available, self.backlog, self.is_event_available, number
        )

    def _watch(self, consumer: BufferConsumer) -> None:
        """Become dirty with the next record in an open buffer; at once if there is one already."""
        if self._watched is not consumer:
            self._watched = consumer
            consumer.watch(self._on_news)
        if consumer.is_data_available:
            self._on_news()

    def _on_news(self) -> None:
        self._watched = None
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty.append(self)

    def _notify(self) -> None:
        if self._on_data_available is not None:
            self._on_data_available()
