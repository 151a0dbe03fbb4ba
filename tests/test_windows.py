"""Windows in whole jobs: one answer on every driver, plain arithmetic's, and over real flights Spark's."""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from course.data.flights import ARRIVAL_ORDER, load
from course.jobs.drivers import BY_REGION, execute
from course.jobs.drivers import DRIVERS as COURSE_DRIVERS
from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamElement, StreamRecord, Watermark
from refimpl.task import (
    LATE,
    ContinuousEventTimeTrigger,
    IterableReader,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    TumblingWindows,
    WindowAssigner,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

MINUTE_MS = 60_000
WINDOWS = [TumblingWindows(7), SlidingWindows(9, 4), SlidingWindows(3, 8, 2), SessionWindows(5)]
DRIVERS: dict[str, Callable[[StreamEnvironment], object]] = {
    "simulation": lambda job: Simulation(job, seed=3, check_every=7).run(),
    "simulation, 2 TaskManagers": lambda job: Simulation(job, seed=4, num_task_managers=2, check_every=7).run(),
    "threads": lambda job: ThreadedRun(job).run(),
    "threads, 2 TaskManagers": lambda job: ThreadedRun(job, num_task_managers=2).run(),
    "loop": lambda job: AsyncRun(job).run(),
}


class Total:
    """How many values, and their sum."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[Any, int, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def merge(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return one[0] + other[0], one[1] + other[1]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


def rows_of(seed: int, num: int = 400) -> list[tuple[str, int, int]]:
    """Records: key, value, event time."""
    random_ = random.Random(seed)
    return [(random_.choice("abc"), random_.randrange(100), random_.randrange(900)) for _ in range(num)]


def job(
    rows: Sequence[Any], windows: WindowAssigner, disorder_ms: int = 1_000, lateness_ms: int = 0, **options: Any
) -> tuple[StreamEnvironment, list[Any], list[Any]]:
    environment = StreamEnvironment(Config(segment_size_bytes=128, num_buffers=200, **options), 2)
    results, late = list[Any](), list[Any]()
    windowed = (
        environment.source(lambda i, n: IterableReader(rows[i::n]), "rows")
        .assign_timestamps(lambda row: row[2], disorder_ms, every=1)
        .key_by(lambda row: row[0])
        .window(windows)
        .allowed_lateness(lateness_ms)
        .aggregate(Total())
    )
    windowed.sink(results.append)
    windowed.side_output(LATE).sink(late.append, "late")
    return environment, results, late


def by_arithmetic(rows: Sequence[tuple[Any, int, int]], windows: WindowAssigner) -> Counter[Any]:
    """What the windows hold if no record is late."""
    held: dict[Any, list[int]] = defaultdict(list)
    for key in {row[0] for row in rows}:
        of_key = sorted((row for row in rows if row[0] == key), key=lambda row: row[2])
        assigned = [(window, row[1]) for row in of_key for window in windows.assign(row[2], row)]
        if windows.is_merging:
            assigned = grown_together(assigned)
        for window, value in assigned:
            held[key, *window].append(value)
    return Counter((*where, (len(values), sum(values))) for where, values in held.items())


def grown_together(assigned: list[tuple[TimeWindow, int]]) -> list[tuple[TimeWindow, int]]:
    """Windows in order of their starts, those that touch as one."""
    groups: list[tuple[TimeWindow, list[int]]] = []
    for window, value in assigned:
        if groups and groups[-1][0].touches(window):
            groups[-1] = groups[-1][0].cover(window), [*groups[-1][1], value]
        else:
            groups.append((window, [value]))
    return [(window, value) for window, values in groups for value in values]


@pytest.mark.parametrize("drive", DRIVERS)
@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_windows_hold_what_arithmetic_puts_into_them_on_every_driver(windows: WindowAssigner, drive: str) -> None:
    rows = rows_of(11)
    environment, results, late = job(rows, windows)
    DRIVERS[drive](environment)
    assert late == []
    assert Counter(results) == by_arithmetic(rows, windows), "seed 11"


@pytest.mark.slow
def test_windows_hold_the_same_in_processes() -> None:
    rows = rows_of(12)
    for windows in WINDOWS[1::2]:
        environment, results, _ = job(rows, windows)
        ProcessRun(environment).run()
        assert Counter(results) == by_arithmetic(rows, windows), "seed 12"


@pytest.mark.parametrize("seed", range(4))
def test_with_enough_lateness_the_last_results_are_those_of_a_job_in_order(seed: int) -> None:
    """A window gives a new result for each record that comes behind its end: the last one says all."""
    rows = rows_of(seed, 150)
    for windows in WINDOWS[:3]:
        environment, results, late = job(rows, windows, disorder_ms=0, lateness_ms=10_000)
        Simulation(environment, seed=seed).run()
        largest: dict[Any, tuple[int, int]] = {}
        for *where, result in results:
            largest[tuple(where)] = max(largest.get(tuple(where), (0, 0)), result)
        assert late == []
        assert len(results) > len(largest), f"seed {seed}"
        assert Counter((*where, result) for where, result in largest.items()) == by_arithmetic(rows, windows)


@pytest.mark.parametrize("windows", WINDOWS[:2], ids=repr)
def test_a_record_is_late_or_in_each_of_its_windows_that_is_not_over(windows: WindowAssigner) -> None:
    rows = rows_of(21)
    environment, results, late = job(rows, windows, disorder_ms=0)
    Simulation(environment, seed=21).run()
    counted = sum(count for *_, (count, _) in results)
    assert late
    assert sum(len(windows.assign(row[2])) for row in rows if row not in late) >= counted > 0


def test_a_trigger_is_set_for_the_stream_of_windows() -> None:
    environment, results = StreamEnvironment(), list[Any]()
    rows = [("a", 1, time) for time in range(0, 30, 2)]
    timed = environment.from_collection(rows).assign_timestamps(lambda row: row[2], 0, every=1)
    windows = timed.key_by(lambda row: row[0]).window(TumblingWindows(20)).trigger(ContinuousEventTimeTrigger(5))
    windows.aggregate(Total()).sink(results.append)
    Simulation(environment).run()
    counts = [(start, count) for _, start, _, (count, _) in results]
    # At the end of event time the timers of 30, 35 and 39 fire one after another.
    assert counts == [(0, 4), (0, 7), (0, 9), (0, 10), (20, 4), (20, 5), (20, 5), (20, 5)]


# -- over real flights, as in Spark ------------------------------------------------------------------

OF_FLIGHTS = {
    "tumbling": TumblingWindows(60 * MINUTE_MS),
    "sliding": SlidingWindows(60 * MINUTE_MS, 20 * MINUTE_MS),
    "session": SessionWindows(25 * MINUTE_MS),
}
BOUND_MIN = 10


def in_spark(frame: DataFrame, kind: str) -> DataFrame:
    """Departures and their delays by airport, in one of `OF_FLIGHTS`; columns as in the results of `job`."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    window = {
        "tumbling": F.window("time", "60 minutes"),
        "sliding": F.window("time", "60 minutes", "20 minutes"),
        "session": F.session_window("time", "25 minutes"),
    }[kind].alias("w")
    totals = F.count("*").alias("n"), F.sum("dep_delay_minutes").alias("delay")
    found = frame.groupBy("origin", window).agg(*totals)
    as_ms = (F.unix_millis("w.start").alias("start"), F.unix_millis("w.end").alias("end"))
    return found.select("origin", *as_ms, F.struct("n", "delay"))


