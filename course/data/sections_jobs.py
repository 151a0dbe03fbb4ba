"""Data sections of lessons 0, 5, 6 and 9: jobs on flights, and who gets what.

Each has two functions: `ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course.data.comparison import rows_of
from course.data.dataframe_source import DataFrameSource
from course.data.flights import ARRIVAL_ORDER, FLIGHT_COLUMNS
from course.data.flights_job import flights_job, to_rows
from course.data.spark_key_groups import subtask_of
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import JobGraph, StreamEnvironment
from refimpl.records import Field
from refimpl.task import IterableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from refimpl.job import DataStream
    from refimpl.task import MapOperator

__all__ = [
    "SparkPlan", "ask_airports", "ask_exchanges", "ask_loads", "ask_sums", "count_edges", "note_kept_partitioning",
    "note_skew", "plan_of", "run_airports", "run_loads", "run_sums",
]  # fmt: skip

NUM_SUBTASKS = 4
NUM_KEY_GROUPS = 128
NUM_PARTITIONS = 3
NUM_SALTS = 16
KEYS = ("tailnum", "carrier", "origin", "origin_salted")


# -- L00: departures per airport -----------------------------------------------------------------------


def ask_airports(flights: DataFrame) -> dict[str, int]:
    """Departures per airport."""
    return dict(rows_of(flights.groupBy("origin").count().orderBy("origin")))


def run_airports(flights: DataFrame) -> dict[str, int]:
    """The same from the job of the lesson: its hours put together."""
    results: list[Any] = []
    with DataFrameSource(flights.select(*FLIGHT_COLUMNS, *_not_in_a_flight()), order_by=ARRIVAL_ORDER) as source:
        ThreadedRun(flights_job(source, results.append)).run()
    counts: Counter[str] = Counter()
    for _, origin, departures, _, _ in to_rows(results):
        counts[origin] += departures
    return dict(sorted(counts.items()))


def _not_in_a_flight() -> list[str]:
    """Columns that only the order of arrival needs."""
    return [name for name in ARRIVAL_ORDER if name not in FLIGHT_COLUMNS]


# -- L05: load of each subtask -------------------------------------------------------------------------


def _with_salt(flights: DataFrame) -> DataFrame:
    """The keys, and the airport with one of 16 numbers behind it, so that one airport is 16 keys."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    salt = F.pmod(F.xxhash64("flight", "event_time_ms", "tailnum"), F.lit(NUM_SALTS)).cast("string")
    return flights.select("tailnum", "carrier", "origin", F.concat_ws("-", "origin", salt).alias("origin_salted"))


def ask_loads(flights: DataFrame) -> dict[str, int]:
    """Rows of each subtask by each key, by Flink's key groups, worked out in Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = F.explode(F.array(*(F.struct(F.lit(key).alias("name"), F.col(key).alias("value")) for key in KEYS)))
    counts = _with_salt(flights).select(keys.alias("key")).groupBy("key").count()
    subtask = subtask_of(F.col("key.value"), NUM_SUBTASKS, NUM_KEY_GROUPS)
    loads = counts.select("key.name", subtask.alias("subtask"), "count").groupBy("name", "subtask").agg(F.sum("count"))
    return dict.fromkeys(_loads(), 0) | {f"{key} → {number}": load for key, number, load in rows_of(loads)}


def run_loads(flights: DataFrame) -> dict[str, int]:
    """Records that came to each subtask behind `key_by`."""
    answer = dict.fromkeys(_loads(), 0)
    with DataFrameSource(_with_salt(flights)) as source:
        for key in KEYS:
            environment = StreamEnvironment(Config(max_parallelism=NUM_KEY_GROUPS), NUM_SUBTASKS)
            environment.source(source, "flights", parallelism=2).key_by(Field(key)).sink(_ignore, key)
            with ThreadedRun(environment) as run:
                run.run()
                for task in run.snapshot().tasks:
                    if task.operators[0] == key:
                        answer[f"{key} → {task.name.rpartition('-')[2]}"] = task.num_records_in
    return answer


def note_skew(_flights: DataFrame, loads: Mapping[str, int]) -> tuple[str, ...]:
    """How far the busiest subtask is above the mean, without salt and with it."""
    lines = []
    for key in KEYS:
        of_key = [loads[f"{key} → {number}"] for number in range(NUM_SUBTASKS)]
        lines.append(f"{key}: the busiest subtask has {max(of_key) * NUM_SUBTASKS / sum(of_key):.2f} times the mean")
    return (*lines, "Salted keys are spread, but no subtask has all of an airport: a second step must put it together.")


def _loads() -> list[str]:
    return [f"{key} → {number}" for key in KEYS for number in range(NUM_SUBTASKS)]


def _ignore(_value: object) -> None: ...


# -- L06: exchanges and edges that are not chained -----------------------------------------------------

_Plan = tuple[Callable[["DataFrame"], "DataFrame"], Callable[["DataStream"], object]]


def _plans() -> dict[str, _Plan]:
    """Pairs of the same plan: for Spark, and for the engine."""
    from pyspark.sql import functions as F  # noqa: N812

    return {
        "map, filter": (
            lambda rows: rows.withColumn("n", F.col("amount_cents") + 1).where("n > 5"),
            lambda stream: stream.map(_same).filter(_same).sink(_ignore),
        ),
        "by key": (lambda rows: rows.groupBy("user").count(), lambda stream: stream.key_by("user").sink(_ignore)),
        "by key, then by another": (
            lambda rows: rows.groupBy("user").agg(F.sum("amount_cents").alias("n")).groupBy("n").count(),
            lambda stream: stream.key_by("user").transform("sum", _operator).key_by("n").sink(_ignore),
        ),
        "dealt out, then map": (
            lambda rows: rows.repartition(3).withColumn("n", F.col("amount_cents") + 1),
            lambda stream: stream.rebalance().map(_same).sink(_ignore),
        ),
        "by key, then to one": (
            lambda rows: rows.groupBy("user").count().agg(F.max("count")),
            lambda stream: stream.key_by("user").transform("sum", _operator).to_first().sink(_ignore),
        ),
    }


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """What Spark explains of a query that reads one table: its stages, and the exchanges between them, source first."""

    stages: tuple[tuple[str, ...], ...]
    exchanges: tuple[str, ...]

    @property
    def num_exchanges(self) -> int:
        """How often rows are dealt out anew."""
        return len(self.exchanges)

    def __repr__(self) -> str:
        borders = [f"\n      └─ Exchange: {words}\n" for words in self.exchanges]
        lines = [f"  [ {' → '.join(stage)} ]" for stage in self.stages]
        return "".join(part for pair in zip(lines, [*borders, ""], strict=True) for part in pair)


def plan_of(frame: DataFrame) -> SparkPlan:
    """The physical plan, without the numbers that differ from run to run."""
    stages: list[list[str]] = [[]]
    exchanges: list[str] = []
    plan = frame._jdf.queryExecution().executedPlan().toString()
    for name, rest in reversed(re.findall(r"^[\s:+\-*()\d]*([A-Z]\w+)(.*)$", plan, re.MULTILINE)):
        if name == "Exchange":
            exchanges.append(_dealt_out(rest))
            stages.append([])
        elif name != "AdaptiveSparkPlan":
            stages[-1].append(name)
    return SparkPlan(tuple(map(tuple, stages)), tuple(exchanges))


def _dealt_out(words: str) -> str:
    """`hashpartitioning(user#12L, 4), …` is "hash of user"."""
    way, columns = re.findall(r"^ ?(?:(hash|range|RoundRobin|Single)[pP]artition(?:ing)?)(?:\(([^)]*)\))?", words)[0]
    names = ", ".join(re.findall(r"(\w+)#", columns))
    return {"RoundRobin": "round robin", "Single": "all to one"}.get(way, f"{way} of {names}")


def ask_exchanges(rows: DataFrame) -> dict[str, int]:
    """Exchanges in the plan that Spark explains."""
    return {name: plan_of(in_spark(rows)).num_exchanges for name, (in_spark, _) in _plans().items()}


def count_edges(_rows: DataFrame) -> dict[str, int]:
    """Edges of the engine's job that are left when all that can be chained is."""
    return {name: len(_job_graph(in_engine).edges) for name, (_, in_engine) in _plans().items()}


