"""The way before credits: when one channel has no room, its whole connection stops.

Flink's only way up to 1.4, and up to 1.9 with `credit_based` off, at both ends. It has two rules:

- A producer sends what it has, for as long as the transport takes it. Nobody asks for anything.
- A consumer that has no buffer for what has come stages it, and reads nothing more from that
  connection, for no channel, until it has one. Then it goes on where it stopped.

No message says how much room there is, and no buffer waits for data that may not come. The price is
paid by the neighbours:

    producers        one connection: first come, first read          consumers
    a --+                                                        +-->  a  has room, gets nothing
    b --+-->  c4 b4 a4 c3 b3 a3 ...  b2 a2  [c1]  --------------+-->  b  has room, gets nothing
    c --+                            staged behind c1            +-->  c  has no buffer for c1

What stands behind c1 has room where it goes, and does not get there. All three now move at the pace
of the slowest, events too: a barrier for a that stands behind c1 waits for the task that reads c.

Nobody says "stop". Each part finds that it cannot go on, from the slow task back to every producer:

    the gate's pool is empty          c1 waits in the pool's line               `PoolBuffers`
    the connection is not read        the transports fill up, at both ends      (TCP's window)
    what was handed out is unwritten  above the high mark no more is given out  `WaterMarks`
    buffers stay in subpartitions     the producers' pools are empty            `LocalBufferPool`

The frames are those of the version in use, credit field and all; only what they mean is old.

With credits (see `credit`) the same task stops its own channel only, and none of that channel's data
is on the wire meanwhile. That costs a message more, and buffers that each channel keeps for itself.

Who stages is the `FrameDecoder`: it keeps the bytes it was given and has not read. It asks again for
the buffer when the driver says `ConsumerConnection.resume_reading`, as everything here moves only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from refimpl.config import UNBOUNDED, Config
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool, NotificationResult

__all__ = ["BufferWait", "NoCredit", "PoolBuffers", "WaterMarks", "nobody"]


def nobody() -> None:
    """Nobody wants to be called: drivers without threads look for themselves."""


# -- the producer's end ----------------------------------------------------------------------------


class WaterMarks:
    """How many bytes may be handed out to a transport and not be written yet.

    Above `high_bytes` nothing more is handed out, until less than `low_bytes` are left. The gap keeps
    the producer from being woken for every few bytes; that the low mark is not 0 keeps the transport
    busy meanwhile. What is handed out is a whole frame, so the last one may go beyond the mark. To
    stop is the caller's: a frame that comes all the same is under way, and counted.

    Flink:   NettyServer, WRITE_BUFFER_LOW_WATER_MARK and _HIGH_WATER_MARK, 1.4 to 1.10
    Differs: counts the bytes of frames alone; Netty adds its own cost of each message. 1.5 to 1.10
             have the marks with credits too; here, as in 1.11, credit is limit enough.
    """

    def __init__(self, low_bytes: int, high_bytes: int) -> None:
        self.low_bytes = low_bytes
        self.high_bytes = high_bytes
        self.num_handed_out = 0
        self.num_written = 0
        self.is_writable = True

    def __repr__(self) -> str:
        return f"WaterMarks({self.num_pending} B pending, {self.low_bytes} to {self.high_bytes})"

    @classmethod
    def of(cls, config: Config) -> WaterMarks:
        """One segment and two; with credits there are no marks."""
        if config.credit_based:
            return cls(UNBOUNDED, UNBOUNDED)
        return cls(config.segment_size_bytes + 1, 2 * config.segment_size_bytes)

    @property
    def num_pending(self) -> int:
        """Bytes handed out and not written."""
        return self.num_handed_out - self.num_written

    def hand_out(self, num_bytes: int) -> None:
        """Count a frame that the transport is given, writable or not: above the high mark no more is."""
        self.num_handed_out += num_bytes
        if self.num_handed_out - self.num_written > self.high_bytes:
            self.is_writable = False

    def confirm(self, num_bytes: int) -> None:
        """The transport says how many bytes more it has written.

        Raises:
            LocalUsageError: so many were not pending.
        """
        if not 0 <= num_bytes <= self.num_pending:
            raise LocalUsageError(f"{num_bytes} B were written, {self.num_pending} were handed out")
        self.written(num_bytes)

    def written(self, num_bytes: int) -> None:
        """Count bytes that the transport has written: below the low mark more may be handed out."""
        self.num_written += num_bytes
        if self.num_handed_out - self.num_written < self.low_bytes:
            self.is_writable = True


# -- the consumer's end ----------------------------------------------------------------------------


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
        self._on_over: Callable[[], None] = nobody
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


class NoCredit:
    """The credit of a channel without credits: nothing is promised, nothing is announced."""

    num_promised: Final = 0
    num_required: Final = 0

    def announce(self) -> int:
        return 0


class PoolBuffers:
    """What one remote channel receives into without credits: any buffer of its gate's pool.

    The channel has none of its own, so its neighbours in the gate can take the last one; but the
    pool's line gives each buffer that comes home to who has waited longest.

    Flink:   RemoteInputChannel.getBufferProvider, SingleInputGate.setBufferPool
             (runtime.io.network.partition.consumer), 1.4 to 1.9
    """

    def __init__(self, pool: LocalBufferPool) -> None:
        self.credit = NoCredit()
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

    def set_backlog(self, backlog: int) -> None:
        """Nothing: what waits at the producer comes whether there is room or not."""

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