def counted(rows: Iterable[Sequence[Any]]) -> Counter[Any]:
    """Results of either side as values, without those of the airport that only moves time on."""
    return Counter((key, start, end, tuple(total)) for key, start, end, total in rows if key != FAR)


def flights_of(spark: SparkSession, num: int) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    flights = load(spark, num).where("dep_delay_minutes is not null").orderBy(*ARRIVAL_ORDER)
    return flights.select(*COLUMNS_OF_ROWS).withColumn("time", F.timestamp_millis("event_time_ms"))


@pytest.mark.spark
@pytest.mark.parametrize("kind", OF_FLIGHTS)
def test_windows_over_real_flights_are_sparks(spark: SparkSession, kind: str) -> None:
    """Nothing is late. Sessions of Spark and of Flink both join at exactly the gap."""
    flights = flights_of(spark, 2_000)
    expected = counted(in_spark(flights, kind).collect())
    rows = [tuple(row) for row in flights.select(*COLUMNS_OF_ROWS).collect()]
    environment, results, late = job(rows, OF_FLIGHTS[kind], disorder_ms=10**12)
    ThreadedRun(environment).run()
    assert late == []
    assert len(expected) > 20
    assert counted(results) == expected


FAR = "far ahead"
COLUMNS_OF_ROWS = ("origin", "dep_delay_minutes", "event_time_ms")


