"""The buffers of a gate that all its channels share, and the line in which a payload waits for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool, NotificationResult

__all__ = ["BufferWait", "PoolBuffers"]


class BufferWait:
    """The place of one payload in the line for a buffer of its gate's pool.

    Ownership: the buffer that comes stays here until it is taken or the wait is given up.

    Flink:   PartitionRequestClientHandler.BufferListenerTask (runtime.io.network.netty), 1.4 to 1.9
    Differs: also over when the global pool has a segment again; Flink hears only of the gate's own.
    """

    def __init__(self, pool: LocalBufferPool) -> None:
        self.buffer: Buffer | None = None
        self._pool = pool
        self._has_ended = False
        self._on_over: Callable[[], None] = lambda: None  # a driver without threads looks for itself
        pool.add_listener(self)

    def __repr__(self) -> str:
        return f"BufferWait({self._pool.name}, {'over' if self.is_over else 'waiting'})"

    @property
    def is_over(self) -> bool:
        """Whether to ask for the buffer again: there is one, or there will be none."""
        return self._has_ended or self._pool.can_request

    def call_when_over(self, on_over: Callable[[], None]) -> None:
        """Call it when `is_over` may have become true."""
        self._on_over = on_over
        self._pool.call_when_available(on_over)

    def on_buffer_available(self, buffer: Buffer) -> NotificationResult:
        """Keep the buffer, unless nobody waits any more."""
        if self._has_ended:
            return NotificationResult.BUFFER_NOT_USED
        self._end()
        self.buffer = buffer
        return NotificationResult.BUFFER_USED_NO_NEED_MORE

    def on_pool_destroyed(self) -> None:
        """There will be no buffer."""
        self._end()

    def take(self) -> Buffer | None:
        """The buffer that has come, if one has; it is the caller's now."""
        buffer, self.buffer = self.buffer, None
        return buffer

    def give_up(self) -> None:
        """Nobody waits any more: a buffer that has come goes to the next in the line."""
        self._end()
        if (buffer := self.take()) is not None:
            buffer.recycle()

    def _end(self) -> None:
        self._has_ended = True
        self._on_over()


class PoolBuffers:
    """What one remote channel receives into without credits: any buffer of its gate's pool.

    The channel has none of its own, so its neighbours in the gate can take the last one; but the
    pool's line gives each buffer that comes home to who has waited longest.

    Flink:   RemoteInputChannel.getBufferProvider, SingleInputGate.setBufferPool
             (runtime.io.network.partition.consumer), 1.4 to 1.9
    """

    def __init__(self, pool: LocalBufferPool) -> None:
        self.pool = pool
        self.wait: BufferWait | None = None

    def __repr__(self) -> str:
        return f"PoolBuffers({self.pool!r}, {self.wait!r})"

    @property
    def empty_buffers(self) -> list[Buffer]:
        """The buffer that has come for a payload and was not taken yet, for the laws."""
        return [] if self.wait is None or self.wait.buffer is None else [self.wait.buffer]

    @property
    def exclusive_buffers(self) -> list[Buffer]:
        """None: all buffers are the gate's."""
        return []

    def request_buffer(self) -> Buffer | BufferWait:
        """A buffer for data that has come, or, if there is none, the wait for one: asked again when that is over.

        A channel waits in one place of the pool's line, however often it is asked.

        Raises:
            PoolDestroyedError: there will be no buffer.
        """
        buffer = None if self.wait is None else self.wait.take()
        if buffer is None:
            buffer = self.pool.request_buffer()
        if buffer is not None:
            self.end_wait()
            return buffer
        if self.wait is None:
            self.wait = BufferWait(self.pool)
        return self.wait

    def release(self, received: Iterable[Buffer]) -> None:
        """Give back those in `received`, and end the wait; nothing is requested any more."""
        self.end_wait()
        for buffer in received:
            buffer.recycle()

    def end_wait(self) -> None:
        """Nobody waits any more; a buffer that has come and was not taken goes to the next in the line."""
        if self.wait is not None:
            self.wait.give_up()
            self.wait = None
