"""A remote channel that has no buffers of its own and promises nothing: what comes finds a buffer, or waits for one."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.errors import PoolDestroyedError
from refimpl.exchange.before_credit.pool_buffers import BufferWait, PoolBuffers
from refimpl.exchange.messages import BufferResponse
from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.trace import Note

__all__ = ["PooledInputChannel"]


class PooledInputChannel(ConnectedChannel):
    """Receives one subpartition into the buffers that all channels of its gate share.

    `wait` is what the payload waits for that was asked for last, if it waits.

    Raises (`poll`):
        PoolDestroyedError: there will be no buffer.

    Flink:   RemoteInputChannel (runtime.io.network.partition.consumer), 1.4 to 1.9 without credits
    """

    buffers: PoolBuffers

    def __init__(
        self,
        index: int,
        receiver: bytes,
        producer: str,
        pool: LocalBufferPool,
        config: Config,
        note_receive: Note | None = None,
        note_take: Note | None = None,
    ) -> None:
        super().__init__(index, receiver, producer, config, note_receive, note_take)
        self.initial_credit = 0
        self.buffers = PoolBuffers(pool)
        self.wait: BufferWait | None = None

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        self.wait = None
        return super().request_buffer(response, size)

    def on_backlog(self, backlog: int) -> None:
        """Nothing: what waits at the producer comes whether there is room or not."""

    def _request_for_data(self, response: BufferResponse) -> Buffer | None:
        try:
            answer = self.buffers.request_buffer()
        except PoolDestroyedError as error:
            self.on_error(error)
            return None
        if isinstance(answer, BufferWait):
            self.wait = answer
            return None
        return answer