class Batches:
    """Reads batches as Spark takes them: what is late for a batch is decided by all before the last one."""

    def __init__(self, batches: Sequence[Sequence[tuple[str, int, int]]]) -> None:
        self._elements: list[StreamElement] = []
        for batch, watermark_ms in zip(batches, watermarks_of(batches), strict=True):
            self._elements.append(Watermark(watermark_ms - 1))  # Spark's is an end, and no time up to which
            self._elements += [StreamRecord(row, row[2]) for row in batch]
        self._elements.reverse()

    def read(self, max_records: int) -> list[Any] | None:
        return [self._elements.pop() for _ in range(min(max_records, len(self._elements)))] or None

    def close(self) -> None: ...


def watermarks_of(batches: Sequence[Sequence[tuple[str, int, int]]]) -> list[int]:
    """For each batch, which ends of windows are over for what comes in it."""
    most = [
        max((row[2] for before in batches[: max(0, n - 1)] for row in before), default=0) for n in range(len(batches))
    ]
    return [time - BOUND_MIN * MINUTE_MS if time else 0 for time in most]


def over_alone(batches: Sequence[Sequence[tuple[str, int, int]]], gap_ms: int) -> list[tuple[str, int, int]]:
    """Records whose own session is over when they come: Spark drops them before it looks for a session they touch."""
    marks = watermarks_of(batches)
    return [row for batch, mark in zip(batches, marks, strict=True) for row in batch if row[2] + gap_ms <= mark]


class InBatches(NamedTuple):
    """Flights in their order of arrival, cut into batches, and what Spark makes of them as a stream."""

    batches: list[list[tuple[str, int, int]]]
    windows: dict[str, Counter[Any]]


@pytest.fixture(scope="module")
def in_batches(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> InBatches:
    """A micro-batch is a file; two more come from far ahead, so that all windows before end."""
    folder = tmp_path_factory.mktemp("batches")
    rows = [tuple(row) for row in flights_of(spark, 1_200).select(*COLUMNS_OF_ROWS).collect()]
    last_ms = max(row[2] for row in rows)
    batches = [rows[start : start + 200] for start in range(0, len(rows), 200)]
    batches += [[(FAR, 0, last_ms + days * 10**8)] for days in (1, 2)]
    for number, batch in enumerate(batches):
        file = folder / f"{number}.json"
        file.write_text("".join(json.dumps(dict(zip(COLUMNS_OF_ROWS, row, strict=True))) + "\n" for row in batch))
        os.utime(file, (10**9 + number,) * 2)
    single = spark.newSession()
    single.conf.set("spark.sql.shuffle.partitions", "1")
    windows: dict[str, list[Any]] = {kind: [] for kind in OF_FLIGHTS}
    queries = [stream_in_spark(single, folder, kind, found) for kind, found in windows.items()]
    for query in queries:
        query.awaitTermination()
    return InBatches(batches, {kind: counted(found) for kind, found in windows.items()})


def stream_in_spark(session: SparkSession, folder: Path, kind: str, found: list[Any]) -> StreamingQuery:
    """A query over the files of `folder`, one after another; the windows it ends go into `found`."""
    stream = session.readStream.schema("origin string, dep_delay_minutes bigint, event_time_ms bigint")
    flights = stream.option("maxFilesPerTrigger", 1).json(f"file://{folder}")
    timed = flights.selectExpr("*", "timestamp_millis(event_time_ms) as time").withWatermark(
        "time", f"{BOUND_MIN} minutes"
    )
    writer = in_spark(timed, kind).writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"file://{folder}-{kind}")
    return writer.foreachBatch(lambda batch, _number: found.extend(batch.collect())).start()


