"""A payload that has no buffer yet is staged, with everything behind it, and nothing is read before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from refimpl.config import Config, FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.exchange.before_credit.pool_buffers import BufferWait
from refimpl.exchange.before_credit.pooled_channel import PooledInputChannel
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.frame_decoder import BufferReceived, FrameDecoder
from refimpl.exchange.messages import BufferResponse, Message
from refimpl.memory.buffer import Buffer

__all__ = ["StagingConnection", "StagingDecoder"]


class _WaitingProvider(Protocol):
    """Finds the buffer for a payload, or what the payload has to wait for."""

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None: ...

    def wait_of(self, receiver: bytes) -> BufferWait | None: ...


class StagingDecoder(FrameDecoder):
    """Reads frames up to the first payload that has no buffer, and keeps the bytes behind it.

    It asks again for the buffer when `receive` is called, as everything here moves only then. So a driver
    reads nothing while there is a `pause`, and calls `receive` with no bytes when that is over.
    Memory: while a payload waits, what came along with it, and `max_frame_bytes` handed in all the same.

    Raises (`receive`):
        LocalUsageError: a payload waits and too much was handed in meanwhile.

    Flink:   PartitionRequestClientHandler.stagedMessages (runtime.io.network.netty), 1.4 to 1.9
    Differs: bytes are staged; Flink stages messages that Netty has decoded.
    """

    def __init__(
        self, buffers: _WaitingProvider, max_frame_bytes: int, version: FlinkVersion = FlinkVersion.V1_11
    ) -> None:
        super().__init__(buffers, max_frame_bytes, version)
        self._waits = buffers
        self._wait: BufferWait | None = None
        self._staged = b""

    @property
    def pause(self) -> BufferWait | None:
        """The wait of the payload that is staged, if there is one."""
        return self._wait

    @property
    def num_staged(self) -> int:
        """Bytes that wait, with the payload that stands first."""
        return len(self._staged)

    def receive(self, data: bytes | bytearray | memoryview) -> Iterable[Message | BufferReceived]:
        if self._wait is not None:
            if data and len(self._staged) + len(data) > self._max_frame_bytes:
                raise LocalUsageError(
                    f"{len(data)} B were handed in while {len(self._staged)} B wait for a buffer; "
                    f"read nothing from the transport while the connection is not reading"
                )
            self._ask_again()
            data, self._staged = self._staged + data, b""
        return super().receive(data)

    def close(self) -> None:
        super().close()
        self._staged = b""
        if self._wait is not None:
            self._wait.give_up()
            self._wait = None

    def _take_in(self, data: memoryview) -> int:
        if self._wait is None:
            return super()._take_in(data)
        self._staged = bytes(data)
        return len(data)

    def _expect_payload(self, response: BufferResponse, size: int) -> None:
        super()._expect_payload(response, size)
        self._note_wait(response)

    def _ask_again(self) -> None:
        assert self._payload is not None, f"{self} waits for nothing"
        response, size = self._payload
        self._buffer = self._buffers.request_buffer(response, size)
        self._note_wait(response)

    def _note_wait(self, response: BufferResponse) -> None:
        has_buffer = self._buffer is not None
        self._wait = None if has_buffer else self._waits.wait_of(response.receiver)


class StagingConnection(ConsumerConnection):
    """The consumer's end of a connection on which one channel without room stops all others.

    Flink:   PartitionRequestClientHandler (runtime.io.network.netty), 1.4 to 1.9
    Differs: auto-read is a question the driver asks; Flink sets it on the transport.
    """

    def __init__(
        self, config: Config, name: str = "connection", decoder: type[StagingDecoder] = StagingDecoder
    ) -> None:
        super().__init__(config, name, decoder)

    def wait_of(self, receiver: bytes) -> BufferWait | None:
        """What the payload has to wait for that was for `receiver` and has found no buffer; `None` to skip it."""
        reader = self.readers.get(receiver)
        channel = None if reader is None else reader.channel
        return channel.wait if isinstance(channel, PooledInputChannel) else None
