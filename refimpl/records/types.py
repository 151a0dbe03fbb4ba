"""How one value becomes bytes and a value again.

A type writes no length and no name: the reader has the same type and knows where a value ends.
All numbers are big-endian, as Java's `DataOutput` writes them.

A type whose values always have the same length says with `struct_format` how they lie in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from refimpl.errors import LocalUsageError, RemoteProtocolError, shown

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "INT",
    "LONG",
    "STRING",
    "TupleType",
    "TypeSerializer",
    "read_varint",
    "write_varint",
]


class TypeSerializer(Protocol):
    """Writes and reads values of one type.

    `name` is what messages call it. `struct_format` lists `struct` codes, without the byte order,
    when every value has the same length; else it is `None`.

    Flink:   TypeSerializer (api.common.typeutils), 1.11.4
    """

    name: str
    struct_format: str | None

    def serialize(self, value: object, target: bytearray) -> None:
        """Append the bytes of `value` to `target`.

        Raises:
            LocalUsageError: `value` is not of this type.
        """

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        """The value that starts at `position`, and the position after it.

        Raises:
            RemoteProtocolError: the bytes end early or cannot be a value of this type.
        """

    def copy(self, value: object) -> object:
        """What `deserialize` would make of the bytes of `value`: it shares nothing that can change with it.

        Raises:
            LocalUsageError: `value` is not of this type.
        """


class _FixedType:
    """Any type that is one `struct` code. The same object in every process, like the constants it is."""

    def __init__(self, name: str, code: str) -> None:
        self.name = name
        self.struct_format: str | None = code
        self._struct = struct.Struct(">" + code)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name.upper()

    def serialize(self, value: object, target: bytearray) -> None:
        target += self._pack(value)

    def _pack(self, value: object) -> bytes:
        if self.struct_format == "?" and not isinstance(value, bool):  # struct takes anything for one
            raise LocalUsageError(f"{shown(value)} is not a {self.name}")
        try:
            return self._struct.pack(value)
        except (struct.error, OverflowError) as error:
            article = "an" if self.name == "int" else "a"
            raise LocalUsageError(f"{shown(value)} is not {article} {self.name}: {error}") from None

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        try:
            return self._struct.unpack_from(source, position)[0], position + self._struct.size
        except struct.error:
            raise _ends_early(self.name, source, position) from None

    def copy(self, value: object) -> object:
        return self._struct.unpack(self._pack(value))[0]


class _BytesType:
    """An int with the length, then the bytes.

    Flink:   BytePrimitiveArraySerializer, 1.11.4
    """

    name = "bytes"
    struct_format: str | None = None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "BYTES"

    def serialize(self, value: object, target: bytearray) -> None:
        raw = self.copy(value)
        target += len(raw).to_bytes(4, "big")
        target += raw

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        length = int.from_bytes(source[position : position + 4], "big", signed=True)
        end = position + 4 + length
        if length < 0 or position + 4 > len(source) or end > len(source):
            raise _ends_early(self.name, source, position)
        return bytes(source[position + 4 : end]), end

    def copy(self, value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise LocalUsageError(f"{shown(value)} is not bytes")
        return bytes(value)


class _StringType:
    """A count of UTF-16 code units plus one (0 is null), then each unit, all of variable length.

    Flink:   StringValue.writeString (types), 1.11.4
    """

    name = "string"
    struct_format: str | None = None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "STRING"

    def serialize(self, value: object, target: bytearray) -> None:
        if value is None:
            target.append(0)
            return
        value = self._text(value)
        if value.isascii():  # each unit is one byte
            write_varint(len(value) + 1, target)
            target += value.encode("ascii")
            return
        raw = value.encode("utf-16-be", "surrogatepass")
        write_varint(len(raw) // 2 + 1, target)
        for index in range(0, len(raw), 2):
            write_varint(raw[index] << 8 | raw[index + 1], target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        count, position = read_varint(source, position)
        if count == 0:
            return None, position
        end = position + count - 1
        try:
            plain = bytes(source[position:end])
            if len(plain) == count - 1 and plain.isascii():
                return plain.decode("ascii"), end
        except (ValueError, OverflowError):
            pass
        if count - 1 > len(source) - position:
            raise _ends_early(self.name, source, position)
        units = bytearray()
        for _ in range(count - 1):
            unit, position = read_varint(source, position)
            if unit > 0xFFFF:
                raise RemoteProtocolError(f"{unit:#x} is no UTF-16 code unit")
            units += unit.to_bytes(2, "big")
        return units.decode("utf-16-be", "surrogatepass"), position

    def copy(self, value: object) -> object:
        return None if value is None else self._text(value)

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise LocalUsageError(f"{shown(value)} is not a string")
        return str.__str__(value)  # of a subclass, a plain one


class TupleType:
    """Its fields one after the other, nothing between them.

    Flink:   TupleSerializer (api.java.typeutils.runtime), 1.11.4
    """

    def __init__(self, *fields: TypeSerializer) -> None:
        self.fields: Sequence[TypeSerializer] = fields
        self.name = "tuple(" + ", ".join(field.name for field in fields) + ")"
        codes = [field.struct_format for field in fields]
        # A nested tuple packs as one argument, not as several: it takes the general path.
        is_flat = all(codes) and not any(isinstance(field, TupleType) for field in fields)
        self.struct_format = "".join(str(code) for code in codes) if is_flat and codes else None

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: object, target: bytearray) -> None:
        if not isinstance(value, tuple) or len(value) != len(self.fields):
            raise LocalUsageError(f"{shown(value)} is not a {self.name}")
        for field, part in zip(self.fields, value, strict=True):
            field.serialize(part, target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        parts = []
        for field in self.fields:
            part, position = field.deserialize(source, position)
            parts.append(part)
        return tuple(parts), position

    def copy(self, value: object) -> object:
        if not isinstance(value, tuple) or len(value) != len(self.fields):
            raise LocalUsageError(f"{shown(value)} is not a {self.name}")
        return tuple(field.copy(part) for field, part in zip(self.fields, value, strict=True))


LONG = _FixedType("long", "q")
INT = _FixedType("int", "i")
DOUBLE = _FixedType("double", "d")
BOOLEAN = _FixedType("boolean", "?")
BYTES = _BytesType()
STRING = _StringType()


def write_varint(number: int, target: bytearray) -> None:
    """Append `number` in groups of 7 bits, least significant first, top bit set on all but the last."""
    while number > 0x7F:
        target.append(number & 0x7F | 0x80)
        number >>= 7
    target.append(number)


def read_varint(source: memoryview, position: int) -> tuple[int, int]:
    """The number `write_varint` wrote at `position`, and the position after it."""
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(source):
            raise _ends_early("variable-length number", source, position)
        group = source[position]
        position += 1
        number |= (group & 0x7F) << shift
        if group < 0x80:
            return number, position
    raise RemoteProtocolError(f"a variable-length number before byte {position} has no end")


def _ends_early(name: str, source: memoryview, position: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"a {name} starts at byte {position}, but the record ends at byte {len(source)}")
