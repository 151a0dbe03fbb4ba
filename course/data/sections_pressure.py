"""Data section of lesson 12: which task held a job back in each minute, from samples of all of its subtasks.

`ask_…` is a Spark query and knows nothing of the engine, the other one asks the engine's rule.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from course.data.comparison import rows_of
from course.data.generated import NUM_SUBTASKS, OPERATORS
from refimpl.cluster import Exchange, Load, Place, who_holds_back

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ask_bottlenecks", "find_bottlenecks"]

_MINUTE_MS = 60_000


def ask_bottlenecks(metrics: DataFrame) -> dict[str, int]:
    """Minutes by the task that holds the job back: it is not held back itself, and the one before it in the line is.

    The means of a minute, task by task; a window over the line gives each the share of the one before it. Held back is
    who waits for more than a tenth of the time; whoever is to blame works for at least half of it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    line = F.array(*map(F.lit, OPERATORS))
    means = metrics.groupBy(F.expr(f"time_ms div {_MINUTE_MS}").alias("minute"), "operator").agg(
        F.avg("busy_permille").alias("busy"), F.avg("backpressured_permille").alias("held")
    )
    upwards = Window.partitionBy("minute").orderBy(F.array_position(line, F.col("operator")))
    beside = means.withColumn("held_above", F.lag("held").over(upwards))
    is_it = (F.col("held_above") > 100) & (F.col("held") <= 100) & (F.col("busy") >= 500)
    of_minutes = beside.groupBy("minute").agg(F.max(F.when(is_it, F.col("operator"))).alias("name"))
    found = of_minutes.groupBy(F.coalesce("name", F.lit("nobody"))).count()
    return {f"minutes of {name}": number for name, number in sorted(rows_of(found))}


def find_bottlenecks(metrics: DataFrame) -> dict[str, int]:
    """What the engine's rule says of each minute, of subtasks and not of tasks."""
    from pyspark.sql import functions as F  # noqa: N812

    means = metrics.groupBy(F.expr(f"time_ms div {_MINUTE_MS}").alias("minute"), "operator", "subtask").agg(
        *(F.avg(f"{kind}_permille") / 1_000 for kind in ("busy", "idle", "backpressured"))
    )
    loads: dict[int, dict[Place, Load]] = {}
    for minute, operator, subtask, *shares in rows_of(means):
        loads.setdefault(minute, {})[OPERATORS.index(operator), subtask] = Load(*shares)
    exchanges = [
        Exchange((place, a), (place + 1, b))
        for place in range(len(OPERATORS) - 1)
        for a in range(NUM_SUBTASKS)
        for b in range(NUM_SUBTASKS)
    ]
    found = Counter(_name(who_holds_back(each, exchanges)) for each in loads.values())
    return {f"minutes of {name}": number for name, number in sorted(found.items())}


def _name(culprit: Place | Exchange[Place] | None) -> str:
    if culprit is None:
        return "nobody"
    if isinstance(culprit, Exchange):
        return f"the way from {OPERATORS[culprit.producer[0]]} to {OPERATORS[culprit.consumer[0]]}"
    return OPERATORS[culprit[0]]
