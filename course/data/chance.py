"""Chance without a generator: every cell of a table is a function of (seed, table, column, row id).

So a table is the same on any cluster, in any partitioning and in any order, and one row of it can be had without the
others. Spark's `rand()` is not: it starts anew in each partition. Nor are `sin` and its like, which may differ in the
last digit from one processor to another; `pow`, `log` and division do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Cells", "pick", "whole"]

_STEPS = 1 << 53
"""As many steps from 0 to 1 as a double can tell apart."""


class Cells:
    """The chances of one table: `cells("delay")` is a number from 0 to below 1 for each row.

    `row` is what numbers the rows; something coarser, such as a minute, gives all rows of that minute one chance.
    """

    def __init__(self, seed: int, table: str, row: str = "id") -> None:
        self._seed = seed
        self._table = table
        self._row = row

    def __call__(self, column: str, row: Column | None = None) -> Column:
        """The chance of one column."""
        from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

        return F.pmod(self.bits(column, row), F.lit(_STEPS)) / F.lit(float(_STEPS))

    def bits(self, column: str, row: Column | None = None) -> Column:
        """64 bits for one column."""
        from pyspark.sql import functions as F  # noqa: N812

        number = F.col(self._row) if row is None else row
        seed = F.lit(self._seed).cast("bigint")
        return F.xxhash64(seed, F.lit(self._table), F.lit(column), number.cast("bigint"))


def whole(number: Column, kind: str = "bigint") -> Column:
    """The whole part of a number that is not negative."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.floor(number).cast(kind)


def pick(chance: Column, choices: list[tuple[float, str]]) -> Column:
    """One of the texts, each with its share; what the shares leave over goes to the last."""
    from pyspark.sql import functions as F  # noqa: N812

    picked, reached = F.lit(choices[-1][1]), 1.0 - choices[-1][0]
    for share, text in reversed(choices[:-1]):
        picked = F.when(chance < reached, text).otherwise(picked)
        reached -= share
    return picked
