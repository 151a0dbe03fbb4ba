"""Windows in whole jobs: one answer on every driver, plain arithmetic's, and over real flights Spark's."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from course.data.flights import load
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
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


@pytest.mark.spark
@pytest.mark.parametrize("windows", [TumblingWindows(60 * MINUTE_MS), SlidingWindows(60 * MINUTE_MS, 20 * MINUTE_MS),
                                     SessionWindows(25 * MINUTE_MS)], ids=repr)  # fmt: skip
def test_windows_over_real_flights_are_sparks(spark, windows: WindowAssigner) -> None:
    """Departures and their delays by airport. Sessions of Spark and of Flink both join at exactly the gap."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    flights = load(spark, 2_000).where("dep_delay_minutes is not null")
    timed = flights.withColumn("time", F.timestamp_millis("event_time_ms"))
    if isinstance(windows, SessionWindows):
        window = F.session_window("time", "25 minutes")
    elif isinstance(windows, SlidingWindows):
        window = F.window("time", "60 minutes", "20 minutes")
    else:
        window = F.window("time", "60 minutes")
    delays = F.sum("dep_delay_minutes").alias("delay")
    found = timed.groupBy("origin", window.alias("w")).agg(F.count("*").alias("n"), delays)
    as_ms = (F.unix_millis("w.start").alias("start"), F.unix_millis("w.end").alias("end"))
    expected = Counter(
        (row["origin"], row["start"], row["end"], (row["n"], row["delay"]))
        for row in found.select("origin", *as_ms, "n", "delay").collect()
    )
    rows = [
        (row["origin"], row["dep_delay_minutes"], row["event_time_ms"])
        for row in flights.select("origin", "dep_delay_minutes", "event_time_ms").collect()
    ]
    environment, results, late = job(rows, windows, disorder_ms=10**12)
    ThreadedRun(environment).run()
    assert late == []
    assert len(expected) > 20
    assert Counter(results) == expected


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