def note_kept_partitioning(rows: DataFrame, _measured: Mapping[str, int]) -> tuple[str, ...]:
    """Where the two differ."""
    twice = rows.groupBy("user").count().groupBy("user").agg({"count": "max"})
    edges = len(
        _job_graph(lambda stream: stream.key_by("user").transform("sum", _operator).key_by("user").sink(_ignore)).edges
    )
    note = (
        f"Twice by the same key: {plan_of(twice).num_exchanges} exchange in Spark, {edges} edges here. Spark knows "
        "that the first grouping has put the keys where the second one wants them; a function of yours might have "
        "changed them."
    )
    return (note,)


def _job_graph(build: Callable[[DataStream], object]) -> JobGraph:
    environment = StreamEnvironment(Config(), parallelism=3)
    build(environment.source(lambda *_: IterableReader(())))
    return JobGraph(environment.graph, environment.config)


def _same(value: object) -> object:
    return value


def _operator() -> MapOperator:
    from refimpl.task import MapOperator

    return MapOperator(_same)


# -- L09: partitions over channels ---------------------------------------------------------------------


def _in_partitions(flights: DataFrame) -> DataFrame:
    """Three partitions by airline, each row with the number of its own."""
    from pyspark.sql import functions as F  # noqa: N812

    parted = flights.select("carrier", "dep_delay_minutes", "flight").repartition(NUM_PARTITIONS, "carrier")
    return parted.withColumn("part", F.spark_partition_id())


def ask_sums(flights: DataFrame) -> dict[str, str]:
    """Rows, sum of delays and of flight numbers of each partition."""
    from pyspark.sql import functions as F  # noqa: N812

    sums = F.count("*"), F.sum("dep_delay_minutes"), F.sum("flight")
    found = {number: of_part for number, *of_part in rows_of(_in_partitions(flights).groupBy("part").agg(*sums))}
    return {f"partition {number}": _sums(*found.get(number, (0, 0, 0))) for number in range(NUM_PARTITIONS)}


def run_sums(flights: DataFrame) -> dict[str, str]:
    """The same of what arrives over TCP: readers on all TaskManagers, and every record on one channel of six."""
    found = {number: [0, 0, 0] for number in range(NUM_PARTITIONS)}
    lock = threading.Lock()

    def add(flight: dict[str, Any]) -> None:
        with lock:
            sums = found[flight["part"]]
            sums[0] += 1
            sums[1] += flight["dep_delay_minutes"]
            sums[2] += flight["flight"]

    environment = StreamEnvironment(parallelism=NUM_PARTITIONS)
    with DataFrameSource(_in_partitions(flights)) as source:
        environment.source(source, "partitions").key_by(Field("carrier")).sink(add)
        ThreadedRun(environment, num_task_managers=2).run()
    return {f"partition {number}": _sums(*sums) for number, sums in found.items()}


def _sums(num_rows: int, delays: int, numbers: int) -> str:
    return f"{num_rows} rows, {delays} min, {numbers}"
