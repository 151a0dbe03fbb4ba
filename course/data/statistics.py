"""The statistics page of a table, worked out by Spark: how skewed its keys are, how late its rows, how large.

`print(page)` shows it as text, a notebook as tables. Nothing is collected but the figures, so it works for 100 million
rows as for a hundred.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course.data.datasets import DEFAULT_SEED, DataSet, data_set, table
from course.data.progress_bar import shows_progress
from course.data.session import cancels
from course.data.spark_key_groups import key_group

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["NUM_KEY_GROUPS", "Figures", "StatisticsPage", "describe", "statistics"]

NUM_KEY_GROUPS = 128
"""Flink's default for a job of up to 85 subtasks."""

_PARALLELISMS = (2, 4, 8)
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
_ROWS_PER_BUCKET = 50_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One table of a page: a title, headings, and a row of texts for each line."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [self.headings, *self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.headings))]

        def laid_out(line: Sequence[str]) -> str:
            cells = zip(line, widths, self._is_text, strict=True)
            parts = [cell.ljust(width) if left else cell.rjust(width) for cell, width, left in cells]
            return "  " + "  ".join(parts).rstrip()

        return "\n".join([self.title, *map(laid_out, lines)])

    def _repr_html_(self) -> str:
        starts = [' style="text-align: left"' if left else "" for left in self._is_text]  # else a notebook's are right

        def cells(tag: str, line: Sequence[str]) -> str:
            parts = [f"<{tag}{start}>{html.escape(cell)}</{tag}>" for cell, start in zip(line, starts, strict=True)]
            return "<tr>" + "".join(parts) + "</tr>"

        rows = "".join(cells("td", row) for row in self.rows)
        return f"<table><caption>{html.escape(self.title)}</caption>{cells('th', self.headings)}{rows}</table>"

    @property
    def _is_text(self) -> list[bool]:
        """Of each column, whether it has words and so begins at the left."""
        return [any(row[place][:1].isalpha() for row in self.rows) for place in range(len(self.headings))]


@dataclass(frozen=True, slots=True)
class StatisticsPage:
    """What a table is, and what is in it. `values` holds the same figures as numbers, for programs."""

    about: DataSet
    num_rows: int
    seed: int
    tables: tuple[Figures, ...]
    values: dict[str, Any]

    @property
    def _heading(self) -> str:
        seed = "" if self.about.name == "flights" else f", seed {self.seed}"
        return f"{self.about.name}: {self.about.purpose}\n{self.num_rows} rows{seed}; {self.about.source}"

    def __repr__(self) -> str:
        return "\n\n".join([self._heading, *map(repr, self.tables)])

    def _repr_html_(self) -> str:
        heading = html.escape(self._heading).replace("\n", "<br>")
        return f"<p>{heading}</p>" + "".join(each._repr_html_() for each in self.tables)


def describe(
    name: str, session: SparkSession, rows: int | None = None, seed: int = DEFAULT_SEED, **options: Any
) -> StatisticsPage:
    """Make a data set and its statistics page.

    Raises:
        NoSuchDataError: no such data set, option or number of rows.
    """
    return statistics(table(name, session, rows, seed, **options), data_set(name), seed)


def statistics(frame: DataFrame, about: DataSet, seed: int = DEFAULT_SEED) -> StatisticsPage:
    """The statistics page of a table that is what `about` says."""
    session = frame.sparkSession
    columns = tuple((name, kind, meaning) for name, (kind, meaning) in about.columns.items())
    tables = [Figures("columns", ("name", "type", "meaning"), columns)]
    values: dict[str, Any] = {}
    with cancels(session), shows_progress(session, f"statistics of {about.name}"):
        num_rows = frame.count()
        for key in about.keys:
            values[key] = _skew(frame, key, num_rows)
        spreads = {name: _spread(frame, name) for name in about.sizes}
        if about.order:
            spreads["rows per second"] = _rate(frame, about.order[0])
        if about.event_time is not None:
            late = lateness(frame, about.event_time, about.order or (about.event_time,), num_rows)
            spreads["lateness, ms"] = _spread(late, "late_ms")
            values["late_share"] = late.where("late_ms > 0").count() / num_rows
    if about.keys:
        tables.append(_skew_table({key: values[key] for key in about.keys}))
    if spreads:
        tables.append(_spread_table(spreads))
        values |= spreads
    if "late_share" in values:
        share = f"{values['late_share']:.1%}"
        tables.append(Figures("out of order", ("rows with an event time below one that came before",), ((share,),)))
    return StatisticsPage(about, num_rows, seed, tuple(tables), values)


