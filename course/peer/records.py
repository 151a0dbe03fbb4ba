"""What the ends send each other: every value follows from its partition, its subpartition and its index.

So the end that reads can tell a lost record from a changed one, and two programs in two languages come to the same
checksum. Longs have a fixed width, and are written and read many at a time as well, byte for byte the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from refimpl.errors import RemoteProtocolError
from refimpl.records import LONG, STRING, StreamElement, StreamElementSerializer, StreamRecord
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.spanning import LENGTH_BYTES
from refimpl.records.types import TypeSerializer

__all__ = [
    "PER_SUBPARTITION", "BareElements", "Rows", "SummedType", "TargetSelector", "Values", "elements_of", "index_of",
    "rows_at", "rows_written", "type_of",
]  # fmt: skip

PER_SUBPARTITION = 1_000_000_000
"""Longs of one subpartition begin at a multiple of this."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one partition; `string_pad` is `None` for longs."""

    partition: int
    num_subpartitions: int
    string_pad: int | None = None

    def value(self, subpartition: int, index: int) -> int | str:
        """Record `index` of a subpartition."""
        if self.string_pad is None:
            return (self.partition * self.num_subpartitions + subpartition) * PER_SUBPARTITION + index
        pad = self.string_pad
        num_letters = (index * 31 + subpartition * 7 + self.partition) % pad if pad else 0
        start = index % len(ascii_lowercase)
        letters = ascii_lowercase * (num_letters // len(ascii_lowercase) + 2)
        return f"p{self.partition}-s{subpartition}-r{index}-{letters[start : start + num_letters]}"


def index_of(value: object) -> int:
    """The index that a value names.

    Raises:
        RemoteProtocolError: no producer of ours sends this.
    """
    if isinstance(value, int):
        return value % PER_SUBPARTITION
    try:
        return int(str(value).split("-")[2].removeprefix("r"))
    except (IndexError, ValueError):
        raise RemoteProtocolError(f"{str(value)[:40]!r} is no record of a peer: it names no index") from None


# -- one record at a time ------------------------------------------------------------------------------------------


class TargetSelector:
    """Sends each record where `target` says; whoever emits sets it first."""

    name = "target"
    is_broadcast = False

    def __init__(self) -> None:
        self.target = 0

    def setup(self, num_channels: int) -> None:
        self.target = 0

    def select_channel(self, value: object) -> int:
        return self.target

    def select_channels(self, batch: object) -> int:
        return self.target


class SummedType:
    """A type that sums the bytes of the values that pass, for the channel the selector points at.

    `sums` are CRC-32, over the bytes of the values alone: no length, no tag, no time.
    """

    struct_format: str | None = None  # so that every value comes by here

    def __init__(self, value_type: TypeSerializer, selector: TargetSelector, num_channels: int) -> None:
        self.name = value_type.name
        self.copy = value_type.copy
        self.sums = [0] * num_channels
        self._type = value_type
        self._selector = selector

    def serialize(self, value: object, target: bytearray) -> None:
        start = len(target)
        self._type.serialize(value, target)
        self.add(memoryview(target)[start:])

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        value, end = self._type.deserialize(source, position)
        self.add(source[position:end])
        return value, end

    def add(self, data: bytes | memoryview) -> None:
        """Count the bytes of further values in."""
        channel = self._selector.target
        self.sums[channel] = zlib.crc32(data, self.sums[channel])


class BareElements(StreamElementSerializer):
    """Records as their values alone: no tag and no time, and no other elements."""

    def serialize_into(self, element: StreamElement, target: bytearray) -> None:
        assert isinstance(element, StreamRecord), f"{element!r} has no bare value"
        self.value_type.serialize(element.value, target)

    def deserialize(self, data: bytes | memoryview) -> StreamElement:
        source = memoryview(data)
        value, end = self.value_type.deserialize(source, 0)
        self._check_end(source, end)
        return StreamRecord(value)


def type_of(name: str) -> TypeSerializer:
    """The type that `--type` names."""
    types: dict[str, TypeSerializer] = {"long": LONG, "string": STRING}
    return types[name]


def elements_of(name: str, value_type: TypeSerializer) -> StreamElementSerializer:
    """What `--elements` names."""
    return {"raw": BareElements, "stream": StreamElementSerializer}[name](value_type)


# -- many at a time ------------------------------------------------------------------------------------------------


class Rows:
    """Longs with their lengths, tags and times, many at a time.

    `tag` is the element's, `None` for bare values. `width` is the bytes of one record on the stream.

    Source: as `refimpl.shortcuts.columns.BatchCodec`, whose rows all have a tag and a time.
    """

    def __init__(self, tag: int | None) -> None:
        fields = [("length", ">i4"), ("tag", "u1"), ("timestamp", ">i8"), ("value", ">i8")]
        absent = {None: {"tag", "timestamp"}, TAG_RECORD: {"timestamp"}, TAG_RECORD_WITH_TIMESTAMP: set()}[tag]
        self._dtype = np.dtype([field for field in fields if field[0] not in absent])
        self._tag = tag
        self._is_timed = tag == TAG_RECORD_WITH_TIMESTAMP
        self.width = self._dtype.itemsize

    def encode(self, first_value: int, first_timestamp: int, count: int) -> tuple[memoryview, bytes]:
        """`count` values that go up by one, as records to be cut into buffers, and the values' bytes alone."""
        rows = np.empty(count, self._dtype)
        rows["length"] = self.width - LENGTH_BYTES
        rows["value"] = np.arange(first_value, first_value + count)
        if self._tag is not None:
            rows["tag"] = self._tag
        if self._is_timed:
            rows["timestamp"] = np.arange(first_timestamp, first_timestamp + count)
        return rows.view(np.uint8).data, rows["value"].tobytes()

    def decode(self, source: memoryview) -> npt.NDArray[np.int64]:
        """The values at the start of `source`, big-endian, up to the first record that is cut off or something else."""
        rows = np.frombuffer(source, self._dtype, len(source) // self.width)
        is_row = rows["length"] == self.width - LENGTH_BYTES
        if self._tag is not None:
            is_row &= rows["tag"] == self._tag
        num_rows = len(rows) if is_row.all() else int(np.argmin(is_row))
        return np.ascontiguousarray(rows["value"][:num_rows])


_ROWS = {tag: Rows(tag) for tag in (None, TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP)}


def rows_written(elements: str, is_timed: bool) -> Rows:
    """The rows of a producer with these `--elements` and `--timestamps`."""
    if elements == "raw":
        return _ROWS[None]
    return _ROWS[TAG_RECORD_WITH_TIMESTAMP if is_timed else TAG_RECORD]


def rows_at(elements: str, source: memoryview) -> Rows | None:
    """The rows with which `source` seems to begin; `None` if its first element is no record."""
    if elements == "raw":
        return _ROWS[None]
    return _ROWS.get(source[LENGTH_BYTES]) if len(source) > LENGTH_BYTES else None
