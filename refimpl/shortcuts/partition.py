"""Several buffers in one call, on the way from a pool through a queue to a reader in the same process.

A run is a list of whole data buffers for which nothing is to be decided. What a flush, an event or the end bring about
is left to the book's `poll`, one buffer at a time; so are queues by the rules of another class.
"""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.result_subpartition import SubpartitionState
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_view import BufferAndBacklog, ViewState

__all__ = [
    "FastBufferPool",
    "FastLocalInputChannel",
    "FastPipelinedSubpartition",
    "FastResultPartition",
    "add_full",
    "poll_run",
    "request_buffers",
]


_OPEN, _FINISHED, _RELEASED = SubpartitionState.OPEN, SubpartitionState.FINISHED, SubpartitionState.RELEASED
_BLOCKED = ViewState.BLOCKED


class FastBufferPool(LocalBufferPool):
    """A local pool that gives several buffers at once."""

    def request_buffers(self, most: int, channel: int) -> list[Buffer]:
        """Up to `most` empty buffers, as if `request_buffer` had been called that often."""
        segments: list[MemorySegment] = []
        for _ in range(most):
            if (segment := self._next_segment()) is None:
                break
            segments.append(segment)
        recycler = self._charged(channel, len(segments))
        buffers = [self.buffer_type(segment, recycler) for segment in segments]
        self.lent.update(zip([segment.id for segment in segments], buffers, strict=True))
        return buffers


class FastPipelinedSubpartition(PipelinedSubpartition):
    """A subpartition that takes and gives several buffers at once.

    Its methods for one buffer are those of `PipelinedSubpartition`, with the states looked at in place.
    """

    @property
    def is_data_available(self) -> bool:
        if self.view.state is _BLOCKED and self.is_blocked:
            return False
        queue = self.queue
        return self.is_flush_requested or len(queue) > 1 or (len(queue) == 1 and queue[0].is_finished)

    def count_backlog(self) -> int:
        if self.is_flush_requested or self.producer_state is _FINISHED or self.producer_state is _RELEASED:
            return self.num_data_buffers
        return self.num_data_buffers - 1 if self.num_data_buffers else 0

    def add(self, consumer: BufferConsumer) -> bool:
        if self.producer_state is not _OPEN:
            return self.enqueue(consumer)
        queue = self.queue
        queue.append(consumer)
        self.num_buffers_total += 1
        if consumer.is_buffer:
            self.num_data_buffers += 1
        if consumer.is_finished:
            self._watch.mark()
        else:
            self._watch.watch(consumer)
        if self._note_queue is not None and self._note_event is not None:
            (self._note_queue if consumer.is_buffer else self._note_event)(consumer.buffer.segment.id)
        num_queued = len(queue)
        is_first_complete = num_queued == 2 or (num_queued == 1 and consumer.is_finished)
        if is_first_complete and not self.is_flush_requested and self.view.state is not _BLOCKED:
            self.view.notify()
        return True

    def add_full(self, consumers: Sequence[BufferConsumer]) -> None:
        """`add` for data buffers that were full before anybody saw them; the reader is told once for all.

        That one is full the reader learns when it looks, as with a buffer that is filled in the queue.
        """
        if not consumers or self.producer_state is not _OPEN:
            for consumer in consumers:
                self.add(consumer)
            return
        last = consumers[-1]  # those before it are complete whatever they say: another stands behind
        last.is_finished, last.written_bytes = False, 0
        is_told = len(self.queue) > 1 or self.is_flush_requested or self.view.state is _BLOCKED
        self.num_buffers_total += len(consumers)
        self.num_data_buffers += len(consumers)
        self._watch.mark()
        if self._note_queue is None:
            self.queue.extend(consumers)
        else:  # with a trace, what the reader notes stands where it does without shortcuts
            for consumer in consumers:
                self.queue.append(consumer)
                self._note_queue(consumer.buffer.segment.id)
                if not is_told and len(self.queue) > 1:
                    self.view.notify()
                    is_told = True
        if not is_told and len(self.queue) > 1:
            self.view.notify()

    def deliver(self, piece: BufferSlice) -> BufferAndBacklog:
        number = self.next_sequence_number
        self.next_sequence_number = number + 1
        self.num_bytes_total += piece.size
        if self._note_deliver is not None:
            self._note_deliver(piece.parent.segment.id, number, piece.size)
        if piece.parent.data_type.blocks_upstream:
            self.view.block()
            self.on_barrier_read()
        is_blocked = self.view.state is _BLOCKED and self.is_blocked
        is_more = is_event = False
        if queue := self.queue:
            head, is_one = queue[0], len(queue) == 1
            if not is_blocked:
                is_more = self.is_flush_requested or not is_one or head.is_finished
                is_event = not head.is_buffer
            if is_one and not head.is_finished:
                self._watch.watch(head)
        return BufferAndBacklog(piece, is_more, self.count_backlog(), is_event, number)

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """The whole data buffers that `poll` would give next, up to `most`, each with the backlog behind it.

        Two entries stay for `poll`, the last whole one and its successor: the effects of a flush, an event or the
        end are decided there.
        """
        run: list[tuple[BufferSlice, int]] = []
        if self.view.state is _BLOCKED:
            return run
        queue, is_tail_counted = self.queue, self.is_flush_requested or self.is_finished
        for _ in range(min(most, len(queue) - 2)):
            if not queue[0].is_buffer:
                break
            self.num_data_buffers -= 1
            piece = queue.popleft().take()
            if piece.size:
                backlog = self.num_data_buffers if is_tail_counted else max(0, self.num_data_buffers - 1)
                run.append((piece, backlog))
            else:
                piece.recycle()
        first = self.next_sequence_number
        self.next_sequence_number += len(run)
        self.num_bytes_total += sum([piece.size for piece, _ in run])
        if (note := self._note_deliver) is not None:
            for number, (piece, _) in enumerate(run, first):
                note(piece.parent.segment.id, number, piece.size)
        return run


