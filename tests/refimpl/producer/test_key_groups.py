"""Keys to subtasks: Java's hash codes, Murmur's hash of them, and the ranges of key groups."""

from __future__ import annotations

import struct
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.producer import (
    default_max_parallelism,
    java_hash_code,
    key_group_of,
    key_group_range,
    murmur_hash,
    operator_index_of,
)
from refimpl.records import INT, LONG, MAX_DEPTH, STRING, TupleType, TypeSerializer

# What `hashCode` says in Java, worked out from its documentation.
HASH_CODES = [
    (None, None, 0),
    (True, None, 1231),
    (False, None, 1237),
    (0, None, 0),
    (7, None, 7),
    (-1, None, 0),  # a Long: the halves cancel out
    (-1, INT, -1),
    (2**32, None, 1),
    (2**63 - 1, None, -(2**31)),
    (2**31 - 1, INT, 2**31 - 1),
    (-(2**31), INT, -(2**31)),
    ("", None, 0),
    ("a", None, 97),
    ("ab", None, 31 * 97 + 98),
    ("polygenelubricants", None, -(2**31)),  # the well-known string of the least hash code
    ("😀", None, 31 * 0xD83D + 0xDE00),  # two UTF-16 units
    ("\ud83d", None, 0xD83D),
    (0.0, None, 0),
    (-0.0, None, -(2**31)),
    (1.0, None, 0x3FF00000),
    (float("nan"), None, 0x7FF80000),
    (struct.unpack(">d", b"\xff\xf8" + bytes(5) + b"\x01")[0], None, 0x7FF80000),  # Java has one not-a-number
    (b"", None, 1),
    (b"\x01\x02", None, 31 * (31 + 1) + 2),
    (b"\xff", None, 30),  # bytes are signed
    ((), None, 0),
    (("a", 7), None, 31 * 97 + 7),
    ((-1,), TupleType(INT), -1),
    ((-1,), TupleType(LONG), 0),
    (("a", ("b", None)), None, 31 * 97 + 31 * 98),
]


@pytest.mark.parametrize(("key", "kind", "code"), HASH_CODES, ids=repr)
def test_a_hash_code_is_the_one_java_computes(key: object, kind: TypeSerializer | None, code: int) -> None:
    """32 bits that wrap, and never Python's salted `hash`."""
    assert java_hash_code(key, kind) == code


@pytest.mark.parametrize("key", [[1], {"a": 1}, {1}, object(), 1j, ("a", [1])], ids=lambda key: type(key).__name__)
def test_a_key_without_a_hash_code_is_refused_with_what_would_do(key: object) -> None:
    with pytest.raises(LocalUsageError, match="has no hash code; use an int, str, float, bool, bytes or a tuple"):
        java_hash_code(key)


def nested(levels: int) -> Hashable:
    key: Hashable = 7
    for _ in range(levels):
        key = (key,)
    return key


def test_a_key_nested_too_deeply_is_refused_before_the_stack_is_used_up() -> None:
    """A compiled function that calls itself has no other bound: it would end the process."""
    assert java_hash_code(nested(MAX_DEPTH)) == 7
    for levels in (MAX_DEPTH + 1, 200_000):
        with pytest.raises(LocalUsageError, match=f"a key is nested too deeply: {MAX_DEPTH} levels are the most"):
            java_hash_code(nested(levels))


# Murmur3 of four bytes, seed 0, as published with the algorithm; the codes are those bytes as little-endian ints.
MURMUR3 = [
    (0x00000000, 0x2362F9DE),
    (0xFFFFFFFF, 0x76293B50),
    (0x87654321, 0xF55B516B),
    (0x74736574, 0xBA6BD213),  # "test"
]


@pytest.mark.parametrize(("code", "published"), MURMUR3, ids=hex)
def test_the_hash_of_a_code_is_murmur3_made_positive(code: int, published: int) -> None:
    assert murmur_hash(code) == (published if published < 2**31 else 2**32 - published)


