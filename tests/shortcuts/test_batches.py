"""Jobs that work on batches, and what operators make of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import RecordBatch, StreamRecord, Vectorized
from refimpl.task import Operator
from tests.test_batches import DRIVERS, MANY, PLAIN, job, made


@pytest.mark.parametrize("drive", ["simulation", "simulation, 2 TaskManagers"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("object_reuse", [True, False])
def test_batches_give_the_answer_of_single_records_in_a_simulation_too(
    drive: str, number: int, object_reuse: bool
) -> None:
    answers = []
    for functions, in_batches in ((PLAIN, False), (MANY, True), (MANY, False), (PLAIN, True)):
        environment, results, late = job(made(number), functions, in_batches, object_reuse=object_reuse, shortcuts=True)
        DRIVERS[drive](environment)
        assert late == []
        answers.append(Counter(results))
    assert len(answers[0]) > 20
    assert answers[0] == answers[1] == answers[2] == answers[3]


def test_a_job_that_is_vectorized_throughout_works_on_batches_to_its_last_operator() -> None:
    """Else the test above would compare single records with single records."""
    environment, _, _ = job(made(2), MANY, in_batches=True, shortcuts=True)
    simulation = Simulation(environment, seed=1)
    simulation.run()
    [aggregates] = [
        {id(node.operator.aggregate): node.operator.aggregate for task in simulation.deployment.tasks
         for node in task.chain.nodes if hasattr(node.operator, "aggregate")}.values()
    ]  # fmt: skip
    assert sum(each.num_batches for each in aggregates) >= 10


# -- operators -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "function", "complaint"),
    [
        ("map", Vectorized(abs, lambda batch: batch[0][:-1]), "answered 63 values; it must answer an array with one"),
        ("map", Vectorized(abs, lambda batch: 7), "answered 7; it must answer an array"),
        ("map", Vectorized(abs, lambda batch: batch["n"]), "there is no field 'n'"),
        ("filter", Vectorized(abs, lambda batch: batch[0][:3] > 0), "answered 3 values"),
        ("flat_map", Vectorized(lambda n: [n], lambda batch: batch[0]), "a flat_map function answers a RecordBatch"),
        ("sink", Vectorized(abs, lambda batch: 1 // 0), "division"),
    ],
)
def test_a_wrong_answer_for_a_batch_names_the_operator(word: str, function: Vectorized, complaint: str) -> None:
    environment = StreamEnvironment(Config(shortcuts=True))
    batches = [RecordBatch([np.arange(64)], is_tuple=False)]
    stream = environment.source(lambda *_: Batches(batches))
    ended = getattr(stream, word)(function, "culprit")
    if word != "sink":
        ended.sink(print)
    with pytest.raises(UserCodeError, match=rf"culprit, subtask 0, raised .*{complaint}"):
        Simulation(environment).run()


class Batches:
    """A source of these batches."""

    def __init__(self, batches: list[RecordBatch]) -> None:
        self.batches = list(batches)

    def read(self, _max_records: int) -> RecordBatch | None:
        return self.batches.pop(0) if self.batches else None

    def close(self) -> None: ...


def test_a_swapped_function_is_asked_for_single_values_even_when_batches_come() -> None:
    environment, results = StreamEnvironment(Config(shortcuts=True)), []
    batches = [RecordBatch([np.arange(64)], is_tuple=False)] * 4
    doubled = Vectorized(lambda n: n * 2, lambda batch: batch[0] * 2)
    environment.source(lambda *_: Batches(batches)).map(doubled, "double").sink(results.append)
    simulation = Simulation(environment)
    while len(results) < 128:
        simulation.step()
    simulation.swap_function("double", lambda n: -n)
    simulation.run()
    assert results == [n * 2 for n in range(64)] * 2 + [-n for n in range(64)] * 2


def test_a_flat_map_may_answer_any_number_of_records() -> None:
    environment, results = StreamEnvironment(Config(shortcuts=True)), []
    twice = Vectorized(lambda n: [n, n], lambda batch: batch.take(np.repeat(np.arange(len(batch)), 2)))
    source = environment.source(lambda *_: Batches([RecordBatch([np.arange(20)], is_tuple=False)]))
    source.flat_map(twice).sink(results.append)
    Simulation(environment).run()
    assert results == [n for n in range(20) for _ in range(2)]


def test_a_filter_that_keeps_nothing_sends_nothing() -> None:
    environment, results = StreamEnvironment(Config(shortcuts=True)), []
    source = environment.source(lambda *_: Batches([RecordBatch([np.arange(20)], is_tuple=False)]))
    source.filter(Vectorized(lambda n: n > 99, lambda batch: batch[0] > 99)).sink(Vectorized(print, results.append))
    Simulation(environment).run()
    assert results == []


def run(build: Callable[[Any], Any], batches: list[RecordBatch], **options: Any) -> list[object]:
    """What comes out of operators behind a source of batches."""
    environment, results = StreamEnvironment(Config(**options)), list[object]()
    build(environment.source(lambda *_: Batches(batches))).sink(results.append)
    Simulation(environment).run()
    return results


# -- errors ------------------------------------------------------------------------------------------


def inverse(n: int) -> float:
    return 1 / n


def strict_inverse(batch: RecordBatch) -> Any:
    if (batch[0] == 0).any():
        raise ZeroDivisionError("somewhere")
    return 1 / batch[0]


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("word", ["map", "filter", "flat_map", "sink", "assign_timestamps", "key_by"])
def test_a_function_that_fails_on_a_batch_names_the_record_as_without_shortcuts(word: str, shortcuts: bool) -> None:
    environment, values = StreamEnvironment(Config(shortcuts=shortcuts)), np.arange(64) - 40
    stream = environment.source(lambda *_: Batches([RecordBatch([values], is_tuple=False)]), "source")
    function = Vectorized(inverse, strict_inverse)
    if word == "flat_map":
        function = Vectorized(lambda n: [inverse(n)], strict_inverse)
    if word == "assign_timestamps":
        stream.assign_timestamps(function, 0, name="culprit").sink(print)
    elif word == "key_by":
        stream.map(lambda n: n, "culprit").key_by(function).sink(print)
    elif word == "sink":
        stream.sink(function, "culprit")
    else:
        getattr(stream, word)(function, "culprit").sink(print)
    with pytest.raises(UserCodeError, match=r"subtask 0, raised ZeroDivisionError: division by zero") as caught:
        Simulation(environment).run()
    assert (caught.value.operator, caught.value.record) == ("culprit", 0)


# -- watermarks --------------------------------------------------------------------------------------


class Noting(Operator):
    """Keeps records and watermarks in the order in which they come."""

    def __init__(self, notes: list[object]) -> None:
        self.notes = notes

    def process(self, record: StreamRecord) -> None:
        self.notes.append((record.value, record.timestamp))

    def process_watermark(self, watermark: Any) -> None:
        self.notes.append(watermark)


@pytest.mark.parametrize("every", [1, 3, 8, 20, 64, 100, 5_000])
@pytest.mark.parametrize("sizes", [[1_000], [7, 993], [100] * 10, [64] * 15 + [40]])
def test_watermarks_of_batches_stand_where_those_of_records_do(every: int, sizes: list[int]) -> None:
    times = np.random.default_rng(every).integers(0, 50, 1_000) + np.arange(1_000)
    ends = np.cumsum(sizes).tolist()
    batches = [RecordBatch([times[end - size : end]], is_tuple=False) for size, end in zip(sizes, ends, strict=True)]
    told = []
    for shortcuts in (False, True):
        environment, notes = StreamEnvironment(Config(shortcuts=shortcuts)), list[object]()
        source = environment.source(lambda *_: Batches(batches))
        timed = source.assign_timestamps(Vectorized(lambda n: n, lambda batch: batch[0]), 5, every=every)
        timed.transform("noting", lambda notes=notes: Noting(notes))
        Simulation(environment).run()
        told.append(notes)
    assert told[0] == told[1]
    assert len(told[0]) > 1_000


@pytest.mark.parametrize(
    "found", [lambda b: b[0] + 0.5, lambda b: np.ma.array(b[0], mask=b[0] > 5)], ids=["float", "missing"]
)
def test_times_that_are_no_longs_are_made_one_by_one(found: Callable[[RecordBatch], Any]) -> None:
    function = Vectorized(lambda n: n + 0.5, found)
    batch = RecordBatch([np.arange(20)], is_tuple=False)
    for shortcuts in (False, True):
        notes: list[object] = []
        environment = StreamEnvironment(Config(shortcuts=shortcuts))
        timed = environment.source(lambda *_: Batches([batch])).assign_timestamps(function, 5)
        timed.transform("noting", lambda notes=notes: Noting(notes))
        Simulation(environment).run()
        assert notes[:20] == [(n, n) for n in range(20)]


# -- what is swapped in ------------------------------------------------------------------------------


def test_a_vectorized_function_that_is_swapped_in_is_asked_for_batches() -> None:
    environment, results, sizes = StreamEnvironment(Config(shortcuts=True)), [], []
    batches = [RecordBatch([np.arange(64)], is_tuple=False)] * 4

    def many(batch: RecordBatch) -> Any:
        sizes.append(len(batch))
        return batch[0] * 2

    environment.source(lambda *_: Batches(batches)).map(lambda n: -n, "double").sink(results.append)
    simulation = Simulation(environment)
    while len(results) < 128:
        simulation.step()
    simulation.swap_function("double", Vectorized(lambda n: n * 2, many))
    simulation.run()
    assert results == [-n for n in range(64)] * 2 + [n * 2 for n in range(64)] * 2
    assert sizes == [64, 64]


# -- operators of the user's -------------------------------------------------------------------------


class Doubling(Operator):
    """Knows batches, and says so."""

    num_batches = 0

    def process(self, record: StreamRecord) -> None:
        self.output.collect(StreamRecord(record.value * 2, record.timestamp))

    def process_batch(self, batch: RecordBatch) -> None:
        Doubling.num_batches += 1
        self.output.collect_batch(batch.with_columns([batch[0] * 2], is_tuple=False))


class Tripling(Doubling):
    """Does something else to records, and says nothing of batches."""

    def process(self, record: StreamRecord) -> None:
        self.output.collect(StreamRecord(record.value * 3, record.timestamp))


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize(("operator", "factor", "num_batches"), [(Doubling, 2, 3), (Tripling, 3, 0)])
def test_an_operator_of_the_users_may_know_batches(
    operator: type[Operator], factor: int, num_batches: int, shortcuts: bool
) -> None:
    Doubling.num_batches = 0
    batches = [RecordBatch([np.arange(20)], is_tuple=False)] * 3
    results = run(lambda stream: stream.transform("users", operator), batches, shortcuts=shortcuts)
    assert results == [n * factor for n in range(20)] * 3
    assert Doubling.num_batches == (num_batches if shortcuts else 0)
