"""Records of one width: the same bytes with less work, alone or many at once.

When every value of a type has the same length, a record on the stream is a row of a fixed width:
length, tag, event time, fields. One such record is packed into its buffer with a single call. A
batch is an array of rows: writing it is one assignment per column; reading it is one comparison of
all lengths and tags, and a copy. A reader that meets anything else, such as a watermark, stops
there and leaves the rest to the path for one record.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from refimpl.errors import LocalUsageError
from refimpl.memory.builder import BufferBuilder
from refimpl.records.element_serializer import TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.elements import StreamRecord
from refimpl.records.spanning import LENGTH_BYTES, SerializationResult
from refimpl.records.types import TupleType, TypeSerializer

__all__ = ["BatchCodec", "EncodedBatch", "RecordBatch", "RecordPacker"]

RecordBatch = npt.NDArray[np.void]
"""Rows with fields `timestamp` (ms), `f0`, `f1`, …, one for each field of the value."""

class RecordPacker:
    """Packs a record of a fixed-size type into a buffer with one call, if it fits whole.

    `of` gives the packer of a type, or `None` where the general path must look at each value: it
    differs in length, or `struct` would take any object for a boolean.

    Flink:   none; the JIT compiler does this to the general path there
    Differs: only saves work. What it declines, the serializers write, byte for byte the same.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        layout = struct.Struct(f">iBq{value_type.struct_format}")
        self._pack_into = layout.pack_into
        self._width = layout.size
        self._payload_bytes = layout.size - LENGTH_BYTES
        self._is_tuple = isinstance(value_type, TupleType)

    @classmethod
    def of(cls, value_type: TypeSerializer) -> RecordPacker | None:
        codes = value_type.struct_format
        return None if codes is None or "?" in codes else cls(value_type)

    def pack(self, record: StreamRecord, builder: BufferBuilder) -> bool:
        """Write and commit length, tag, time and value; false if `builder` is left as it was.

        That is so without room for all of it, without a time, or with a value of another type:
        the serializer's own complaint names the value.
        """
        start = builder.written_bytes
        timestamp = record.timestamp
        if builder.capacity - start < self._width or timestamp is None:
            return False
        fields = record.value if self._is_tuple else (record.value,)
        if fields.__class__ is not tuple:
            return False  # a list would pack too, but only where it fits: refuse it everywhere
        try:
            self._pack_into(
                builder.memory, start, self._payload_bytes,
                TAG_RECORD_WITH_TIMESTAMP, timestamp, *fields,
            )  # fmt: skip
        except (struct.error, TypeError):
            return False
        builder.advance(self._width)
        return True


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


_DTYPES = {"q": "i8", "i": "i4", "d": "f8", "?": "?"}


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