def test_a_code_may_be_given_signed_or_unsigned() -> None:
    assert murmur_hash(-1) == murmur_hash(0xFFFFFFFF)


def undo_murmur(code: int) -> int:
    """The 32-bit code whose Murmur hash, before it is made positive, is `code`."""

    def divide(number: int, factor: int) -> int:
        return number * pow(factor, -1, 2**32) % 2**32

    def rotate_right(number: int, bits: int) -> int:
        return (number >> bits | number << 32 - bits) % 2**32

    code ^= code >> 16
    code = divide(code, 0xC2B2AE35)
    code ^= code >> 13 ^ code >> 26
    code = divide(code, 0x85EBCA6B)
    code ^= code >> 16
    code = divide((code ^ 4) - 0xE6546B64, 5)
    return divide(rotate_right(divide(rotate_right(code, 13), 0x1B873593), 15), 0xCC9E2D51)


def test_the_least_number_has_no_positive_twin_and_becomes_zero() -> None:
    """In Java the absolute of the minimum is the minimum."""
    assert undo_murmur(0x2362F9DE) == 0
    assert murmur_hash(undo_murmur(2**31)) == 0
    assert murmur_hash(undo_murmur(2**31 + 1)) == 2**31 - 1


@given(st.integers(-(2**31), 2**32))
def test_a_hash_is_never_negative(code: int) -> None:
    assert 0 <= murmur_hash(code) < 2**31


@pytest.mark.parametrize(("key", "groups"), [("JFK", 128), (-3, 128), ("JFK", 7), ((1, "a"), 32_768)])
def test_a_key_group_is_the_hash_of_the_hash_code(key: object, groups: int) -> None:
    """Flink: `KeyGroupRangeTest`."""
    assert key_group_of(key, groups) == murmur_hash(java_hash_code(key)) % groups


def test_a_key_group_depends_on_the_type_of_a_negative_number() -> None:
    assert key_group_of(-1, 128, INT) == murmur_hash(-1) % 128
    assert key_group_of(-1, 128, LONG) == murmur_hash(0) % 128
    assert key_group_of(-1, 128, INT) != key_group_of(-1, 128)
    assert key_group_of((-1, "a"), 128, TupleType(INT, STRING)) != key_group_of((-1, "a"), 128)


@pytest.mark.parametrize(
    ("groups", "parallelism", "ranges"),
    [
        (128, 3, [(0, 42), (43, 85), (86, 127)]),
        (10, 4, [(0, 2), (3, 4), (5, 7), (8, 9)]),
        (4, 4, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (7, 1, [(0, 6)]),
    ],
)
def test_the_known_ranges_come_out(groups: int, parallelism: int, ranges: list[tuple[int, int]]) -> None:
    """Flink: `KeyGroupRangeTest`."""
    found = [key_group_range(index, groups, parallelism) for index in range(parallelism)]
    assert [(part[0], part[-1]) for part in found] == ranges


@given(st.integers(1, 300), st.data())
def test_every_group_lies_in_the_range_of_the_subtask_that_owns_it(groups: int, data: st.DataObject) -> None:
    parallelism = data.draw(st.integers(1, groups))
    owners = [operator_index_of(group, groups, parallelism) for group in range(groups)]
    ranges = [key_group_range(index, groups, parallelism) for index in range(parallelism)]
    assert [index for index, part in enumerate(ranges) for _ in part] == owners
    assert [group for part in ranges for group in part] == list(range(groups))
    sizes = [len(part) for part in ranges]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("parallelism", "groups"),
    [(1, 128), (85, 128), (86, 256), (171, 256), (256, 512), (20_000, 32_768), (32_768, 32_768)],
)
def test_the_default_number_of_groups_leaves_room_to_grow(parallelism: int, groups: int) -> None:
    """Flink: `KeyGroupRangeTest`."""
    assert default_max_parallelism(parallelism) == groups
