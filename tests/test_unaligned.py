"""Unaligned checkpoints: wherever a job fails, it goes on with what was in flight, and no result is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from refimpl.checkpoint import CheckpointAborted, CheckpointCompleted, CheckpointFailureReason, CheckpointStatus
from refimpl.cluster import FixedDelayRestart
from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs
from refimpl.errors import ConfigError, RestoreRefusedError
from refimpl.job import StreamEnvironment
from refimpl.records import DOUBLE, StreamRecord
from refimpl.state import Manifest, MemoryStore
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


def numbers(first: int = 0, padding: str = "", num_records: int = NUM_RECORDS) -> list[StreamRecord]:
    return [StreamRecord((f"{number % 4}{padding}", first + number), number) for number in range(num_records)]


def keyed(sink: Collect, num_records: int = NUM_RECORDS, **options: Any) -> StreamEnvironment:
    """Records of less than a buffer; a chain, a key by, a sink."""
    job = environment(**options)
    source = job.from_collection(numbers(num_records=num_records), name="numbers").map(lambda value: value, name="same")
    source.key_by(lambda value: value[0]).process(Numbered(), name="numbered").rebalance().sink(sink, exactly_once=True)
    return job


def wide(sink: Collect, num_records: int = NUM_RECORDS, **options: Any) -> StreamEnvironment:
    """Records of several buffers, so that there is half a record nearly everywhere."""
    job = environment(**options)
    source = job.from_collection(numbers(padding=WIDE, num_records=num_records), name="numbers")
    source.key_by(lambda value: value[0]).process(Numbered(), name="numbered").rebalance().sink(sink, exactly_once=True)
    return job


def united(sink: Collect, **options: Any) -> StreamEnvironment:
    """Two sources as one."""
    job = environment(**options)
    first = job.from_collection(numbers(), name="first")
    second = job.from_collection(numbers(1_000, "yy"), name="second")
    first.union(second).key_by(lambda value: value[0]).process(Numbered(), name="numbered").sink(
        sink, exactly_once=True
    )
    return job


def connected(sink: Collect, num_records: int = NUM_RECORDS, **options: Any) -> StreamEnvironment:
    """Two sources as two inputs."""
    job = environment(**options)
    left, right = numbers(num_records=num_records), numbers(1_000, num_records=num_records)
    first = job.from_collection(left, name="first").key_by(lambda value: value[0])
    second = job.from_collection(right, name="second").key_by(lambda value: value[0])
    first.connect(second).process(Sums(), name="sums").sink(sink, exactly_once=True)
    return job


def several(value: float) -> list[float]:
    """Eight results of each value: an output runs dry in the middle of a buffer."""
    return [value + part / 8 for part in range(8)]


def fixed_width(sink: Collect, num_records: int = NUM_RECORDS, **options: Any) -> StreamEnvironment:
    """Values that the fast way reads many at a time."""
    job = environment(**{"segment_size_bytes": 256, **options})
    source = job.from_collection([float(number) for number in range(num_records)], name="numbers", type=DOUBLE)
    source.rebalance().flat_map(several, name="more", type=DOUBLE).rebalance().sink(sink, exactly_once=True)
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


def check_exact(name: str, results: list[Any], num_records: int = NUM_RECORDS) -> None:
    """Each value was told once, and each count of its key once."""
    if name == "fixed_width":
        assert sorted(results) == [number / 8 for number in range(8 * num_records)]
        return
    num_sources = 2 if name in ("united", "connected") else 1
    assert len({each[:2] for each in results}) == len(results) == num_sources * num_records
    num_of = Counter(each[0] for each in results)
    assert {(each[0], each[2]) for each in results} == {
        (key, count) for key, num_values in num_of.items() for count in range(1, num_values + 1)
    }


def crashed(run: Simulation) -> int:
    """Crash, and begin again; how many bytes were in flight in what it goes on from."""
    run.crash()
    while run.enabled() and not run._tasks:
        run.step()
    return in_flight_of(run)


@pytest.mark.sampled(one_in=5)
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
                in_flight.append(crashed(run))
        run.run()
        check_exact(name, results)
    assert any(in_flight), "nothing was ever in flight"


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("num_task_managers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_crash_after_every_third_step(num_task_managers: int) -> None:
    num_steps, in_flight = 0, set[int]()
    while True:
        results: list[Any] = []
        job = connected(results.append, num_records=8, segment_size_bytes=40)
        run = simulation(job, num_task_managers=num_task_managers)
        run.run(num_steps)
        if run.is_done:
            break
        run.crash()
        while run.enabled() and not run._tasks:
            run.step()
        in_flight.add(in_flight_of(run))
        run.run()
        check_exact("connected", results, 8)
        num_steps += 3
    assert any(in_flight), "nothing was ever in flight"


# -- a sink that hardly moves ----------------------------------------------------------------------


def run_with_a_slow_sink(run: Simulation, most: int) -> None:
    """Everything else moves as it can, and one of the sinks only every hundredth time."""
    chance = Random("a slow sink")
    for number in range(most):
        enabled = run.enabled()
        awake = [each for each in enabled if not str(each).startswith("step sink")]
        asleep = [each for each in enabled if each not in awake]
        if not enabled:
            return
        if asleep and number % 100 == 0:
            run.step(asleep[number // 100 % len(asleep)])
        elif awake:
            run.step(chance.choice(awake))
        else:
            run.time_ms += STEP_MS  # nothing can move, and so it stays for a while; who waits for a time is told
            for task in run._tasks.values():
                task.on_timeout(run.time_ms)


SLOW_SINK: dict[str, Any] = {
    "checkpoint_timeout_ms": 200,
    "checkpoint_interval_ms": 220,
    "tolerable_failed_checkpoints": 99,
    "buffers_per_channel": 2,
    "floating_buffers_per_gate": 4,
    "segment_size_bytes": 128,
    "source_batch": 1,
    "num_records": 900,
}


def ends_of(unaligned: bool, num_task_managers: int) -> tuple[list[int], list[CheckpointFailureReason]]:
    run = simulation(
        keyed(lambda _: None, unaligned=unaligned, **SLOW_SINK), num_task_managers=num_task_managers, check_every=0
    )
    run_with_a_slow_sink(run, 6_000)
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    return completed(run), [each.reason for each in history if isinstance(each, CheckpointAborted)]


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_unaligned_completes_where_aligned_takes_too_long(num_task_managers: int) -> None:
    num_aligned, why = ends_of(False, num_task_managers)
    assert set(num_aligned) <= {1}, "the first one comes before the queues are full"
    assert len(why) >= 2
    assert set(why) == {CheckpointFailureReason.EXPIRED}
    num_unaligned, why = ends_of(True, num_task_managers)
    assert len(num_unaligned) >= 4
    assert why == []


@pytest.mark.parametrize(
    ("num_task_managers", "interval_ms", "num_buffers", "num_records"), [(1, 20, 2, 300), (2, 10, 1, 160)]
)
def test_a_job_that_fails_with_a_slow_checkpoint_does_not_begin_at_one_place_for_ever(
    num_task_managers: int, interval_ms: int, num_buffers: int, num_records: int
) -> None:
    """What was in flight takes the sink longer than a checkpoint may take: the next one is complete before that."""
    results: list[Any] = []
    options: dict[str, Any] = {"checkpoint_interval_ms": interval_ms, "buffers_per_channel": num_buffers}
    job = keyed(results.append, num_records, checkpoint_timeout_ms=60, num_buffers=200, **options)
    costs = Costs({"sink": 16.0})
    run = simulation(job, policy="timed", costs=costs, num_task_managers=num_task_managers, check_every=0)
    while run.time_ms < 300:
        run.step()
    run.crash()
    while not run._tasks:
        run.step()
    assert in_flight_of(run) > 400
    while not run.is_done:
        assert run.graph.generation < 10, "it begins again and again"
        run.run(100)
    check_exact("keyed", results, num_records)


# -- aligned as long as that is quick ------------------------------------------------------------------

TIMED: dict[str, Any] = {"flink_version": FlinkVersion.V2_2, "aligned_checkpoint_timeout_ms": 1}


def kinds_in(run: Simulation) -> list[bool]:
    """Of each complete checkpoint, whether it was unaligned."""
    assert run.recovery is not None
    history = run.recovery.checkpoints.stats.snapshot().history
    return [each.is_unaligned for each in history if each.status is CheckpointStatus.COMPLETED]


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("num_task_managers", [1, 2])
@pytest.mark.parametrize("name", JOBS)
def test_a_crash_anywhere_loses_nothing_where_some_barriers_wait_and_some_do_not(
    name: str, num_task_managers: int, shortcuts: bool
) -> None:
    in_flight, kinds = list[int](), set[bool]()
    for seed in range(2):
        results: list[Any] = []
        job = JOBS[name](results.append, shortcuts=shortcuts, **TIMED)
        run = simulation(job, num_task_managers=num_task_managers, seed=seed)
        chance = Random(f"{name} {seed}")
        for _ in range(6):
            run.run(chance.randrange(10, 150))
            kinds |= set(kinds_in(run))
            if run.is_done:
                break
            in_flight.append(crashed(run))
        run.run()
        kinds |= set(kinds_in(run))
        check_exact(name, results)
    assert True in kinds, "no barrier ever waited too long"
    assert any(in_flight), "nothing was ever in flight"


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_what_takes_too_long_aligned_completes_as_unaligned(num_task_managers: int) -> None:
    options = SLOW_SINK | {
        "flink_version": FlinkVersion.V2_2,
        "aligned_checkpoint_timeout_ms": 40,
    }
    run = simulation(keyed(lambda _: None, **options), num_task_managers=num_task_managers, check_every=0)
    run_with_a_slow_sink(run, 6_000)
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    assert [each.reason for each in history if isinstance(each, CheckpointAborted)] == []
    assert len(completed(run)) >= 4
    assert kinds_in(run)[1:] == [True] * (len(completed(run)) - 1), "after the first the queues are full"


@pytest.mark.parametrize("epoch_ms", [0, 10**12])
def test_what_is_quick_stays_aligned_and_has_nothing_in_flight(epoch_ms: int) -> None:
    """Whenever processing time has begun: the coordinator has a clock of its own."""
    results: list[Any] = []
    options = TIMED | {"aligned_checkpoint_timeout_ms": 10_000, "epoch_ms": epoch_ms}
    job = keyed(results.append, checkpoint_interval_ms=5, **options)
    run = simulation(job)
    run.run()
    check_exact("keyed", results)
    assert len(kinds_in(run)) > 2
    assert not any(kinds_in(run))


def test_a_savepoint_waits_however_long_it_takes() -> None:
    store, results = MemoryStore(), list[Any]()
    run = simulation(keyed(results.append, num_buffers=200, checkpoint_interval_ms=3, **TIMED), store)
    for number in range(8):
        run.run(40)
        assert run.recovery is not None
        if not run.is_done:
            run.recovery.checkpoints.savepoint(f"number {number}", run.time_ms)
    run.run()
    check_exact("keyed", results)
    savepoints = [each for key, each in store.files.items() if "sp-" in key and key.endswith("_metadata")]
    assert savepoints
    assert all(Manifest.from_bytes(each, "it").channel_state == 0 for each in savepoints)


# -- what it does not go together with -----------------------------------------------------------------


def left_after_a_checkpoint(store: MemoryStore, **options: Any) -> None:
    """Run until a checkpoint with something in flight is complete, and leave."""
    with simulation(keyed(lambda _: None, **options), store) as run:
        while not run.is_done:
            run.step()
            assert run.recovery is not None
            kept = run.recovery.checkpoints.coordinator.completed.latest
            if kept is not None and any(file.channel_state for ack in kept.acks for file in ack.files):
                return
    raise AssertionError("nothing was ever in flight")


def test_what_was_in_flight_cannot_be_rescaled() -> None:
    store = MemoryStore()
    left_after_a_checkpoint(store)
    with pytest.raises(RestoreRefusedError, match=r"operator '\w+' has state of .*in.flight"):
        simulation(_rescaled(3), store)


def _rescaled(parallelism: int) -> StreamEnvironment:
    job = StreamEnvironment(environment().config, parallelism=parallelism)
    source = job.from_collection(numbers(), name="numbers").map(lambda value: value, name="same")
    source.key_by(lambda value: value[0]).process(Numbered(), name="numbered").rebalance().sink(
        print, exactly_once=True
    )
    return job


def test_a_job_without_unaligned_checkpoints_goes_on_from_one() -> None:
    store, results = MemoryStore(), list[Any]()
    left_after_a_checkpoint(store)
    run = simulation(keyed(results.append, unaligned=False), store)
    assert in_flight_of(run) > 0
    run.run()
    assert {each[2] for each in results} <= set(range(1, NUM_RECORDS + 1))


def test_a_savepoint_has_nothing_in_flight_and_can_be_rescaled() -> None:
    store = MemoryStore()
    run = simulation(keyed(lambda _: None, checkpoint_interval_ms=0), store)
    run.run(60)
    assert run.recovery is not None
    run.recovery.checkpoints.savepoint("one", run.time_ms)
    while "job/sp-one/_metadata" not in store.files:
        run.step()
    run.__exit__()
    again = simulation(_rescaled(3), store, savepoint="one")
    assert in_flight_of(again) == 0
    assert again.recovery is not None
    assert again.recovery.checkpoints.recovered is not None
    assert again.recovery.checkpoints.recovered.manifest is not None


def test_a_savepoint_takes_the_place_of_a_checkpoint_that_is_under_way() -> None:
    store, results = MemoryStore(), list[Any]()
    run = simulation(keyed(results.append, num_buffers=200), store)
    for number in range(20):
        run.run(25)
        if run.is_done:
            break
        assert run.recovery is not None
        run.recovery.checkpoints.savepoint(f"number {number}", run.time_ms)
    run.run()
    check_exact("keyed", results)
    assert any("sp-" in key for key in store.files)


@pytest.mark.parametrize(
    ("option", "value"),
    [("checkpointing_mode", "AT_LEAST_ONCE"), ("credit_based", False), ("max_concurrent_checkpoints", 2)],
)
def test_combinations_that_make_no_sense_are_refused_by_name(option: str, value: Any) -> None:
    given = CheckpointingMode[value] if isinstance(value, str) else value
    with pytest.raises(ConfigError, match=option):
        Config(unaligned=True, **{option: given})


def test_a_wait_before_overtaking_needs_barriers_that_overtake_and_can_say_so() -> None:
    with pytest.raises(ConfigError, match="unaligned=True"):
        Config(**TIMED)
    with pytest.raises(ConfigError, match="V1_11"):
        Config(unaligned=True, aligned_checkpoint_timeout_ms=1)
