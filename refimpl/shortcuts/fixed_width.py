"""Records of a fixed size, packed and unpacked without a call for each field: the bytes are the same.

One such record is packed into its buffer with a single call, see `lanes`, several with another.
Reading compares lengths and tags, those of many records at once, and makes the records when somebody takes them.
Whatever does not fit, such as a value of another type, is left to the serializers. Records that differ in length
are read several at a time too, with a call for each field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, repeat
from operator import length_hint
from typing import Any, TypeAlias

import numpy as np

from refimpl.errors import USER_CODE_RAISES
from refimpl.memory.builder import BufferBuilder
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.elements import StreamRecord
from refimpl.records.spanning import LENGTH_BYTES
from refimpl.records.types import TupleType, TypeSerializer

__all__ = [
    "BLOCK_RECORDS",
    "RecordPacker",
    "RecordUnpacker",
    "Unpacker",
    "VaryingUnpacker",
    "field_names",
    "generated",
]

_HEAD = struct.Struct(">iB")  # what a record starts with: its length and its tag
_TIME = struct.Struct(">q")
_FEW = 32  # rows that are looked at where the next one is of another kind
_CODES = "qid?"  # fields that numpy reads as `struct` does
_NUMBERS = "qid"  # and those for which `struct` takes nothing but a number

BLOCK_RECORDS = 64
"""Taken at a time where each record has yet to be made; as many as a source hands out."""

_REFUSALS = (struct.error, TypeError, ValueError, OverflowError)
"""What packing raises where there is no room, or for a value of another type."""


_PACK_FOURS = """
def pack_fours(records, memory, position, pack, head, num_bytes):
    each = iter(records)
    try:
        for a, b, c, d in zip(each, each, each, each):  # the last are fewer than four
            {unpack}
            if not ({is_alike}):
                break
            pack(memory, position, {arguments})
            position += num_bytes
    except refusals:
        pass
    return position
"""
"""Packs four records with a call while all are of one kind; the position behind the last.

Each field is an argument of its own: without a tuple or a list between, a quarter less work. A value of another
length, or a number of another type, is refused by the unpacking or by `pack`.
"""


class _Layout:
    """Where the parts of a record are packed: a head, always the same, maybe a time, and the fields.

    `pack` packs one record from its parts, `pack_fours` several records.
    """

    __slots__ = ("_pack_four", "_pack_fours", "head", "num_bytes", "pack", "to_bytes")

    def __init__(self, tag: int, time: str, codes: str, is_tuple: bool) -> None:
        record = f"{_HEAD.size}s{time}{codes}"
        self.num_bytes = struct.calcsize(f">{record}")
        self.head = _HEAD.pack(self.num_bytes - LENGTH_BYTES, tag)
        one = struct.Struct(f">{record}")
        self.pack, self.to_bytes = one.pack_into, one.pack
        self._pack_four = struct.Struct(">" + record * 4).pack_into
        fields = {name: field_names(len(codes), name) for name in "abcd"}
        is_alike = ["True"]
        if is_tuple:  # a list would be unpacked by accident
            is_alike.append(" is ".join([*(f"type(of_{name})" for name in fields), "tuple"]))
        if not time:  # where a time must be packed, `pack` refuses none
            is_alike.append(" is ".join([*(f"{name}.timestamp" for name in fields), "None"]))
        self._pack_fours: Callable[..., int] = generated(
            "pack_fours",
            _PACK_FOURS,
            unpack="; ".join(f"{names}{',' * is_tuple} = of_{name} = {name}.value" for name, names in fields.items()),
            is_alike=" and ".join(is_alike),
            arguments=", ".join(f"head,{f' {name}.timestamp,' * len(time)} {names}" for name, names in fields.items()),
        )

    def pack_fours(self, records: Sequence[StreamRecord], memory: memoryview, start: int) -> int:
        """Write as many of the records as are like the first, four at a time; return how many."""
        end = self._pack_fours(records, memory, start, self._pack_four, self.head, 4 * self.num_bytes)
        return (end - start) // self.num_bytes


def field_names(num_fields: int, name: str) -> str:
    """The variables of a value's fields, as generated code lists them."""
    return ", ".join(f"{name}{index}" for index in range(num_fields))