def job_of_batches(
    batches: Sequence[Sequence[tuple[str, int, int]]],
    windows: WindowAssigner,
    dropped: Sequence[Any] = (),
    **options: Any,
) -> tuple[StreamEnvironment, list[Any], list[Any]]:
    environment = StreamEnvironment(Config(num_buffers=64, **options), 2)
    results, late = list[Any](), list[Any]()
    rows = environment.source(lambda _i, _n: Batches(batches), "flights", parallelism=1)
    kept = rows.filter(lambda row: row not in dropped).set_parallelism(1)  # a stream with one order up to the windows
    windowed = kept.key_by(lambda row: row[0]).window(windows).aggregate(Total())
    windowed.sink(results.append)
    windowed.side_output(LATE).sink(late.append, "late")
    return environment, results, late


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("driver", COURSE_DRIVERS)
@pytest.mark.parametrize("kind", OF_FLIGHTS)
def test_windows_with_late_flights_are_sparks_on_every_driver(
    spark: SparkSession, in_batches: InBatches, kind: str, driver: str
) -> None:
    """A record is left out of a window that is over, in both: where its end is not behind the watermark.

    What differs is when a watermark holds. Ours is in the stream; Spark's is made between batches, and what is late
    is decided by the one before. So we say it there. And sessions: see the next test.
    """
    windows = OF_FLIGHTS[kind]
    dropped = over_alone(in_batches.batches, windows.gap_ms) if isinstance(windows, SessionWindows) else []
    environment, results, late = job_of_batches(in_batches.batches, windows, dropped)
    execute(environment, driver, 2, spark)
    assert late or dropped or kind == "sliding", "a record that is late for one window is in the next"
    assert counted(results) == in_batches.windows[kind]
    num_flights = sum(map(len, in_batches.batches)) - 2
    num_windows = windows.size_ms // windows.slide_ms if isinstance(windows, SlidingWindows) else 1
    assert sum(n for *_, (n, _) in counted(results).elements()) < num_flights * num_windows


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("driver", BY_REGION)
@pytest.mark.parametrize("kind", OF_FLIGHTS)
def test_as_batch_and_as_stream_windows_with_late_flights_are_sparks_and_the_batch_needs_fewer_slots(
    in_batches: InBatches, kind: str, driver: str, tmp_path: Path
) -> None:
    windows = OF_FLIGHTS[kind]
    dropped = over_alone(in_batches.batches, windows.gap_ms) if isinstance(windows, SessionWindows) else []
    found = {}
    for mode, num_slots in ((ExchangeMode.ALL_PIPELINED, 2), (ExecutionMode.BATCH, 1)):
        options = {"execution_mode": mode, "spill_directory": str(tmp_path)}
        environment, results, late = job_of_batches(in_batches.batches, windows, dropped, **options)
        figures = execute(environment, driver, 1, num_slots=num_slots)
        assert figures.regions is not None
        assert figures.regions.slots == num_slots
        found[mode] = sorted(results), sorted(late)
        assert counted(results) == in_batches.windows[kind]
    assert found[ExchangeMode.ALL_PIPELINED] == found[ExecutionMode.BATCH]
    environment, _, _ = job_of_batches(in_batches.batches, windows, dropped)
    with pytest.raises(LocalUsageError, match="needs 2 slots"):
        execute(environment, driver, 1, num_slots=1)


@pytest.mark.spark
@pytest.mark.slow
def test_a_late_flight_that_touches_a_live_session_is_in_it_here_and_lost_in_spark(in_batches: InBatches) -> None:
    """Flink lets it join, and then looks whether the whole is over. Spark looks first, at the session of it alone."""
    windows = OF_FLIGHTS["session"]
    assert isinstance(windows, SessionWindows)
    dropped = over_alone(in_batches.batches, windows.gap_ms)
    environment, results, late = job_of_batches(in_batches.batches, windows)
    Simulation(environment).run()
    ours, theirs = counted(results), in_batches.windows["session"]
    assert dropped
    assert late == []
    differing = (ours - theirs).elements()
    assert all(any(key == row[0] and start <= row[2] < end for row in dropped) for key, start, end, _ in differing)
    assert sum(n for *_, (n, _) in ours.elements()) - sum(n for *_, (n, _) in theirs.elements()) == len(dropped)


@pytest.mark.spark
def test_sessions_that_touch_are_one_in_spark_too(spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    rows = [("a", 1, 0), ("a", 1, 5_000), ("a", 1, 10_001), ("b", 1, 0), ("b", 1, 4_999)]
    frame = spark.createDataFrame(rows, "k string, v bigint, ms bigint").withColumn("t", F.timestamp_millis("ms"))
    session = F.session_window("t", "5 seconds").alias("w")
    found = frame.groupBy("k", session).agg(F.count("*").alias("n"))
    theirs = {
        (row["k"], row["ms"], row["n"])
        for row in found.select("k", F.unix_millis("w.start").alias("ms"), "n").collect()
    }
    environment, results, _ = job(rows, SessionWindows(5_000), disorder_ms=10**6)
    Simulation(environment).run()
    assert {(key, start, count) for key, start, _, (count, _) in results} == theirs
