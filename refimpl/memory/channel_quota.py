"""How many buffers of a pool each channel has out, so that one slow channel does not take them all.

A quota limits nothing by itself: a channel at its cap makes the pool unavailable, and the task stops taking input.
"""

from __future__ import annotations

from refimpl.memory.buffer import Recycler
from refimpl.memory.segment import MemorySegment

__all__ = ["ChannelQuota"]


class ChannelQuota:
    """The buffers each of `num_channels` channels has out of `pool`; `num_capped` channels have `cap` or more.

    Flink:   LocalBufferPool.subpartitionBuffersCount (runtime.io.network.buffer), 1.11.4
    """

    def __init__(self, pool: Recycler, num_channels: int, cap: int) -> None:
        self.pool = pool
        self.cap = cap
        self.num_capped = 0
        self._recyclers = [_ChannelRecycler(self) for _ in range(num_channels)]

    def charge(self, channel: int, num_buffers: int) -> Recycler:
        """Charge `num_buffers` more to `channel`; return the recycler they go back to."""
        recycler = self._recyclers[channel]
        was_capped = recycler.num_lent >= self.cap
        recycler.num_lent += num_buffers
        self.num_capped += (recycler.num_lent >= self.cap) - was_capped
        return recycler


class _ChannelRecycler:
    """Returns the segments of one channel to their pool, and counts how many are out."""

    __slots__ = ("num_lent", "_quota")

    def __init__(self, quota: ChannelQuota) -> None:
        self.num_lent = 0
        self._quota = quota

    def recycle_segment(self, segment: MemorySegment) -> None:
        quota = self._quota
        if self.num_lent == quota.cap:
            quota.num_capped -= 1
        self.num_lent -= 1
        quota.pool.recycle_segment(segment)
