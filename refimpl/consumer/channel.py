"""What a gate needs of a channel, whoever is at the other end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from refimpl.consumer.buffer_manager import BufferManagerSnapshot
from refimpl.consumer.channel_capture import ChannelCapture
from refimpl.memory.buffer import BufferSlice
from refimpl.producer.subpartition_snapshot import QueuedBufferSnapshot
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.records.events import Event

__all__ = ["BufferOrEvent", "ChannelSnapshot", "InputChannel"]


class BufferOrEvent(NamedTuple):
    """One thing that arrived on channel `channel_index`: data the caller recycles, or an event."""

    channel_index: int
    buffer: BufferSlice | None
    event: Event | None
    is_more_available: bool


@dataclass(frozen=True, slots=True)
class ChannelSnapshot:
    """One input channel at one moment; `producer` names the partition and subpartition it reads.

    A local channel has nothing of its own. A remote one has a `receiver` (16 bytes), a `queue` of what has
    come and waits for the task, and, where there are credits, `buffers` to receive into. `num_received`
    counts buffers and events that have come.
    """

    index: int
    producer: str
    num_available: int
    is_released: bool
    receiver: bytes = b""
    queue: tuple[QueuedBufferSnapshot, ...] = ()
    buffers: BufferManagerSnapshot | None = None
    num_received: int = 0


class InputChannel(Protocol):
    """One of a gate's channels.

    Flink:   InputChannel (runtime.io.network.partition.consumer), 1.11.4
    """

    index: int
    capture: ChannelCapture | None
    """Where unaligned barriers are looked for, what is to be copied for them."""

    def open(self, on_data_available: Callable[[], None]) -> None:
        """Start reading; `on_data_available` is called when a poll is worth while."""

    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, or `None` if there are none now."""

    def poll_priority(self) -> BufferAndBacklog | None:
        """The event that has overtaken what waits here, or `None` if there is none now."""

    def begin_capture(self, checkpoint_id: int) -> None:
        """Copy what is here and belongs to an unaligned checkpoint, and from now on what comes of it."""

    def resume(self) -> None:
        """Let a producer go on that stopped behind a blocking event."""

    def release(self) -> None:
        """Stop reading, for good."""

    def snapshot(self) -> ChannelSnapshot: ...
