"""The promises made on the segments of a TaskManager, and how the rest is shared out.

A promise is kept or refused at the start of a job. What nobody requires is shared out among the pools, and anew
whenever a pool comes or goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from refimpl.config import FlinkVersion
from refimpl.errors import InsufficientBuffersError

__all__ = ["PoolMember", "SegmentPromises", "share_out"]


class PoolMember(Protocol):
    """What the global pool must know of a local pool to share segments out."""

    num_required: int
    num_max: int
    size: int
    num_requested: int

    def set_num_buffers(self, num_buffers: int) -> None: ...

    def on_room_changed(self) -> None: ...


def share_out(num_free: int, appetites: Sequence[int]) -> list[int]:
    """How many of `num_free` segments each pool gets beyond what it requires.

    Pool i could use `appetites[i]` more. No appetite counts for more than `num_free`. If all can be satisfied, they
    are. If not, the pools so far have together `num_free * their appetites // all appetites`, after each pool:
    cut from this running sum, rounding never loses or invents a segment.

    Flink:   NetworkBufferPool.redistributeBuffers (runtime.io.network.buffer), 1.11.4
    """
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num_to_share = min(num_free, total)
    shares: list[int] = []
    so_far = num_given = 0
    for limit in limits:
        so_far += limit
        share = num_to_share * so_far // max(1, total) - num_given
        num_given += share
        shares.append(share)
    return shares


class SegmentPromises:
    """How many of `num_segments` segments the pools and channels require, and the share of each pool.

    `visit` says in which order the pools are dealt their shares, `share_out` how large they are.

    Flink:   NetworkBufferPool.numTotalRequiredBuffers, redistributeBuffers (runtime.io.network.buffer), 1.11.4
    Differs: pools are visited in the order they were made; Flink visits a hash set, so its rounding is arbitrary.
    """

    def __init__(self, num_segments: int, segment_size_bytes: int, version: FlinkVersion) -> None:
        self.num_segments = num_segments
        self.num_promised = 0
        self.pools: list[PoolMember] = []
        self.share_out: Callable[[int, Sequence[int]], Sequence[int]] = share_out
        self.visit: Callable[[Sequence[PoolMember]], Iterable[PoolMember]] = lambda pools: pools
        self._segment_size_bytes = segment_size_bytes
        self._version = version

    @property
    def num_unpromised(self) -> int:
        """Segments no pool and no channel requires."""
        return self.num_segments - self.num_promised

    @property
    def num_to_come(self) -> int:
        """Segments the pools may still fetch within their sizes."""
        return sum(max(0, pool.size - pool.num_requested) for pool in self.pools)

    def promise(self, num_segments: int, owner: str) -> None:
        """Count `num_segments` as required by `owner`; the shares stay as they are until `redistribute`.

        Raises:
            InsufficientBuffersError: fewer are unpromised.
        """
        if num_segments > self.num_unpromised:
            raise InsufficientBuffersError(
                owner, num_segments, self.num_unpromised, self.num_segments, self._segment_size_bytes
            )
        self.num_promised += num_segments

    def withdraw(self, num_segments: int) -> None:
        """Take a promise back and share the room out anew."""
        self.num_promised -= num_segments
        self.redistribute()

    def redistribute(self) -> None:
        """Set every pool to what it requires plus its share of the unpromised segments."""
        is_old = self._version is FlinkVersion.V1_11  # it visits pools that can take no more, too
        pools = list(self.visit([pool for pool in self.pools if is_old or pool.num_required < pool.num_max]))
        shares = self.share_out(self.num_unpromised, [pool.num_max - pool.num_required for pool in pools])
        for pool, share in zip(pools, shares, strict=True):
            pool.set_num_buffers(pool.num_required + share)
