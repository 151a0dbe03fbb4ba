"""The rules of one channel on the producer's side: when the consumer is told, and what it gets.

Buffers join the queue empty, as soon as they are opened, and are filled while they stand in it. Only
the last one can still be open: opening the next is what proves it finished. So the consumer is told

- when the second buffer joins, because the first is then complete;
- when a flush finds bytes in the last buffer that nobody was told about;
- when an event joins an empty queue, since an event is complete from birth;
- always when the subpartition ends.

The backlog is the number of data buffers a consumer should make room for. Events do not count, and
neither does the last buffer while it may still be growing.
"""

from __future__ import annotations

from refimpl.memory.builder import BufferConsumer
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import BufferAndBacklog

__all__ = ["PipelinedSubpartition"]


class PipelinedSubpartition(SubpartitionQueue):
    """A queue that is read while it is written, once, by one consumer.

    Flink:   PipelinedSubpartition (runtime.io.network.partition), 1.11.4
    """

    def count_backlog(self) -> int:
        """Data buffers the consumer should make room for, without the one that may still grow.

        After a flush, and after the end, that one counts too.

        Differs: 2.x says 0 while blocked and counts a buffer before an event, 1.11 does neither.
        """
        is_tail_counted = self.is_flush_requested or self.is_finished
        return self.num_data_buffers if is_tail_counted else max(0, self.num_data_buffers - 1)

    def add(self, consumer: BufferConsumer) -> bool:
        """Queue a buffer or an event, and tell the reader once: when the first entry of the queue is complete.

        Not after a flush, for then it was told, and not while blocked.
        Returns whether it was queued; `enqueue` knows.
        """
        if not self.enqueue(consumer):
            return False
        if self.num_finished == 1 and not self.is_flush_requested and not self.is_blocked:
            self.notify()
        return True

    def flush(self) -> None:
        """Make the bytes written so far available, without waiting for a full buffer.

        With several entries the reader was told before: set the mark, that is all. With one, set it and tell
        the reader, but only if the entry has bytes to read and nothing blocks. A mark that is set stays.

        Differs: 1.11 forgets a flush of one buffer while blocked, as here; 2.x does not.
        """
        if not self.queue or self.is_flush_requested:
            return
        is_news = len(self.queue) == 1 and not self.is_blocked and self.queue[0].is_data_available
        self.is_flush_requested = is_news or len(self.queue) > 1
        if is_news:
            self.notify()

    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, `deliver`ed, or `None` if there are none now, or while blocked.

        An open buffer stays in the queue and may give more later: one buffer can be delivered in
        several pieces. Pieces without bytes are recycled and skipped. The mark of a flush goes down when
        the last entry is looked at: what it asked for is being delivered.
        """
        while self.queue and not self.is_blocked:
            head, is_last = self.queue[0], len(self.queue) == 1
            piece = head.take()
            assert head.is_finished or is_last, f"{self}: the buffer at the head is open, but another is behind it"
            if is_last:
                self.is_flush_requested = False
            if head.is_finished:
                self.remove_head()
            if piece.size:
                return self.deliver(piece)
            piece.recycle()
            if not head.is_finished:
                break
        return None
