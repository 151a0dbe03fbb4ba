"""Spark's own answer to the question that the engine answers, and a row-by-row comparison of the two.

The oracle is a *batch* query. Spark's streaming watermark is no oracle: what it drops depends on the batch size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["HOUR_MS", "Comparison", "Departures", "compare", "departures_per_window"]

HOUR_MS = 3_600_000


class Departures(NamedTuple):
    """What left one airport in one window `[window_start_ms, window_start_ms + size)` of event time."""

    window_start_ms: int
    origin: str
    departures: int
    delay_sum_minutes: int
    delay_mean_minutes: float


def departures_per_window(frame: DataFrame, window_ms: int = HOUR_MS) -> list[Departures]:
    """Ask Spark for departures, sum and mean of delays per origin and tumbling window, sorted.

    Raises:
        ValueError: `window_ms` is less than 1.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    from course.data.session import cancels

    if window_ms < 1:
        raise ValueError(f"window_ms must be at least 1, got {window_ms}")
    event_time = F.col("event_time_ms")
    start = (event_time - F.pmod(event_time, F.lit(window_ms))).alias("window_start_ms")
    delay = F.col("dep_delay_minutes")
    answer = frame.groupBy(start, "origin").agg(F.count("*"), F.sum(delay), F.avg(delay))
    with cancels(frame.sparkSession):
        columns = [column.to_pylist() for column in answer.toArrow().columns]
    return sorted(map(Departures, *columns))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an answer differs from the wanted one; empty lists when it does not."""

    num_got: int
    num_want: int
    missing: list[Departures] = field(default_factory=list)
    unexpected: list[Departures] = field(default_factory=list)
    different: list[tuple[Departures, Departures]] = field(default_factory=list)
    """Pairs (got, wanted) of the same window and origin."""

    @property
    def is_equal(self) -> bool:
        """Whether both answers hold the same rows."""
        return not (self.missing or self.unexpected or self.different)

    def message(self, limit: int = 5) -> str:
        """Say in words what differs, with at most `limit` rows of each kind."""
        if self.is_equal:
            return f"equal: {self.num_want} rows"
        lines = [f"{self.num_got} rows, expected {self.num_want}:"]
        lines += _section("missing", [_show(row) for row in self.missing], limit)
        lines += _section("unexpected or twice", [_show(row) for row in self.unexpected], limit)
        lines += _section("different", [_show_difference(got, want) for got, want in self.different], limit)
        return "\n".join(lines)


def compare(got: Iterable[tuple[int, str, int, int, float]], want: Iterable[Departures]) -> Comparison:
    """Compare two answers row by row, in any order; a row's key is its window and its origin.

    Counts and sums must be the same; means may differ by rounding (relative 1e-9).
    """
    answer = [Departures(*row) for row in got]
    expected = {row[:2]: row for row in want}
    rest = dict(expected)
    unexpected, different = [], []
    for row in answer:
        wanted = rest.pop(row[:2], None)
        if wanted is None:
            unexpected.append(row)
        elif row[2:4] != wanted[2:4] or not math.isclose(row[4], wanted[4], rel_tol=1e-9, abs_tol=1e-9):
            different.append((row, wanted))
    return Comparison(len(answer), len(expected), sorted(rest.values()), sorted(unexpected), sorted(different))


def _section(name: str, rows: list[str], limit: int) -> list[str]:
    """Lay out one kind of difference."""
    if not rows:
        return []
    more = [f"    … and {len(rows) - limit} more"] if len(rows) > limit else []
    return [f"  {name}: {len(rows)}", *(f"    {row}" for row in rows[:limit]), *more]


def _show(row: Departures) -> str:
    """One row in words."""
    total, mean = row.delay_sum_minutes, row.delay_mean_minutes
    return f"{_key(row)}  {row.departures} departures, {total} min in all, mean {mean:.3f}"


def _show_difference(got: Departures, want: Departures) -> str:
    """The differing columns of a pair, in words."""
    names = ("departures", "delay_sum_minutes", "delay_mean_minutes")
    parts = [f"{name} {a}, expected {b}" for name, a, b in zip(names, got[2:], want[2:], strict=True) if a != b]
    return f"{_key(got)}  {'; '.join(parts)}"


def _key(row: Departures) -> str:
    """Window and origin for people."""
    return f"{datetime.fromtimestamp(row.window_start_ms / 1000, UTC):%Y-%m-%d %H:%M}Z {row.origin}"
