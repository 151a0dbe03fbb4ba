"""The type for undeclared values: what comes back is what went in, and of the same kind."""

from __future__ import annotations

import math

import pytest

from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.records import ANY


def written(value: object) -> bytes:
    target = bytearray()
    ANY.serialize(value, target)
    return bytes(target)


def back(value: object) -> object:
    data = written(value)
    read, end = ANY.deserialize(memoryview(data), 0)
    assert end == len(data)
    return read


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**40, -(10**40), 0.0, -0.0, 1.5,
     math.inf, "", "JFK", "é😀\ud83d", b"", b"\0\xff", (), [], {}, (1, [2, {"a": (3,)}]), {1: "one", (2, 3): None}],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_with_its_kind(value: object) -> None:
    read = back(value)
    assert (read, type(read), repr(read)) == (value, type(value), repr(value))


def test_kinds_that_are_equal_in_python_stay_apart() -> None:
    value = [True, 1, 1.0, (1,), [1], "1", b"1"]
    assert [type(part) for part in back(value)] == [bool, int, float, tuple, list, str, bytes]
    assert len({written(part) for part in value}) == len(value)


def test_not_a_number_comes_back_as_not_a_number() -> None:
    assert math.isnan(back(math.nan))


def test_a_dict_keeps_its_order() -> None:
    assert list(back({"b": 1, "a": 2})) == ["b", "a"]


def test_changeable_bytes_come_back_unchangeable() -> None:
    assert back(bytearray(b"ab")) == b"ab"
    assert type(back(bytearray(b"ab"))) is bytes


@pytest.mark.parametrize("value", [{1}, 1j, NotImplemented, [1, {2}], {"a": {1}}, {1j: 0}], ids=repr)
def test_a_value_it_does_not_know_is_refused_with_what_would_do(value: object) -> None:
    with pytest.raises(LocalUsageError, match="has no serializer; use a tuple or dict of plain values, or declare"):
        written(value)


@pytest.mark.parametrize("position", [0, 1, 5])
def test_an_unknown_tag_is_the_producers_mistake_and_has_a_place(position: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"99 at byte {position} is no type tag"):
        ANY.deserialize(memoryview(bytes(position) + b"\x63"), position)


@pytest.mark.parametrize("value", [7, 2**70, 1.5, "JFK", b"abc", (1, 2), [[], [None]], {"a": 1}], ids=repr)
def test_a_value_cut_anywhere_is_the_producers_mistake(value: object) -> None:
    data = written(value)
    for length in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            ANY.deserialize(memoryview(data[:length]), 0)


def test_a_copy_is_deep_where_something_can_change() -> None:
    innermost = [1]
    value = {"a": ([innermost], bytearray(b"x"))}
    copied = ANY.copy(value)
    innermost.append(2)
    value["a"][1][0] = ord("y")
    value["b"] = 1
    assert copied == {"a": ([[1]], b"x")}
    assert type(copied["a"]) is tuple


def test_a_copy_of_what_cannot_change_is_the_thing_itself() -> None:
    for value in ("text" * 100, 10**30, b"bytes" * 100, object()):
        assert ANY.copy(value) is value


@pytest.mark.parametrize(
    "raw", [bytes([10, 1, 9, 0, 0]), bytes([9, 1] * 5000)], ids=["a list as a key", "nested without end"]
)
def test_garbage_is_the_other_ends_mistake(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        ANY.deserialize(memoryview(raw), 0)


def test_a_value_nested_too_deeply_is_the_callers_mistake() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(LocalUsageError, match="nested too deeply"):
        ANY.serialize(value, bytearray())
    with pytest.raises(LocalUsageError, match="nested too deeply"):
        ANY.copy(value)
