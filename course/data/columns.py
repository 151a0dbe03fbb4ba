"""Arrow's columns as the engine's: numbers as they lie in memory, text of one length as rows of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.data.spark_values import values_of
from refimpl.records import Column, RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["column_of", "record_batch_of"]


def record_batch_of(batch: pa.RecordBatch) -> RecordBatch:
    """The rows of an Arrow batch, each value a dict by column name. Numbers are not copied.

    Raises:
        ValueError: the batch has no columns.
    """
    named = zip(batch.columns, batch.schema.names, strict=True)
    return RecordBatch([column_of(column, name) for column, name in named], names=batch.schema.names)


def column_of(column: pa.Array, name: str = "") -> Column:
    """One column, whose `tolist` is what `values_of` gives.

    Missing numbers are masked. Text is numpy's where all has one length and plain characters; other text,
    and whatever numpy has no kind for, stays a column of objects.
    """
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _text_of(column.cast(pa.large_string()))
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        return _objects_of(column, name)
    if not column.null_count:
        numbers: Column = column.to_numpy(zero_copy_only=False)
        return numbers
    missing = column.is_null().to_numpy(zero_copy_only=False)
    filled = column.fill_null(pa.scalar(0).cast(column.type))
    return np.ma.array(filled.to_numpy(zero_copy_only=False), mask=missing)


def _text_of(column: pa.Array) -> Column:
    """Text of one length straight from Arrow's memory, where its characters lie one after the other."""
    import numpy as np

    _, offsets_buffer, characters_buffer = column.buffers()
    if column.null_count or not len(column) or characters_buffer is None:
        return _objects_of(column)
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    width, rest = divmod(int(offsets[-1] - offsets[0]), len(column))
    if rest or not width or (np.diff(offsets) != width).any():
        return _objects_of(column)
    characters = np.frombuffer(characters_buffer, np.uint8)[offsets[0] : offsets[-1]].reshape(-1, width)
    if (characters >= 0x80).any() or not characters[:, -1].all():  # numpy's text cannot end with a zero
        return _objects_of(column)
    return characters.astype(np.uint32).view(f"U{width}").ravel()


def _objects_of(column: pa.Array, name: str = "") -> Column:
    import numpy as np

    objects = np.empty(len(column), object)
    for place, value in enumerate(values_of(column, name)):  # numpy would take lists of one length apart
        objects[place] = value
    return objects
