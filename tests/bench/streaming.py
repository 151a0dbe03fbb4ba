"""Spark's Structured Streaming beside the engine, in one run: latency, throughput, and what a late record is.

    python -m tests.bench.streaming                  three tables; all of it as JSON into a file
    python -m tests.bench.streaming --only latency   one of them: latency, throughput, lateness

Rules of this file:
- Contenders take turns, and every turn is checked: a contender whose answer is wrong has no figures.
- What cannot be driven here stands in the table with the reason.
- Spark's session is started, and each query has run once, before anything is timed; not with one round.

latency     Records one by one, some 80 a second, passed on or counted by key; from when a record is made until it is
            at the end of the plan. Spark reads them from its own stream in memory, the only source of its real-time
            mode that needs no Kafka (an internal class: good for this, and for nothing else). It shows rows of that
            mode to Python only at the end of a batch of seconds, so the plan itself notes when a row is through.
throughput  Flights counted by origin and hour of event time. For Spark a stream of files, all there from the beginning.
lateness    The same for some flights in order of arrival, with a watermark: how many are lost? The engine's watermark
            follows each record, or so many, or each batch that its source reads. Spark's follows each micro-batch, and
            counts from the next one on: the fewer there are, the less is lost.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyarrow.parquet as pq

from course.data.flights import FLIGHT_COLUMNS, NUM_FLIGHTS, verified_path
from course.data.flights_job import LARGEST_DISORDER_MS, DelayTotals, departure
from course.data.oracle import HOUR_MS
from course.data.partitions import Partition
from course.data.scratch import spark_path
from course.data.session import cancels, spark
from course.data.source import FlightsReader
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, Field, StreamRecord, TupleType
from refimpl.task import IterableReader, ReaderFactory, TumblingWindows
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.report import deliver, machine, machine_in_words, number, spread

FILE = Path(__file__).resolve().parents[2] / ".cache" / "bench" / "streaming.json"
FORMAT = "sluice-bench-streaming/1"
RECORDS_PER_S = 80
NUM_KEYS = 5
BUFFER_TIMEOUT_MS = 5
REAL_TIME_BATCH = "5 seconds"
SECONDS_TO_SHOW = 60.0
NUM_LATENESS = 12_000
BATCH_ROWS = 4096  # what FlightsReader reads at once: a watermark inside a batch would cut it
_PREFIX = "sluice-streaming-"
MEMORY_STREAM = "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream"
NOW_MS = "java_method('java.lang.System', 'currentTimeMillis')"

Answer = dict[tuple[int, str], int]
"""How many flights left, by window and origin."""


class NotShownError(Exception):
    """A contender could be started, and showed nothing in time."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One that takes part; `run` returns figures by name."""

    name: str
    run: Callable[[], dict[str, float]]


# -- the engine --------------------------------------------------------------------------------------


class _Paced:
    """Makes records at a steady pace: number, and the millisecond in which it was made."""

    def __init__(self, num_records: int) -> None:
        self._num_records = num_records
        self._number = 0
        self._started_s = time.monotonic()

    def read(self, _max_records: int) -> Sequence[StreamRecord] | None:
        if self._number == self._num_records:
            return None
        time.sleep(max(0.0, self._started_s + self._number / RECORDS_PER_S - time.monotonic()))
        self._number += 1
        return [StreamRecord((self._number - 1, round(time.time() * 1e6)))]

    def close(self) -> None: ...


def engine_latency(num_records: int, *, is_keyed: bool) -> dict[str, float]:
    """The engine on threads, each record in a buffer that leaves after `BUFFER_TIMEOUT_MS` at the latest."""
    found: list[tuple[int, float]] = []
    counts: Counter[int] = Counter()
    environment = StreamEnvironment(Config(buffer_timeout_ms=BUFFER_TIMEOUT_MS))

    def arrive(value: tuple[int, int]) -> None:
        counts[value[0] % NUM_KEYS] += 1
        found.append((value[0], time.time() * 1e3 - value[1] / 1e3))

    source = environment.source(lambda _i, _n: _Paced(num_records), type=TupleType(LONG, LONG))
    source = source.slot_sharing_group("source")
    routed = source.key_by(lambda value: value[0] % NUM_KEYS) if is_keyed else source.rebalance()
    routed.sink(arrive).slot_sharing_group("sink")
    ThreadedRun(environment).run()
    if counts.total() != num_records:
        raise WrongAnswerError(f"the engine: {counts.total()} of {num_records} records came")
    return _percentiles(found, num_records)


