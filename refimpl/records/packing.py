"""Records of a fixed size, packed and unpacked without a call for each field: the bytes are the same.

One such record is packed into its buffer with a single call, several with another. Reading compares all
lengths and tags at hand at once, and makes the records when somebody takes them. Whatever does not fit,
such as a record that a buffer's end cuts, or a value of another type, is left to the serializers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from refimpl.memory.builder import BufferBuilder
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.elements import StreamRecord
from refimpl.records.spanning import LENGTH_BYTES
from refimpl.records.types import TupleType, TypeSerializer

__all__ = ["BLOCK_RECORDS", "RecordPacker", "RecordUnpacker", "records_of"]

_HEAD = struct.Struct(">iB")  # what a record starts with: its length and its tag
_MIN_ROWS_AT_ONCE = 8  # below this many rows numpy costs more than it saves
_CODES = "qid?"  # fields that numpy reads as `struct` does

BLOCK_RECORDS = 64
"""Packed with one call; as many as a source hands out at a time."""


class _Layout:
    """Where the parts of a record are packed: a head, always the same, maybe a time, and the fields.

    A blank is the list of the parts of a whole block, with nothing but the heads filled in.
    """

    __slots__ = ("blank", "block_bytes", "head", "num_bytes", "num_parts", "pack_block", "pack_fields", "pack_one")

    def __init__(self, tag: int, time: str, codes: str) -> None:
        self.num_bytes = struct.calcsize(f">{_HEAD.size}s{time}{codes}")
        self.head = _HEAD.pack(self.num_bytes - LENGTH_BYTES, tag)
        self.pack_one = struct.Struct(f">{_HEAD.size}s{time}{struct.calcsize('>' + codes)}s").pack_into
        self.pack_fields = struct.Struct(f">{_HEAD.size}s{time}{codes}").pack_into
        self.num_parts = 1 + len(time + codes)
        self.blank: list[object] = [self.head, *[None] * (self.num_parts - 1)] * BLOCK_RECORDS
        self.pack_block = struct.Struct(">" + f"{_HEAD.size}s{time}{codes}" * BLOCK_RECORDS).pack_into
        self.block_bytes = self.num_bytes * BLOCK_RECORDS


class RecordPacker:
    """Packs records of a fixed-size type into a buffer, if they fit and leave room.

    The bytes are composed as the serializers compose them: length and tag, the time, if there is
    one, and the fields.

    `of` gives the packer of a type, or `None` where the general path must look at each value: it
    differs in length, or `struct` would take any object for a boolean.

    Flink:   none; the JIT compiler does this to the general path there
    Differs: only saves work. What it declines, the serializers write, byte for byte the same.
    """

    __slots__ = ("_is_pair", "_is_tuple", "_pack_value", "_timed", "_untimed")

    def __init__(self, value_type: TypeSerializer) -> None:
        codes = value_type.struct_format or ""
        self._is_tuple = isinstance(value_type, TupleType)
        self._is_pair = self._is_tuple and len(codes) == 2
        self._pack_value = struct.Struct(f">{codes}").pack
        self._timed = _Layout(TAG_RECORD_WITH_TIMESTAMP, "q", codes)
        self._untimed = _Layout(TAG_RECORD, "", codes)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> RecordPacker | None:
        codes = value_type.struct_format
        return None if codes is None or "?" in codes or not codes.isalpha() else cls(value_type)

    def pack(self, record: StreamRecord, builder: BufferBuilder) -> bool:
        """Write and publish one record; false if `builder` is left as it was.

        That is so with a value of another type: the serializer's own complaint names it. And with a
        record that would fill the buffer, or not fit: then there is more to do than to write it.
        """
        fields = record.value if self._is_tuple else (record.value,)
        if type(fields) is not tuple:
            return False  # a list would pack too, but only where it fits: refuse it everywhere
        timestamp, start = record.timestamp, builder.written_bytes
        layout = self._untimed if timestamp is None else self._timed
        end = start + layout.num_bytes
        if end >= builder.capacity:
            return False
        try:
            if self._is_pair:  # passing two fields by name saves making bytes of them first
                first, second = fields
                if timestamp is None:
                    layout.pack_fields(builder.memory, start, layout.head, first, second)
                else:
                    layout.pack_fields(builder.memory, start, layout.head, timestamp, first, second)
            elif timestamp is None:
                layout.pack_one(builder.memory, start, layout.head, self._pack_value(*fields))
            else:
                layout.pack_one(builder.memory, start, layout.head, timestamp, self._pack_value(*fields))
        except (struct.error, TypeError, ValueError, OverflowError):
            return False
        published = builder.published
        builder.written_bytes = published.value = end
        if published.watchers:
            published.tell()
        return True

    def pack_blocks(
        self, records: Iterator[StreamRecord], builder: BufferBuilder
    ) -> tuple[int, Sequence[StreamRecord]]:
        """Pack whole blocks while they fit and leave room; how many records, and which were taken in vain.

        The last are fewer than a block, or of another type. There is room for all of them.
        """
        num_packed = 0
        while builder.written_bytes + self._timed.block_bytes < builder.capacity:
            block = list(islice(records, BLOCK_RECORDS))
            if len(block) < BLOCK_RECORDS or not self._pack_block(block, builder):
                return num_packed, block
            num_packed += BLOCK_RECORDS
        return num_packed, ()

    def _pack_block(self, records: Sequence[StreamRecord], builder: BufferBuilder) -> bool:
        """Write and publish `BLOCK_RECORDS` records, for which there is room; false as in `pack`.

        The times and each field of the values are columns, laid into a blank, which one call packs:
        half the work of so many calls.
        """
        values = [record.value for record in records]
        times = [record.timestamp for record in records]
        layout = self._timed if times[0] is not None else self._untimed
        if self._is_tuple and set(map(type, values)) != {tuple}:
            return False
        try:
            columns = [*zip(*values, strict=True)] if self._is_tuple else [tuple(values)]
            if layout is self._timed:
                columns.insert(0, tuple(times))
            elif times.count(None) < len(times):
                return False
            parts = layout.blank.copy()  # with a field too few a blank is left, with one too many it has no place
            for index, column in enumerate(columns, 1):
                parts[index :: layout.num_parts] = column
            layout.pack_block(builder.memory, builder.written_bytes, *parts)
        except Exception:  # noqa: BLE001 - whatever it is, it comes again with the record that is wrong, by itself
            return False
        builder.advance(layout.block_bytes)
        return True


class RecordUnpacker:
    """Reads the records of a fixed-size type that stand next to each other, all at once.

    All lengths and tags are compared at once, and each column becomes a list. The records around
    the values are made one by one, by `records_of`, when somebody takes them: a thousand that wait
    for their turn would cost more than one.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        fields = [(f"f{index}", f">{code}") for index, code in enumerate(value_type.struct_format or "")]
        head = [("length", ">i4"), ("tag", "u1")]
        self._rows = {
            TAG_RECORD_WITH_TIMESTAMP: np.dtype([*head, ("timestamp", ">i8"), *fields]),
            TAG_RECORD: np.dtype([*head, *fields]),
        }
        self._names = [name for name, _ in fields]
        self._is_tuple = isinstance(value_type, TupleType)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> RecordUnpacker | None:
        codes = value_type.struct_format
        return None if codes is None or not set(codes) <= set(_CODES) else cls(value_type)

    def unpack(self, source: memoryview) -> tuple[int, Sequence[int | None], Iterable[object]]:
        """The run of records that `source` starts with: its length in bytes, the times, the values.

        All of a run have a time or none has. It is empty where it is too short to be worth the while.
        """
        row = self._rows.get(source[LENGTH_BYTES]) if len(source) > LENGTH_BYTES else None
        if row is None or not _is_run(source, row.itemsize):
            return 0, (), ()
        rows = np.frombuffer(source, row, len(source) // row.itemsize)
        is_other = (rows["length"] != row.itemsize - LENGTH_BYTES) | (rows["tag"] != source[LENGTH_BYTES])
        if is_other.any():
            rows = rows[: int(np.argmax(is_other))]
        is_timed = row is self._rows[TAG_RECORD_WITH_TIMESTAMP]
        times = rows["timestamp"].tolist() if is_timed else [None] * len(rows)
        fields = [rows[name].tolist() for name in self._names]
        return rows.nbytes, times, zip(*fields, strict=True) if self._is_tuple else fields[0]


def _is_run(source: memoryview, width: int) -> bool:
    """Whether the eighth record starts as the first does; for fewer numpy costs more than it saves."""
    eighth = source[(_MIN_ROWS_AT_ONCE - 1) * width :]
    return len(eighth) >= width and eighth[:_HEAD.size] == source[:_HEAD.size]


class _Unfilled(StreamRecord):
    """A record to be filled by `records_of`: made without a call of `__init__`, which costs as much as the rest."""

    __slots__ = ()
    __init__ = object.__init__


def records_of(values: Iterable[object], times: Iterable[int | None]) -> Iterator[StreamRecord]:
    """Records of these values and times, each made when it is taken."""
    for value, time in zip(values, times, strict=True):
        record = _Unfilled()
        record.value = value
        record.timestamp = time
        yield record
