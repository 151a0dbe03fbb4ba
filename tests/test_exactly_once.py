"""What a job remembers and what leaves it, when it fails at any step: as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import Fault, FaultKind, MemoryStore
from refimpl.task import (
    FunctionContext,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapStateDescriptor,
    ProcessContext,
    TimeDomain,
)

Collect = Callable[[Any], object]

STEP_MS = 0.2
BUCKET_MS = 10
AFTER_MS = 5
RULES = MapStateDescriptor("rules")


def numbers(num_records: int, num_keys: int = 5) -> list[StreamRecord]:
    return [StreamRecord((number % num_keys, number), number) for number in range(num_records)]


def environment(**options: Any) -> StreamEnvironment:
    """Small buffers, and a barrier now and then."""
    given: dict[str, Any] = {"checkpoint_interval_ms": 1, "source_batch": 4, "segment_size_bytes": 64, **options}
    return StreamEnvironment(Config(num_buffers=96, **given), parallelism=2)


def simulation(job: StreamEnvironment, store: MemoryStore | None = None, **options: Any) -> Simulation:
    given = {"restart": FixedDelayRestart(9, 1.0), "step_ms": STEP_MS, "store": store or MemoryStore(), **options}
    return Simulation(job, **given)


# -- process functions -----------------------------------------------------------------------------


class Buckets(KeyedProcessFunction):
    """The how manieth value of its key each is, and how many there are in each stretch of event time.

    The first value of a key sets a timer of processing time besides.
    """

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count")
        self.buckets = context.map_state("buckets")

    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            ctx.timers.register_processing_time_timer(ctx.timers.current_processing_time + AFTER_MS)
        end = value[1] // BUCKET_MS * BUCKET_MS + BUCKET_MS - 1
        self.buckets.put(end, (self.buckets.get(end) or 0) + 1)
        ctx.timers.register_event_time_timer(end)
        yield "seen", value[0], value[1], count

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterable[Any]:
        if ctx.time_domain is TimeDomain.PROCESSING_TIME:
            yield "after", ctx.current_key
        else:
            yield "bucket", ctx.current_key, timestamp, self.buckets.get(timestamp)
            self.buckets.remove(timestamp)


class Join(KeyedCoProcessFunction):
    """Each value of one side with each of the other."""

    def open(self, context: FunctionContext) -> None:
        self.sides = context.list_state("first"), context.list_state("second")

    def process_element1(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        self.sides[0].add(value[1])
        return [(value[0], value[1], other) for other in self.sides[1].get()]

    def process_element2(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        self.sides[1].add(value[1])
        return [(value[0], other, value[1]) for other in self.sides[0].get()]


class WithRules(KeyedBroadcastProcessFunction):
    """Each value with each rule, whichever came first."""

    def open(self, context: FunctionContext) -> None:
        self.values = context.list_state("values")

    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        self.values.add(value[1])
        return [(value[1], rule) for rule, _ in ctx.broadcast_state(RULES).items()]

    def process_broadcast_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        ctx.broadcast_state(RULES).put(value, True)
        found: list[Any] = []
        ctx.for_each_key(self.values, lambda _key, state: found.extend((each, value) for each in state.get()))
        return found


def buckets(sink: Collect) -> StreamEnvironment:
    job = environment()
    (
        job.from_collection(numbers(60), name="numbers")
        .assign_timestamps(lambda value: value[1], 3, every=4)
        .set_parallelism(1)
        .key_by(lambda value: value[0])
        .process(Buckets())
        .sink(sink)
    )
    return job


def join(sink: Collect) -> StreamEnvironment:
    job = environment()
    first = job.from_collection(numbers(20), name="first").key_by(lambda value: value[0])
    second = job.from_collection(numbers(15), name="second").key_by(lambda value: value[0])
    first.connect(second).process(Join()).sink(sink)
    return job


def with_rules(sink: Collect) -> StreamEnvironment:
    job = environment()
    rules = job.from_collection(["a", "b", "c", "d", "e", "f"], name="rules").broadcast(RULES)
    values = job.from_collection(numbers(20), name="numbers").key_by(lambda value: value[0])
    values.connect(rules).process(WithRules()).sink(sink)
    return job


@pytest.mark.parametrize("make", [buckets, join, with_rules])
def test_what_a_process_function_remembers_survives_a_crash_after_any_step(
    make: Callable[[Collect], StreamEnvironment],
) -> None:
    expected: list[Any] = []
    simulation(make(expected.append)).run()
    assert len(set(expected)) == len(expected) >= 60
    num_steps, sources = 0, set()
    while True:
        results: list[Any] = []
        run = simulation(make(results.append))
        run.run(num_steps)
        if run.is_done:
            break
        run.crash()
        run.run()
        assert run.recovery is not None
        recovered = run.recovery.checkpoints.recovered
        sources.add(recovered is not None and recovered.manifest is not None)
        assert set(results) == set(expected), num_steps
        num_steps += 3
    assert sources == {False, True}


# -- sinks -----------------------------------------------------------------------------------------


Outside = tuple[list[Any], Path]
"""What was given to a function, and the folder of the files."""


def sinks(outside: Outside, num_records: int = 12, **options: Any) -> StreamEnvironment:
    """Numbers to two subtasks of a file sink and of one that calls a function."""
    values, folder = outside
    job = environment(**options)
    squares = job.from_collection(range(num_records), name="numbers").map(lambda number: number * number)
    squares.sink_to(FileSink(folder), name="files")
    squares.rebalance().sink(values.append, name="values", exactly_once=True)
    return job


def committed(outside: Outside) -> tuple[list[int], list[int]]:
    """All that anybody outside can see, in order; and nothing else is there."""
    values, folder = outside
    files = sorted(folder.iterdir())
    assert not [file.name for file in files if file.name.startswith(".")]
    return sorted(values), sorted(int(line) for file in files for line in file.read_text().splitlines())


def squares(num_records: int) -> tuple[list[int], list[int]]:
    wanted = [number * number for number in range(num_records)]
    return wanted, wanted


@pytest.mark.parametrize("interval_ms", [0, 1])
def test_an_undisturbed_run_commits_all_at_the_latest_at_its_end(interval_ms: int, tmp_path: Path) -> None:
    outside: Outside = [], tmp_path
    simulation(sinks(outside, 60, checkpoint_interval_ms=interval_ms)).run()
    assert committed(outside) == squares(60)


def test_a_crash_after_any_step_commits_every_value_once(tmp_path: Path) -> None:
    num_steps = 0
    while True:
        outside: Outside = [], tmp_path / str(num_steps)
        run = simulation(sinks(outside))
        run.run(num_steps)
        if run.is_done:
            break
        run.crash()
        run.run()
        assert committed(outside) == squares(12), num_steps
        num_steps += 1
    assert num_steps > 40


@pytest.mark.parametrize("seed", range(12))
def test_crashes_at_random_steps_of_a_longer_job(seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    rng = Random(seed)
    outside: Outside = [], tmp_path
    run = simulation(sinks(outside, 80), seed=seed, num_task_managers=1 + seed % 2)
    for _ in range(5):
        run.run(rng.randrange(1, 90))
        if not run.is_done:
            run.crash()
    run.run()
    assert committed(outside) == squares(80)


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.NO_SPACE])
@pytest.mark.parametrize("crash_after", [0, 40, 75, 110])
def test_a_fault_at_any_put_commits_every_value_once(kind: FaultKind, crash_after: int, tmp_path: Path) -> None:
    number = 1
    while True:
        outside: Outside = [], tmp_path / str(number)
        store = MemoryStore([Fault(kind, "put", "chk-", number)])
        run = simulation(sinks(outside, 20), store)
        run.run(crash_after)
        if crash_after and not run.is_done:
            run.crash()
        run.run()
        assert committed(outside) == squares(20), number
        if sum(call.startswith("put") and "chk-" in call for call in store.calls) < number:
            break
        number += 1
    assert number > 5


def test_another_run_at_another_parallelism_commits_what_the_first_has_left(tmp_path: Path) -> None:
    store = MemoryStore()
    outside: Outside = [], tmp_path

    def job(parallelism: int) -> StreamEnvironment:
        made = environment()
        numbers = made.from_collection(range(40), name="numbers")
        numbers.sink_to(FileSink(tmp_path), name="files").set_parallelism(parallelism)
        return made

    with simulation(job(2), store) as left:
        while not any(call.startswith("put") and call.endswith("chk-2/_metadata") for call in store.calls):
            left.step()
    assert list(tmp_path.glob(".part-*.pending"))
    simulation(job(3), store).run()
    assert committed(outside)[1] == list(range(40))


@pytest.mark.parametrize("sink", ["sink_to", "sink"])
def test_without_a_store_it_says_at_once_that_it_needs_one(sink: str, tmp_path: Path) -> None:
    job = environment()
    stream = job.from_collection([1])
    if sink == "sink_to":
        stream.sink_to(FileSink(tmp_path))
    else:
        stream.sink(print, exactly_once=True)
    with pytest.raises(LocalUsageError, match=r"sink gives its results exactly once.*give the run a store"):
        Simulation(job)


def test_a_function_that_fails_within_an_epoch_goes_on_behind_what_it_has_had() -> None:
    values, failures = list[int](), iter([True])

    def sink(value: int) -> None:
        if len(values) == 3 and next(failures, False):
            raise OSError("the disk is full")
        values.append(value)

    job = environment(checkpoint_interval_ms=0)
    job.from_collection(range(10)).sink(sink, exactly_once=True)
    simulation(job).run()
    assert sorted(values) == list(range(10))


def final_is_put(run: Simulation, store: MemoryStore) -> bool:
    assert run.recovery is not None
    final_id = run.recovery.checkpoints.coordinator.tasks.final_id
    return f"put job/chk-{final_id}/_metadata" in store.calls


def test_a_paused_leader_that_finishes_takes_nothing_from_the_next(tmp_path: Path) -> None:
    """It has completed the last checkpoint before the next leader came, and goes on later."""
    store, outside = MemoryStore(), ([], tmp_path)
    paused = simulation(sinks(outside), store)
    while not final_is_put(paused, store):
        assert paused.step() is not None
    leader = simulation(sinks(outside), store)
    paused.run()
    leader.run(3)
    leader.crash()
    leader.run()
    assert committed(outside)[1] == squares(12)[1]
