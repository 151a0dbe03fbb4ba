"""Data section of lesson 16: how long a job takes to run again, by who was lost.

`ask_…` is a Spark query over the log of what happened and knows nothing of the engine, the others run the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.data.comparison import rows_of
from course.data.losses import counted_airports, loss_run
from refimpl.cluster import ExecutionId
from refimpl.drivers.cluster_simulation import ClusterSimulation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ask_recoveries", "time_recoveries"]


def ask_recoveries(losses: DataFrame) -> dict[str, float]:
    """How long after each loss the last task has begun again, in ms, by failure; 0 if none had to."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    lost_ms = F.min(F.when(F.col("event") == "loss", F.col("time_ms")))
    begun_ms = F.max(F.when(F.col("event") == "begins", F.col("time_ms")))
    of_each = losses.groupBy("failure", "seed").agg(F.coalesce(begun_ms - lost_ms, F.lit(0.0)).alias("took_ms"))
    return {
        _name(failure, seed): round(took_ms, 2)
        for failure, seed, took_ms in rows_of(of_each.orderBy("failure", "seed"))
    }


def time_recoveries(losses: DataFrame) -> dict[str, float]:
    """The same by a watch, at clusters that lose the same: stopped when every task is another one than before."""
    each = losses.select("failure", "seed").distinct().orderBy("failure", "seed")
    return {_name(failure, seed): round(_recovery_ms(failure, seed), 2) for failure, seed in rows_of(each)}


def _recovery_ms(failure: int, seed: int) -> float:
    run, stopped = loss_run(failure, counted_airports(), seed), list[float]()

    def look(cluster: ClusterSimulation, _action: str) -> None:
        if run.lost and not stopped and _are_others(run.in_slots(), run.before):
            stopped.append(cluster.time_ms)

    run.go_through(look)
    return stopped[0] - run.lost_ms if stopped else 0.0


def _are_others(now: dict[ExecutionId, str], before: dict[ExecutionId, str]) -> bool:
    return len(now) == len(before) and not now.keys() & before.keys()


def _name(failure: int, seed: int) -> str:
    return f"failure {failure}, cluster {seed}: ms"
