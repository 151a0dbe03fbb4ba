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
    `empty_segments` and `lent_segments` are its exclusive ones, at hand and in use; `floating_segments`
    are the floating ones at hand, which belong to the gate's pool.
    """

    num_exclusive: int
    num_exclusive_available: int
    num_floating_available: int
    num_required: int
    num_unannounced: int
    num_promised: int
    is_waiting_for_floating: bool
    empty_segments: tuple[int, ...]
    lent_segments: tuple[int, ...]
    floating_segments: tuple[int, ...]

    @classmethod
    def of(cls, manager: BufferManager) -> BufferManagerSnapshot:
        """The buffers of `manager` now."""
        credit = manager.credit
        return cls(
            credit.num_exclusive,
            len(manager.exclusive),
            len(manager.floating),
            credit.num_required,
            credit.num_unannounced,
            credit.num_promised,
            manager.is_waiting,
            tuple([buffer.segment.id for buffer in tuple(manager.exclusive)]),
            tuple(manager.lent),
            tuple([buffer.segment.id for buffer in tuple(manager.floating)]),
        )

    @property
    def num_available(self) -> int:
        return self.num_exclusive_available + self.num_floating_available


class BufferManager:
    """The buffers one remote channel may receive into.

    `exclusive` and `floating` are its empty buffers, `credit` what of them the producer has been told.
    Ownership: the segments `exclusive` are those the caller took from `global_pool` with `request_unpooled`;
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
        self.floating_pool = floating_pool
        self._on_credit = on_credit
        self.exclusive = deque(Buffer(segment, self) for segment in exclusive)
        self.floating: deque[Buffer] = deque()
        self.is_waiting = False
        self._is_released = False

    def __repr__(self) -> str:
        return f"BufferManager({len(self.exclusive)} exclusive, {len(self.floating)} floating, {self.credit!r})"

    @property
    def num_available(self) -> int:
        return len(self.exclusive) + len(self.floating)

    @property
    def empty_buffers(self) -> list[Buffer]:
        """The buffers that wait here for data, for the laws."""
        return [*self.floating, *self.exclusive]

    @property
    def exclusive_buffers(self) -> list[Buffer]:
        """The channel's own buffers, here or lent, as long as they have not gone home, for the laws."""
        return [*self.exclusive, *self.lent.values()]

    # -- buffers out -----------------------------------------------------------------------------

    def request_buffer(self) -> Buffer | None:
        """A buffer for data that has come, or `None` if none was promised to its sender."""
        if self._is_released or self.credit.num_promised == 0:
            return None
        self.credit.use()
        if self.floating:
            return self.floating.popleft()
        buffer = self.exclusive.popleft()
        self.lent[buffer.segment.id] = buffer
        return buffer

    # -- buffers in ------------------------------------------------------------------------------

    def on_backlog(self, backlog: int) -> None:
        """`backlog` data buffers wait at the producer: hold an empty buffer for each, and the exclusive ones besides.

        What is missing is asked of the gate's pool, and is credit. If the pool has none left, stand in its line.
        """
        self.credit.num_required = backlog + self.credit.num_exclusive
        num_added = 0
        while self.num_available < self.credit.num_required and not self.is_waiting:
            buffer = self.floating_pool.request_buffer()
            if buffer is None:
                self.is_waiting = self.floating_pool.add_listener(self)
                break
            self.floating.append(buffer)
            num_added += 1
        self.add_credit(num_added)

    def recycle_segment(self, segment: MemorySegment) -> None:
        """An exclusive buffer comes home; after `release` it goes on to the global pool."""
        self.lent.pop(segment.id, None)
        if self._is_released:
            self._global_pool.return_unpooled([segment])
            return
        self.exclusive.append(Buffer(segment, self))
        self.on_recycled()

    def on_recycled(self) -> None:
        """One of the channel's own buffers is back, empty, and counted among those at hand.

        If the channel has more now than it wants, a floating one goes home in its place; if not, or if it
        has none that floats, it is one more credit.
        """
        if self.num_available > self.credit.num_required and self.floating:
            # One in, one out: the producer's promise is kept by the buffer that came.
            self.floating.popleft().recycle()
        else:
            self.add_credit(1)

    def on_buffer_available(self, buffer: Buffer) -> NotificationResult:
        """A floating buffer is offered: take it if it is still needed."""
        if self._is_released:
            return NotificationResult.BUFFER_NOT_USED
        if self.num_available >= self.credit.num_required:
            self.is_waiting = False
            return NotificationResult.BUFFER_NOT_USED
        self.floating.append(buffer)
        self.is_waiting = self.num_available < self.credit.num_required
        self.add_credit(1)
        if self.is_waiting:
            return NotificationResult.BUFFER_USED_NEED_MORE
        return NotificationResult.BUFFER_USED_NO_NEED_MORE

    def add_credit(self, num_buffers: int) -> None:
        """Count empty buffers that came in; the connection is told when it has something to announce."""
        if self.credit.add(num_buffers):
            self._on_credit()

    def on_pool_destroyed(self) -> None:
        """The gate's pool is gone: there is nothing to wait for."""
        self.is_waiting = False

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
        while self.floating:
            self.floating.popleft().recycle()
        while self.exclusive:
            segments.append(self.exclusive.popleft().segment)
        if segments:
            self._global_pool.return_unpooled(segments)

    def hand_over_to(self, other: BufferManager) -> None:
        """Let `other`, new and of the same segments, go on with what is held, lent and promised here.

        In the pool's line `other` stands at the end.
        """
        other.credit = self.credit
        other.exclusive, other.lent, other.floating = self.exclusive, self.lent, self.floating
        for buffer in self.exclusive_buffers:
            buffer.recycler = other
        self._is_released = True  # what the pool still offers here is not used
        other.is_waiting = self.is_waiting and other.floating_pool.add_listener(other)
