"""A type for values whose type nobody declared: each value says what it is.

It lets a job run before its author has thought about types, at the price of a tag per value. Flink
falls back on Kryo there, which is as convenient and as wasteful; its bytes are Java's own, so these
are not Flink's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.records.types import BYTES, STRING, read_varint, write_varint

__all__ = ["ANY", "AnyType"]

_NONE, _FALSE, _TRUE, _INT, _BIG_INT, _FLOAT, _STR, _BYTES, _TUPLE, _LIST, _DICT = range(11)
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")


class AnyType:
    """None, bool, int, float, str, bytes, and tuples, lists and dicts of these.

    Flink:   GenericTypeInfo with KryoSerializer plays this part, 1.11.4
    Differs: own bytes; refuses what it does not know instead of guessing.
    """

    name = "any"
    struct_format: str | None = None

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: object, target: bytearray) -> None:
        try:
            self._write(value, target)
        except RecursionError:
            raise LocalUsageError("a value is nested too deeply, or holds itself") from None

    def _write(self, value: object, target: bytearray) -> None:
        match value:
            case None:
                target.append(_NONE)
            case bool():
                target.append(_TRUE if value else _FALSE)
            case int():
                _write_int(value, target)
            case float():
                target.append(_FLOAT)
                target += _DOUBLE.pack(value)
            case str():
                target.append(_STR)
                STRING.serialize(value, target)
            case bytes() | bytearray():
                target.append(_BYTES)
                BYTES.serialize(value, target)
            case tuple() | list():
                target.append(_TUPLE if isinstance(value, tuple) else _LIST)
                write_varint(len(value), target)
                for part in value:
                    self._write(part, target)
            case dict():
                target.append(_DICT)
                write_varint(len(value), target)
                for key, part in value.items():
                    self._write(key, target)
                    self._write(part, target)
            case _:
                raise LocalUsageError(
                    f"{type(value).__name__} has no serializer; use a tuple or dict of plain "
                    f"values, or declare the type of the stream"
                )

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        try:
            return self._read(source, position)
        except RecursionError:
            raise RemoteProtocolError("a value is nested too deeply") from None

    def _read(self, source: memoryview, position: int) -> tuple[object, int]:
        if position >= len(source):
            raise RemoteProtocolError(f"the record ends at byte {position}, a value should start")
        reader = _READERS.get(source[position])
        if reader is None:
            raise RemoteProtocolError(f"{source[position]} at byte {position} is no type tag")
        return reader(self, source, position + 1)

    def copy(self, value: object) -> object:
        try:
            return self._copy(value)
        except RecursionError:
            raise LocalUsageError("a value is nested too deeply, or holds itself") from None

    def _copy(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(self._copy(part) for part in value)
        if isinstance(value, list):
            return [self._copy(part) for part in value]
        if isinstance(value, dict):
            return {self._copy(key): self._copy(part) for key, part in value.items()}
        return bytes(value) if isinstance(value, bytearray) else value

    # -- readers, one for each tag ---------------------------------------------------------------

    def _read_long(self, source: memoryview, position: int) -> tuple[object, int]:
        return _unpack(_LONG, source, position)

    def _read_big_int(self, source: memoryview, position: int) -> tuple[object, int]:
        raw, position = BYTES.deserialize(source, position)
        assert isinstance(raw, bytes)
        return int.from_bytes(raw, "big", signed=True), position

    def _read_float(self, source: memoryview, position: int) -> tuple[object, int]:
        return _unpack(_DOUBLE, source, position)

    def _read_tuple(self, source: memoryview, position: int) -> tuple[object, int]:
        parts, position = self._read_parts(source, position, 1)
        return tuple(parts), position

    def _read_list(self, source: memoryview, position: int) -> tuple[object, int]:
        return self._read_parts(source, position, 1)

    def _read_dict(self, source: memoryview, position: int) -> tuple[object, int]:
        parts, position = self._read_parts(source, position, 2)
        try:
            return dict(zip(parts[::2], parts[1::2], strict=True)), position
        except TypeError as error:
            raise RemoteProtocolError(f"a key of the dict before byte {position}: {error}") from None

    def _read_parts(self, source: memoryview, position: int, values_each: int) -> tuple[list[object], int]:
        count, position = read_varint(source, position)
        parts = []
        for _ in range(count * values_each):
            part, position = self._read(source, position)
            parts.append(part)
        return parts, position


def _write_int(value: int, target: bytearray) -> None:
    if -(2**63) <= value < 2**63:
        target.append(_INT)
        target += _LONG.pack(value)
    else:
        target.append(_BIG_INT)
        BYTES.serialize(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True), target)


def _unpack(layout: struct.Struct, source: memoryview, position: int) -> tuple[object, int]:
    if position + layout.size > len(source):
        raise RemoteProtocolError(f"the record ends inside a number at byte {position}")
    return layout.unpack_from(source, position)[0], position + layout.size


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
}

ANY = AnyType()
