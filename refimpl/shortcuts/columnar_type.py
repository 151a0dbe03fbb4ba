"""A record that is a batch: one length and one tag for many rows, and each column in one piece.

Rows as Flink writes them cost five bytes of prefix each and a pass over the bytes for each field. Whoever
sends to other readers of this type only can do without: here a column lies on the wire as in memory, so
writing and reading are copies. For the engine it is one record: it goes to one channel, has one event
time, and is counted once.
"""

from __future__ import annotations

import numpy as np

from refimpl.errors import LocalUsageError, RemoteProtocolError, shown
from refimpl.records.elements import Column, RecordBatch
from refimpl.records.types import TypeSerializer

__all__ = ["ColumnarType"]

_COUNT_BYTES = 4
_KINDS = {"q": "<i8", "i": "<i4", "d": "<f8", "?": "|u1"}


class ColumnarType:
    """Values are `RecordBatch`es with a column for each of `fields`, numbers or booleans.

    On the stream: the number of rows as an int, big-endian, then each column, little-endian and without
    gaps. The times and names of a batch are not written.

    Raises:
        LocalUsageError: a field differs in length.

    Flink:   none; its tables of Arrow batches go to Python in Arrow's format (ArrowSerializer, 1.11)
    """

    struct_format: str | None = None

    def __init__(self, *fields: TypeSerializer) -> None:
        kinds = [_KINDS.get(str(field.struct_format)) for field in fields]
        for field, kind in zip(fields, kinds, strict=True):
            if kind is None:
                raise LocalUsageError(f"a column of {field.name} differs in length; use long, int, double or boolean")
        if not fields:
            raise LocalUsageError("columns need at least one field")
        self._kinds = [np.dtype(kind) for kind in kinds]
        self.name = "columns(" + ", ".join(field.name for field in fields) + ")"

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: object, target: bytearray) -> None:
        if not isinstance(value, RecordBatch) or len(value.columns) != len(self._kinds):
            raise LocalUsageError(f"{shown(value)} is no batch of {self.name}")
        columns = [_plain(column, kind) for column, kind in zip(value.columns, self._kinds, strict=True)]
        target += len(value).to_bytes(_COUNT_BYTES, "big")
        for column in columns:
            target += column.data

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        start = position + _COUNT_BYTES
        count = int.from_bytes(source[position:start], "big", signed=True)
        end = start + count * sum(kind.itemsize for kind in self._kinds)
        if start > len(source) or count < 0 or end > len(source):
            raise RemoteProtocolError(
                f"{self.name} start at byte {position} with {count} rows, but the record ends at byte {len(source)}"
            )
        columns = []
        for kind in self._kinds:
            column = np.frombuffer(source, kind, count, start)
            columns.append(column != 0 if kind.itemsize == 1 else column.astype(kind.newbyteorder("=")))
            start += column.nbytes
        return RecordBatch(columns), end

    def copy(self, value: object) -> object:
        return value.copy() if isinstance(value, RecordBatch) else value


def _plain(column: Column, kind: np.dtype[np.generic]) -> Column:
    """The numbers of a column, side by side.

    Raises:
        LocalUsageError: some are missing, or would lose something.
    """
    wanted = np.dtype("?") if kind.itemsize == 1 else kind
    if type(column) is np.ndarray and column.dtype == wanted and column.ndim == 1 and column.flags.c_contiguous:
        return column.view(kind)  # nearly always; what follows takes as long as copying it
    if np.ma.is_masked(column) or column.ndim != 1 or not np.can_cast(column.dtype, wanted, "safe"):
        raise LocalUsageError(f"a column of {column.dtype} does not fit {wanted}, or misses values")
    return np.ascontiguousarray(np.ma.getdata(column), wanted).view(kind)
