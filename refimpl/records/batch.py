"""Records of one width: the same bytes with less work, alone or many at once.

When every value of a type has the same length, a record on the stream is a row of a fixed width:
length, tag, event time, fields. One such record is packed into its buffer with a single call. A
batch is an array of rows: writing it is one assignment per column; reading it is one comparison of
all lengths and tags, and a copy. A reader that meets anything else, such as a watermark, stops
there and leaves the rest to the path for one record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from refimpl.errors import LocalUsageError
from refimpl.memory.builder import BufferBuilder
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.elements import StreamRecord
from refimpl.records.spanning import LENGTH_BYTES, SerializationResult
from refimpl.records.types import TupleType, TypeSerializer

__all__ = ["BatchCodec", "EncodedBatch", "RecordBatch", "RecordPacker", "RecordUnpacker", "records_of"]

RecordBatch = npt.NDArray[np.void]
"""Rows with fields `timestamp` (ms), `f0`, `f1`, …, one for each field of the value."""

_HEAD = struct.Struct(">iB")  # what a record starts with: its length and its tag
_MIN_ROWS_AT_ONCE = 8  # below this many rows numpy costs more than it saves
_DTYPES = {"q": "i8", "i": "i4", "d": "f8", "?": "?"}


class RecordPacker:
    """Packs a record of a fixed-size type into a buffer, if it fits and leaves room.

    The bytes are composed as the serializers compose them: those of the fields behind a head of
    length and tag, which is always the same, and the time, if there is one.

    `of` gives the packer of a type, or `None` where the general path must look at each value: it
    differs in length, or `struct` would take any object for a boolean.

    Flink:   none; the JIT compiler does this to the general path there
    Differs: only saves work. What it declines, the serializers write, byte for byte the same.
    """

    __slots__ = (
        "_is_tuple", "_pack_timed", "_pack_untimed", "_pack_value", "_timed_bytes", "_timed_head",
        "_untimed_bytes", "_untimed_head",
    )  # fmt: skip

    def __init__(self, value_type: TypeSerializer) -> None:
        value = struct.Struct(f">{value_type.struct_format}")
        timed = struct.Struct(f">{_HEAD.size}sq{value.size}s")
        untimed = struct.Struct(f">{_HEAD.size}s{value.size}s")
        self._is_tuple = isinstance(value_type, TupleType)
        self._pack_value = value.pack
        self._pack_timed, self._timed_bytes = timed.pack_into, timed.size
        self._pack_untimed, self._untimed_bytes = untimed.pack_into, untimed.size
        self._timed_head = _HEAD.pack(timed.size - LENGTH_BYTES, TAG_RECORD_WITH_TIMESTAMP)
        self._untimed_head = _HEAD.pack(untimed.size - LENGTH_BYTES, TAG_RECORD)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> RecordPacker | None:
        codes = value_type.struct_format
        return None if codes is None or "?" in codes else cls(value_type)

    def pack(self, record: StreamRecord, builder: BufferBuilder) -> bool:
        """Write and publish length, tag, time and value; false if `builder` is left as it was.

        That is so with a value of another type: the serializer's own complaint names it. And with a
        record that would fill the buffer, or not fit: then there is more to do than to write it.
        """
        fields = record.value if self._is_tuple else (record.value,)
        if fields.__class__ is not tuple:
            return False  # a list would pack too, but only where it fits: refuse it everywhere
        timestamp, start = record.timestamp, builder.written_bytes
        end = start + (self._untimed_bytes if timestamp is None else self._timed_bytes)
        if end >= builder.capacity:
            return False
        try:
            data = self._pack_value(*fields)
            if timestamp is None:
                self._pack_untimed(builder.memory, start, self._untimed_head, data)
            else:
                self._pack_timed(builder.memory, start, self._timed_head, timestamp, data)
        except (struct.error, TypeError, OverflowError):
            return False
        builder.written_bytes = builder.published.value = end
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
        return None if codes is None or any(code not in _DTYPES for code in codes) else cls(value_type)

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


class EncodedBatch:
    """The bytes of many records, cut into buffers as one record is: anywhere."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy on as far as `builder` has room; "record" in the result stands for the batch."""
        self._position += builder.append_and_commit(self._data, self._position)
        if self._position < len(self._data):
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self) -> None:
        """Start over, for the next channel."""
        self._position = 0

    def prune(self) -> None:
        """Nothing grows for a batch."""


class BatchCodec:
    """Rows of records of one fixed-size type, to and from their bytes on the stream.

    `row_dtype` is the layout of a batch in memory; `width` is the bytes of one record on the
    stream, its length of four bytes included.

    Raises:
        LocalUsageError: values of the type differ in length.

    Source:  the wire format is Flink's `StreamRecord` with a timestamp (1.11.4); doing it for many
             rows at once is ours.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        codes = value_type.struct_format
        if codes is None or any(code not in _DTYPES for code in codes):
            raise LocalUsageError(
                f"values of type {value_type.name} differ in length; write them one by one"
            )
        fields = [(f"f{index}", _DTYPES[code]) for index, code in enumerate(codes)]
        self.row_dtype = np.dtype([("timestamp", "i8"), *fields])
        self._wire_dtype = np.dtype(
            [("length", ">i4"), ("tag", "u1"), ("timestamp", ">i8")]
            + [(name, kind if kind == "?" else ">" + kind) for name, kind in fields]
        )
        self.width = self._wire_dtype.itemsize

    @property
    def _payload_bytes(self) -> int:
        return self.width - LENGTH_BYTES

    def encode(self, batch: RecordBatch) -> EncodedBatch:
        """The bytes of all rows, ready to be cut into buffers.

        Raises:
            LocalUsageError: the rows have other fields than this type, or of a kind that would
                lose something.
        """
        names = self.row_dtype.names or ()
        if batch.dtype.names != names or not all(
            np.can_cast(batch.dtype[name], self.row_dtype[name], "safe") for name in names
        ):
            raise LocalUsageError(f"rows are {batch.dtype}, this type needs {self.row_dtype}")
        wire = np.empty(len(batch), self._wire_dtype)
        wire["length"] = self._payload_bytes
        wire["tag"] = TAG_RECORD_WITH_TIMESTAMP
        for name in self.row_dtype.names or ():
            wire[name] = batch[name]
        return EncodedBatch(wire.view(np.uint8).data)

    def decode(self, source: memoryview, position: int = 0) -> tuple[RecordBatch, int]:
        """The rows that start at `position`, and the position after the last of them.

        Stops before the first record that is cut off or is no record with a time of this type;
        the batch may be empty.
        """
        count = (len(source) - position) // self.width
        wire = np.frombuffer(source, self._wire_dtype, count, position)
        plain = (wire["length"] == self._payload_bytes) & (
            wire["tag"] == TAG_RECORD_WITH_TIMESTAMP
        )
        if not plain.all():
            wire = wire[: int(np.argmin(plain))]
        batch = np.empty(len(wire), self.row_dtype)
        for name in self.row_dtype.names or ():
            batch[name] = wire[name]
        return batch, position + len(wire) * self.width
