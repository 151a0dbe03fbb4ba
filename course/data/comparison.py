"""Two answers compared row by row, and what differs said in words.

Rows are tuples with names. Some columns are the key, which says what a row is about; the others are values. So a wrong
number is told as "departures 1, expected 2" beside its key, and not as one row too many and one too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Comparison", "Fingerprint", "Shape", "compare_frames", "compare_rows", "fingerprint", "rows_of"]

Row = tuple[Any, ...]

_TOLERANCE = 1e-9
"""By which numbers with a fraction may differ: sums of them depend on the order."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What rows look like: the first `num_keys` of the names are the key. How both are shown can be given."""

    names: tuple[str, ...]
    num_keys: int
    show_key: Callable[[Row], str] | None = None
    show_values: Callable[[Row], str] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.num_keys <= len(self.names):
            raise ValueError(f"a row of {len(self.names)} columns has 1 to {len(self.names)} keys, not {self.num_keys}")

    def key(self, row: Row) -> Row:
        return tuple(row[: self.num_keys])

    def checked(self, row: Sequence[Any]) -> Row:
        """The row as it came, with its names if it has some.

        Raises:
            ValueError: it has more or fewer columns.
        """
        if len(row) != len(self.names):
            raise ValueError(f"{row!r:.100} is not a row of {', '.join(self.names)}")
        return row if isinstance(row, tuple) else tuple(row)

    def differing(self, got: Row, want: Row) -> list[tuple[str, Any, Any]]:
        """The values that differ by more than rounding: name, got, wanted."""
        rest = zip(self.names, got, want, strict=True)
        return [(name, a, b) for name, a, b in list(rest)[self.num_keys :] if not _is_same(a, b)]

    def in_words(self, row: Row) -> str:
        """A row for people."""
        if self.show_values is not None:
            values = self.show_values(row)
        else:
            pairs = list(zip(self.names, row, strict=True))[self.num_keys :]
            values = ", ".join(f"{name} {_short(value)}" for name, value in pairs)
        return f"{self.key_in_words(row)}  {values}".rstrip()

    def key_in_words(self, row: Row) -> str:
        """The key for people."""
        return " ".join(map(_short, self.key(row))) if self.show_key is None else self.show_key(row)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an answer differs from the wanted one; empty lists when it does not."""

    num_got: int
    num_want: int
    shape: Shape
    missing: list[Any] = field(default_factory=list)
    unexpected: list[Any] = field(default_factory=list)
    different: list[tuple[Any, Any]] = field(default_factory=list)
    """Pairs (got, wanted) of the same key."""

    @property
    def is_equal(self) -> bool:
        """Whether both answers hold the same rows."""
        return not (self.missing or self.unexpected or self.different)

    def message(self, limit: int = 5) -> str:
        """Say in words what differs, with at most `limit` rows of each kind."""
        if self.is_equal:
            return f"equal: {self.num_want} rows"
        show = self.shape.in_words
        lines = [f"{self.num_got} rows, expected {self.num_want}:"]
        lines += _section("missing", [show(row) for row in self.missing], limit)
        lines += _section("unexpected or twice", [show(row) for row in self.unexpected], limit)
        lines += _section("different", [self._difference(got, want) for got, want in self.different], limit)
        return "\n".join(lines)

    def _difference(self, got: Row, want: Row) -> str:
        """The key of a pair and all that is not identical, rounding too, once something differs by more."""
        triples = list(zip(self.shape.names, got, want, strict=True))[self.shape.num_keys :]
        parts = [f"{name} {_short(a)}, expected {_short(b)}" for name, a, b in triples if a != b]
        return f"{self.shape.key_in_words(got)}  {'; '.join(parts)}"


def compare_rows(got: Iterable[Sequence[Any]], want: Iterable[Sequence[Any]], shape: Shape) -> Comparison:
    """Compare two answers, in any order. A key may be there several times, if it is so in both.

    Numbers with a fraction may differ by rounding (relative 1e-9), all else is the same or different.

    Raises:
        ValueError: a row has more or fewer columns than `shape`.
    """
    answer, expected = ([shape.checked(row) for row in rows] for rows in (got, want))
    waiting: dict[Row, list[Row]] = {}
    for row in expected:
        waiting.setdefault(shape.key(row), []).append(row)
    unexpected, different, unmatched = [], [], []
    for row in answer:  # first those that have their equal, so that of two with one key the right one is paired
        same = [each for each in waiting.get(shape.key(row), ()) if not shape.differing(row, each)]
        if same:
            waiting[shape.key(row)].remove(same[0])
        else:
            unmatched.append(row)
    for row in unmatched:
        of_key = waiting.get(shape.key(row))
        if of_key:
            different.append((row, of_key.pop(0)))
        else:
            unexpected.append(row)
    missing = [row for rows in waiting.values() for row in rows]
    return Comparison(
        len(answer),
        len(expected),
        shape,
        sorted(missing, key=_sortable),
        sorted(unexpected, key=_sortable),
        sorted(different, key=lambda pair: _sortable(pair[0])),
    )


def compare_frames(got: DataFrame, want: DataFrame, keys: Sequence[str]) -> Comparison:
    """Compare two DataFrames with the same columns. Only what differs leaves Spark.

    Raises:
        ValueError: their columns differ, or a key is none of them.
    """
    if unknown := [name for name in keys if name not in want.columns]:
        raise ValueError(f"{unknown[0]!r} is no column; there are {', '.join(want.columns)}")
    if sorted(got.columns) != sorted(want.columns):
        raise ValueError(f"columns {', '.join(got.columns)}, expected {', '.join(want.columns)}")
    names = (*keys, *(name for name in want.columns if name not in keys))
    shape = Shape(names, len(keys))
    mine, theirs = got.select(*names), want.select(*names)
    prints = fingerprint(mine), fingerprint(theirs)
    if prints[0] == prints[1]:
        return Comparison(prints[0].num_rows, prints[1].num_rows, shape)
    found = compare_rows(rows_of(mine.exceptAll(theirs)), rows_of(theirs.exceptAll(mine)), shape)
    return Comparison(prints[0].num_rows, prints[1].num_rows, shape, found.missing, found.unexpected, found.different)


class Fingerprint(NamedTuple):
    """What all rows of a table come to, whatever their order and partitions are."""

    num_rows: int
    xor: int
    total: int
    """Without it two equal rows would cancel each other."""


def fingerprint(frame: DataFrame) -> Fingerprint:
    """Number of rows, and two sums over a hash of each."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    from course.data.session import cancels

    code = F.xxhash64(*frame.columns)
    part = F.pmod(code, F.lit((1 << 31) - 1))
    with cancels(frame.sparkSession):
        row = (
            frame.select(code.alias("code"), part.alias("part"))
            .agg(F.count("*"), F.coalesce(F.bit_xor("code"), F.lit(0)), F.coalesce(F.sum("part"), F.lit(0)))
            .collect()[0]
        )
    return Fingerprint(*row)


def rows_of(frame: DataFrame) -> list[Row]:
    """A small answer of Spark's as tuples."""
    from course.data.session import cancels

    with cancels(frame.sparkSession):
        columns = [column.to_pylist() for column in frame.toArrow().columns]
    return list(zip(*columns, strict=True))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def _section(name: str, rows: list[str], limit: int) -> list[str]:
    """Lay out one kind of difference."""
    if not rows:
        return []
    more = [f"    … and {len(rows) - limit} more"] if len(rows) > limit else []
    return [f"  {name}: {len(rows)}", *(f"    {row}" for row in rows[:limit]), *more]


def _sortable(row: Row) -> tuple[tuple[bool, Any], ...]:
    """Rows in order, those with a missing value first."""
    return tuple((value is not None, 0 if value is None else value) for value in row)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
