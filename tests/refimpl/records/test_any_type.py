"""The type for undeclared values: what comes back is what went in, and of the same kind."""

from __future__ import annotations

import math
import pickle
from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.records import ANY, MAX_DEPTH


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


NESTINGS = {
    "list": (lambda inner: [inner], bytes([9, 1])),
    "tuple": (lambda inner: (inner,), bytes([8, 1])),
    "dict": (lambda inner: {0: inner}, bytes([10, 1, 3, *bytes(8)])),
}


@pytest.mark.parametrize("kind", NESTINGS)
def test_as_many_levels_as_there_may_be_come_back_and_one_more_is_refused_at_both_ends(kind: str) -> None:
    wrap, head = NESTINGS[kind]
    value: object = None
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    raw = bytearray()
    ANY.serialize(value, raw)
    assert raw == head * MAX_DEPTH + bytes([0])
    assert ANY.deserialize(memoryview(raw), 0) == (value, len(raw))
    assert ANY.copy(value) == value
    for refused in (lambda: ANY.serialize(wrap(value), bytearray()), lambda: ANY.copy(wrap(value))):
        with pytest.raises(LocalUsageError, match=f"{MAX_DEPTH} levels are the most"):
            refused()
    for levels in (MAX_DEPTH + 1, 300_000):  # the second would be too deep for any stack
        with pytest.raises(RemoteProtocolError, match=f"{MAX_DEPTH} levels are the most"):
            ANY.deserialize(memoryview(head * levels + bytes([0])), 0)


def test_a_date_counts_as_a_level() -> None:
    with pytest.raises(RemoteProtocolError, match="levels are the most"):
        ANY.deserialize(memoryview(bytes([12]) * 300_000), 0)


# -- dates, times and decimals ---------------------------------------------------------------------

MOMENTS = [
    date(1, 1, 1), date(9999, 12, 31), time(0), time(23, 59, 59, 999_999), time(1, 30, fold=1),
    time(12, tzinfo=UTC), datetime.fromisoformat("0001-01-01"),
    datetime.fromisoformat("9999-12-31T23:59:59.999999").replace(fold=1),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(1969, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3), "there")),
    timedelta.min, timedelta.max, timedelta(microseconds=-1), timedelta(0),
    Decimal(0), Decimal("-0.00"), Decimal("1E+400"), Decimal("12.90"), Decimal("-Infinity"), Decimal("sNaN7"),
]  # fmt: skip


@pytest.mark.parametrize("value", MOMENTS, ids=repr)
def test_moments_and_decimals_come_back_with_all_that_tells_them_apart(value: object) -> None:
    read = back(value)
    assert (type(read), repr(read)) == (type(value), repr(value))
    assert getattr(read, "fold", 0) == getattr(value, "fold", 0)
    assert ANY.copy(value) is value


@pytest.mark.parametrize("value", [datetime(2026, 10, 25, tzinfo=UTC), Decimal("1.5"), timedelta(1)], ids=repr)
def test_a_moment_cut_anywhere_is_the_producers_mistake(value: object) -> None:
    data = written(value)
    for length in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            ANY.deserialize(memoryview(data[:length]), 0)


@pytest.mark.parametrize("tag", [11, 12, 13, 14, 15])
@pytest.mark.parametrize("parts", [None, 7, "x", (), (1, 2, 3), ("a", "b"), ((1, 2, 3), (25, 0, 0, 0, 0, None)),
                                   (2**70, 0, 0), ((1, 1, 1), (0, 0, 0, 0, 0, "No/Such"))], ids=repr)  # fmt: skip
def test_parts_that_make_no_moment_are_the_other_ends_mistake(tag: int, parts: object) -> None:
    data = memoryview(bytes([tag]) + written(parts))
    try:
        value, _ = ANY.deserialize(data, 0)
    except RemoteProtocolError:
        return
    assert written(value)[0] == tag, "a value of this tag, all the same"


class _OwnZone(tzinfo):
    pass


def test_a_zone_that_has_no_name_everywhere_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="_OwnZone has no serializer"):
        written(datetime(2026, 1, 1, tzinfo=_OwnZone()))


# -- kinds of them, and values it does not know ----------------------------------------------------


class Colour(IntEnum):
    RED = 1


class Word(str):
    __slots__ = ()


class Point(NamedTuple):
    x: int


@dataclass
class Box:
    items: list[int]


KINDS = [
    (Colour.RED, "int"), (Word("a"), "str"), (Point(1), "tuple"), (Counter("aab"), "dict"), (OrderedDict(a=1), "dict"),
    (np.float64(1.5), "float"), (np.str_("a"), "str"), (np.bytes_(b"a"), "bytes"), (pd.Timestamp(0), "datetime"),
    (pd.Timedelta(1), "timedelta"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "base"), KINDS, ids=lambda case: type(case).__name__)
def test_a_kind_of_a_known_type_is_refused_by_name_on_every_way(value: object, base: str) -> None:
    name = type(value).__qualname__
    for held in (value, [1, (value,)], {"a": value}):
        for way in (written, ANY.copy):
            with pytest.raises(
                LocalUsageError, match=rf"{name} would come back as a plain {base}; make a {base} of it"
            ):
                way(held)


def test_what_it_does_not_know_is_copied_with_what_it_holds() -> None:
    for value in ({1}, Box([1]), np.array([1]), [{1}], (Box([1]),)):
        copied = ANY.copy(value)
        assert type(copied) is type(value)
        assert pickle.dumps(copied) == pickle.dumps(value)
        assert copied is not value
        with pytest.raises(LocalUsageError, match="has no serializer"):
            written(value)


def test_what_cannot_be_copied_is_refused_by_name() -> None:
    with pytest.raises(LocalUsageError, match="generator cannot be copied for the next operator"):
        ANY.copy(part for part in "abc")
