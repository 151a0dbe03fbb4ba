"""Unaligned checkpoints: wherever a job fails, it goes on with what was in flight, and no result is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from refimpl.checkpoint import CheckpointAborted, CheckpointCompleted, CheckpointFailureReason
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.errors import ConfigError, RestoreRefusedError
from refimpl.job import StreamEnvironment
from refimpl.records import DOUBLE, StreamRecord
from refimpl.state import MemoryStore
from refimpl.task import FunctionContext, KeyedCoProcessFunction, KeyedProcessFunction, ProcessContext

Collect = Callable[[Any], object]

STEP_MS = 0.2
NUM_RECORDS = 60
WIDE = "x" * 90  # a record of three buffers


class Numbered(KeyedProcessFunction):
    """Each value with how many of its key came before: one that is lost or processed twice makes others wrong."""

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count")

    def process_element(self, value: Any, ctx: ProcessContext) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], value[1], count


class Sums(KeyedCoProcessFunction):
    """Both sides add to one sum of each key, and each value is told with how many came before."""

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count")

    def _next(self, value: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return [(value[0], value[1], count)]

    def process_element1(self, value: Any, ctx: ProcessContext) -> Any:
        return self._next(value)

    def process_element2(self, value: Any, ctx: ProcessContext) -> Any:
        return self._next(value)


def environment(**options: Any) -> StreamEnvironment:
    """Small buffers, few of them, and an unaligned barrier now and then."""
    given: dict[str, Any] = {
        "checkpoint_interval_ms": 1,
        "source_batch": 4,
        "segment_size_bytes": 48,
        "buffers_per_channel": 1,
        "floating_buffers_per_gate": 1,
        "buffer_timeout_ms": 1,
        "unaligned": True,
        "num_buffers": 128,
        **options,
    }
    return StreamEnvironment(Config(**given), parallelism=2)


def numbers(first: int = 0, padding: str = "") -> list[StreamRecord]:
    return [StreamRecord((f"{number % 4}{padding}", first + number), number) for number in range(NUM_RECORDS)]


def keyed(sink: Collect, **options: Any) -> StreamEnvironment:
    """Records of less than a buffer; a chain, a key by, a sink."""
    job = environment(**options)
    source = job.from_collection(numbers(), name="numbers").map(lambda value: value, name="same")
    source.key_by(lambda value: value[0]).process(Numbered(), name="numbered").rebalance().sink(sink, exactly_once=True)
    return job


def wide(sink: Collect, **options: Any) -> StreamEnvironment:
    """Records of several buffers, so that there is half a record nearly everywhere."""
    job = environment(**options)
    source = job.from_collection(numbers(padding=WIDE), name="numbers")
    source.key_by(lambda value: value[0]).process(Numbered(), name="numbered").rebalance().sink(sink, exactly_once=True)
    return job


def united(sink: Collect, **options: Any) -> StreamEnvironment:
    """Two sources as one."""
    job = environment(**options)
    first = job.from_collection(numbers(), name="first")
    second = job.from_collection(numbers(1_000, "yy"), name="second")
    first.union(second).key_by(lambda value: value[0]).process(Numbered(), name="numbered").sink(sink, exactly_once=True)
    return job


def connected(sink: Collect, **options: Any) -> StreamEnvironment:
    """Two sources as two inputs."""
    job = environment(**options)
    first = job.from_collection(numbers(), name="first").key_by(lambda value: value[0])
    second = job.from_collection(numbers(1_000), name="second").key_by(lambda value: value[0])
    first.connect(second).process(Sums(), name="sums").sink(sink, exactly_once=True)
    return job


def fixed_width(sink: Collect, **options: Any) -> StreamEnvironment:
    """Values that the fast way reads many at a time."""
    job = environment(**{"segment_size_bytes": 256, **options})
    source = job.from_collection([float(number) for number in range(2 * NUM_RECORDS)], name="numbers", type=DOUBLE)
    source.rebalance().map(lambda value: value + 1.0, name="more", type=DOUBLE).rebalance().sink(sink, exactly_once=True)
    return job


JOBS = {each.__name__: each for each in (keyed, wide, united, connected, fixed_width)}


def simulation(job: StreamEnvironment, store: MemoryStore | None = None, **options: Any) -> Simulation:
    given = {"restart": FixedDelayRestart(99, 1.0), "step_ms": STEP_MS, "store": store or MemoryStore(), **options}
    return Simulation(job, **given)


def completed(run: Simulation) -> list[int]:
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    return [each.checkpoint.checkpoint_id for each in history if isinstance(each, CheckpointCompleted)]


def in_flight_of(run: Simulation) -> int:
    """Bytes that the last deployment began with."""
    assert run.recovery is not None
    recovered = run.recovery.checkpoints.recovered
    return 0 if recovered is None or recovered.manifest is None else recovered.manifest.channel_state


def check_exact(name: str, results: list[Any]) -> None:
    """Each value was told once, and each count of its key once."""
    if name == "fixed_width":
        assert sorted(results) == [number + 1.0 for number in range(2 * NUM_RECORDS)]
        return
    num_sources = 2 if name in ("united", "connected") else 1
    assert len({each[:2] for each in results}) == len(results) == num_sources * NUM_RECORDS
    num_of = Counter(each[0] for each in results)
    assert {(each[0], each[2]) for each in results} == {
        (key, count) for key, num_values in num_of.items() for count in range(1, num_values + 1)
    }


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("num_task_managers", [1, 2])
@pytest.mark.parametrize("name", JOBS)
def test_a_crash_anywhere_loses_nothing_and_counts_nothing_twice(
    name: str, num_task_managers: int, shortcuts: bool
) -> None:
    in_flight = list[int]()
    for seed, version in enumerate(FlinkVersion):
        results: list[Any] = []
        options = {"flink_version": version, "shortcuts": shortcuts}
        run = simulation(JOBS[name](results.append, **options), num_task_managers=num_task_managers, seed=seed)
        chance = Random(f"{name} {seed}")
        while not run.is_done and len(in_flight) < 5 * (seed + 1):
            run.run(chance.randrange(10, 150))
            if not run.is_done:
                run.crash()
                while run.enabled() and not run._tasks:
                    run.step()
                in_flight.append(in_flight_of(run))
        run.run()
        check_exact(name, results), seed
    assert any(in_flight), "nothing was ever in flight"
