"""The book runs where numpy is not: a job with everything in it, in the simulation, with the right answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

JOB = """
import sys

sys.modules["numpy"] = None  # whoever imports it is told that there is none

from collections import Counter

from refimpl.config import Config
from refimpl.drivers.simulation import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, Field, TupleType, Vectorized
from refimpl.task import LATE, Operator, OutputTag, TumblingWindows
from refimpl.records import StreamRecord

LARGE = OutputTag("large")


class Aside(Operator):
    def process(self, record):
        if record.value[1] >= 90:
            self.output.collect_side(LARGE, StreamRecord(record.value, record.timestamp))
        else:
            self.output.collect(record)


class Total:
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator


def run(num_task_managers):
    found = {name: [] for name in ("squares", "totals", "late", "large", "even", "odd", "all")}
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=400), parallelism=2)
    environment.from_collection(range(6), "few").map(lambda n: n * n).rebalance().sink(found["squares"].append, "squares")
    values = [("abc"[n % 3], n) for n in range(100)]
    timed = environment.from_collection(values, "many", TupleType(STRING, LONG)).assign_timestamps(Field(1), 0, every=7)
    sided = timed.transform("aside", Aside, TupleType(STRING, LONG))
    sided.side_output(LARGE).sink(found["large"].append, "large")
    keyed = sided.key_by(Vectorized(lambda value: value[0], lambda batch: batch[0]))
    windows = keyed.window(TumblingWindows(30)).aggregate(Total())
    windows.sink(found["totals"].append, "totals")
    windows.side_output(LATE).sink(found["late"].append, "late")
    branches = timed.map(tuple, "whole").split(lambda value: ["odd"] if value[1] % 2 else ["even"])
    for name in ("even", "odd"):
        branches.select(name).sink(found[name].append, name)
    sided.broadcast().sink(found["all"].append, "all").set_parallelism(3).slot_sharing_group("far")
    with Simulation(environment, num_task_managers=num_task_managers, seed=5) as simulation:
        simulation.run()

    kept = [value for value in values if value[1] < 90]
    totals = Counter()
    for key, n in kept:
        totals[key, n // 30 * 30] += n
    assert sorted(found["squares"]) == [n * n for n in range(6)]
    assert sorted(found["large"]) == sorted(values[90:])
    assert sorted(found["totals"]) == sorted((key, start, start + 30, total) for (key, start), total in totals.items())
    assert found["late"] == []
    assert sorted(found["even"]) == sorted(value for value in values if value[1] % 2 == 0)
    assert sorted(found["odd"]) == sorted(value for value in values if value[1] % 2)
    assert sorted(found["all"]) == sorted(kept * 3)


run(1)
run(2)
assert sys.modules["numpy"] is None
"""


@pytest.mark.slow
def test_a_job_with_everything_in_it_needs_no_numpy() -> None:
    ended = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", ["memory", "records", "producer", "exchange", "consumer", "task", "job", "invariants", "trace"]
)
def test_a_package_of_the_book_is_loaded_without_numpy(package: str) -> None:
    code = f"import sys, refimpl.{package}; assert 'numpy' not in sys.modules"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
