"""How parts of the memory go into the running job: a segment, a buffer, the sharing out, a local pool.

Each kind has two functions: one puts ours in, the other a learner's, with ours behind it (see `course.swap.guard`).
"""

from __future__ import annotations

import contextlib
import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from course.swap.guard import Guard
from refimpl.memory import (
    Buffer,
    BufferBuilder,
    ByteOrder,
    DataType,
    LocalBufferPool,
    MemorySegment,
    NetworkBufferPool,
    Recycler,
    share_out,
)
from refimpl.records import SerializationResult

__all__ = ["MEMORY_KINDS", "SerializerOnSegments"]

_LENGTH_BYTES = 4


# -- lesson 1: segments --------------------------------------------------------------------------------


class SerializerOnSegments:
    """A spanning serializer that keeps its record in a segment, and does with it only what segments can.

    Length and payload are put there, and each copy goes out of it by `copy_to`. So every record between two tasks
    passes through a learner's segment.
    """

    def __init__(self, segment_type: type[MemorySegment]) -> None:
        self._type = segment_type
        self._record = segment_type(bytearray(_LENGTH_BYTES))
        self._sent = self._size = 0

    def serialize_record(self, record: bytes) -> None:
        self._size = _LENGTH_BYTES + len(record)
        self._record = self._type(bytearray(self._size))
        self._record.put_int(0, len(record), ByteOrder.BIG_ENDIAN)
        self._record.window(_LENGTH_BYTES, len(record))[:] = record
        self._sent = 0

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        left = _LENGTH_BYTES + self._record.get_int(0, ByteOrder.BIG_ENDIAN) - self._sent if self._size else 0
        num_bytes = min(left, builder.room)
        self._record.copy_to(self._sent, self._type(builder.memory), builder.written_bytes, num_bytes)
        builder.advance(num_bytes)
        self._sent += num_bytes
        if self._sent < self._size:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self) -> None:
        self._sent = 0

    def prune(self) -> None:
        self._sent = self._size = 0


def _segment_ours(job: Any) -> None:
    """Records travel through our segments."""
    job.swap(SpanningRecordSerializer=partial(SerializerOnSegments, MemorySegment))


def _segment_theirs(job: Any, guard: Guard) -> None:
    """Records travel through a learner's; what their class does not have is ours."""
    theirs = guard.part
    if not issubclass(theirs, MemorySegment):
        theirs = type(theirs.__name__, (theirs, MemorySegment), {})
    job.swap(SpanningRecordSerializer=lambda: guard.serializer(partial(SerializerOnSegments, theirs)))


# -- lesson 2: what all three share --------------------------------------------------------------------


@contextlib.contextmanager
def _standing_still(job: Any) -> Iterator[None]:
    """Within it no thread of the job touches its memory; a simulation has none."""
    with contextlib.ExitStack() as stack:
        for task_manager in getattr(job, "task_managers", ()):
            stack.enter_context(task_manager.monitor)
        yield


def _local_pools(job: Any) -> list[LocalBufferPool]:
    """The pools of all outputs, and of all inputs that have one."""
    return [
        pool
        for deployment in job.deployments
        for pool in (*(each.pool for each in deployment.shuffle.partitions.values()), *deployment.shuffle.gate_pools)
    ]


# -- a buffer that counts ------------------------------------------------------------------------------


class _Door:
    """Where a learner's buffer sends its segment; what really goes home is decided by who watches the door."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def recycle_segment(self, segment: Any) -> None:
        """Note who came."""
        self.came.append(segment)


class _GuardedBuffer(Buffer):
    """A buffer that goes home when the learner's says so. Ours counts beside it, and goes on alone after a mistake."""

    guard: Guard

    def __init__(
        self, segment: MemorySegment, recycler: Recycler, data_type: DataType = DataType.DATA, size: int = 0
    ) -> None:
        super().__init__(segment, recycler, data_type, size)
        self._door = _Door()
        self._theirs: Any = None
        if not self.guard.is_out:
            with self.guard.call():
                self._theirs = self.guard.part(segment, self._door)

    def retain(self) -> Buffer:
        super().retain()
        if self._theirs is not None and not self.guard.is_out:
            with self.guard.call():
                self._theirs.retain()
        return self

    def recycle(self) -> None:
        if self._theirs is not None and not self.guard.is_out and not self.is_recycled:
            with self.guard.call():
                self._theirs.recycle()
                came = [self.segment] if self.num_references == 1 else []
                if self._door.came != came:
                    self.guard.take_out(
                        f"of {self.num_references} references one was given up, and {len(self._door.came)} segments "
                        f"had gone home instead of {len(came)}"
                    )
        super().recycle()


def _buffer_ours(job: Any) -> None:
    """Buffers lent from now on are ours."""
    for pool in _local_pools(job):
        pool.buffer_type = Buffer


def _buffer_theirs(job: Any, guard: Guard) -> None:
    """Buffers lent from now on are a learner's."""
    kind: type[_GuardedBuffer] = type("GuardedBuffer", (_GuardedBuffer,), {"guard": guard})
    with _standing_still(job):
        for pool in _local_pools(job):
            pool.buffer_type = kind


