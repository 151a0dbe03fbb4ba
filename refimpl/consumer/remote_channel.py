"""A channel whose producer lives elsewhere: it has buffers of its own, and tells the producer of each that is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refimpl.config import Config
from refimpl.consumer.buffer_manager import BufferManager, BufferManagerSnapshot
from refimpl.consumer.channel import ChannelSnapshot
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.exchange.messages import BufferResponse
from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.trace import Note

__all__ = ["RemoteInputChannel"]


class RemoteInputChannel(ConnectedChannel):
    """Receives one subpartition over a connection, as far as it has given credit.

    `exclusive` are the channel's own segments, taken from `global_pool` with `request_unpooled`.
    `note_receive` and `note_take` are for a trace, `manager` is the class of its buffers.

    Flink:   RemoteInputChannel (runtime.io.network.partition.consumer), 1.11.4
    """

    buffers: BufferManager

    def __init__(
        self,
        index: int,
        receiver: bytes,
        producer: str,
        exclusive: Sequence[MemorySegment],
        global_pool: NetworkBufferPool,
        floating_pool: LocalBufferPool,
        config: Config,
        note_receive: Note | None = None,
        note_take: Note | None = None,
        manager: type[BufferManager] = BufferManager,
    ) -> None:
        super().__init__(index, receiver, producer, config, note_receive, note_take)
        self.initial_credit = len(exclusive)
        self.buffers = manager(exclusive, global_pool, floating_pool, self.call_for_attention)

    def snapshot(self) -> ChannelSnapshot:
        return replace(super().snapshot(), buffers=BufferManagerSnapshot.of(self.buffers))

    def take_news(self) -> tuple[int, bool]:
        _, may_go_on = super().take_news()
        return self.buffers.credit.announce(), may_go_on

    def on_backlog(self, backlog: int) -> None:
        has_ended = self.is_released or self.buffers.floating_pool.is_destroyed
        if backlog >= 0 and not has_ended:
            self.buffers.on_backlog(backlog)

    def call_for_attention(self) -> None:
        """There is credit to announce."""
        self.on_message()

    def _request_for_data(self, response: BufferResponse) -> Buffer | None:
        buffer = self.buffers.request_buffer()
        if buffer is None:
            self._why_refused = (
                f"The read buffer is null in credit-based input channel: the producer sent sequence "
                f"number {response.sequence_number} with credit {self.buffers.credit.num_promised}"
            )
        return buffer

    def _num_waiting(self) -> int:
        return max(0, self.buffers.credit.num_required - self.initial_credit)
