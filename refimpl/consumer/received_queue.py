"""What has come for one channel and waits for its task: data in buffers, events beside them, in order."""

from __future__ import annotations

from collections import deque

from refimpl.consumer.sequence import SequenceNumbers
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.subpartition_snapshot import FIRST_BYTES, QueuedBufferSnapshot
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.trace import Note

__all__ = ["ReceivedQueue"]

_EVENT_OVERHEAD_BYTES = 64  # what an event costs besides its bytes, so that tiny ones count too


class ReceivedQueue:
    """The pieces that have come, each with its sequence number; the first `num_priority` have overtaken the others.

    `note_receive` and `note_take` are for a trace.
    Ownership: the pieces are the queue's until they are taken.
    Memory: data waits in the channel's buffers, so there is never more than they hold. Events need
        no buffer: they may use `max_event_bytes` while they wait.

    Flink:   RemoteInputChannel.receivedBuffers (runtime.io.network.partition.consumer), 1.11.4
    Differs: events that wait are bounded.
    """

    def __init__(self, max_event_bytes: int, note_receive: Note | None = None, note_take: Note | None = None) -> None:
        self.pieces: deque[tuple[BufferSlice, int]] = deque()
        self.sequence = SequenceNumbers()
        self.num_priority = 0
        self.event_bytes = 0
        self.max_event_bytes = max_event_bytes
        self.note_receive = note_receive
        self.note_take = note_take

    def __repr__(self) -> str:
        return f"ReceivedQueue({len(self.pieces)} pieces, {self.sequence!r})"

    def has_room_for_event(self, size: int, num_pieces: int) -> bool:
        """Whether an event of `size` bytes may wait here too."""
        return self.event_bytes + num_pieces * (size + _EVENT_OVERHEAD_BYTES) <= self.max_event_bytes

    def put(self, buffer: Buffer | None, sizes: tuple[int, ...]) -> None:
        """Append the pieces of `buffer`, one sequence number each; an empty one is only counted."""
        start = 0
        is_first = True
        for piece_size in sizes:
            sequence_number = self.sequence.advance()
            if buffer is None or (piece_size == 0 and buffer.is_buffer):
                continue
            if not is_first:  # the first piece has the reference that came with the buffer
                buffer.retain()
            is_first = False
            piece = BufferSlice(buffer, start, start + piece_size)
            self.pieces.append((piece, sequence_number))
            if self.note_receive is not None:
                self.note_receive(buffer.segment.id, sequence_number, piece_size)
            if not piece.is_buffer:
                self.event_bytes += _event_cost(piece)
            start += piece_size

    def put_first(self, event: Buffer) -> int:
        """Put an event before all that waits, but behind what has overtaken before; its sequence number."""
        number = self.sequence.advance()
        piece = BufferSlice(event, 0, event.size)
        self.pieces.insert(self.num_priority, (piece, number))
        self.num_priority += 1
        self.event_bytes += _event_cost(piece)
        if self.note_receive is not None:
            self.note_receive(event.segment.id, number, event.size)
        return number

    def move_first(self, position: int) -> None:
        """Let an event that waits here overtake all before it, but what has overtaken before."""
        event = self.pieces[position]
        del self.pieces[position]
        self.pieces.insert(self.num_priority, event)
        self.num_priority += 1

    def take(self, backlog: int) -> BufferAndBacklog | None:
        """The next piece, which is the caller's now; `None` if there is none."""
        if not self.pieces:
            return None
        piece, sequence_number = self.pieces.popleft()
        if self.num_priority:
            self.num_priority -= 1
        if not piece.is_buffer:
            self.event_bytes -= _event_cost(piece)
        if self.note_take is not None:
            self.note_take(piece.parent.segment.id, sequence_number, piece.size)
        is_more = bool(self.pieces)
        is_event_next = is_more and not self.pieces[0][0].is_buffer
        return BufferAndBacklog(piece, is_more, backlog, is_event_next, sequence_number)

    def clear(self) -> list[Buffer]:
        """Take out everything: the buffers, each with one reference for each of its pieces here."""
        buffers = [piece.parent for piece, _ in self.pieces]
        self.pieces.clear()
        self.event_bytes = self.num_priority = 0
        return buffers

    def snapshot(self) -> tuple[QueuedBufferSnapshot, ...]:
        """What waits at this moment, the oldest first."""
        return tuple(
            QueuedBufferSnapshot(
                piece.segment.id,
                piece.data_type,
                piece.size,
                piece.size,
                piece.segment.size,
                True,
                bytes(piece.data[:FIRST_BYTES]),
                -1,
            )
            for piece, _ in tuple(self.pieces)
        )


def _event_cost(piece: BufferSlice) -> int:
    return piece.parent.segment.size + _EVENT_OVERHEAD_BYTES
