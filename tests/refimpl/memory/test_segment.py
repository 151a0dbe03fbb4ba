"""Segments: numbers in both orders, checked bounds, and an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.memory import ByteOrder, MemorySegment

KINDS = {
    "short": (2, st.integers(-(2**15), 2**15 - 1)),
    "int": (4, st.integers(-(2**31), 2**31 - 1)),
    "long": (8, st.integers(-(2**63), 2**63 - 1)),
    "double": (8, st.floats(allow_nan=False)),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_the_two_byte_orders_are_mirror_images(kind: str, data: st.DataObject) -> None:
    """Flink: `MemorySegmentTestBase`."""
    width, values = KINDS[kind]
    value = data.draw(values)
    segment = MemorySegment.allocate(16)
    put, get = getattr(segment, f"put_{kind}"), getattr(segment, f"get_{kind}")
    put(1, value, ByteOrder.BIG_ENDIAN)
    big = segment.get(1, width)
    assert get(1, ByteOrder.BIG_ENDIAN) == value
    put(1, value, ByteOrder.LITTLE_ENDIAN)
    assert get(1, ByteOrder.LITTLE_ENDIAN) == value
    assert segment.get(1, width) == big[::-1]
    put(1, value)
    assert get(1) == value


@given(st.integers(-128, 127))
def test_a_byte_is_signed_as_in_java(value: int) -> None:
    segment = MemorySegment.allocate(1)
    segment.put_byte(0, value)
    assert segment.get_byte(0) == value


@pytest.mark.parametrize("index", [-1, 13, 16, 2**31])
def test_an_access_outside_is_an_index_error_and_changes_nothing(index: int) -> None:
    """Flink: `MemorySegmentChecksTest`."""
    segment = MemorySegment.allocate(16)
    with pytest.raises(IndexError, match="outside segment"):
        segment.put_int(index, -1)
    with pytest.raises(IndexError):
        segment.get(index, 4)
    assert segment.get(0, 16) == bytes(16)


def test_a_freed_segment_says_so_before_it_looks_at_the_index() -> None:
    """Flink: `MemorySegmentChecksTest`."""
    segment = MemorySegment.allocate(16)
    segment.free()
    segment.free()
    assert segment.is_freed
    with pytest.raises(LocalUsageError, match="freed"):
        segment.get(99, 1)


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_segments_compare_unsigned_and_the_prefix_comes_first(mine: bytes, theirs: bytes) -> None:
    """Flink: `MemorySegmentTestBase`."""
    one, two = MemorySegment.allocate(8), MemorySegment.allocate(8)
    one.put(1, mine)
    two.put(2, theirs)
    order = one.compare(two, 1, 2, len(mine), len(theirs))
    assert (order > 0) - (order < 0) == (mine > theirs) - (mine < theirs)


def test_bytes_move_between_segments() -> None:
    one, two = MemorySegment.allocate(8), MemorySegment.allocate(8)
    one.put(0, b"abcdefgh")
    one.copy_to(2, two, 4, 3)
    assert two.get(0, 8) == b"\0\0\0\0cde\0"
    assert one.equal_to(two, 2, 4, 3)
    assert not one.equal_to(two, 2, 3, 3)
    one.swap_bytes(0, two, 4, 3)
    assert (one.get(0, 8), two.get(4, 3)) == (b"cdedefgh", b"abc")
