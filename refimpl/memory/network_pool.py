"""The one pool of a TaskManager: every segment there is, allocated before the first record.

A job asks this pool for promises, not for memory: each local pool requires a number of segments
and may use up to a maximum. Promises that cannot be kept are refused at the start of the job, with
numbers (see `promises`). Segments go out one by one, when they are needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory.pages import allocate_pages
from refimpl.memory.pool_snapshots import NetworkPoolSnapshot
from refimpl.memory.promises import PoolMember, SegmentPromises
from refimpl.memory.segment import MemorySegment
from refimpl.trace import Trace

__all__ = ["NetworkBufferPool"]


class NetworkBufferPool:
    """All segments of one TaskManager, and the promises made on them.

    `num_segments` segments of `segment_size_bytes` each are allocated at once, as slices of one
    block. Segment `i` has id `i` for life.

    Flink:   NetworkBufferPool (runtime.io.network.buffer), 1.11.4
    Differs: asking for segments never waits; `None` means "not now".
    """

    def __init__(
        self,
        num_segments: int,
        segment_size_bytes: int,
        version: FlinkVersion = FlinkVersion.V1_11,
        trace: Trace | None = None,
    ) -> None:
        if num_segments < 1 or segment_size_bytes < 1:
            raise LocalUsageError(
                f"a pool needs at least one segment of at least one byte, not {num_segments} of {segment_size_bytes} B"
            )
        self.segment_size_bytes = segment_size_bytes
        self.version = version
        self.trace = trace
        self.promises = SegmentPromises(num_segments, segment_size_bytes, version)
        memory = allocate_pages(num_segments * segment_size_bytes)
        self.segments = [
            MemorySegment(memory[start : start + segment_size_bytes], index)
            for index, start in enumerate(range(0, len(memory), segment_size_bytes))
        ]
        self._free: deque[MemorySegment] = deque(self.segments)
        self._waiting: deque[PoolMember] = deque()
        self._is_destroyed = False

    def __repr__(self) -> str:
        return f"NetworkBufferPool({self.num_free} of {len(self.segments)} free)"

    @property
    def num_free(self) -> int:
        """Segments that lie here, promised or not."""
        return len(self._free)

    @property
    def free_segments(self) -> Sequence[MemorySegment]:
        return tuple(self._free)

    def snapshot(self) -> NetworkPoolSnapshot:
        return NetworkPoolSnapshot(
            len(self.segments),
            len(self._free),
            self.promises.num_promised,
            self.segment_size_bytes,
            tuple([segment.id for segment in self.free_segments]),
        )

    # -- single segments, for local pools --------------------------------------------------------

    def request_segment(self) -> MemorySegment | None:
        """A free segment, or `None` if all are lent."""
        return self._free.popleft() if self._free else None

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Take a segment back; a local pool waiting for one is told."""
        self._free.append(segment)
        while self._waiting and self._free:
            self._waiting.popleft().on_room_changed()

    def notify_when_free(self, pool: PoolMember) -> None:
        """Tell `pool` once when a segment comes back."""
        if pool not in self._waiting:
            self._waiting.append(pool)

    # -- segments outside the pools, for the exclusive buffers of channels -----------------------

    def request_unpooled(self, num_segments: int, owner: str) -> list[MemorySegment] | None:
        """Promise and hand over `num_segments` segments, or `None` if some are still out.

        The promise shrinks the other pools first. On `None` it is withdrawn, so asking again is
        safe.

        Raises:
            InsufficientBuffersError: the promise cannot be made.
            LocalUsageError: `num_segments` is below 1.
        """
        if num_segments < 1:
            raise LocalUsageError(f"{owner} asked for {num_segments} segments; ask for at least 1")
        self.promises.promise(num_segments, owner)
        self.promises.redistribute()
        if len(self._free) < num_segments:
            self.promises.withdraw(num_segments)
            return None
        return [self._free.popleft() for _ in range(num_segments)]

    def return_unpooled(self, segments: Iterable[MemorySegment]) -> None:
        """Take such segments back and share the room out again."""
        num_returned = 0
        for segment in segments:
            self.recycle_segment(segment)
            num_returned += 1
        self.promises.withdraw(num_returned)

    # -- local pools -----------------------------------------------------------------------------

    def register(self, pool: PoolMember, owner: str) -> None:
        """Promise `pool` its required segments and give it its share of the rest.

        Raises:
            InsufficientBuffersError: fewer segments are unpromised than it requires.
            LocalUsageError: the pool has been destroyed.
        """
        if self._is_destroyed:
            raise LocalUsageError("the network buffer pool has been destroyed")
        self.promises.promise(pool.num_required, owner)
        self.promises.pools.append(pool)
        self.promises.redistribute()

    def unregister(self, pool: PoolMember) -> None:
        """Forget `pool`; its promise goes to the others. Its lent segments return one by one."""
        if pool in self.promises.pools:
            self.promises.pools.remove(pool)
            if pool in self._waiting:
                self._waiting.remove(pool)
            self.promises.withdraw(pool.num_required)

    def replace(self, old: PoolMember, new: PoolMember) -> None:
        """Count `new` in the place of `old`: promise, share and place in the line of those that wait stay."""
        self.promises.pools[self.promises.pools.index(old)] = new
        self._waiting = deque(new if each is old else each for each in self._waiting)

    def destroy(self) -> None:
        """Refuse new pools from now on; segments that are out still come back here."""
        self._is_destroyed = True
