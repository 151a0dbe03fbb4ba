"""A type for values whose type nobody declared: each value says what it is.

It lets a job run before its author has thought about types, at the price of a tag per value. Flink
falls back on Kryo there, which is as convenient and as wasteful; its bytes are Java's own, so these
are not Flink's.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from refimpl.errors import USER_CODE_RAISES, LocalUsageError, RemoteProtocolError, described
from refimpl.records.types import BYTES, STRING, read_varint, write_varint

__all__ = ["ANY", "MAX_DEPTH", "AnyType"]

MAX_DEPTH = 100
"""Most containers within each other, a date counted as one. A peer's bytes decide how deep a value is, so this is
counted: Python's own bound depends on who calls, and on whether the code is compiled."""

_NONE, _FALSE, _TRUE, _INT, _BIG_INT, _FLOAT, _STR, _BYTES, _TUPLE, _LIST, _DICT = range(11)
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMEDELTA = range(11, 16)
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")


class AnyType:
    """None, bool, int, float, str, bytes, Decimal, dates and times, and tuples, lists and dicts of these.

    A value comes back as what it was, from the network and from `copy`. A subclass, such as a named tuple or numpy's
    `float64`, would come back as its base: it is refused by both. Only a `bytearray` becomes `bytes`.

    Flink:   GenericTypeInfo with KryoSerializer plays this part, 1.11.4
    Differs: own bytes; refuses what it does not know instead of guessing. `copy` copies that too. A value has at most
             `MAX_DEPTH` levels.
    """

    name = "any"
    struct_format: str | None = None

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth  # of the values it reads and writes, in the value that it is all about

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: object, target: bytearray) -> None:
        self._write(value, target)

    def _write(self, value: object, target: bytearray) -> None:
        writer = _WRITERS.get(type(value))
        if writer is None:
            raise _refusal(value)
        writer(self, value, target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        return self._read(source, position)

    def _read(self, source: memoryview, position: int) -> tuple[object, int]:
        if position >= len(source):
            raise RemoteProtocolError(f"the record ends at byte {position}, a value should start")
        reader = _READERS.get(source[position])
        if reader is None:
            raise RemoteProtocolError(f"{source[position]} at byte {position} is no type tag")
        return reader(self, source, position + 1)

    def copy(self, value: Any) -> object:
        kind: Any = type(value)
        if kind is tuple or kind is list:
            copied = self._within(LocalUsageError).copy
            return kind([copied(part) for part in value])
        if kind is dict:
            copied = self._within(LocalUsageError).copy
            return {copied(key): copied(part) for key, part in value.items()}
        if kind is bytearray:
            return bytes(value)
        if kind in _WRITERS or kind is object:  # cannot change
            return value
        if isinstance(value, tuple(_WRITERS)):
            raise _refusal(value)
        return _copy_unknown(value)

    # -- writers, one for each type, and readers, one for each tag -------------------------------

    def _write_int(self, value: int, target: bytearray) -> None:
        if -(2**63) <= value < 2**63:
            target.append(_INT)
            target += _LONG.pack(value)
        else:
            target.append(_BIG_INT)
            BYTES.serialize(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True), target)

    def _read_long(self, source: memoryview, position: int) -> tuple[object, int]:
        return _unpack(_LONG, source, position)

    def _read_big_int(self, source: memoryview, position: int) -> tuple[object, int]:
        raw, position = BYTES.deserialize(source, position)
        assert isinstance(raw, bytes)
        return int.from_bytes(raw, "big", signed=True), position

    def _write_float(self, value: float, target: bytearray) -> None:
        target.append(_FLOAT)
        target += _DOUBLE.pack(value)

    def _read_float(self, source: memoryview, position: int) -> tuple[object, int]:
        return _unpack(_DOUBLE, source, position)

    def _write_str(self, value: str, target: bytearray) -> None:
        target.append(_STR)
        STRING.serialize(value, target)

    def _write_bytes(self, value: bytes | bytearray, target: bytearray) -> None:
        target.append(_BYTES)
        BYTES.serialize(value, target)

    def _write_tuple(self, value: tuple[object, ...], target: bytearray) -> None:
        self._write_parts(_TUPLE, len(value), value, target)

    def _read_tuple(self, source: memoryview, position: int) -> tuple[object, int]:
        parts, position = self._read_parts(source, position, 1)
        return tuple(parts), position

    def _write_list(self, value: list[object], target: bytearray) -> None:
        self._write_parts(_LIST, len(value), value, target)

    def _read_list(self, source: memoryview, position: int) -> tuple[object, int]:
        return self._read_parts(source, position, 1)

    def _write_dict(self, value: dict[object, object], target: bytearray) -> None:
        self._write_parts(_DICT, len(value), (part for item in value.items() for part in item), target)

    def _read_dict(self, source: memoryview, position: int) -> tuple[object, int]:
        parts, position = self._read_parts(source, position, 2)
        try:
            return dict(zip(parts[::2], parts[1::2], strict=True)), position
        except TypeError as error:
            raise RemoteProtocolError(f"a key of the dict before byte {position}: {error}") from None

    def _write_parts(self, tag: int, count: int, parts: Iterable[object], target: bytearray) -> None:
        target.append(tag)
        write_varint(count, target)
        within = self._within(LocalUsageError)
        for part in parts:
            within._write(part, target)

    def _read_parts(self, source: memoryview, position: int, values_each: int) -> tuple[list[object], int]:
        count, position = read_varint(source, position)
        parts = []
        within = self._within(RemoteProtocolError)
        for _ in range(count * values_each):
            part, position = within._read(source, position)
            parts.append(part)
        return parts, position

    def _within(self, refusal: type[LocalUsageError | RemoteProtocolError]) -> AnyType:
        """The same for what is in a container.

        Raises:
            LocalUsageError: that is too deep for a value of ours.
            RemoteProtocolError: the same, for one that was sent, if `refusal` says so.
        """
        if self._depth == MAX_DEPTH:
            raise refusal(f"a value is nested too deeply: {MAX_DEPTH} levels are the most")
        return _BY_DEPTH[self._depth + 1]


