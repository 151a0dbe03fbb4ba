"""The empty buffers one remote channel can receive into: its own, and some of the gate's.

- *Exclusive* buffers belong to the channel for life. However greedy the others are, these come back
  here, so a channel can always make progress.
- *Floating* buffers belong to the gate and go where the backlog is. They are used first and given
  back first: an exclusive buffer must come home anyway, a floating one can help somebody else.

A channel that finds the gate's pool empty stands in the pool's line, once. Each buffer that comes back
goes to the head of the line, which takes that one and goes to the end if it needs more: so one hungry
channel cannot starve the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from refimpl.exchange.credit import ConsumerCredit
from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool, NotificationResult
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment

__all__ = ["BufferManager", "BufferManagerSnapshot"]


@dataclass(frozen=True, slots=True)
class BufferManagerSnapshot:
    """The empty buffers of one channel at one moment, and what the producer knows of them.

    `num_exclusive_available` and `num_floating_available` are empty and at hand, `num_required` is
    what the channel wants, `num_unannounced` and `num_promised` are as in `ConsumerCredit`.
    """

    num_exclusive: int
    num_exclusive_available: int
    num_floating_available: int
    num_required: int
    num_unannounced: int
    num_promised: int
    is_waiting_for_floating: bool

    @property
    def num_available(self) -> int:
        return self.num_exclusive_available + self.num_floating_available


class BufferManager:
    """The buffers one remote channel may receive into.

    Ownership: `exclusive` are segments the caller took from `global_pool` with `request_unpooled`;
    they return there after `release`, each when nobody holds its buffer any more.
    `on_credit` is called when there is something to announce after there was nothing.

    Flink:   BufferManager (runtime.io.network.partition.consumer), 1.11.4
    Differs: the exclusive segments are there from the start. Data may use a buffer only if it was
             promised, see `ConsumerCredit`.
    Invariant: empty buffers == credit.num_unannounced + credit.num_promised
    """

    def __init__(
        self,
        exclusive: Sequence[MemorySegment],
        global_pool: NetworkBufferPool,
        floating_pool: LocalBufferPool,
        on_credit: Callable[[], None],
    ) -> None:
        self.credit = ConsumerCredit(len(exclusive))
        self.lent: dict[int, Buffer] = {}
        self._global_pool = global_pool
        self._floating_pool = floating_pool
        self._on_credit = on_credit
        self._exclusive = deque(Buffer(segment, self) for segment in exclusive)
        self._floating: deque[Buffer] = deque()
        self._is_waiting = False
        self._is_released = False

    def __repr__(self) -> str:
        return (
            f"BufferManager({len(self._exclusive)} exclusive, {len(self._floating)} floating, "
            f"{self.credit!r})"
        )

    @property
    def num_available(self) -> int:
        return len(self._exclusive) + len(self._floating)

    @property
    def empty_buffers(self) -> list[Buffer]:
        """The buffers that wait here for data, for the laws."""
        return [*self._floating, *self._exclusive]

    @property
    def exclusive_buffers(self) -> list[Buffer]:
        """The channel's own buffers, here or lent, as long as they have not gone home, for the laws."""
        return [*self._exclusive, *self.lent.values()]

    def snapshot(self) -> BufferManagerSnapshot:
        return BufferManagerSnapshot(
            self.credit.num_exclusive, len(self._exclusive), len(self._floating),
            self.credit.num_required, self.credit.num_unannounced, self.credit.num_promised,
            self._is_waiting,
        )  # fmt: skip

    # -- buffers out -----------------------------------------------------------------------------

    def request_buffer(self) -> Buffer | None:
        """A buffer for data that has come, or `None` if none was promised to its sender."""
        if self._is_released or self.credit.num_promised == 0:
            return None
        self.credit.use()
        if self._floating:
            return self._floating.popleft()
        buffer = self._exclusive.popleft()
        self.lent[buffer.segment.id] = buffer
        return buffer

    # -- buffers in ------------------------------------------------------------------------------

    def set_backlog(self, backlog: int) -> None:
        """Hold enough empty buffers for `backlog` and the exclusive ones, as far as there are any."""
        if self._is_released:
            return
        self.credit.set_backlog(backlog)
        num_missing = self.credit.num_required - len(self._exclusive) - len(self._floating)
        num_added = 0
        while num_added < num_missing and not self._is_waiting:
            buffer = self._request_floating()
            if buffer is None:
                break
            self._floating.append(buffer)
            num_added += 1
        if num_added:
            self._add_credit(num_added)

    def recycle_segment(self, segment: MemorySegment) -> None:
        """An exclusive buffer comes home, and sends a floating one away if there are enough now."""
        self.lent.pop(segment.id, None)
        if self._is_released:
            self._global_pool.return_unpooled([segment])
            return
        self._exclusive.append(Buffer(segment, self))
        if self.num_available > self.credit.num_required and self._floating:
            # One in, one out: the producer's promise is kept by the buffer that came.
            self._floating.popleft().recycle()
            return
        self._add_credit(1)

    def on_buffer_available(self, buffer: Buffer) -> NotificationResult:
        """A floating buffer is offered: take it if it is still needed."""
        if self._is_released:
            return NotificationResult.BUFFER_NOT_USED
        if self.num_available >= self.credit.num_required:
            self._is_waiting = False
            return NotificationResult.BUFFER_NOT_USED
        self._floating.append(buffer)
        self._is_waiting = self.num_available < self.credit.num_required
        self._add_credit(1)
        if self._is_waiting:
            return NotificationResult.BUFFER_USED_NEED_MORE
        return NotificationResult.BUFFER_USED_NO_NEED_MORE

    def on_pool_destroyed(self) -> None:
        """The gate's pool is gone: there is nothing to wait for."""
        self._is_waiting = False

    def release(self, received: Iterable[Buffer]) -> None:
        """Give back every empty buffer and those in `received`; others follow as they are recycled.

        The exclusive ones go in one batch, since each return shares the global pool out anew.
        """
        self._is_released = True
        segments = []
        for buffer in received:
            if buffer.recycler is self and buffer.num_references == 1:
                self.lent.pop(buffer.segment.id, None)
                segments.append(buffer.segment)
            else:
                buffer.recycle()
        while self._floating:
            self._floating.popleft().recycle()
        while self._exclusive:
            segments.append(self._exclusive.popleft().segment)
        if segments:
            self._global_pool.return_unpooled(segments)

    # -- helpers ---------------------------------------------------------------------------------

    def _request_floating(self) -> Buffer | None:
        """A buffer of the gate's pool; if it has none, stand in its line."""
        if self._floating_pool.is_destroyed:
            return None
        buffer = self._floating_pool.request_buffer()
        if buffer is None:
            self._is_waiting = self._floating_pool.add_listener(self)
        return buffer

    def _add_credit(self, num_buffers: int) -> None:
        if self.credit.add(num_buffers):
            self._on_credit()
