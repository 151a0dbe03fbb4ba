"""A task's own share of the segments: how much it may have under way at once.

When this pool is empty the task can write no more, and stops. That is all backpressure is: an empty pool, and the
consumer that holds its buffers. Segments are fetched from the global pool one by one, when they are needed, and the
pool can be resized while they are out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from refimpl.config import UNBOUNDED, FlinkVersion
from refimpl.errors import LocalUsageError, PoolDestroyedError
from refimpl.memory.buffer import Buffer, Recycler
from refimpl.memory.builder import BufferBuilder
from refimpl.memory.channel_quota import ChannelQuota
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.pool_snapshots import LocalPoolSnapshot
from refimpl.memory.segment import MemorySegment
from refimpl.trace import noting

__all__ = ["BufferListener", "LocalBufferPool", "NotificationResult"]

_NO_CHANNEL = -1


class NotificationResult(Enum):
    """What a listener did with the buffer it was offered."""

    BUFFER_NOT_USED = "not used"
    BUFFER_USED_NO_NEED_MORE = "used, no need for more"
    BUFFER_USED_NEED_MORE = "used, needs more"


class BufferListener(Protocol):
    """Waits for a buffer of a pool that has none."""

    def on_buffer_available(self, buffer: Buffer) -> NotificationResult: ...

    def on_pool_destroyed(self) -> None: ...


class LocalBufferPool:
    """Buffers of one output (or one input), at most `size` of them at a time.

    Ownership: a requested buffer belongs to its requester until its last `recycle`, then the segment comes back here
    and goes, in this order: to the global pool if this one is destroyed or too large; to the first waiting listener;
    to the idle ones. `max_per_channel` limits nothing by itself: a channel above it makes the pool unavailable, so
    that the task stops taking input, but a request still succeeds.

    Raises:
        InsufficientBuffersError: `num_required` segments cannot be promised.

    Flink:   LocalBufferPool (runtime.io.network.buffer), 1.11.4; overdraft from 1.16 on
    Differs: never waits. A version of 2.x keeps one segment fetched ahead, as Flink 2.x does.
    Invariant: num_requested == idle + lent   (laws.check_segments)
    """

    def __init__(
        self,
        global_pool: NetworkBufferPool,
        num_required: int,
        num_max: int = UNBOUNDED,
        name: str = "pool",
        num_channels: int = 0,
        max_per_channel: int = UNBOUNDED,
        max_overdraft: int = 0,
    ) -> None:
        if num_required < 0 or num_max < num_required:
            raise LocalUsageError(f"{name}: requires {num_required} buffers but may use at most {num_max}")
        self.name = name
        self.num_required = num_required
        self.num_max = num_max
        self.size = num_required
        self.num_requested = 0
        self.lent: dict[int, Buffer] = {}
        self.global_pool = global_pool
        self._note_recycle = noting(global_pool.trace, "recycle", name)
        self._fetches_ahead = global_pool.version is not FlinkVersion.V1_11
        self._max_overdraft = max_overdraft
        self.idle: deque[MemorySegment] = deque()
        self.listeners: deque[BufferListener] = deque()
        cap = max_per_channel + (0 if self._fetches_ahead else 1)  # 1.11 caps above the maximum, 2.x at it
        self._quota = ChannelQuota(self, num_channels, cap)
        self.is_destroyed = False
        self.buffer_type = Buffer
        self._on_available: list[Callable[[], None]] = []
        global_pool.register(self, name)
        self._fetch_ahead()

    def __repr__(self) -> str:
        return f"LocalBufferPool({self.name}, {self.num_requested} of {self.size} requested)"

    # -- state -----------------------------------------------------------------------------------

    @property
    def idle_segments(self) -> tuple[MemorySegment, ...]:
        return tuple(self.idle)

    @property
    def num_overdraft(self) -> int:
        """Buffers out beyond the current size."""
        return max(0, self.num_requested - self.size)

    @property
    def is_available(self) -> bool:
        """Whether a task should go on producing; a request may still succeed when it is not."""
        if self.is_destroyed or self._quota.num_capped:
            return False
        if self.idle:
            return True
        if self._fetches_ahead:
            return False
        return self.num_requested < self.size and self.global_pool.num_free > 0

    @property
    def can_request(self) -> bool:
        """Whether a request would succeed now."""
        can_fetch = self.num_requested < self.size and self.global_pool.num_free > 0
        return not self.is_destroyed and (bool(self.idle) or can_fetch or self._can_overdraw)

    def snapshot(self) -> LocalPoolSnapshot:
        return LocalPoolSnapshot(
            self.name,
            self.num_required,
            self.num_max,
            self.size,
            self.num_requested,
            len(self.idle),
            len(self.listeners),
            self.is_available,
            tuple([each.id for each in self.idle_segments]),
            tuple(self.lent),
        )

    # -- requests ----------------------------------------------------------------------------------

    def request_buffer(self, channel: int = _NO_CHANNEL) -> Buffer | None:
        """An empty buffer with one reference, or `None` if there is none now.

        Raises:
            PoolDestroyedError: the pool has been destroyed.
        """
        if (segment := self._next_segment()) is None:
            return None
        self.lent[segment.id] = buffer = self.buffer_type(segment, self._charged(channel, 1))
        return buffer

    def request_builder(self, channel: int = _NO_CHANNEL) -> BufferBuilder | None:
        """An empty builder for `channel`, or `None` if there is no buffer now."""
        return None if (buffer := self.request_buffer(channel)) is None else BufferBuilder(buffer)

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Take back a segment whose buffer nobody holds any more."""
        self.lent.pop(segment.id, None)
        if self._note_recycle is not None:
            self._note_recycle(segment.id)
        self.take_back(segment)
        if self._on_available:
            self._announce()

    def take_segment(self) -> MemorySegment | None:
        """An idle segment, else one more of the global pool; `None` if it has none, or `size` are requested."""
        if self.idle:
            return self.idle.popleft()
        if self.num_requested >= self.size:
            return None
        segment = self.global_pool.request_segment()
        if segment is not None:
            self.num_requested += 1
        return segment

    def take_back(self, segment: MemorySegment) -> None:
        """Find a place for a segment that came home: the global pool, a waiting listener, or the idle ones."""
        while not self.is_destroyed and self.num_requested <= self.size:
            if not self.listeners:
                self.idle.append(segment)
                return
            if self.offer(segment):
                return
        self.give_back(segment)

    def offer(self, segment: MemorySegment) -> bool:
        """Offer a segment to the listener that waits longest; true if it was taken."""
        listener = self.listeners.popleft()
        buffer = self.buffer_type(segment, self)
        self.lent[segment.id] = buffer
        result = listener.on_buffer_available(buffer)
        if result is NotificationResult.BUFFER_USED_NEED_MORE:
            self.listeners.append(listener)  # the tail: listeners take turns
        if result is NotificationResult.BUFFER_NOT_USED:
            self.lent.pop(segment.id, None)
        return result is not NotificationResult.BUFFER_NOT_USED

    def add_listener(self, listener: BufferListener) -> bool:
        """Offer the next buffer to `listener`; false if there is one now or the pool is gone."""
        if self.is_destroyed or self.idle:
            return False
        self.listeners.append(listener)
        return True

    def call_when_available(self, on_available: Callable[[], None]) -> None:
        """Call it once, when it is worth while to look again. Flink: LocalBufferPool.getAvailableFuture, 1.11.4."""
        if on_available not in self._on_available:
            self._on_available.append(on_available)
        self.global_pool.notify_when_free(self)

    # -- size --------------------------------------------------------------------------------------

    def set_num_buffers(self, num_buffers: int) -> None:
        """Resize to at most `num_max`; fewer than `num_required` are refused with a LocalUsageError.

        Idle segments above the size go back at once, lent ones as they are recycled.
        """
        if num_buffers < self.num_required:
            raise LocalUsageError(f"{self.name}: {num_buffers} buffers are fewer than the {self.num_required} required")
        self.size = min(num_buffers, self.num_max)
        while self.idle and self.num_requested > self.size:
            self.give_back(self.idle.popleft())
        self.on_room_changed()

    def destroy(self) -> None:
        """Give the idle segments back and tell every listener once; lent ones drain as they return."""
        if self.is_destroyed:
            return
        self.is_destroyed = True
        while self.idle:
            self.give_back(self.idle.popleft())
        while self.listeners:
            self.listeners.popleft().on_pool_destroyed()
        self.global_pool.unregister(self)
        self._announce()

    def on_room_changed(self) -> None:
        """Let tasks that wait look again: the size is another, or the global pool has a segment again."""
        self._fetch_ahead()
        self._announce()

    def take_over(self, other: LocalBufferPool) -> None:
        """Go on in the place of `other`, with its segments, its lent buffers and its waiting tasks.

        Attributes of a subclass stay as its constructor made them. `other` is of no use afterwards.
        """
        self.global_pool.unregister(self)
        self.name, self.num_required, self.num_max = other.name, other.num_required, other.num_max
        self.size, self.num_requested, self.is_destroyed = other.size, other.num_requested, other.is_destroyed
        self.idle, self.listeners, self.lent = other.idle, other.listeners, other.lent
        self.global_pool, self.buffer_type = other.global_pool, other.buffer_type
        self._note_recycle, self._fetches_ahead = other._note_recycle, other._fetches_ahead
        self._max_overdraft, self._on_available = other._max_overdraft, other._on_available
        self._quota = other._quota
        self._quota.pool = self
        for buffer in self.lent.values():
            if buffer.recycler is other:
                buffer.recycler = self
        self.global_pool.replace(other, self)

    # -- helpers -----------------------------------------------------------------------------------

    def _next_segment(self) -> MemorySegment | None:
        """The segment of the next buffer, beyond the size if need be and allowed."""
        if self.is_destroyed:
            raise PoolDestroyedError(f"{self.name}: the pool has been destroyed")
        segment = self.take_segment()
        if segment is None and self._can_overdraw:
            self.num_requested += 1
            segment = self.global_pool.request_segment()
        return segment

    def _charged(self, channel: int, num_buffers: int) -> Recycler:
        """Charge `num_buffers` to `channel`, if given; return the recycler they go back to."""
        if self._fetches_ahead:
            self._fetch_ahead()
        return self if channel == _NO_CHANNEL else self._quota.charge(channel, num_buffers)

    def _announce(self) -> None:
        while self._on_available:
            self._on_available.pop()()

    @property
    def _can_overdraw(self) -> bool:
        """Whether one segment beyond the size is allowed, and promised to no other pool.

        A segment another pool was promised, queued in front of the task that waits for it, would be a deadlock.
        """
        is_allowed = self.size <= self.num_requested < self.size + self._max_overdraft
        return is_allowed and self.global_pool.num_free > self.global_pool.promises.num_to_come

    def _fetch_ahead(self) -> None:
        """Keep one segment ready, as 2.x does, within the size."""
        if not self._fetches_ahead or self.is_destroyed or self.idle or self.num_requested >= self.size:
            return
        segment = self.take_segment()
        if segment is not None:
            self.idle.append(segment)
        else:
            self.global_pool.notify_when_free(self)

    def give_back(self, segment: MemorySegment) -> None:
        """Return a segment to the global pool."""
        self.num_requested -= 1
        self.global_pool.recycle_segment(segment)
