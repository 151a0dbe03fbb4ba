"""Records of one width: the same bytes with less work, alone or many at once.

Where values have one length, a record on the stream is a row of a fixed width:

    length        tag      event time    field 0       field 1
    00 00 00 19   00       8 bytes       8 bytes       8 bytes       29 bytes for two longs
    00 00 00 19   00       ...

There are three ways to write such rows, and their bytes are the same. `FastRecordWriter.emit` packs one
into its buffer with a single call. `emit_many` does so for several. `write_batch` takes columns: one
assignment for each writes all rows, and the buffers are cut from them wherever they happen to end.

Reading is the inverse. The first record says how wide it is; one comparison finds how many of those
behind it have the same length and tag; then each field is one copy. What differs, such as a watermark
or a longer text, is where a batch ends, and is read by itself: so nobody has to know beforehand what a
stream holds, and a stream of odd records costs one look in a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from refimpl.errors import LocalUsageError
from refimpl.memory.pages import SAFE_SHIFT, allocate_pages
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.elements import Column, RecordBatch
from refimpl.records.spanning import LENGTH_BYTES
from refimpl.records.types import STRING, TupleType, TypeSerializer

__all__ = ["BatchCodec", "WireRows", "by_channel"]

WireRows: TypeAlias = "np.ndarray[Any, np.dtype[np.void]]"
"""Records as they stand on the stream, one after the other, all of one width."""

_DTYPES = {"q": "i8", "i": "i4", "d": "f8", "?": "u1"}
_TAG_AT = LENGTH_BYTES
_TIME_BYTES = 8
_MIN_ROWS_KEPT = 1024
_ONE_BYTE = 0x80  # characters and lengths below this take one byte on the stream


class BatchCodec:
    """Records of one type in columns, to and from their bytes on the stream.

    It works wherever all records of a batch are equally wide: fields of a fixed size, and text of one
    length and plain characters. How wide text is the first record says; whether all others are as wide
    is looked up, for all at once. What differs goes the way of single records, and nobody but the
    clock can tell.

    Raises:
        LocalUsageError: values of the type are no fields of fixed size and text.

    Source:  the wire format is that of Flink's `StreamRecord` (1.11.4); doing it for many rows at once
             is ours.
    """

    def __init__(self, value_type: TypeSerializer) -> None:
        self._is_tuple = isinstance(value_type, TupleType)
        fields = value_type.fields if isinstance(value_type, TupleType) else [value_type]
        kinds = [_DTYPES.get(str(field.struct_format), "U" if field is STRING else "") for field in fields]
        if not all(kinds):
            raise LocalUsageError(f"values of type {value_type.name} differ in length; write them one by one")
        self._kinds = kinds
        self._names = [f"f{index}" for index in range(len(kinds))]
        self._has_text = "U" in kinds
        # Of the codec, not of the file: a job without batches then gets by without numpy, where that is put off.
        self._dtypes = {kind: np.dtype("?" if kind == "u1" else kind) for kind in _DTYPES.values()}
        self._kinds_and_time = [*kinds, "i8"]
        self._names_and_time = [*self._names, "timestamp"]
        self._dtypes_and_time = [self._dtypes.get(kind) for kind in self._kinds_and_time]
        self._kept: dict[np.dtype[np.void], WireRows] = {}
        self._layouts: dict[tuple[bool, tuple[int, ...]], np.dtype[np.void]] = {}
        self._heads: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._staging = memoryview(b"")

    @classmethod
    def of(cls, value_type: TypeSerializer) -> BatchCodec | None:
        """The codec of a type, or `None` if it has none."""
        try:
            return cls(value_type)
        except LocalUsageError:
            return None

    def encode(self, batch: RecordBatch) -> WireRows | None:
        """The records as they stand on the stream, a row each; `None` if they are not equally wide.

        The next batch is written over them, unless somebody says `let_go` first. `None` also if a column
        is of another kind than its field: the way of single records says of which value that is.
        """
        given, times = batch.columns, batch.timestamps
        if batch.is_tuple is not self._is_tuple or batch.names is not None or len(given) != len(self._kinds):
            return None
        if times is not None:
            given = (*given, times)
        columns = []
        for column, kind, dtype in zip(given, self._kinds_and_time, self._dtypes_and_time, strict=False):
            if column.dtype is not dtype or type(column) is not np.ndarray or column.ndim != 1:
                if (plain := _plain(column, kind)) is None:
                    return None
                column = plain
            columns.append(column)
        widths = tuple([column.shape[1] for column in columns if column.ndim == 2]) if self._has_text else ()
        rows = self._empty_rows(self._layout(times is not None, widths), len(batch))
        for name, column in zip(self._names_and_time, columns, strict=False):
            rows[name] = column
        return rows

    def let_go(self) -> None:
        """Leave the rows of the last batch to whoever has them."""
        self._kept = {}

    def _empty_rows(self, layout: np.dtype[np.void], count: int) -> WireRows:
        """Rows with all that is the same in each filled in: those of the last batch, if there were as many."""
        kept = self._kept.get(layout)
        if kept is None or len(kept) < count:
            room = allocate_pages(max(count, _MIN_ROWS_KEPT) * layout.itemsize)
            kept = np.frombuffer(room, layout)
            kept["length"] = layout.itemsize - LENGTH_BYTES
            kept["tag"] = TAG_RECORD_WITH_TIMESTAMP if "timestamp" in (layout.names or ()) else TAG_RECORD
            for index, kind in enumerate(self._kinds):
                if kind == "U":
                    kept[f"n{index}"] = kept[f"f{index}"].shape[1] + 1
            self._kept = {layout: kept}
        return kept[:count]

    def decode(self, source: memoryview, least: int = 1) -> tuple[RecordBatch | None, int]:
        """The records that `source` begins with and that are like the first, and where they end.

        `None` if there are fewer than `least`. Stops before the first that is cut off, that is wider
        or narrower, or that is no record.
        """
        layout = self._layout_of_first(source)
        if layout is None:
            return None, 0
        rows = np.frombuffer(source, layout, len(source) // layout.itemsize)
        rows = rows[: self._num_alike(rows, layout.itemsize - LENGTH_BYTES, source[_TAG_AT])]
        if len(rows) < least:
            return None, 0
        columns = [_native(rows[name], kind) for name, kind in zip(self._names, self._kinds, strict=True)]
        times = _native(rows["timestamp"], "i8") if source[_TAG_AT] == TAG_RECORD_WITH_TIMESTAMP else None
        return RecordBatch(columns, times, None, self._is_tuple), len(rows) * layout.itemsize

    def joined(self, pieces: Sequence[memoryview], num_first: int) -> memoryview:
        """The bytes of pieces one behind the other, for records that are cut in two; those joined before are gone.

        One piece is left where it is.

        So many come before the first piece that is a whole buffer: that one lies in its page as it does in its
        segment, and so do those that follow. See `memory.pages`.
        """
        if len(pieces) == 1:
            return pieces[0]
        start = -num_first % SAFE_SHIFT
        if len(self._staging) < (end := start + sum(map(len, pieces))):
            self._staging = allocate_pages(end)
        at, joined = start, self._staging
        for piece in pieces:
            begin, at = at, at + len(piece)
            joined[begin:at] = piece
        return joined[start:end]

    def _num_alike(self, rows: WireRows, length: int, tag: int) -> int:
        """How many of the first rows are whole records like the first of them, which has this length and tag."""
        lengths, tags = rows["length"], rows["tag"]
        if not self._has_text:
            # To copy a column out and compare its bytes with those expected is half the work of comparing numbers.
            all_lengths, all_tags = self._heads_of(length, tag, len(rows))
            if all_lengths.startswith(lengths.tobytes()) and all_tags.startswith(tags.tobytes()):
                return len(rows)
        is_alike = (lengths == length) & (tags == tag)
        for index, kind in enumerate(self._kinds):
            if kind == "U":
                text = rows[f"f{index}"]
                is_alike &= (rows[f"n{index}"] == text.shape[1] + 1) & (text < _ONE_BYTE).all(axis=1)
                if text.shape[1]:
                    is_alike &= text[:, -1] != 0  # numpy's text cannot end with one
        return len(rows) if is_alike.all() else int(np.argmin(is_alike))

    def _heads_of(self, length: int, tag: int, count: int) -> tuple[bytes, bytes]:
        """The lengths and the tags of at least `count` such records, as they stand on the stream."""
        heads = self._heads.get((length, tag))
        if heads is None or len(heads[1]) < count:
            heads = length.to_bytes(LENGTH_BYTES, "big") * count, bytes([tag]) * count
            self._heads = {(length, tag): heads}
        return heads

    def _layout(self, is_timed: bool, widths: tuple[int, ...]) -> np.dtype[np.void]:
        """One record on the stream, with texts of these widths."""
        layout = self._layouts.get((is_timed, widths))
        if layout is None:
            parts: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("length", ">i4"), ("tag", "u1")]
            if is_timed:
                parts.append(("timestamp", ">i8"))
            width = iter(widths)
            for index, kind in enumerate(self._kinds):
                if kind == "U":
                    parts += [(f"n{index}", "u1"), (f"f{index}", "u1", (next(width),))]
                else:
                    parts.append((f"f{index}", ">" + kind))
            layout = self._layouts[is_timed, widths] = np.dtype(parts)
        return layout

    def _layout_of_first(self, source: memoryview) -> np.dtype[np.void] | None:
        """The layout of the record that `source` begins with, if it is one and whole."""
        if len(source) <= _TAG_AT or source[_TAG_AT] not in (TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP):
            return None
        is_timed = source[_TAG_AT] == TAG_RECORD_WITH_TIMESTAMP
        if not self._has_text:
            layout = self._layout(is_timed, ())
            return layout if layout.itemsize <= len(source) else None
        position = _TAG_AT + 1 + is_timed * _TIME_BYTES
        widths = []
        for kind in self._kinds:
            if kind != "U":
                position += self._dtypes[kind].itemsize
                continue
            if position >= len(source) or not 0 < source[position] < _ONE_BYTE:
                return None
            widths.append(source[position] - 1)
            position += source[position]
        return self._layout(is_timed, tuple(widths)) if position <= len(source) else None


def by_channel(rows: WireRows, channels: Column | int, num_channels: int) -> Iterator[tuple[int, memoryview]]:
    """Each channel that gets some of the rows, and their bytes in the order they had.

    A stable sort of small numbers is a radix sort: it costs the same for any number of channels. The
    rows are then moved once.
    """
    if isinstance(channels, int) or num_channels == 1:
        if len(rows):
            yield channels if isinstance(channels, int) else 0, rows.view(np.uint8).data
        return
    narrow = channels.astype(np.min_scalar_type(num_channels - 1))
    order = np.argsort(narrow, kind="stable")
    data = rows.take(order).view(np.uint8).data
    ends = narrow.take(order).searchsorted(np.arange(num_channels, dtype=narrow.dtype), "right") * rows.itemsize
    start = 0
    for channel, end in enumerate(ends.tolist()):
        if end > start:
            yield channel, data[start:end]
            start = end


def _plain(column: Column, kind: str) -> Column | None:
    """The numbers of a column, or the characters of its texts in rows; `None` if not all fit `kind`."""
    if isinstance(column, np.ma.MaskedArray):
        if np.ma.is_masked(column):
            return None
        column = column.data
    if column.ndim != 1:
        return None
    if kind != "U":
        is_kept = np.can_cast(column.dtype, "?" if kind == "u1" else kind, "safe")
        return column if is_kept or _is_in_range(column, kind) else None
    if column.dtype.kind != "U":
        return None
    characters = np.ascontiguousarray(column).view(np.uint32).reshape(len(column), -1)
    lengths = np.strings.str_len(column)
    width = int(lengths[0]) if len(lengths) else 0
    if width >= _ONE_BYTE - 1 or (lengths != width).any():
        return None
    characters = characters[:, :width]
    return characters if (characters < _ONE_BYTE).all() else None


def _is_in_range(column: Column, kind: str) -> bool:
    """Whether all numbers of a column of wider integers are some that `kind` has."""
    if column.dtype.kind not in "iu" or kind not in ("i4", "i8"):
        return False
    limits = np.iinfo(kind)
    return not len(column) or (int(column.min()) >= limits.min and int(column.max()) <= limits.max)


def _native(part: Column, kind: str) -> Column:
    """One field of some rows as a column of its own."""
    if kind == "U":
        num_rows, width = part.shape
        return part.astype(np.uint32).view(f"U{width}").ravel() if width else np.zeros(num_rows, "U1")
    return part != 0 if kind == "u1" else part.astype(kind)
