"""What the rules of a subpartition are made of: how an entry joins and leaves the queue, and how a piece is delivered.

When the reader is told, and what it gets, are rules of their own: `PipelinedSubpartition` has them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from refimpl.config import FlinkVersion
from refimpl.memory.buffer import BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.dirty_channels import ChannelWatch, DirtyChannels
from refimpl.producer.result_subpartition import (
    SUBPARTITION_TRANSITIONS,
    ResultSubpartition,
    SubpartitionEvent,
    SubpartitionState,
)
from refimpl.producer.subpartition_snapshot import QueueState
from refimpl.producer.subpartition_view import BufferAndBacklog, PipelinedSubpartitionView
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfPartition
from refimpl.trace import Trace, noting
from refimpl.transitions import next_state

__all__ = ["SubpartitionQueue"]


class SubpartitionQueue(ResultSubpartition):
    """A queue of buffers and events, without the rules by which they come and go.

    `on_barrier_read` is called when the reader has taken an event that blocks.

    Ownership: an added consumer belongs to the queue, also when it is refused. `poll` hands out
    slices the caller recycles.

    Flink:   PipelinedSubpartition (runtime.io.network.partition), 1.11.4
    """

    def __init__(
        self,
        index: int,
        owner: str = "partition",
        trace: Trace | None = None,
        dirty: DirtyChannels | None = None,
    ) -> None:
        super().__init__(index, owner)
        self.on_barrier_read: Callable[[], None] = lambda: None
        self._watch = ChannelWatch(index, DirtyChannels() if dirty is None else dirty)
        self._note_queue = noting(trace, "queue", owner, index)
        self._note_event = noting(trace, "queue event", owner, index)
        self._note_deliver = noting(trace, "deliver", owner, index)

    # -- the rules, which are another class's --------------------------------------------------------

    @abstractmethod
    def add(self, consumer: BufferConsumer) -> bool:
        """Queue a buffer or an event; false if nobody will read it."""

    @abstractmethod
    def flush(self) -> None:
        """Make the bytes written so far available, without waiting for a full buffer."""

    # -- what the rules are made of ----------------------------------------------------------------

    def enqueue(self, consumer: BufferConsumer) -> bool:
        """Put a buffer or an event at the end; false, and the consumer closed, if nobody will read it."""
        if self.producer_state is not SubpartitionState.OPEN:
            consumer.close()
            return False
        self.queue.append(consumer)
        self.num_buffers_total += 1
        self.num_data_buffers += consumer.is_buffer
        if consumer.is_finished:
            self._watch.mark()  # nobody will write into it, so there is nothing to watch
        else:
            self._watch.watch(consumer)
        note = self._note_queue if consumer.is_buffer else self._note_event
        if note is not None:
            note(consumer.buffer.segment.id)
        return True

    def enqueue_first(self, consumer: BufferConsumer) -> bool:
        """Put a whole entry before all that waits, but behind what has overtaken before; else as `enqueue`."""
        if self.producer_state is not SubpartitionState.OPEN:
            consumer.close()
            return False
        assert consumer.is_finished, f"{self}: an open buffer cannot have others behind it"
        self.queue.insert(self.num_priority, consumer)
        self.num_buffers_total += 1
        self.num_data_buffers += consumer.is_buffer
        self._watch.mark()
        note = self._note_queue if consumer.is_buffer else self._note_event
        if note is not None:
            note(consumer.buffer.segment.id)
        return True

    def remove_head(self) -> None:
        """Take the first entry off the queue."""
        self.num_data_buffers -= self.queue.popleft().is_buffer
        if self.num_priority:
            self.num_priority -= 1
        self._watch.watch_tail(self.queue)

    def deliver(self, piece: BufferSlice) -> BufferAndBacklog:
        """The answer of `poll` for a piece that has bytes: the piece, and how the queue stands behind it."""
        number = self.next_sequence_number
        self.next_sequence_number += 1
        self.num_bytes_total += piece.size
        if self._note_deliver is not None:
            self._note_deliver(piece.segment.id, number, piece.size)
        if piece.data_type.blocks_upstream:
            self.view.block()
            self.on_barrier_read()
        self._watch.watch_tail(self.queue)
        is_more = bool(self.queue) and self.is_data_available
        return BufferAndBacklog(piece, is_more, self.count_backlog(), self.is_event_available, number)

    def notify(self) -> None:
        """Tell the reader, if there is one, that a poll is worth while."""
        self.view.notify()

    # -- the producer ------------------------------------------------------------------------------

    def flush_dirty(self) -> None:
        """Flush a channel that was dirty; it is dirty again if it is blocked and has more to say."""
        self.flush()
        if self.queue and not self.is_flush_requested:
            if self.queue[0].is_data_available:
                self._watch.mark()
            else:
                self._watch.watch_tail(self.queue)

    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Queue the end of the partition as the last entry.

        Raises:
            LocalUsageError: it has finished before.
        """
        state = next_state(SUBPARTITION_TRANSITIONS, self.producer_state, SubpartitionEvent.FINISH, self)
        if state is SubpartitionState.FINISHED:
            self.enqueue(BufferConsumer.of_buffer(event_to_buffer(EndOfPartition(), version)))
            self.producer_state = state
            self.notify()

    def release(self, failure_cause: str | None = None) -> None:
        """Drop everything queued; nothing can be added or read from now on.

        If that is because the producer failed, the reader is told, and finds `failure_cause`.
        """
        self.producer_state = next_state(SUBPARTITION_TRANSITIONS, self.producer_state, SubpartitionEvent.RELEASE, self)
        self.failure_cause = self.failure_cause or failure_cause
        while self.queue:
            self.queue.popleft().close()
        self.num_data_buffers = self.num_priority = 0
        self.is_flush_requested = False
        if failure_cause is not None:
            self.notify()
        self.view.forget_reader()

    # -- other rules -------------------------------------------------------------------------------

    def save(self) -> QueueState:
        """The queue as it stands, to be put back or to be gone on with by another subpartition."""
        return QueueState(
            tuple(self.queue),
            self.num_data_buffers,
            self.is_flush_requested,
            self.num_buffers_total,
            self.num_bytes_total,
            self.num_priority,
            self.next_sequence_number,
            self.view.state,
        )

    def restore(self, saved: QueueState) -> None:
        """Stand as it was when that was saved. The entries are the saved ones, not copies."""
        self.queue.clear()
        self.queue.extend(saved.entries)
        self.num_data_buffers = saved.num_data_buffers
        self.is_flush_requested = saved.is_flush_requested
        self.num_buffers_total = saved.num_buffers_total
        self.num_bytes_total = saved.num_bytes_total
        self.num_priority = saved.num_priority
        self.next_sequence_number = saved.next_sequence_number
        self.view.state = saved.view_state

    def take_over(self, other: SubpartitionQueue) -> None:
        """Go on in the place of `other`, with its queue, its marks and its reader; `other` is left empty and released.

        Attributes of a subclass stay as its constructor made them.
        """
        self.restore(other.save())
        self.on_barrier_read = other.on_barrier_read
        self.producer_state, self.failure_cause = other.producer_state, other.failure_cause
        self.view, self._watch = other.view, other._watch
        self._note_queue, self._note_event, self._note_deliver = (
            other._note_queue,
            other._note_event,
            other._note_deliver,
        )
        self.view.subpartition = self
        other.queue.clear()
        other.view = PipelinedSubpartitionView(other)
        other.release()
