"""The same records, the same bound, two watermarks: which records come too late?

Ours is an element of the stream and moves with each record. Spark's is a number in the driver and moves after each
micro-batch, so what is late depends on how many batches there are: with one batch nothing is. Both run here, on the
same flights, into hourly windows per airport, and each counts what its windows leave out.

python -m course.data.watermarks      the table of both, in half a minute
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.data.flights import ARRIVAL_ORDER, FLIGHT_COLUMNS
from course.data.flights import load as load_flights
from course.data.flights_job import DelayTotals
from course.data.oracle import HOUR_MS
from course.data.progress_bar import shows_progress
from course.data.scratch import scratch
from course.data.session import cancels, spark
from course.data.statistics import Figures
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import Field
from refimpl.task import IterableReader, TumblingWindows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["LateRecords", "late_in_spark", "late_in_the_engine", "late_records"]

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class LateRecords:
    """How many of `num_records` came too late; `spark` by number of micro-batches, then by bound in minutes."""

    num_records: int
    engine: dict[int, int]
    spark: dict[int, dict[int, int]]

    @property
    def table(self) -> Figures:
        """As a table: a line for each bound."""
        headings = ("bound, min", "ours, per record", *(f"Spark, {n} batch{'es' * (n > 1)}" for n in self.spark))
        rows = tuple(
            (str(bound), f"{late} ({late / self.num_records:.1%})", *(str(each[bound]) for each in self.spark.values()))
            for bound, late in self.engine.items()
        )
        return Figures(f"records too late for their hour, of {self.num_records} flights", headings, rows)

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def late_records(
    session: SparkSession,
    num_records: int = 600,
    bounds_min: Sequence[int] = (0, 30),
    num_batches: Sequence[int] = (20, 5, 1),
) -> LateRecords:
    """Count late records both ways, for each bound. A micro-batch takes Spark a quarter of a second."""
    single = session.newSession()  # with settings of its own, but no more processes
    single.conf.set("spark.sql.shuffle.partitions", "1")
    single.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    flights = load_flights(session, num_records).orderBy(*ARRIVAL_ORDER).select(*FLIGHT_COLUMNS, "arrival_ms")
    with cancels(session), shows_progress(session, "flights in micro-batches"):
        table = flights.toArrow()
        rows = table.to_pylist()
        engine = {bound: late_in_the_engine(rows, bound) for bound in bounds_min}
        spark = {n: {bound: late_in_spark(single, table, n, bound) for bound in bounds_min} for n in num_batches}
    return LateRecords(len(rows), engine, spark)


def late_in_the_engine(rows: Sequence[dict[str, Any]], bound_min: int) -> int:
    """How many records the engine's windows leave out; a watermark follows each record."""
    results: list[Any] = []
    environment = StreamEnvironment()
    (
        environment.source(lambda _subtask, _parallelism: IterableReader(rows), "flights")
        .assign_timestamps(Field("event_time_ms"), bound_min * MINUTE_MS, every=1)
        .map(_departure)
        .key_by(0)
        .window(TumblingWindows(HOUR_MS))
        .aggregate(DelayTotals())
        .sink(results.append)
    )
    with Simulation(environment, check_every=0) as simulation:
        simulation.run()
    num_counted: int = sum(departures for *_, (departures, _) in results)
    return len(rows) - num_counted


def late_in_spark(session: SparkSession, table: pa.Table, num_batches: int, bound_min: int) -> int:
    """How many records Spark's windows leave out, when the same rows come in so many micro-batches.

    Each batch is a file, and files are read in the order of their times. The mode is `update`, so each window is told
    whenever it changes, and its last count is what got in.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    with scratch("batches") as folder:
        _write_batches(table, num_batches, folder / "in")
        stream = session.readStream.schema(_ddl(table)).option("maxFilesPerTrigger", 1)
        flights = stream.parquet(f"file://{folder / 'in'}").withColumn("time", F.timestamp_millis("event_time_ms"))
        windows = flights.withWatermark("time", f"{bound_min} minutes").groupBy(F.window("time", "1 hour"), "origin")
        counts: dict[tuple[Any, str], int] = {}

        def keep(batch: Any, _number: int) -> None:
            for row in batch.collect():
                counts[row.window.start, row.origin] = row["count"]

        query = (
            windows.count()
            .writeStream.outputMode("update")
            .foreachBatch(keep)
            .trigger(availableNow=True)
            .option("checkpointLocation", f"file://{folder / 'state'}")
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
    num_rows: int = table.num_rows
    return num_rows - sum(counts.values())


def _write_batches(table: pa.Table, num_batches: int, folder: Path) -> None:
    """A Parquet file for each micro-batch, one second apart."""
    import pyarrow.parquet as pq

    folder.mkdir()
    ends = [table.num_rows * number // num_batches for number in range(num_batches + 1)]
    for number, (start, end) in enumerate(pairwise(ends)):
        file = folder / f"{number:04d}.parquet"
        pq.write_table(table.slice(start, end - start), file)
        os.utime(file, (1_000_000_000 + number,) * 2)


def _ddl(table: pa.Table) -> str:
    kinds = {"int64": "bigint", "int32": "int", "string": "string"}
    return ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in table.schema)


def _departure(flight: dict[str, Any]) -> tuple[str, int]:
    return flight["origin"], flight["dep_delay_minutes"]


def _main() -> None:
    session = spark("late records")
    print(late_records(session))
    session.stop()


if __name__ == "__main__":
    _main()