class FastResultPartition(ResultPartition):
    """A result partition whose subpartitions handle several buffers at once."""

    rules = FastPipelinedSubpartition


def poll_run(view: object, most: int) -> list[tuple[BufferSlice, int]]:
    """The next buffers of a view's `poll`, each with the backlog behind it; none from a subpartition of other rules."""
    subpartition = getattr(view, "subpartition", None)
    return subpartition.poll_run(most) if isinstance(subpartition, FastPipelinedSubpartition) else []


def request_buffers(partition: BufferWritingResultPartition, channel: int, most: int) -> list[Buffer]:
    """Up to `most` buffers charged to `channel`, to be filled and queued; stands for `pool.request_buffer`."""
    if isinstance(partition.pool, FastBufferPool):
        return partition.pool.request_buffers(most, channel)
    buffers: list[Buffer] = []
    while len(buffers) < most and (buffer := partition.pool.request_buffer(channel)) is not None:
        buffers.append(buffer)
    return buffers


def add_full(partition: BufferWritingResultPartition, consumers: Sequence[BufferConsumer], channel: int) -> None:
    """Queue data buffers that were full before anybody saw them; stands for `ResultPartition.add`."""
    subpartition = partition.subpartitions[channel]
    if isinstance(subpartition, FastPipelinedSubpartition):
        subpartition.add_full(consumers)
        return
    for consumer in consumers:
        subpartition.add(consumer)


class FastLocalInputChannel(LocalInputChannel):
    """A local channel that reads several buffers at once where its view can."""

    def poll(self) -> BufferAndBacklog | None:
        taken = None if self._is_released else self.view.subpartition.poll()
        if taken is not None:
            assert taken.sequence_number == self._next_sequence_number, (
                f"{self} got sequence number {taken.sequence_number}, not {self._next_sequence_number}"
            )
            self._next_sequence_number += 1
            if self.capture is not None and self.capture.is_copying and taken.buffer.is_buffer:
                self.capture.copy(taken.buffer.data)
        return taken

    def poll_run(self, most: int) -> list[BufferSlice]:
        """The buffers of the next calls of `poll`, up to `most`, never the last one."""
        is_one_by_one = self._is_released or (self.capture is not None and self.capture.is_copying)
        run = [] if is_one_by_one else [piece for piece, _ in poll_run(self.view, most)]
        self._next_sequence_number += len(run)
        return run