# -- the sharing out -----------------------------------------------------------------------------------


def _share_with(job: Any, shares: Callable[[int, Sequence[int]], Sequence[int]]) -> None:
    """Share out so from now on, twice at once: a neighbour with an endless appetite comes, and goes again."""
    with _standing_still(job):
        for deployment in job.deployments:
            deployment.shuffle.pool.promises.share_out = shares
            LocalBufferPool(deployment.shuffle.pool, 0, name="neighbour").destroy()


def _shares_ours(job: Any) -> None:
    """Our formula."""
    _share_with(job, share_out)


def _shares_theirs(job: Any, guard: Guard) -> None:
    """A learner's formula, as long as it promises no more than there is."""

    def shares(num_free: int, appetites: Sequence[int]) -> Sequence[int]:
        right = share_out(num_free, appetites)
        if not guard.is_out:
            with guard.call():
                found = [operator.index(each) for each in guard.part(num_free, list(appetites))]
                if len(found) == len(right) and sum(found) <= sum(right) and min(found, default=0) >= 0:
                    return found
                guard.take_out(f"it shared {num_free} out as {found}"[:90])
        return right

    _share_with(job, shares)


# -- a pool --------------------------------------------------------------------------------------------


class _Ledger:
    """The global pool for one local pool, with a note of every segment that this one has from it."""

    def __init__(self, pool: LocalBufferPool) -> None:
        self._behind = pool.global_pool
        self.held = {each.id: each for each in pool.idle_segments} | {
            number: buffer.segment for number, buffer in pool.lent.items()
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def request_segment(self) -> MemorySegment | None:
        segment = self._behind.request_segment()
        if segment is not None:
            self.held[segment.id] = segment
        return segment

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.held.pop(segment.id, None)
        self._behind.recycle_segment(segment)


class _OnGuard(LocalBufferPool):
    """Stands in front of a learner's pool; what theirs leaves undone when it fails, ours finds in the ledger."""

    guard: Guard
    is_in = False
    """Whether it is in the job; before that it is being made, and theirs is called as it is."""

    @property
    def _ledger(self) -> _Ledger:
        assert isinstance(self.global_pool, _Ledger), "it was put there with the guard"
        return self.global_pool

    def take_segment(self) -> MemorySegment | None:
        if not self.guard.is_out:
            with self.guard.call():
                segment = super().take_segment()
                if segment is None or segment.id in self._ledger.held:
                    return segment
            self._put_in_order()
        return LocalBufferPool.take_segment(self)

    def take_back(self, segment: MemorySegment) -> None:
        if not self.guard.is_out:
            with self.guard.call():
                super().take_back(segment)
                return
            self._put_in_order(segment)
            if segment.id not in self._ledger.held or segment.id in self.lent:
                return
        LocalBufferPool.take_back(self, segment)

    def set_num_buffers(self, num_buffers: int) -> None:
        if not self.is_in:
            super().set_num_buffers(num_buffers)
            return
        if not self.guard.is_out:
            with self.guard.call():
                super().set_num_buffers(num_buffers)
                return
            self._put_in_order()
        LocalBufferPool.set_num_buffers(self, num_buffers)

    def _put_in_order(self, but: MemorySegment | None = None) -> None:
        """What this pool has and nobody holds is idle, but for the one whose place is just being sought."""
        held = self._ledger.held
        self.idle = deque(each for each in held.values() if each.id not in self.lent and each is not but)
        self.num_requested = len(held)


def _pool_ours(job: Any) -> None:
    """The pools are ours already."""


def _pool_theirs(job: Any, guard: Guard) -> None:
    """A learner's pool takes the place of every output's, with all it has; what its `__init__` adds, stays."""
    theirs = guard.part
    bases = (_OnGuard, theirs) if issubclass(theirs, LocalBufferPool) else (_OnGuard, theirs, LocalBufferPool)
    kind: Any = type(theirs.__name__, bases, {"guard": guard})
    with _standing_still(job):
        for partition in (each for deployment in job.deployments for each in deployment.partitions):
            fresh: Any = None
            with guard.call():
                fresh = kind(NetworkBufferPool(1, 1), 0, name=partition.pool.name)
            if fresh is None:
                return
            fresh.take_over(partition.pool)
            fresh.global_pool, fresh.is_in = _Ledger(fresh), True
            partition.pool = fresh


# What `swap` of an exercise.toml may say of the memory: the name of ours, how it is put in, how a learner's is.
MEMORY_KINDS: dict[str, tuple[str, Callable[[Any], None], Callable[[Any, Guard], None]]] = {
    "segment": (MemorySegment.__name__, _segment_ours, _segment_theirs),
    "buffer": (Buffer.__name__, _buffer_ours, _buffer_theirs),
    "shares": (share_out.__name__, _shares_ours, _shares_theirs),
    "pool": (LocalBufferPool.__name__, _pool_ours, _pool_theirs),
}