def _percentiles(found: Sequence[tuple[int, float]], num_records: int) -> dict[str, float]:
    """Of the records after the first fifth, in which everything warms up."""
    latencies = sorted(latency for each, latency in found if each >= num_records // 5)
    return {f"p{percent}_ms": latencies[len(latencies) * percent // 100] for percent in (50, 95, 99)}


def engine_windows(make_reader: ReaderFactory, bound_ms: int, parallelism: int = 1, every: int = 64) -> Answer:
    """The engine's answer, with a watermark after `every` records: what comes behind it is lost."""
    results: list[Any] = []
    environment = StreamEnvironment(Config(object_reuse=True, max_parallelism=256), parallelism)
    (
        environment.source(make_reader, name="flights")
        .assign_timestamps(Field("event_time_ms"), bound_ms, every=every)
        .map(departure)
        .key_by(0)
        .window(TumblingWindows(HOUR_MS))
        .aggregate(DelayTotals())
        .sink(results.append)
    )
    ThreadedRun(environment).run()
    return {(start, origin): count for origin, start, _end, (count, _delay) in results}


def by_hand(flights: Sequence[dict[str, Any]], bound_ms: int) -> Answer:
    """The rule in five lines: late is what belongs to a window that the watermark has passed."""
    kept: Counter[tuple[int, str]] = Counter()
    watermark = -(2**62)
    for flight in flights:
        start = flight["event_time_ms"] // HOUR_MS * HOUR_MS
        if start + HOUR_MS - 1 > watermark:
            kept[start, flight["origin"]] += 1
        watermark = max(watermark, flight["event_time_ms"] - bound_ms - 1)
    return dict(kept)


# -- Spark -------------------------------------------------------------------------------------------


class _ToFiles:
    """Python's sink in Spark's workers: a file for each partition of each batch."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, partition: int, epoch: int) -> bool:
        self._file = Path(f"{self._folder}/{partition}-{epoch}-{time.monotonic_ns()}").open("w")  # noqa: SIM115
        return True

    def process(self, row: Any) -> None:
        self._file.write(f"{row.n} {row.made_us} {row.through_ms}\n")

    def close(self, _error: Exception | None) -> None:
        self._file.close()


def spark_latency(session: Any, num_records: int, *, is_keyed: bool, is_real_time: bool) -> dict[str, float]:
    """Spark, a micro-batch as soon as the last one has ended, or its real-time mode.

    Raises:
        NotShownError: it did not show the records within a minute.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    jvm = session._jvm
    stream = getattr(jvm, MEMORY_STREAM).apply(session._jsparkSession, 1, jvm.org.apache.spark.sql.Encoders.STRING())
    words = F.split("value", " ")
    records = DataFrame(stream.toDF(), session).select(
        words[0].cast("long").alias("n"), words[1].cast("long").alias("made_us")
    )
    if is_keyed:
        # Of each key the newest record, which is what an update shows.
        records = records.groupBy((F.col("n") % NUM_KEYS).alias("key")).agg(
            F.max("n").alias("n"), F.max("made_us").alias("made_us"), F.count("*").alias("count")
        )
    out = records.selectExpr("n", "made_us", f"{NOW_MS} AS through_ms")
    trigger = {"realTime": REAL_TIME_BATCH} if is_real_time else {"processingTime": "0 seconds"}
    with TemporaryDirectory(prefix=_PREFIX) as folder, TemporaryDirectory(prefix=_PREFIX) as state:
        writer = out.writeStream.outputMode("update").foreach(_ToFiles(folder)).option("checkpointLocation", state)
        query = writer.trigger(**trigger).start()
        try:
            stream.addData(jvm.PythonUtils.toSeq(["-1 0"]))
            _shown(query, Path(folder), {-1})  # it runs
            started_s = time.monotonic()
            for index in range(num_records):
                time.sleep(max(0.0, started_s + index / RECORDS_PER_S - time.monotonic()))
                record = f"{index} {round(time.time() * 1e6)}"
                stream.addData(jvm.PythonUtils.toSeq([record]))
            last = range(num_records - NUM_KEYS if is_keyed else 0, num_records)
            found = _shown(query, Path(folder), set(last))
        finally:
            query.stop()
    if not is_keyed and sorted(index for index, _ in found) != list(range(-1, num_records)):
        raise WrongAnswerError(f"Spark: {len(found)} rows, {num_records} records were sent")
    return _percentiles(found, num_records)


def _shown(query: Any, folder: Path, wanted: set[int]) -> list[tuple[int, float]]:
    """Wait until these records are there; then the number and latency of each row."""
    give_up_s = time.monotonic() + SECONDS_TO_SHOW
    while True:
        if (error := query.exception()) is not None:
            raise NotShownError(str(error).strip().splitlines()[0][:200])
        lines = [line for file in folder.iterdir() for line in file.read_text().splitlines(keepends=True)]
        rows = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
        if wanted <= {row[0] for row in rows}:
            return [(index, through_ms - made_us / 1e3) for index, made_us, through_ms in rows]
        if time.monotonic() > give_up_s:
            raise NotShownError(f"{len(rows)} rows within {SECONDS_TO_SHOW:.0f} s of the last record")
        time.sleep(0.1)


def spark_windows(session: Any, folder: Path, bound_ms: int) -> Answer:
    """Spark's streaming answer, a batch for each file of the folder; what its watermark has passed is lost."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    counts: Answer = {}

    def gather(batch: Any, _number: int) -> None:
        columns = [column.to_pylist() for column in batch.toArrow().columns]
        counts.update({(start, origin): count for start, origin, count in zip(*columns, strict=True)})

    schema = session.read.parquet(spark_path(folder)).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(spark_path(folder))
    windows = (
        stream.withColumn("event_time", F.timestamp_millis("event_time_ms"))
        .withWatermark("event_time", f"{bound_ms} milliseconds")
        .groupBy(F.window("event_time", "1 hour"), "origin")
        .count()
        .select(F.unix_millis("window.start").alias("start"), "origin", "count")
    )
    with TemporaryDirectory(prefix="sluice-streaming-") as state, cancels(session):
        writer = windows.writeStream.outputMode("update").option("checkpointLocation", state)
        query = writer.foreachBatch(gather).trigger(availableNow=True).start()
        query.awaitTermination()
    return counts


@contextmanager
def files_of(num_flights: int, num_files: int) -> Iterator[Path]:
    """Lend the first flights in order of arrival, cut into files that Spark reads in this order."""
    table = pq.read_table(verified_path()).slice(0, num_flights)
    with TemporaryDirectory(prefix="sluice-streaming-") as name:
        for index in range(num_files):
            start, end = (num_flights * each // num_files for each in (index, index + 1))
            file = Path(name) / f"{index:05}.parquet"
            pq.write_table(table.slice(start, end - start), file)
            os.utime(file, (1_600_000_000 + index, 1_600_000_000 + index))
        yield Path(name)


def readers_of(folder: Path) -> ReaderFactory:
    """The engine's readers of the same files."""
    parts = []
    for index, path in enumerate(sorted(folder.glob("*.parquet"))):
        footer = pq.read_metadata(path)
        parts.append(Partition(index, path, footer.num_rows, tuple(footer.schema.names)))
    return lambda subtask, parallelism: FlightsReader(parts[subtask::parallelism])


# -- the three comparisons ---------------------------------------------------------------------------


def take_turns(contenders: Sequence[Contender], rounds: int) -> list[dict[str, Any]]:
    """Each contender once in each round; a row for each with the median and the spread of each figure."""
    turns: dict[str, list[dict[str, float]]] = {each.name: [] for each in contenders}
    missing: dict[str, str] = {}
    for index in range(rounds):
        for each in contenders[:: -1 if index % 2 else 1]:
            if each.name not in missing:
                try:
                    turns[each.name].append(each.run())
                except NotShownError as error:
                    missing[each.name] = str(error)
    rows: list[dict[str, Any]] = []
    for name, found in turns.items():
        row: dict[str, Any] = {"contender": name}
        if name in missing:
            row["not measured"] = missing[name]
        else:
            row |= {figure: spread(Figure.of([each[figure] for each in found])) for figure in found[0]}
        rows.append(row)
    return rows


def latency(session: Any, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Milliseconds from making a record until it is through."""
    num_records = max(2 * NUM_KEYS, round(seconds * RECORDS_PER_S))
    contenders = []
    for is_keyed in (False, True):
        what = "counted by key" if is_keyed else "passed on"
        contenders.append(
            Contender(f"{what}: engine", lambda is_keyed=is_keyed: engine_latency(num_records, is_keyed=is_keyed))
        )
        for is_real_time, mode in ((False, "micro-batch"), (True, "real-time")):

            def run(is_keyed: bool = is_keyed, is_real_time: bool = is_real_time) -> dict[str, float]:
                return spark_latency(session, num_records, is_keyed=is_keyed, is_real_time=is_real_time)

            contenders.append(Contender(f"{what}: Spark {mode}", run))
    width = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", "1")  # all tasks of a real-time query run at the same time
    try:
        if rounds > 1:
            take_turns(contenders, 1)  # to warm up
        return take_turns(contenders, rounds)
    finally:
        session.conf.set("spark.sql.shuffle.partitions", width)


def throughput(session: Any, rounds: int, num_flights: int, batches: Sequence[int] = (1, 8)) -> list[dict[str, Any]]:
    """Flights per second, and CPU microseconds for each; all contenders come to one answer."""
    flights = pq.read_table(verified_path(), columns=["event_time_ms", "origin"]).slice(0, num_flights).to_pylist()
    want = by_hand(flights, LARGEST_DISORDER_MS)

    def timed(who: str, work: Callable[[], Answer]) -> dict[str, float]:
        cpu_s, start_s = _cpu_s(), time.perf_counter()
        got = work()
        wall_s = time.perf_counter() - start_s
        if got != want:
            raise WrongAnswerError(f"{who}: {sum(got.values())} flights in {len(got)} windows, not {len(want)}")
        return {"flights_per_s": num_flights / wall_s, "cpu_us_per_flight": (_cpu_s() - cpu_s) / num_flights * 1e6}

    def engine(parallelism: int) -> dict[str, float]:
        with files_of(num_flights, parallelism) as folder:
            windows = partial(engine_windows, readers_of(folder), LARGEST_DISORDER_MS, parallelism, BATCH_ROWS)
            return timed("the engine", windows)

    def of_spark(num_batches: int) -> dict[str, float]:
        with files_of(num_flights, num_batches) as folder:
            return timed("Spark", lambda: spark_windows(session, folder, LARGEST_DISORDER_MS))

    contenders = [Contender("engine, 1 subtask", lambda: engine(1))]
    contenders += [
        Contender(f"Spark, {each} micro-batch{'es' * (each > 1)}", lambda each=each: of_spark(each)) for each in batches
    ]
    if rounds > 1:
        take_turns(contenders, 1)  # to warm up
    return take_turns(contenders, rounds)


def _cpu_s() -> float:
    """CPU seconds of this process and of the JVM and workers below it."""
    total = time.process_time()
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def lateness(
    session: Any, num_flights: int = NUM_LATENESS, batches: Sequence[int] = (1, 8, 64), bounds: Sequence[int] = (0, 60)
) -> list[dict[str, Any]]:
    """How many flights are lost behind the same bound, in minutes.

    Raises:
        WrongAnswerError: the engine lost others than the rule says.
    """
    flights = pq.read_table(verified_path(), columns=list(FLIGHT_COLUMNS)).slice(0, num_flights).to_pylist()
    rows = []
    for minutes in bounds:
        bound_ms = minutes * 60_000
        row: dict[str, Any] = {"bound, min": minutes}
        for every, name in ((1, "engine, each record"), (64, "each 64")):
            kept = engine_windows(lambda _i, _n: IterableReader(flights), bound_ms, every=every)
            if every == 1 and kept != by_hand(flights, bound_ms):
                raise WrongAnswerError(f"the engine kept {sum(kept.values())} flights with a bound of {minutes} min")
            row[name] = num_flights - sum(kept.values())
        with files_of(num_flights, 1) as folder:
            kept = engine_windows(readers_of(folder), bound_ms, every=BATCH_ROWS)
        row["batches of 4096"] = num_flights - sum(kept.values())
        for num_batches in batches:
            with files_of(num_flights, num_batches) as folder:
                kept = spark_windows(session, folder, bound_ms)
            name = f"{num_batches} micro-batch{'es' * (num_batches > 1)}"
            row[f"Spark, {name}" if num_batches == batches[0] else name] = num_flights - sum(kept.values())
        rows.append(row)
    return rows


# -- report ------------------------------------------------------------------------------------------


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows with their columns under each other."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "not measured"))
    lines = [names]
    for row in rows:
        if "not measured" in row:
            lines.append([row["contender"], f"not measured: {row['not measured']}", *[""] * (len(names) - 2)])
        else:
            lines.append([_cell(row[name]) for name in names])
    widths = [max(len(line[column]) for line in lines if "not measured" not in line[1]) for column in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return f"{_short(value['median'])} [{_short(value['low'])} .. {_short(value['high'])}]"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else number(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        "python -m tests.bench.streaming", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("latency", "throughput", "lateness"), help="one table")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a turn in latency (default: %(default)s)")
    parser.add_argument("--flights", type=int, default=NUM_FLIGHTS, metavar="N", help="for throughput (default: all)")
    parser.add_argument("--json", metavar="FILE", help="where to write all figures, '-' to print them")
    given = parser.parse_args(arguments)
    load_before = os.getloadavg()[0]
    session = spark("sluice bench", master="local[4]", spark_sql_shuffle_partitions="1")
    found: dict[str, list[dict[str, Any]]] = {}
    with cancels(session):
        if given.only in (None, "latency"):
            found["latency"] = latency(session, given.rounds, given.seconds)
        if given.only in (None, "throughput"):
            found["throughput"] = throughput(session, given.rounds, given.flights)
        if given.only in (None, "lateness"):
            found["lateness"] = lateness(session)
    where = machine(load_before)
    where["versions"]["pyspark"] = version("pyspark")
    answer = {"format": FORMAT, "machine": where, "rounds": given.rounds, "seconds": given.seconds, **found}
    path = deliver(answer, given.json, FILE)
    if path is not None:
        for name, rows in found.items():
            print(f"{name}\n\n{as_table(rows)}\n")
        print(machine_in_words(where), f"All of it: {path}", sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
