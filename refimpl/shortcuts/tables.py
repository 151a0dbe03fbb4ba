"""Keyed state as bytes, a column at a time: the same bytes as entry by entry, with less work.

Keys, namespaces and values of a table are columns of numbers and texts. Each column of numbers becomes bytes with one
call, and so do all texts together. In an entry a text has its length in front:

    key       length        text
    8 bytes   1 to 5 bytes  as many      an entry of a table of texts by number

One sort brings the entries of each key group together, in the order that they have in the table. If all entries are
equally wide, they are rows of a matrix; else each part is put where it belongs.

That moves bytes to places far from each other. So a table is taken some thousand entries at a time: as many as the
processor's cache holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from refimpl.producer.key_groups import key_group_of
from refimpl.records.elements import Column
from refimpl.records.types import STRING, TupleType, TypeSerializer
from refimpl.shortcuts.selectors import key_groups_of
from refimpl.state.keyed_state import StateTable, write_table
from refimpl.state.state_types import VOID

__all__ = ["write_table_at_once"]

_FEW = 32
"""Entries for which it does not pay to make columns."""

_AT_ONCE = 4_096
"""Entries of a chunk."""

_LONGEST_KEY = 64
"""Characters of texts whose hashes are computed at once: in a matrix that is as wide as the longest."""

_KINDS: dict[str, tuple[type, type]] = {
    "q": (int, np.int64), "i": (int, np.int64), "d": (float, np.float64), "?": (bool, np.bool_),
}  # fmt: skip
_OF_INT = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of plain characters, a byte for each, how many each has, and all of them one behind the other."""

    values: Sequence[str]
    lengths: Column
    raw: bytes = b""

    @property
    def is_even(self) -> bool:
        return bool((self.lengths == self.lengths[0]).all())


_Column: TypeAlias = "Column | _Texts"
"""Bytes, a row for each entry, or texts."""

_Part: TypeAlias = "tuple[TypeSerializer, Sequence[Any]]"
"""Keys, namespaces or values, with their type."""


def write_table_at_once(
    table: StateTable[Any], key_type: TypeSerializer, key_groups: range, max_parallelism: int
) -> tuple[bytes, ...]:
    """What `write_table` makes; whatever has no columns, or is not of its type, is left to that.

    Stands for `write_table`.
    """
    if len(table) >= _FEW and (parts := _parts(table, key_type)):
        chunks = []
        for start in range(0, len(table), _AT_ONCE):
            chunk = [(of_type, values[start : start + _AT_ONCE]) for of_type, values in parts]
            if (written := _chunk(chunk, key_groups, max_parallelism)) is None:
                break
            chunks.append(written)
        else:
            return tuple(map(b"".join, zip(*chunks, strict=True)))
    return write_table(table, key_type, key_groups, max_parallelism)


def _parts(table: StateTable[Any], key_type: TypeSerializer) -> list[_Part]:
    """Keys, namespaces and values; no namespaces where they are nothing, and no parts where one is something there."""
    contents = table.contents
    values = table.value_type, [*contents.values()]
    if table.namespace_type is VOID:
        keys = [key for key, namespace in contents if namespace is None]
        return [(key_type, keys), values] if len(keys) == len(contents) else []
    keys, namespaces = [key for key, _ in contents], [namespace for _, namespace in contents]
    return [(key_type, keys), (table.namespace_type, namespaces), values]


def _chunk(parts: Sequence[_Part], key_groups: range, max_parallelism: int) -> tuple[bytes, ...] | None:
    """Some entries by key group; `None` if they have no columns or no bytes, or a key is of none of these groups."""
    if not (columns := _joined(parts)):
        return None
    (key_type, keys), *_ = parts
    groups = _key_groups(keys, columns[0], key_type, max_parallelism)
    if groups.min() < key_groups.start or groups.max() >= key_groups.stop:
        return None
    return _written(columns, groups - key_groups.start, len(key_groups))


def _key_groups(keys: Sequence[Any], first: _Column, key_type: TypeSerializer, max_parallelism: int) -> Column:
    """The key group of each of some keys of the type; `first` is the first of their columns."""
    groups = None
    if type(keys[0]) is int and not isinstance(first, _Texts):
        numbers = first.view(f">i{first.shape[1]}").ravel().astype(np.int64)
        groups = key_groups_of(numbers, max_parallelism, key_type)
    elif type(keys[0]) is str and len(max(keys, key=len)) <= _LONGEST_KEY and "\0" not in "".join(keys):
        groups = key_groups_of(np.array(keys), max_parallelism, key_type)  # numpy drops a NUL at the end
    if groups is None:
        known = {key: key_group_of(key, max_parallelism, key_type) for key in set(keys)}
        groups = np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))
    return groups.astype(np.int64)


# -- columns ---------------------------------------------------------------------------------------


def _joined(parts: Sequence[_Part]) -> list[_Column] | None:
    """The columns of several parts; `None` if one has none."""
    columns: list[_Column] = []
    for of_type, values in parts:
        own = _columns(of_type, values)
        if own is None:
            return None
        columns += own
    return columns