def lateness(frame: DataFrame, event_time: str, order: Sequence[str], num_rows: int) -> DataFrame:
    """`late_ms` of each row: how far its event time is behind the largest that came before it; 0 if it is not.

    The running maximum is taken in stretches of arrival time that fit into memory, and each stretch begins with the
    largest event time of all before it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    first, last = frame.agg(F.min(order[0]), F.max(order[0])).collect()[0]
    width = max(1, (last - first) * _ROWS_PER_BUCKET // max(1, num_rows))
    bucket = F.floor((F.col(order[0]) - first) / width)
    rows = frame.select(*{*order, event_time}).withColumn("_bucket", bucket)
    so_far = Window.orderBy("_bucket").rowsBetween(Window.unboundedPreceding, -1)
    largest = rows.groupBy("_bucket").agg(F.max(event_time).alias("_largest"))
    before = largest.select("_bucket", F.max("_largest").over(so_far).alias("_before"))
    within = Window.partitionBy("_bucket").orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = F.greatest(F.max(event_time).over(within), F.col("_before"))  # `greatest` skips a missing value
    return rows.join(F.broadcast(before), "_bucket").select((newest - F.col(event_time)).alias("late_ms"))


def _skew(frame: DataFrame, key: str, num_rows: int) -> dict[str, Any]:
    """How the rows spread over the values of a key, and over subtasks by Flink's key groups."""
    from pyspark.sql import functions as F  # noqa: N812

    counts = frame.groupBy(F.col(key).alias("key")).agg(F.count("*").alias("n"))
    groups = counts.withColumn("group", key_group(F.col("key"), NUM_KEY_GROUPS)).persist()
    try:
        distinct = groups.count()
        top = [row.n for row in groups.orderBy(F.desc("n")).select("n").limit(10).collect()]
        by_group = [(row.group, row.n) for row in groups.groupBy("group").agg(F.sum("n").alias("n")).collect()]
    finally:
        groups.unpersist()
    busiest = {}
    for parallelism in _PARALLELISMS:
        loads = [0] * parallelism
        for group, count in by_group:
            loads[group * parallelism // NUM_KEY_GROUPS] += count
        busiest[parallelism] = max(loads) * parallelism / num_rows
    return {
        "distinct": distinct,
        "top_1": top[0] / num_rows,
        "top_10": sum(top) / num_rows,
        "busiest": busiest,
    }


def _spread(frame: DataFrame, name: str) -> dict[str, float]:
    from pyspark.sql import functions as F  # noqa: N812

    return _quantiles(frame, F.col(name))


def _rate(frame: DataFrame, time: str) -> dict[str, float]:
    """Rows in each second that has any."""
    from pyspark.sql import functions as F  # noqa: N812

    seconds = frame.groupBy(F.floor(F.col(time) / 1000).alias("second")).agg(F.count("*").alias("n"))
    return _quantiles(seconds, F.col("n"))


def _quantiles(frame: DataFrame, column: Column) -> dict[str, float]:
    """Exact quantiles: equal values are counted first, so that what one task gets is the distinct ones."""
    from pyspark.sql import functions as F  # noqa: N812

    counts = frame.groupBy(column.alias("value")).agg(F.count("*").alias("n"))
    wanted = F.percentile("value", list(_QUANTILES), F.col("n"))
    mean = F.sum(F.col("value") * F.col("n")) / F.sum("n")
    found, *rest = counts.agg(wanted, F.min("value"), mean, F.max("value")).collect()[0]
    quantiles = {f"p{q * 100:g}": value for q, value in zip(_QUANTILES, found, strict=True)}
    return {"min": rest[0], "mean": rest[1], **quantiles, "max": rest[2]}


def _skew_table(skews: dict[str, dict[str, Any]]) -> Figures:
    headings = ("key", "distinct", "top 1", "top 10", *(f"busiest of {n}" for n in _PARALLELISMS))
    rows = tuple(
        (
            key,
            f"{found['distinct']}",
            f"{found['top_1']:.1%}",
            f"{found['top_10']:.1%}",
            *(f"{found['busiest'][n]:.2f}" for n in _PARALLELISMS),
        )
        for key, found in skews.items()
    )
    return Figures(f"keys (busiest subtask against the mean, {NUM_KEY_GROUPS} key groups)", headings, rows)


def _spread_table(spreads: dict[str, dict[str, float]]) -> Figures:
    names = next(iter(spreads.values()))
    rows = tuple((name, *(_short(found[each]) for each in names)) for name, found in spreads.items())
    return Figures("spread", ("", *names), rows)


def _short(number: float) -> str:
    return f"{number:.0f}" if number == int(number) or number >= 1000 else f"{number:.1f}"
