"""What any subpartition is made of: its queue, its marks, its one reader, and the books it keeps.

When the reader is told, and what it gets, are rules of their own: `PipelinedSubpartition` has them.

A flush looks only at channels that are *dirty*: where something was published since the reader, or
the last flush, took note. The writer says so itself, with the first record after that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.subpartition_views import BufferAndBacklog, QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfPartition
from refimpl.trace import Trace, noting

__all__ = ["SubpartitionQueue"]


class SubpartitionQueue(ABC):
    """A queue of buffers and events, and who may read it.

    `queue` has the head first; `num_data_buffers` of its entries hold data, the others are events.
    `is_flush_requested` is the flush mark. While `is_blocked`, behind an event that blocks, nothing is read.

    Ownership: an added consumer belongs to the queue, also when it is refused. `poll` hands out
    slices the caller recycles.

    Flink:   ResultSubpartition, PipelinedSubpartition (runtime.io.network.partition), 1.11.4
    Differs: queue and view are one object, since the core has no second thread to keep apart.
    """

    def __init__(
        self,
        index: int,
        owner: str = "partition",
        trace: Trace | None = None,
        dirty: deque[SubpartitionQueue] | None = None,
    ) -> None:
        self.index = index
        self.owner = owner
        self.queue: deque[BufferConsumer] = deque()
        self.num_data_buffers = 0
        self.is_flush_requested = False
        self.is_blocked = False
        self.is_finished = False
        self.is_released = False
        self.is_consumed = False  # whether its one reader has come and gone
        self.failure_cause: str | None = None
        self.num_buffers_total = 0
        self.num_bytes_total = 0
        self._note_queue = noting(trace, "queue", owner, index)
        self._note_event = noting(trace, "queue event", owner, index)
        self._note_deliver = noting(trace, "deliver", owner, index)
        self._dirty = deque() if dirty is None else dirty  # those of the partition, each at most once
        self._is_dirty = False
        self._watched: BufferConsumer | None = None
        self._on_data_available: Callable[[], None] | None = None
        self._has_view = False
        self._sequence_number = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.owner}[{self.index}], {len(self.queue)} queued)"

    # -- the rules, which are another class's --------------------------------------------------------

    @abstractmethod
    def count_backlog(self) -> int:
        """Data buffers the consumer should make room for."""

    @abstractmethod
    def add(self, consumer: BufferConsumer) -> bool:
        """Queue a buffer or an event; false if nobody will read it."""

    @abstractmethod
    def flush(self) -> None:
        """Make what is written so far available, without waiting for the buffer to be full."""

    @abstractmethod
    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, or `None` if there are none now."""

    def add_full(self, consumers: Sequence[BufferConsumer]) -> None:
        """`add` for data buffers that were full before anybody saw them."""
        for consumer in consumers:
            self.add(consumer)

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """At most so many of the buffers that `poll` would give next, each with the backlog behind it; maybe none."""
        return []

    def become(self, rules: type[SubpartitionQueue]) -> None:
        """Go on by the rules of another class, between two calls: what is queued, the marks and the reader stay.

        What that class keeps besides is as it makes it.
        """
        if type(self) is rules:
            return
        for name, value in vars(rules(self.index, self.owner)).items():
            vars(self).setdefault(name, value)
        self.__class__ = rules

    # -- state -------------------------------------------------------------------------------------

    @property
    def num_queued(self) -> int:
        """Entries in the queue, events included."""
        return len(self.queue)

    @property
    def consumers(self) -> tuple[BufferConsumer, ...]:
        return tuple(self.queue)

    @property
    def num_finished(self) -> int:
        """Entries known to be complete: all but the last, which is so if it was seen finished."""
        num_queued = len(self.queue)
        if num_queued == 1:
            return int(self.queue[0].is_finished)
        return num_queued - 1 if num_queued else 0

    @property
    def backlog(self) -> int:
        return self.count_backlog()

    @property
    def is_data_available(self) -> bool:
        """Whether the consumer has been, or should be, told to poll."""
        return not self.is_blocked and (self.is_flush_requested or self.num_finished > 0)

    @property
    def is_event_available(self) -> bool:
        """Whether the head is an event, which needs no credit."""
        return not self.is_blocked and bool(self.queue) and not self.queue[0].is_buffer

    @property
    def has_unannounced_data(self) -> bool:
        """Whether a flush now would make bytes available that are not yet."""
        return (
            not self.is_flush_requested
            and len(self.queue) == 1
            and not self.is_blocked
            and self.num_finished == 0
            and self.queue[0].is_data_available
        )

    def snapshot(self) -> SubpartitionSnapshot:
        queue = tuple(
            QueuedBufferSnapshot.of(consumer, consumer.is_finished or index < len(self.queue) - 1)
            for index, consumer in enumerate(self.queue)
        )
        return SubpartitionSnapshot(
            self.index,
            queue,
            self.backlog,
            self.is_flush_requested,
            self.is_blocked,
            self.is_finished,
            self.num_buffers_total,
            self.num_bytes_total,
        )

    # -- what the rules are made of ----------------------------------------------------------------

    def enqueue(self, consumer: BufferConsumer) -> bool:
        """Put a buffer or an event at the end; false, and the consumer closed, if nobody will read it."""
        if self.is_finished or self.is_released:
            consumer.close()
            return False
        self.queue.append(consumer)
        self.num_buffers_total += 1
        self.num_data_buffers += consumer.is_buffer
        if consumer.is_finished:
            self._mark_dirty()  # nobody will write into it, so there is nothing to watch
        else:
            self._watch(consumer)
        if self._note_queue is not None and self._note_event is not None:
            (self._note_queue if consumer.is_buffer else self._note_event)(consumer.buffer.segment.id)
        return True

    def enqueue_full(self, consumers: Sequence[BufferConsumer]) -> None:
        """`enqueue` for data buffers that are full, where somebody will read them and no trace is kept."""
        self.queue.extend(consumers)
        self.num_buffers_total += len(consumers)
        self.num_data_buffers += len(consumers)
        self._mark_dirty()

    def remove_head(self) -> None:
        """Take the first entry off the queue."""
        queue = self.queue
        self.num_data_buffers -= queue.popleft().is_buffer
        if len(queue) == 1:
            self._watch_tail()

    def deliver(self, piece: BufferSlice) -> BufferAndBacklog:
        """What `poll` returns for a piece that has bytes: the piece, and what is still there."""
        self.is_blocked = piece.parent.data_type.blocks_upstream
        self.num_bytes_total += piece.end - piece.start
        number = self._sequence_number
        self._sequence_number += 1
        if (note := self._note_deliver) is not None:
            note(piece.parent.segment.id, number, piece.end - piece.start)
        is_more = is_event = False
        if queue := self.queue:
            head, is_one = queue[0], len(queue) == 1
            if not self.is_blocked:
                is_more = self.is_flush_requested or not is_one or head.is_finished
                is_event = not head.is_buffer
            if is_one and not head.is_finished:
                self._watch(head)
        return BufferAndBacklog(piece, is_more, self.count_backlog(), is_event, number)

    def deliver_run(self, run: Sequence[tuple[BufferSlice, int]]) -> None:
        """Count what `poll_run` returns."""
        first = self._sequence_number
        self._sequence_number += len(run)
        self.num_bytes_total += sum([piece.end - piece.start for piece, _ in run])
        if (note := self._note_deliver) is not None:
            for number, (piece, _) in enumerate(run, first):
                note(piece.parent.segment.id, number, piece.end - piece.start)

    def notify(self) -> None:
        """Tell the reader, if there is one, that a poll is worth while."""
        if self._on_data_available is not None:
            self._on_data_available()

    # -- the producer ------------------------------------------------------------------------------

    def flush_dirty(self) -> None:
        """Flush, after it was taken from the dirty ones; go back there if it is blocked and has more to say."""
        self._is_dirty = False  # first: what is published from here on is seen below, or marks it again
        self.flush()
        if self.queue and not self.is_flush_requested:
            if self.queue[0].is_data_available:
                self._mark_dirty()
            else:
                self._watch_tail()

    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Queue the end of the partition as the last entry.

        Raises:
            LocalUsageError: it has finished before.
        """
        if self.is_finished:
            raise LocalUsageError(f"{self} has finished before")
        if not self.is_released:
            self.enqueue(BufferConsumer.of_buffer(event_to_buffer(EndOfPartition(), version)))
            self.is_finished = True
            self.notify()

    def release(self, failure_cause: str | None = None) -> None:
        """Drop everything queued; nothing can be added or read from now on.

        If that is because the producer failed, the reader is told, and finds `failure_cause`.
        """
        self.is_released = True
        self.failure_cause = self.failure_cause or failure_cause
        while self.queue:
            self.queue.popleft().close()
        self.num_data_buffers = 0
        self.is_flush_requested = False
        if failure_cause is not None:
            self.notify()
        self._on_data_available = None

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
        if self.queue:
            self.notify()

    def close_view(self) -> None:
        """The reader leaves for good. What is queued stays; the owner decides what becomes of it."""
        self.is_consumed = self._has_view
        self._on_data_available = None

    def resume(self) -> None:
        """Go on after an event that blocked.

        Raises:
            LocalUsageError: it was not blocked.
        """
        if not self.is_blocked:
            raise LocalUsageError(f"{self} is not blocked")
        self.is_blocked = False
        if self.is_data_available or self.is_event_available:
            self.notify()

    # -- dirty -------------------------------------------------------------------------------------

    def _watch(self, consumer: BufferConsumer) -> None:
        """Become dirty with the next record in an open buffer; at once if there is one already."""
        if self._watched is not consumer:
            self._watched = consumer
            consumer.watch(self._on_news)
        if consumer.is_data_available:
            self._on_news()

    def _watch_tail(self) -> None:
        """Watch the one entry that is left, if it is still being written; behind others it is watched already."""
        if len(self.queue) == 1 and not self.queue[0].is_finished:
            self._watch(self.queue[0])

    def _on_news(self) -> None:
        self._watched = None
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty.append(self)
