"""Several buffers in one call, on the way from a pool through a queue to a reader in the same process.

A run is a list of whole data buffers for which nothing is to be decided. What a flush, an event or the end bring about
is left to the book's `poll`, one buffer at a time; so are queues by the rules of another class.
"""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.config import Config
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.result_subpartition import SubpartitionState
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.trace import Trace

__all__ = [
    "FastBufferPool",
    "FastLocalInputChannel",
    "FastPipelinedSubpartition",
    "FastResultPartition",
    "FastSubpartitionView",
]


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
    """A subpartition that takes and gives several buffers at once; alone, they go by the book's `add` and `poll`."""

    def add_full(self, consumers: Sequence[BufferConsumer]) -> None:
        """`add` for data buffers that were full before anybody saw them; the reader is told once for all."""
        is_open = self.producer_state is SubpartitionState.OPEN
        if not consumers or not is_open or self._note_queue is not None:
            for consumer in consumers:
                self.add(consumer)
            return
        is_told = len(self.queue) > 1 or self.is_flush_requested or self.is_blocked
        self.queue.extend(consumers)
        self.num_buffers_total += len(consumers)
        self.num_data_buffers += len(consumers)
        self._watch.mark()
        if not is_told:
            self.notify()

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """The whole data buffers that `poll` would give next, up to `most`, each with the backlog behind it.

        Two entries stay: `poll` is to see the last whole one, and what comes behind it. So all that a flush,
        an event or the end bring about is brought about there.
        """
        run: list[tuple[BufferSlice, int]] = []
        if self.is_blocked:
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


class FastSubpartitionView(PipelinedSubpartitionView):
    """A reader's way to a subpartition that may give several buffers at once."""

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """The next buffers of `poll`, each with the backlog behind it; none from a subpartition of other rules."""
        subpartition = self.subpartition
        return subpartition.poll_run(most) if isinstance(subpartition, FastPipelinedSubpartition) else []


class FastResultPartition(ResultPartition):
    """A result partition whose pool, subpartitions and views handle several buffers at once."""

    def __init__(
        self, name: str, num_subpartitions: int, pool: LocalBufferPool, config: Config, trace: Trace | None = None
    ) -> None:
        super().__init__(name, num_subpartitions, pool, config, trace)
        self.use(FastPipelinedSubpartition)
        for subpartition in self.subpartitions:
            subpartition.view = FastSubpartitionView(subpartition)

    def request_buffers(self, channel: int, most: int) -> list[Buffer]:
        """Up to `most` buffers charged to `channel`, to be filled before they are queued; for `pool.request_buffer`."""
        if isinstance(self.pool, FastBufferPool):
            return self.pool.request_buffers(most, channel)
        buffers: list[Buffer] = []
        while len(buffers) < most and (buffer := self.pool.request_buffer(channel)) is not None:
            buffers.append(buffer)
        return buffers

    def add_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        """`add` for data buffers that were full before anybody saw them."""
        subpartition = self.subpartitions[channel]
        if isinstance(subpartition, FastPipelinedSubpartition):
            subpartition.add_full(consumers)
            return
        for consumer in consumers:
            subpartition.add(consumer)


class FastLocalInputChannel(LocalInputChannel):
    """A local channel that reads several buffers at once where its view can."""

    def poll_run(self, most: int) -> list[BufferSlice]:
        """The buffers of the next calls of `poll`, up to `most`, never the last one."""
        if self._is_released or not isinstance(self.view, FastSubpartitionView):
            return []
        run = [piece for piece, _ in self.view.poll_run(most)]
        self._next_sequence_number += len(run)
        return run
