"""What others see of a subpartition: what one poll took, and how it stands at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from refimpl.memory.buffer import BufferSlice, DataType

__all__ = ["BufferAndBacklog", "QueuedBufferSnapshot", "SubpartitionSnapshot"]


class BufferAndBacklog(NamedTuple):
    """What one poll took: the bytes, and what is still there.

    Ownership: the buffer is the caller's to recycle. `sequence_number` counts what was delivered,
    data and events, from 0.
    """

    buffer: BufferSlice
    is_more_available: bool
    backlog: int
    is_event_next: bool
    sequence_number: int


@dataclass(frozen=True, slots=True)
class QueuedBufferSnapshot:
    """One entry of the queue; `segment_id` is -1 for an event."""

    segment_id: int
    data_type: DataType
    written_bytes: int
    unread_bytes: int
    capacity_bytes: int
    is_finished: bool


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