@cache
def generated(name: str, template: str, **parts: str) -> Any:
    """The function of a template whose places are filled with `parts`, which come from this package alone.

    The work for a record depends on how many fields it has: written out for each number, it needs no tuple between.
    """
    found: dict[str, Any] = {"refusals": _REFUSALS}
    exec(template.format(**parts), found)  # noqa: S102
    return found[name]


class RecordPacker:
    """How the records of a fixed-size type are packed.

    The bytes are composed as the serializers compose them: length and tag, the time, if there is
    one, and the fields. Records with a time and without differ in all but the fields.

    `of` gives the packer of a type, or `None` where the general path must look at each value: it
    differs in length, or `struct` would take more for it than the type does, such as any object for a boolean.

    Flink:   none; the JIT compiler does this to the general path there
    Differs: only saves work. What it declines, the serializers write, byte for byte the same.
    """

    __slots__ = ("is_tuple", "num_fields", "timed", "untimed")

    def __init__(self, value_type: TypeSerializer) -> None:
        codes = value_type.struct_format or ""
        self.is_tuple = isinstance(value_type, TupleType)
        self.num_fields = len(codes)
        self.timed = _Layout(TAG_RECORD_WITH_TIMESTAMP, "q", codes, self.is_tuple)
        self.untimed = _Layout(TAG_RECORD, "", codes, self.is_tuple)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> RecordPacker | None:
        codes = value_type.struct_format
        return cls(value_type) if codes is not None and set(codes) <= set(_NUMBERS) else None

    def num_records(self, num_bytes: int, num_untimed: int) -> int:
        """How many records so many bytes are, of which `num_untimed` have no time."""
        return num_untimed + (num_bytes - num_untimed * self.untimed.num_bytes) // self.timed.num_bytes

    def to_bytes(self, record: StreamRecord) -> bytes | None:
        """One record with its length, for whom it is to be cut; `None` if it is of another type."""
        fields, timestamp = record.value if self.is_tuple else (record.value,), record.timestamp
        if type(fields) is not tuple:
            return None
        try:
            if timestamp is not None:
                return self.timed.to_bytes(self.timed.head, timestamp, *fields)
            return self.untimed.to_bytes(self.untimed.head, *fields)
        except _REFUSALS:
            return None  # the serializer's own complaint names it

    def pack_many(self, records: Iterator[StreamRecord], builder: BufferBuilder) -> tuple[int, Sequence[StreamRecord]]:
        """Pack records while they fit and leave room; how many, and which were taken in vain.

        Those are the last few, or one of another type and what was taken with it. There is room for all of them.
        Of records that lie in a list as many are taken as fit; others must not wait here for long.
        """
        num_packed = 0
        while (num_fitting := (builder.room - 1) // self.timed.num_bytes) > 0:
            taken = list(islice(records, min(num_fitting, max(length_hint(records), BLOCK_RECORDS))))
            num_of_taken = self._pack(taken, builder) if taken else 0
            num_packed += num_of_taken
            if num_of_taken < len(taken) or not taken:
                return num_packed, taken[num_of_taken:]
        return num_packed, ()

    def _pack(self, records: Sequence[StreamRecord], builder: BufferBuilder) -> int:
        """Write and publish records, for which there is room, as long as they are like the first; return how many."""
        layout = self.timed if records[0].timestamp is not None else self.untimed
        num_packed = layout.pack_fours(records, builder.memory, builder.written_bytes)
        builder.advance(num_packed * layout.num_bytes)
        return num_packed


class RecordUnpacker:
    """Reads the records of a fixed-size type that stand next to each other, all at once.

    All lengths and tags are compared at once, and each column becomes a list. The values, and the records around
    them, are made one by one when somebody takes them: a thousand that wait for their turn would cost more than one.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        codes = value_type.struct_format or ""
        self._rows = {TAG_RECORD_WITH_TIMESTAMP: _Rows(TAG_RECORD_WITH_TIMESTAMP, "q", codes),
                      TAG_RECORD: _Rows(TAG_RECORD, "", codes)}  # fmt: skip
        self._is_tuple = isinstance(value_type, TupleType)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> Unpacker:
        """What reads records of this type."""
        codes = value_type.struct_format
        return VaryingUnpacker(value_type) if codes is None or not set(codes) <= set(_CODES) else cls(value_type)

    def unpack(self, source: memoryview) -> tuple[int, Iterable[object], Iterable[int | None]]:
        """The run of records that `source` starts with, maybe none: its length in bytes, the values, the times.

        All of a run have a time or none has.
        """
        rows = self._rows.get(source[LENGTH_BYTES]) if len(source) > LENGTH_BYTES else None
        if rows is None:
            return 0, (), ()
        num_bytes, columns = rows.read(source)
        times = columns.pop(0) if rows.is_timed else repeat(None, num_bytes // rows.width)
        return num_bytes, zip(*columns, strict=True) if self._is_tuple else columns[0], times


class VaryingUnpacker:
    """The same where each record may have another length, which says where the next one starts.

    What is cut off, is no record, or cannot be read, ends the run: whoever reads it alone has the words for it.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        self._deserialize = value_type.deserialize

    def unpack(self, source: memoryview) -> tuple[int, Sequence[object], Sequence[int | None]]:
        """The records that `source` starts with, maybe none: their length in bytes, the values, the times."""
        values, times = list[object](), list[int | None]()
        start, last, deserialize = 0, len(source) - _HEAD.size, self._deserialize
        while start <= last:
            length, tag = _HEAD.unpack_from(source, start)
            end = start + LENGTH_BYTES + length
            record = source[start + LENGTH_BYTES : end]
            if len(record) != length or tag not in (TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP):
                break
            try:
                time = None if tag == TAG_RECORD else _TIME.unpack_from(record, 1)[0]
                value, num_read = deserialize(record, 1 if tag == TAG_RECORD else 1 + _TIME.size)
            except USER_CODE_RAISES:  # raised for who reads it alone, when those before it are handed out
                break
            if num_read != length:
                break
            values.append(value)
            times.append(time)
            start = end
        return start, values, times


Unpacker: TypeAlias = RecordUnpacker | VaryingUnpacker


class _Rows:
    """Records with a time, or without: how wide one is, what it starts with, and the columns of several."""

    def __init__(self, tag: int, time: str, codes: str) -> None:
        self.width = struct.calcsize(f">{_HEAD.size}s{time}{codes}")
        self.is_timed = bool(time)
        self._head = _HEAD.pack(self.width - LENGTH_BYTES, tag)
        self._names = [f"f{index}" for index in range(len(time + codes))]
        named = zip(self._names, time + codes, strict=True)
        self._row = np.dtype([("head", f"V{_HEAD.size}"), *((name, f">{code}") for name, code in named)])
        self._second_head, self._head_after_few = (
            slice(ahead * self.width, ahead * self.width + _HEAD.size) for ahead in (1, _FEW)
        )

    def read(self, source: memoryview) -> tuple[int, list[Sequence[Any]]]:
        """The rows that `source` starts with: how many bytes they have, and their columns."""
        head, num_rows = self._head, len(source) // self.width
        if not num_rows or source[: _HEAD.size] != head:
            return 0, [()] * len(self._names)
        # Where other elements stand between the records, few are read in vain.
        if num_rows > _FEW and source[self._head_after_few] != head:
            num_rows = _FEW
        if num_rows > 1 and source[self._second_head] != head:
            num_rows = 1
        rows = np.frombuffer(source, self._row, num_rows)
        # As bytes and not as numbers: numpy lets go of the GIL for each comparison of long arrays.
        if rows["head"].tobytes() != head * num_rows:
            rows = rows[: int(np.argmax(rows["head"] != np.void(head)))]
        return rows.nbytes, [rows[name].tolist() for name in self._names]
