"""A subpartition at one moment: for others to look at, and to be put back."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.memory.builder import BufferConsumer
from refimpl.memory.data_type import DataType
from refimpl.producer.subpartition_view import ViewState

__all__ = ["FIRST_BYTES", "QueueState", "QueuedBufferSnapshot", "SubpartitionSnapshot"]

FIRST_BYTES = 64
"""The bytes of a queued buffer that a snapshot takes along: as many as a widget shows of one buffer."""


@dataclass(frozen=True, slots=True)
class QueuedBufferSnapshot:
    """One entry of the queue; `segment_id` is -1 for an event.

    `first_bytes` are the first of what is written. `partial_record_bytes` of a buffer end a record that began in
    another one; -1 if none is known to begin in it, as where it came over a connection, which does not say.
    """

    segment_id: int
    data_type: DataType
    written_bytes: int
    unread_bytes: int
    capacity_bytes: int
    is_finished: bool
    first_bytes: bytes = b""
    partial_record_bytes: int = 0

    @classmethod
    def of(cls, consumer: BufferConsumer, is_finished: bool) -> QueuedBufferSnapshot:
        """One entry as its reader would find it now."""
        buffer, num_unread = consumer.buffer, consumer.unread_bytes
        num_written = consumer.read_position + num_unread
        return cls(
            buffer.segment.id,
            buffer.data_type,
            num_written,
            num_unread,
            buffer.segment.size,
            is_finished,
            bytes(buffer.memory[: min(FIRST_BYTES, num_written)]),
            consumer.partial_record_bytes,
        )


@dataclass(frozen=True, slots=True)
class SubpartitionSnapshot:
    """One subpartition at one moment; totals count from its start."""

    index: int
    queue: tuple[QueuedBufferSnapshot, ...]
    backlog: int
    is_flush_requested: bool
    is_blocked: bool
    is_finished: bool
    num_buffers_total: int
    num_bytes_total: int


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue of a subpartition, its marks and counts: enough to go on from here."""

    entries: tuple[BufferConsumer, ...]
    num_data_buffers: int
    is_flush_requested: bool
    num_buffers_total: int
    num_bytes_total: int
    num_priority: int
    next_sequence_number: int
    view_state: ViewState
