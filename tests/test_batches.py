"""A job that works on batches gives the answer of the same job record by record, on every driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, Field, RecordBatch, StreamRecord, TupleType, Vectorized
from refimpl.task import LATE, TumblingWindows

KIND = TupleType(STRING, LONG)


class Totals:
    """How many values there were, and their sum; `accumulate_groups` is called for batches."""

    def __init__(self) -> None:
        self.num_batches = 0

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[str, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def accumulate_groups(self, batch: RecordBatch, starts: np.ndarray) -> Sequence[tuple[int, int]]:
        self.num_batches += 1
        counts = np.diff(starts, append=len(batch))
        return list(zip(counts.tolist(), np.add.reduceat(batch[1], starts).tolist(), strict=True))

    def merge(self, accumulator: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


class Rows:
    """A source of (key, number, time in ms), in batches or one by one."""

    def __init__(self, rows: list[tuple[str, int, int]], in_batches: bool) -> None:
        self.rows, self.in_batches = rows, in_batches

    def read(self, max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        rows, self.rows = self.rows[:max_records], self.rows[max_records:]
        if not rows:
            return None
        if self.in_batches:
            columns = [np.array(column) for column in zip(*rows, strict=True)]
            return RecordBatch(columns, names=("key", "number", "time"))
        return [StreamRecord(dict(zip(("key", "number", "time"), row, strict=True))) for row in rows]

    def close(self) -> None: ...


PLAIN: dict[str, Callable[[Any], Any]] = {
    "time": lambda row: row["time"],
    "map": lambda row: (row["key"], row["number"] * 2),
    "filter": lambda value: value[1] % 3 != 0,
    "key": lambda value: value[0],
}
MANY: dict[str, Callable[[Any], Any]] = {
    "time": Field("time"),
    "map": Vectorized(PLAIN["map"], lambda batch: (batch["key"], batch["number"] * 2)),
    "filter": Vectorized(PLAIN["filter"], lambda batch: batch[1] % 3 != 0),
    "key": Field(0),
}


def job(
    rows: list[tuple[str, int, int]],
    functions: dict[str, Callable[[Any], Any]],
    in_batches: bool,
    disorder_ms: int = 10**6,
    width: int = 2,
    **options: Any,
) -> tuple[StreamEnvironment, list[object], list[object]]:
    config = {"segment_size_bytes": 512, "num_buffers": 200, "source_batch": 64, **options}
    environment = StreamEnvironment(Config(**config), width)
    results: list[object] = []
    late: list[object] = []
    windows = (
        environment.source(lambda i, n: Rows(rows[i::n], in_batches))
        .assign_timestamps(functions["time"], disorder_ms)
        .map(functions["map"], type=KIND)
        .filter(functions["filter"])
        .key_by(functions["key"])
        .window(TumblingWindows(1_000, 7))
        .aggregate(Totals())
    )
    windows.sink(results.append)
    windows.side_output(LATE).sink(late.append, "late")
    return environment, results, late


def made(number: int) -> list[tuple[str, int, int]]:
    random = np.random.default_rng(number)
    keys = random.choice(["EWR", "JFK", "LGA", "ABCDEFGHIJ"] if number % 2 else ["EWR", "JFK", "LGA"], 1_500)
    return list(
        zip(
            keys.tolist(),
            random.integers(-99, 99, 1_500).tolist(),
            random.integers(0, 9_000, 1_500).tolist(),
            strict=True,
        )
    )


DRIVERS: dict[str, Callable[[StreamEnvironment], object]] = {
    "simulation": lambda job: Simulation(job, seed=3, check_every=7).run(),
    "simulation, 2 TaskManagers": lambda job: Simulation(job, seed=4, num_task_managers=2, check_every=7).run(),
    "threads": lambda job: ThreadedRun(job).run(),
    "threads, 2 TaskManagers": lambda job: ThreadedRun(job, num_task_managers=2).run(),
}


@pytest.mark.parametrize("drive", DRIVERS)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("object_reuse", [True, False])
def test_batches_give_the_answer_of_single_records(drive: str, number: int, object_reuse: bool) -> None:
    answers = []
    for functions, in_batches in ((PLAIN, False), (MANY, True), (MANY, False), (PLAIN, True)):
        environment, results, late = job(made(number), functions, in_batches, object_reuse=object_reuse)
        DRIVERS[drive](environment)
        assert late == []
        answers.append(Counter(results))
    assert len(answers[0]) > 20
    assert answers[0] == answers[1] == answers[2] == answers[3]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.integers(0, 9_000)), max_size=80))
def test_a_record_is_late_or_counted_never_both_or_neither(rows: list[tuple[str, int, int]]) -> None:
    for functions, in_batches in ((PLAIN, False), (MANY, True)):
        environment, results, late = job(rows, functions, in_batches, disorder_ms=0, width=1, source_batch=8)
        Simulation(environment).run()
        kept = sum(1 for _, number, _ in rows if number * 2 % 3 != 0)
        assert sum(count for *_, (count, _) in results) + len(late) == kept


# -- the batch itself ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([],), "columns of one length, not of none"),
        (([np.arange(2), np.arange(3)],), r"not of \[2, 3\]"),
        (([np.arange(2)], np.arange(3)), r"not of \[2\] and 3 times"),
        (([np.arange(2)], None, ["a", "b"]), "2 names for 1 columns"),
        (([np.arange(2), np.arange(2)], None, None, False), "bare values have one column, not 2"),
    ],
)
def test_columns_that_make_no_batch_are_refused(arguments: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        RecordBatch(*arguments)


def test_the_values_of_a_batch_are_those_of_python() -> None:
    columns = [np.array([1, 2]), np.array(["a", "b"]), np.ma.array([1.5, 2.5], mask=[False, True])]
    batch = RecordBatch(columns, np.array([7, 8]))
    assert list(batch.records()) == [StreamRecord((1, "a", 1.5), 7), StreamRecord((2, "b", None), 8)]
    assert [type(part) for part in next(batch.values())] == [int, str, float]
    named = RecordBatch(columns, names=("n", "text", "x"))
    assert list(named.values()) == [{"n": 1, "text": "a", "x": 1.5}, {"n": 2, "text": "b", "x": None}]
    assert named["text"] is columns[1]