def _columns(of_type: TypeSerializer, values: Sequence[Any]) -> list[_Column] | None:
    """The columns of values that all are of the type; `None` if there is no rule for them."""
    if of_type is STRING:
        return _texts(values)
    kinds = set(map(type, values))
    if isinstance(of_type, TupleType):
        if kinds != {tuple} or set(map(len, values)) != {len(of_type.fields)}:
            return None
        return _joined([*zip(of_type.fields, zip(*values, strict=True), strict=True)])
    return _numbers(of_type.struct_format, values, kinds)


def _texts(values: Sequence[Any]) -> list[_Column] | None:
    try:
        joined = "".join(values)  # which is the cheapest way to ask whether all are texts
    except TypeError:
        return None
    if not joined.isascii():
        return None
    return [_Texts(values, np.fromiter(map(len, values), np.int64, len(values)), joined.encode("ascii"))]


def _numbers(code: str | None, values: Sequence[Any], kinds: set[type]) -> list[_Column] | None:
    """The column of numbers that `struct` packs with this code."""
    if code not in _KINDS or kinds != {_KINDS[code][0]}:
        return None
    try:
        column: Column = np.array(values, _KINDS[code][1])
    except OverflowError:
        return None
    if code == "i":
        if column.min() < _OF_INT.min or column.max() > _OF_INT.max:
            return None
        column = column.astype(np.int32)
    return [column.astype(column.dtype.newbyteorder(">")).view(np.uint8).reshape(len(values), -1)]


# -- bytes -----------------------------------------------------------------------------------------


def _written(columns: Sequence[_Column], groups: Column, num_groups: int) -> tuple[bytes, ...]:
    """The entries that these columns make, by group."""
    order = np.argsort(groups.astype(np.min_scalar_type(num_groups)), kind="stable")  # few bits: a radix sort
    if all(column.is_even for column in columns if isinstance(column, _Texts)):
        rows = np.concatenate([part for column in columns for part in _as_rows(column)], axis=1)
        width = rows.shape[1]
        raw = rows.view(f"V{width}").ravel().take(order).view(np.uint8)
        ends = np.bincount(groups, minlength=num_groups).cumsum() * width
    else:
        ordered = [_in_order(column, order) for column in columns]
        sizes = sum(map(_sizes, ordered))
        raw = _put_together(ordered, sizes)
        ends = np.bincount(groups[order], weights=sizes, minlength=num_groups).cumsum().astype(np.int64)
    data, starts = raw.data, [0, *ends[:-1].tolist()]
    return tuple(bytes(data[start:end]) for start, end in zip(starts, ends.tolist(), strict=True))


def _as_rows(column: _Column) -> list[Column]:
    """The bytes of a column in which all entries are equally wide, a row for each."""
    if not isinstance(column, _Texts):
        return [column]
    count, width = len(column.values), int(column.lengths[0])
    length = np.concatenate([byte for _, byte in _length_bytes(column.lengths[:1])])
    characters = np.frombuffer(column.raw, np.uint8).reshape(count, width)
    return [np.broadcast_to(length, (count, len(length))), characters]


def _in_order(column: _Column, order: Column) -> _Column:
    if not isinstance(column, _Texts):
        return column[order]
    values = column.values
    return _Texts([values[number] for number in order.tolist()], column.lengths[order])


def _sizes(column: _Column) -> Column | int:
    """How many bytes each entry has in this column."""
    if not isinstance(column, _Texts):
        return column.shape[1]
    return column.lengths + _sizes_of_lengths(column.lengths)


def _sizes_of_lengths(lengths: Column) -> Column:
    return 1 + sum((lengths + 1 >= 1 << 7 * number).astype(np.int64) for number in range(1, 5))


def _length_bytes(lengths: Column) -> list[tuple[Column, Column]]:
    """The lengths as `write_varint` writes them, plus one: byte after byte, with the entries that have so many."""
    found, numbers, rows = [], lengths + 1, np.arange(len(lengths))
    while len(rows):
        more = numbers > 0x7F
        found.append((rows, (numbers & 0x7F | more * 0x80).astype(np.uint8)))
        rows, numbers = rows[more], numbers[more] >> 7
    return found


def _put_together(columns: Sequence[_Column], sizes: Column) -> Column:
    """The entries one behind the other, of columns that are in order; `sizes` are those of entries."""
    raw = np.empty(int(sizes.sum()), np.uint8)
    is_text = np.ones(len(raw), np.bool_)
    places = sizes.cumsum() - sizes
    for column in columns:
        if isinstance(column, _Texts):
            for number, (rows, byte) in enumerate(_length_bytes(column.lengths)):
                raw[places[rows] + number] = byte
                is_text[places[rows] + number] = False
        else:
            each = places[:, None] + np.arange(column.shape[1])
            raw[each] = column
            is_text[each] = False
        places = places + _sizes(column)
    texts = [column.values for column in columns if isinstance(column, _Texts)]
    raw[is_text] = np.frombuffer("".join(chain.from_iterable(zip(*texts, strict=True))).encode("ascii"), np.uint8)
    return raw