def _unpack(layout: struct.Struct, source: memoryview, position: int) -> tuple[object, int]:
    if position + layout.size > len(source):
        raise RemoteProtocolError(f"the record ends inside a number at byte {position}")
    return layout.unpack_from(source, position)[0], position + layout.size


def _copy_unknown(value: object) -> object:
    try:
        return copy.deepcopy(value)
    except RecursionError:
        raise LocalUsageError("a value is nested too deeply to be copied, or holds itself") from None
    except USER_CODE_RAISES as error:
        raise LocalUsageError(
            f"{type(value).__name__} cannot be copied for the next operator ({described(error)}); "
            f"use a tuple or dict of plain values, or set object_reuse"
        ) from error


def _refusal(value: object) -> LocalUsageError:
    kind = type(value)
    for base in (datetime, *_WRITERS):  # a datetime is a date too
        if isinstance(value, base):
            return LocalUsageError(
                f"a value of type {kind.__module__}.{kind.__qualname__} would come back as a plain {base.__name__}; "
                f"make a {base.__name__} of it, or declare the type of the stream"
            )
    return LocalUsageError(
        f"{kind.__name__} has no serializer; use a tuple or dict of plain values, or declare the type of the stream"
    )


# -- values written as the value of another type that tells all about them -------------------------


def _zone_parts(zone: tzinfo | None) -> object:
    if isinstance(zone, timezone):
        return zone.__reduce__()[1]  # the offset, and the name if it was given one
    if isinstance(zone, ZoneInfo) and zone.key is not None:
        return zone.key
    if zone is not None:
        raise _refusal(zone)
    return None


def _zone(parts: Any) -> tzinfo | None:
    if parts is None:
        return None
    return ZoneInfo(parts) if isinstance(parts, str) else timezone(*parts)


def _date_parts(value: date) -> object:
    return value.year, value.month, value.day


def _time_parts(value: time | datetime) -> tuple[object, ...]:
    return value.hour, value.minute, value.second, value.microsecond, value.fold, _zone_parts(value.tzinfo)


def _time(hour: int, minute: int, second: int, microsecond: int, fold: int, zone: object) -> time:
    return time(hour, minute, second, microsecond, _zone(zone), fold=fold)


_WHOLES: dict[int, tuple[type, Callable[[Any], object], Callable[[Any], object]]] = {
    _DECIMAL: (Decimal, str, Decimal),
    _DATE: (date, _date_parts, lambda parts: date(*parts)),
    _TIME: (time, _time_parts, lambda parts: _time(*parts)),
    _DATETIME: (datetime, lambda value: (_date_parts(value), _time_parts(value)),
                lambda parts: datetime.combine(date(*parts[0]), _time(*parts[1]))),
    _TIMEDELTA: (timedelta, lambda value: (value.days, value.seconds, value.microseconds),
                 lambda parts: timedelta(*parts)),
}  # fmt: skip
"""Tag: type, what of a value is written, and the value made of that again."""


def _whole_writer(tag: int, parts_of: Callable[[Any], object]) -> Callable[[AnyType, Any, bytearray], None]:
    def write(any_type: AnyType, value: object, target: bytearray) -> None:
        target.append(tag)
        any_type._within(LocalUsageError)._write(parts_of(value), target)

    return write


def _whole_reader(
    kind: type, made_of: Callable[[Any], object]
) -> Callable[[AnyType, memoryview, int], tuple[object, int]]:
    def read(any_type: AnyType, source: memoryview, position: int) -> tuple[object, int]:
        parts, end = any_type._within(RemoteProtocolError)._read(source, position)
        try:
            return made_of(parts), end
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise RemoteProtocolError(f"{parts!r} before byte {end} is no {kind.__name__}: {error}") from None

    return read


_WRITERS: dict[type, Callable[[AnyType, Any, bytearray], None]] = {
    type(None): lambda _self, _value, target: target.append(_NONE),
    bool: lambda _self, value, target: target.append(_TRUE if value else _FALSE),
    int: AnyType._write_int,
    float: AnyType._write_float,
    str: AnyType._write_str,
    bytes: AnyType._write_bytes,
    bytearray: AnyType._write_bytes,
    tuple: AnyType._write_tuple,
    list: AnyType._write_list,
    dict: AnyType._write_dict,
    **{kind: _whole_writer(tag, parts_of) for tag, (kind, parts_of, _) in _WHOLES.items()},
}
_READERS: dict[int, Callable[[AnyType, memoryview, int], tuple[object, int]]] = {
    _NONE: lambda _self, _source, position: (None, position),
    _FALSE: lambda _self, _source, position: (False, position),
    _TRUE: lambda _self, _source, position: (True, position),
    _INT: AnyType._read_long,
    _BIG_INT: AnyType._read_big_int,
    _FLOAT: AnyType._read_float,
    _STR: lambda _self, source, position: STRING.deserialize(source, position),
    _BYTES: lambda _self, source, position: BYTES.deserialize(source, position),
    _TUPLE: AnyType._read_tuple,
    _LIST: AnyType._read_list,
    _DICT: AnyType._read_dict,
    **{tag: _whole_reader(kind, made_of) for tag, (kind, _, made_of) in _WHOLES.items()},
}

_BY_DEPTH = [AnyType(depth) for depth in range(MAX_DEPTH + 1)]
ANY = _BY_DEPTH[0]
