"""Buffers: a count of references, slices that share it, and kinds of content."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory import Buffer, DataType, MemorySegment, heap_buffer


class Home:
    """Where segments go; a recycler, built small."""

    def __init__(self) -> None:
        self.segments: list[MemorySegment] = []

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.segments.append(segment)


@pytest.fixture
def home() -> Home:
    return Home()


@pytest.fixture
def buffer(home: Home) -> Buffer:
    segment = MemorySegment.allocate(16)
    segment.put(0, bytes(range(16)))
    return Buffer(segment, home, size=10)


def test_the_last_reference_sends_the_segment_home_once(buffer: Buffer, home: Home) -> None:
    """Flink: `NetworkBufferTest#testDataBufferRetainBuffer`."""
    assert buffer.retain() is buffer
    buffer.recycle()
    assert home.segments == []
    buffer.recycle()
    assert home.segments == [buffer.segment]
    assert buffer.is_recycled


@pytest.mark.parametrize("use", ["retain", "recycle"])
def test_a_recycled_buffer_cannot_be_used(buffer: Buffer, home: Home, use: str) -> None:
    """Flink: `NetworkBufferTest#testDataBufferRetainBuffer`."""
    buffer.recycle()
    with pytest.raises(LocalUsageError, match="recycled before"):
        getattr(buffer, use)()
    with pytest.raises(LocalUsageError):
        _ = buffer.data
    assert len(home.segments) == 1


def test_a_slice_shares_memory_and_life_with_its_parent(buffer: Buffer, home: Home) -> None:
    """Slicing does not retain; recycling the slice recycles the parent.

    Flink: `ReadOnlySlicedBufferTest#testForwardsRecycleBuffer1` (P31).
    """
    piece = buffer.read_only_slice(2, 3)
    assert bytes(piece.data) == bytes((2, 3, 4))
    assert piece.size == 3
    assert buffer.num_references == 1
    buffer.memory[2] = 99
    assert piece.data[0] == 99
    piece.recycle()
    assert home.segments == [buffer.segment]
    assert piece.is_recycled


def test_slices_have_positions_of_their_own(buffer: Buffer) -> None:
    """Flink: `ReadOnlySlicedBufferTest#testGetSetReaderIndex1` (P32)."""
    one, two = buffer.read_only_slice(0, 4), buffer.read_only_slice(4)
    assert (bytes(one.data), bytes(two.data)) == (bytes(range(4)), bytes(range(4, 10)))
    assert buffer.size == 10


def test_a_slice_cannot_be_written_and_cannot_leave_its_segment(buffer: Buffer) -> None:
    """Flink: `ReadOnlySlicedBufferTest#testGetSetReaderIndex1` (P32)."""
    with pytest.raises(TypeError):
        buffer.read_only_slice().data[0] = 1
    with pytest.raises(IndexError, match="outside the buffer of 16 B"):
        buffer.read_only_slice(10, 7)
    with pytest.raises(IndexError):
        buffer.read_only_slice(-1, 2)


def test_memory_outside_the_pools_is_dropped_with_its_last_reference() -> None:
    event = heap_buffer(b"\0\0\0\0", DataType.EVENT)
    assert (bytes(event.data), event.is_buffer) == (bytes(4), False)
    event.recycle()
    assert event.segment.is_freed


def test_events_cost_no_credit_and_only_some_stop_the_producer() -> None:
    assert [kind.name for kind in DataType if kind.is_buffer] == ["DATA", "DATA_WITH_CLEAR_END"]
    codes = {kind.code(FlinkVersion.V2_2) for kind in DataType if kind.blocks_upstream}
    assert codes == {4, 5, 6, 12}
    assert [kind.code(FlinkVersion.V2_2) for kind in DataType if kind.has_priority] == [3]
    codes_of_1_11 = [kind.code(FlinkVersion.V1_11) for kind in DataType]
    assert [code for code in codes_of_1_11 if code is not None] == [0, 1, 2]
    assert not DataType.NONE.is_event
