"""Several buffers of a reader in one turn, each as a view of its segment, while nobody else has anything to say."""

from __future__ import annotations

import refimpl.exchange.frames as frames
from refimpl.config import UNBOUNDED, Config
from refimpl.exchange.before_credit.marked_connection import MarkedConnection, UncreditedReader
from refimpl.exchange.before_credit.water_marks import WaterMarks
from refimpl.exchange.fair_turns import PartitionRequestQueue
from refimpl.exchange.framing import to_frame
from refimpl.exchange.producer_credit import SubpartitionReader
from refimpl.memory.buffer import BufferSlice
from refimpl.shortcuts.frames import ResponseHead
from refimpl.shortcuts.partition import poll_run

__all__ = [
    "FastMarkedConnection",
    "FastPartitionRequestQueue",
    "FastSubpartitionReader",
    "FastUncreditedReader",
    "FastWaterMarks",
]


class FastUncreditedReader(UncreditedReader):
    """Takes several data buffers in one step; stands for `UncreditedReader.poll`."""

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """At most `most` of the data buffers that `poll` would give next, each with its backlog; maybe none."""
        return poll_run(self.view, most)


class FastSubpartitionReader(SubpartitionReader):
    """Does the same with credit, of which that for one is left, so that `poll` can go on and say what is next."""

    def poll_run(self, most: int) -> list[tuple[BufferSlice, int]]:
        """At most `most` of the data buffers that `poll` would give next, each with its backlog; maybe none."""
        run = poll_run(self.view, min(most, self.credit - 1))
        self.credit -= len(run)
        return run


_FAST_READERS = (FastSubpartitionReader, FastUncreditedReader)


class FastPartitionRequestQueue(PartitionRequestQueue):
    """Lets a reader go on while it stands alone in line; stands for `PartitionRequestQueue.data_to_send`.

    A frame is two pieces, its head and a view of the buffer. A function that somebody has put in the place of
    `to_frame` is called for each frame, and then the frames are the book's.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._head = ResponseHead(config.flink_version)
        self._largest_frame_bytes = self._head.num_bytes + config.segment_size_bytes

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        if frames.to_frame is not to_frame:
            return super().data_to_send(max_bytes)
        pieces: list[bytes | memoryview] = []
        lent = self.lent
        end = lent.num_handed_out + max_bytes
        while lent.num_handed_out < end:
            if self.answers:
                pieces += super().data_to_send(1)
            elif self._line:
                self._let_go_on(self._line.popleft(), pieces, end)
            else:
                break
        return pieces

    def _let_go_on(self, reader: SubpartitionReader, pieces: list[bytes | memoryview], end: int) -> None:
        """Add the frames of the reader's next buffers up to `end`: one, or more if nobody else stands in line."""
        lent = self.lent
        if not (self._line or self.answers) and isinstance(reader, _FAST_READERS):
            room = end - lent.num_handed_out
            for buffer, backlog in reader.poll_run((room - 1) // self._largest_frame_bytes):
                self._lend(reader, buffer, backlog, pieces)
        while (turn := reader.poll()) is not None:
            (buffer, _, backlog, _, _), has_more = turn
            self._lend(reader, buffer, backlog, pieces)
            if not has_more:
                reader.note_wait()
                break
            if self._line or self.answers or lent.num_handed_out >= end:
                self._stand_in_line(reader)
                return
        reader.is_enqueued = False
        if turn is None:
            self._report_failure(reader)

    def _lend(self, by: SubpartitionReader, taken: BufferSlice, backlog: int, pieces: list[bytes | memoryview]) -> None:
        head, kind, size = self._head, taken.parent.data_type, taken.size
        is_compressed = taken.parent.is_compressed
        packed = head.pack(by.receiver, by.subpartition, by.next_number(), backlog, kind, size, is_compressed)
        pieces += packed, taken.data
        self.lent.lend(head.num_bytes + size, taken)


class FastWaterMarks(WaterMarks):
    """The book's own marks: several frames up to the high mark may be counted as one."""


class FastMarkedConnection(MarkedConnection):
    """Hands out all frames up to the high mark in one step; stands for `MarkedConnection.data_to_send`."""

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        marks, queue = self.marks, self.queue
        if not isinstance(marks, FastWaterMarks):
            return super().data_to_send(max_bytes)
        if not marks.is_writable:
            return []
        before = queue.lent.num_handed_out
        above_high = marks.high_bytes + 1 - (marks.num_handed_out - marks.num_written)
        pieces = queue.data_to_send(min(max_bytes, above_high))
        marks.hand_out(queue.lent.num_handed_out - before)
        return pieces

    def data_sent(self, num_bytes: int | None = None) -> None:
        marks, lent = self.marks, self.queue.lent
        if not isinstance(marks, FastWaterMarks):
            super().data_sent(num_bytes)
            return
        num_written = lent.num_handed_out - lent.num_written if num_bytes is None else num_bytes
        lent.confirm(num_written)
        marks.written(num_written)
