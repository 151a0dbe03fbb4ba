"""Random jobs give one answer on every driver: that of the same operators in plain Python, and, where it can, Spark's.

Branches, unions, diamonds, two inputs, side outputs, every partitioner; keys and values of all kinds; sources without
a record.

    python -m tests.test_differential --jobs 500 --seed 7      # as many as there is time for; `make differential`
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.loop import AsyncRun
from refimpl.job import DataStream, StreamEnvironment
from refimpl.producer.key_groups import java_identity
from refimpl.records import StreamRecord
from refimpl.task import Operator, OutputTag, TumblingWindows
from tests.support.small_jobs import Count

KEYS: Sequence[Any] = [
    0, 1, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.0, math.nan, math.inf, True, False, None, "", "1", "é", "😀", "\0", b"",
    b"1", (), (1,), (1.0,), (math.nan, "a"), ((None,), -0.0), "a" * 300,
]  # fmt: skip
VALUES: Sequence[Any] = [
    *KEYS, 2**70, [1, [2.5]], {"a": [None]}, {1: (2,), "b": -0.0}, Decimal("1.50"), date(1, 1, 1), timedelta(-1, 1, 1),
    datetime(9999, 12, 31, tzinfo=UTC), [], {},
]  # fmt: skip
ROUTES = ("forward", "rebalance", "rescale", "shuffle", "broadcast", "to_first", "key_by", "default")
ODD = OutputTag("odd")
DRIVERS: dict[str, Callable[[StreamEnvironment, int], Any]] = {
    "simulation": lambda job, seed: Simulation(job, seed=seed, check_every=5),
    "simulation of 2": lambda job, seed: Simulation(job, seed=seed, num_task_managers=2, check_every=5),
    "threads": lambda job, _seed: ThreadedRun(job),
    "threads of 2": lambda job, _seed: ThreadedRun(job, num_task_managers=2),
    "loop": lambda job, _seed: AsyncRun(job),
    "loop of 2": lambda job, _seed: AsyncRun(job, num_task_managers=2),
}
IN_PROCESSES = {"processes": lambda job, _seed: ProcessRun(job, num_task_managers=1)}

Row = tuple[int, Any, Any]
"""Number, key and value; the number is the event time in ms, too."""


def told(value: object) -> str:
    """What a result says, with types and signs, so that 1, 1.0 and True are three."""
    return repr(value)


class Aside(Operator):
    """Sends rows of odd numbers to the side as well."""

    def process(self, record: StreamRecord) -> None:
        if record.value[0] % 2:
            self.output.collect_side(ODD, StreamRecord(record.value, record.timestamp))
        self.output.collect(record)


def keeps(row: Row) -> bool:
    return row[0] % 3 != 0


def shifted(row: Row) -> Row:
    return (row[0] + 1, row[1], row[2])


def doubled(row: Row) -> list[Row]:
    return [row] * (row[0] % 3)


def key_of(row: Row) -> Any:
    return row[1]


@dataclass
class Built:
    """A stream and the rows it must bring; `width` is how many subtasks it has."""

    stream: DataStream
    rows: list[Row]
    width: int


@dataclass
class RandomJob:
    """The job of a seed: the same, however often it is built."""

    seed: int
    results: dict[str, list[Any]] = field(default_factory=dict)
    expected: dict[str, Counter[str]] = field(default_factory=dict)

    def build(self) -> StreamEnvironment:
        self.random, self.results, self.expected, self.num = random.Random(self.seed), {}, {}, 0
        choose = self.random.choice
        config = Config(
            segment_size_bytes=choose([64, 512, 32_768]), num_buffers=3_000, object_reuse=choose([True, False]),
            chaining=choose([True, True, False]), shortcuts=choose([True, False]), source_batch=choose([1, 7, 64]),
            buffer_timeout_ms=choose([0, 1, 100, -1]), credit_based=choose([True, True, False]), seed=self.seed,
        )  # fmt: skip
        self.environment = StreamEnvironment(config)
        streams = [self.source() for _ in range(choose([1, 1, 2]))]
        for _ in range(self.random.randrange(1, 5)):
            streams.append(self.step(choose(streams)))
        if len(streams) > 1 and self.random.random() < 0.6:  # of one source this makes a diamond
            streams.append(self.united(*self.random.sample(streams, 2)))
        if len(streams) > 1 and self.random.random() < 0.6:
            streams.append(self.connected(*self.random.sample(streams, 2)))
        for built in streams[-3:]:
            self.end(built)
        return self.environment

    def name(self, what: str) -> str:
        self.num += 1
        return f"{what} {self.num}"

    def source(self) -> Built:
        count = self.random.choice([0, 1, 30])
        rows = [(number, self.random.choice(KEYS), self.random.choice(VALUES)) for number in range(count)]
        name = self.name("source")
        stream = self.environment.from_collection([StreamRecord(row, row[0]) for row in rows], name)
        return Built(stream, rows, 1)

    def routed(self, built: Built) -> tuple[Any, int, int]:
        """The stream on its way, how many subtasks take it, and how often each row then is there."""
        route, width = self.random.choice(ROUTES), self.random.choice([1, 2, 3])
        if route == "forward":
            return built.stream.forward(), built.width, 1
        if route == "key_by":
            return built.stream.key_by(key_of), width, 1
        if route == "default":
            return built.stream, width, 1
        return getattr(built.stream, route)(), width, width if route == "broadcast" else 1

    def step(self, built: Built) -> Built:
        routed, width, copies = self.routed(built)
        rows, kind = built.rows * copies, self.random.choice(["map", "filter", "flat_map", "aside"])
        name = self.name(kind)
        if kind == "aside":
            made = routed.transform(name, Aside).set_parallelism(width)
            self.collect(made.side_output(ODD), [row for row in rows if row[0] % 2], self.name("odd"))
            return Built(made, rows, width)
        stream = routed.transform(name, Operator).set_parallelism(width) if not hasattr(routed, "map") else routed
        if kind == "map":
            made, rows = stream.map(shifted, self.name("shift")), [*map(shifted, rows)]
        elif kind == "filter":
            made, rows = stream.filter(keeps, self.name("keep")), [*filter(keeps, rows)]
        else:
            made = stream.flat_map(doubled, self.name("double"))
            rows = [each for row in rows for each in doubled(row)]
        return Built(made.set_parallelism(width), rows, width)

    def united(self, one: Built, other: Built) -> Built:
        width = self.random.choice([1, 2])
        name = self.name("united")
        made = one.stream.union(other.stream).rebalance().map(shifted, name).set_parallelism(width)
        return Built(made, [*map(shifted, one.rows + other.rows)], width)

    def connected(self, one: Built, other: Built) -> Built:
        """Two inputs of one task: by key, broadcast or just side by side; one side mapped, the other flat-mapped."""
        width, route = self.random.choice([1, 2, 3]), self.random.choice(["key_by", "broadcast", "rebalance"])
        copies = width if route == "broadcast" else 1
        name = self.name("connected")
        if route == "key_by":
            both: Any = one.stream.key_by(key_of).connect(other.stream.key_by(key_of))
        else:
            both = one.stream.rebalance().connect(getattr(other.stream, route)())
        made = both.flat_map(lambda row: [shifted(row)], doubled, name).set_parallelism(width)
        return Built(
            made, [*map(shifted, one.rows), *(each for row in other.rows * copies for each in doubled(row))], width
        )

    def end(self, built: Built) -> None:
        if self.random.random() < 0.5:
            self.collect(built.stream, built.rows, self.name("sink"))
            return
        name = self.name("count")
        windows = built.stream.assign_timestamps(lambda row: row[0], 10_000, self.name("times")).set_parallelism(1)
        counted = windows.key_by(key_of).window(TumblingWindows(10, self.random.randrange(-9, 10)))
        size, offset = counted._windows.size_ms, counted._windows.offset_ms
        groups = Counter((java_identity(row[1]), (row[0] - offset) // size * size + offset) for row in built.rows)
        stream = counted.aggregate(Count(), name).set_parallelism(self.random.choice([1, 2, 3]))
        found = self.results.setdefault(name, [])
        stream.map(lambda value: (value[1], value[3]), self.name("counts")).sink(found.append, name + " sink")
        self.expected[name] = Counter(told((start, count)) for (_, start), count in groups.items())

    def collect(self, stream: DataStream, rows: list[Row], name: str) -> None:
        found = self.results.setdefault(name, [])
        stream.sink(found.append, name).set_parallelism(1)
        self.expected[name] = Counter(map(told, rows))

    def check(self, drivers: dict[str, Callable[[StreamEnvironment, int], Any]]) -> None:
        """Run it on each driver, and compare all that comes out."""
        for name, drive in drivers.items():
            job = self.build()
            if name.endswith("of 2") and num_slots(job) < 2:
                continue
            try:
                drive(job, self.seed).run()
            except Exception as error:
                error.add_note(f"seed {self.seed} on {name}")
                raise
            found = {each: Counter(map(told, values)) for each, values in self.results.items()}
            assert found == self.expected, f"seed {self.seed} on {name}: {differences(found, self.expected)}"


def num_slots(job: StreamEnvironment) -> int:
    """Between how many TaskManagers a job can be shared."""
    return job.execution_graph().placement.num_slots


def differences(found: dict[str, Counter[str]], expected: dict[str, Counter[str]]) -> str:
    return "; ".join(
        f"{name} has {found[name] - expected[name]}, lacks {expected[name] - found[name]}"
        for name in expected
        if found[name] != expected[name]
    )


@pytest.mark.slow
@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("seed", range(40))
def test_a_random_job_gives_one_answer_on_every_driver(seed: int) -> None:
    RandomJob(seed).check(DRIVERS)


@pytest.mark.slow
@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_random_job_gives_the_same_answer_in_processes(seed: int) -> None:
    RandomJob(seed).check(IN_PROCESSES)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_sparks_own_counts_by_key_are_the_same(spark, seed: int) -> None:
    """Doubles with NaN, text, longs and nulls: where Spark and Flink agree, which is not on the sign of zero."""
    random_ = random.Random(seed)
    for type_, keys in (("double", [math.nan, 0.0, 1.5, math.inf, None]), ("string", ["", "a", "é", "\0", None]),
                        ("bigint", [0, 1, -1, 2**63 - 1, None])):  # fmt: skip
        given = [(random_.choice(keys),) for _ in range(60)]
        counted = spark.createDataFrame(given, f"k {type_}").groupBy("k").count().collect()
        expected = Counter(told((row["k"], row["count"])) for row in counted)
        for width in (1, 3):
            environment, found = StreamEnvironment(parallelism=width), list[Any]()
            stream = environment.from_collection([(key, 0) for (key,) in given]).assign_timestamps(lambda _: 0, 0)
            windows = stream.key_by(lambda row: row[0]).window(TumblingWindows(10)).aggregate(Count())
            windows.sink(found.append)
            ThreadedRun(environment).run()
            assert Counter(told((key, count)) for key, _, _, count in found) == expected, f"seed {seed}"


def main() -> None:
    """Check as many jobs as asked for; says each hundredth, and the seed of the first that differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=500, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1_000, metavar="N", help="the first one's (default: %(default)s)")
    arguments = parser.parse_args()
    for number in range(arguments.jobs):
        RandomJob(arguments.seed + number).check(DRIVERS if number % 25 else {**DRIVERS, **IN_PROCESSES})
        if number % 100 == 99:
            print(f"{number + 1} jobs, each on {len(DRIVERS)} drivers: one answer", flush=True)


if __name__ == "__main__":
    main()
