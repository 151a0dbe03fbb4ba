"""One job on every driver: the same answer, and everything given back however it ends."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import psutil
import pytest

from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.simulation import Flush, StepTask
from refimpl.errors import InsufficientBuffersError, LocalUsageError, UserCodeError
from refimpl.job import Deployment, StreamEnvironment
from refimpl.records import (
    LONG,
    STRING,
    DeserializationResult,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
    TupleType,
)
from refimpl.task import IterableReader, TumblingWindows
from refimpl.trace import Trace

TIMEOUT_S = 120.0  # only so that a deadlock fails; nothing waits for it


class CountAndSum:
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[str, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


def windows_of(config: Config, parallelism: int, num_records: int, results: list[object]) -> StreamEnvironment:
    """Source → map → filter → key by → window → sink."""
    environment = StreamEnvironment(config, parallelism)

    def reader(subtask: int, width: int) -> IterableReader:
        return IterableReader([("ABC"[n % 3], n, n * 1000) for n in range(subtask, num_records, width)])

    (
        environment.source(reader, type=TupleType(STRING, LONG, LONG))
        .assign_timestamps(lambda value: value[2], 5_000)
        .map(lambda value: (value[0], value[1]), type=TupleType(STRING, LONG))
        .filter(lambda value: value[1] % 7)
        .key_by(lambda value: value[0])
        .window(TumblingWindows(60_000))
        .aggregate(CountAndSum())
        .sink(results.append)
    )
    return environment


def windows_by_hand(num_records: int) -> list[object]:
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for n in range(num_records):
        if n % 7:
            cell = found["ABC"[n % 3], n * 1000 // 60_000 * 60_000]
            cell[0] += 1
            cell[1] += n
    return sorted((key, start, start + 60_000, tuple(cell)) for (key, start), cell in found.items())


def required(environment: StreamEnvironment, width: int) -> int:
    return environment.execution_graph(width).num_required_buffers


class Drive(Protocol):
    """Runs a job to its end on `width` TaskManagers; how many segments are out then, as far as we can look."""

    def __call__(self, environment: StreamEnvironment, width: int = 1) -> int: ...


def num_out(deployments: Iterable[Deployment]) -> int:
    return sum(len(each.pool.segments) - each.pool.num_free for each in deployments)


def simulate(environment: StreamEnvironment, width: int = 1) -> int:
    with Simulation(environment, seed=5, num_task_managers=width, max_delay_ms=0.5) as simulation:
        simulation.run()
    return num_out(simulation.deployments)


def thread(environment: StreamEnvironment, width: int = 1) -> int:
    with ThreadedRun(environment, num_task_managers=width) as run:
        assert run.start().join(TIMEOUT_S), "the job did not end"
    return num_out(run.deployments)


def in_a_loop(environment: StreamEnvironment, width: int = 1) -> int:
    with AsyncRun(environment, num_task_managers=width) as run:
        asyncio.run(asyncio.wait_for(run.execute(), TIMEOUT_S))
    return num_out(run.deployments)


def in_processes(environment: StreamEnvironment, width: int = 1) -> int:
    with ProcessRun(environment, num_task_managers=width) as run:
        assert run.start().join(TIMEOUT_S), "the job did not end"
    assert not any(psutil.pid_exists(process) for process in run.process_ids)
    return 0  # each process has checked its own


DRIVERS = [simulate, thread, in_a_loop, pytest.param(in_processes, marks=pytest.mark.slow)]


def numbers(environment: StreamEnvironment, count: int, results: list[object], **of_map: object) -> StreamEnvironment:
    """Source → map (another task) → sink (another task)."""
    function = of_map.get("function", lambda n: n + 1)
    (
        environment.source(lambda i, k: IterableReader(range(i, count, k)), type=LONG, parallelism=1)
        .rebalance()
        .map(function, type=LONG)
        .rebalance()
        .sink(results.append)
    )
    return environment


def small() -> StreamEnvironment:
    """So few and small buffers that a job of `numbers` has all of them in use."""
    return StreamEnvironment(Config(segment_size_bytes=16, num_buffers=20))


# -- the same answer -------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("drive", DRIVERS)
@pytest.mark.parametrize(("parallelism", "width"), [(1, 1), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("segment", [1, 64, 32_768])
def test_every_driver_gives_the_answer_worked_out_by_hand(
    drive: Drive, parallelism: int, width: int, segment: int
) -> None:
    num_records = 60 if segment == 1 else 400
    least = required(windows_of(Config(), parallelism, 0, []), width)
    results: list[object] = []
    config = Config(segment_size_bytes=segment, num_buffers=least, buffer_timeout_ms=5)
    assert drive(windows_of(config, parallelism, num_records, results), width) == 0
    assert sorted(results) == windows_by_hand(num_records)


@pytest.mark.parametrize("timeout", [-1, 0, 1])
@pytest.mark.parametrize("drive", DRIVERS)
def test_every_buffer_timeout_gives_the_same_answer(drive: Drive, timeout: int) -> None:
    results: list[object] = []
    drive(numbers(StreamEnvironment(Config(segment_size_bytes=32, buffer_timeout_ms=timeout)), 200, results))
    assert sorted(results) == list(range(1, 201))


@pytest.mark.parametrize("drive", DRIVERS)
def test_too_few_buffers_are_said_before_anything_runs(drive: Drive) -> None:
    results: list[object] = []
    with pytest.raises(InsufficientBuffersError, match=r"needs 2 buffers of 32768 B, 1 of 3 are promised"):
        drive(numbers(StreamEnvironment(Config(num_buffers=3)), 10, results))
    assert results == []


# -- a failure in the user's code ------------------------------------------------------------------


def broken(n: int) -> int:
    if n == 37:
        raise ValueError("not this one")
    return n


@pytest.mark.parametrize("drive", DRIVERS)
def test_an_exception_names_operator_subtask_and_record(drive: Drive) -> None:
    said = "map, subtask 0, raised ValueError: not this one while processing 37"
    with pytest.raises(UserCodeError, match=said) as caught:
        drive(numbers(StreamEnvironment(Config(segment_size_bytes=16)), 100, [], function=broken))
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.operator, caught.value.subtask, caught.value.record) == ("map", 0, 37)


def test_an_exception_stops_every_thread_and_gives_back_every_buffer() -> None:
    before = threading.active_count()
    run = ThreadedRun(numbers(small(), 10_000, [], function=broken))
    with pytest.raises(UserCodeError):
        run.start().join(TIMEOUT_S)
    assert threading.active_count() == before
    assert run.deployment.pool.num_free == 20
    assert run.is_done


def test_a_failed_simulation_gives_back_every_buffer() -> None:
    simulation = Simulation(numbers(small(), 99, [], function=broken))
    with pytest.raises(UserCodeError):
        simulation.run()
    assert simulation.deployment.pool.num_free == 20


def test_a_reader_that_fails_names_the_source() -> None:
    def values(_subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader(10 // (3 - n) for n in range(9))

    environment = StreamEnvironment()
    environment.source(values, "flights").sink([].append)
    with pytest.raises(UserCodeError, match="flights, subtask 0, raised ZeroDivisionError"):
        ThreadedRun(environment).run()


# -- from outside ----------------------------------------------------------------------------------


class Gate:
    """User code that stands still until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()

    def __call__(self, n: int) -> int:
        if n == 50:
            self.reached.set()
            assert self.go.wait(TIMEOUT_S)
        return n + 1


def test_a_cancelled_run_stops_its_threads_and_gives_everything_back() -> None:
    before = threading.active_count()
    gate = Gate()
    run = ThreadedRun(numbers(small(), 10**9, [], function=gate))
    run.start()
    assert gate.reached.wait(TIMEOUT_S)
    gate.go.set()
    run.cancel()
    run.cancel()
    assert threading.active_count() == before
    assert run.deployment.pool.num_free == 20


def test_leaving_the_block_cancels() -> None:
    before = threading.active_count()
    gate = Gate()
    gate.go.set()
    with ThreadedRun(numbers(StreamEnvironment(), 10**9, [], function=gate)) as run:
        run.start()
        assert gate.reached.wait(TIMEOUT_S)
    assert threading.active_count() == before
    assert run.deployment.pool.num_free == 2048


def test_control_c_during_join_cancels_and_is_passed_on() -> None:
    before = threading.active_count()
    gate = Gate()
    gate.go.set()
    run = ThreadedRun(numbers(StreamEnvironment(Config(num_buffers=64)), 10**9, [], function=gate))
    run.start()
    assert gate.reached.wait(TIMEOUT_S)

    def interrupted(timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    run._changed.wait = interrupted
    with pytest.raises(KeyboardInterrupt):
        run.join()
    assert threading.active_count() == before
    assert run.deployment.pool.num_free == 64


def test_control_c_while_the_tasks_are_started_leaves_none_at_work() -> None:
    before = threading.active_count()
    run = ThreadedRun(numbers(StreamEnvironment(Config(num_buffers=64)), 10**9, []))
    start = run.task_managers[0].start

    def interrupted(addresses: object) -> None:
        start(addresses)
        raise KeyboardInterrupt

    run.task_managers[0].start = interrupted
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert threading.active_count() == before
    assert run.deployment.pool.num_free == 64


def test_join_says_when_the_time_is_up_and_can_be_asked_again() -> None:
    gate = Gate()
    results: list[object] = []
    with ThreadedRun(numbers(StreamEnvironment(), 100, results, function=gate)) as run:
        run.start()
        assert gate.reached.wait(TIMEOUT_S)
        assert not run.join(timeout_s=0)
        gate.go.set()
        assert run.join(TIMEOUT_S)
    assert sorted(results) == list(range(1, 101))


def test_a_run_starts_once() -> None:
    run = ThreadedRun(numbers(StreamEnvironment(), 10, [])).run()
    with pytest.raises(LocalUsageError, match="started before"):
        run.start()


def test_a_paused_run_stands_still_and_goes_on() -> None:
    gate = Gate()
    results: list[object] = []
    with ThreadedRun(numbers(StreamEnvironment(Config(segment_size_bytes=64)), 2_000, results, function=gate)) as run:
        run.start()
        assert gate.reached.wait(TIMEOUT_S)
        run.pause()
        gate.go.set()
        assert run.is_paused
        # Each task ends the step it is in; then the count stands.
        steps = -1
        while steps != (steps := run.snapshot().num_steps):
            run.join(timeout_s=0.01)
        assert not run.is_done
        assert not run.join(timeout_s=0.02)
        assert run.snapshot().num_steps == steps
        run.resume()
        assert run.join(TIMEOUT_S)
    assert sorted(results) == list(range(1, 2_001))


class Other(SpanningRecordSerializer):
    """A learner's part: right, and not the reference class."""

    num_records = 0

    def serialize_record(self, record: bytes) -> None:
        Other.num_records += 1
        super().serialize_record(record)


@pytest.mark.slow
@pytest.mark.parametrize("segment", [16, 4096])
def test_a_swap_under_load_loses_nothing(segment: int) -> None:
    Other.num_records = 0
    gate = Gate()
    results: list[object] = []
    environment = numbers(StreamEnvironment(Config(segment_size_bytes=segment)), 3_000, results, function=gate)
    with ThreadedRun(environment) as run:
        run.start()
        assert gate.reached.wait(TIMEOUT_S)
        for part in (Other, SpanningRecordSerializer, Other):
            run.swap(SpanningRecordSerializer=part)
        gate.go.set()
        assert run.join(TIMEOUT_S)
    assert sorted(results) == list(range(1, 3_001))
    assert Other.num_records > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_swap_between_any_two_steps_loses_nothing(seed: int) -> None:
    Other.num_records = 0
    results: list[object] = []
    environment = numbers(StreamEnvironment(Config(segment_size_bytes=20, num_buffers=4, source_batch=4)), 300, results)

    def swap(simulation: Simulation) -> None:
        if simulation.num_steps % 10 == seed:
            part = Other if simulation.num_steps % 20 == seed else SpanningRecordSerializer
            simulation.swap(SpanningRecordSerializer=part)

    with Simulation(environment, seed=seed) as simulation:
        simulation.run(on_step=swap)
    assert sorted(results) == list(range(1, 301)), f"seed {seed}"
    assert Other.num_records > 0


class OtherReader(SpillingAdaptiveSpanningRecordDeserializer):
    """A learner's part at the other end; counts the records that it joined from pieces."""

    num_joined = 0

    def get_next_record(self) -> tuple[DeserializationResult, memoryview | None]:
        OtherReader.num_joined += bool(self._length_bytes)
        return super().get_next_record()


@pytest.mark.parametrize("segment", [5, 20])
@pytest.mark.parametrize("seed", range(4))
def test_a_record_begun_is_handed_to_the_reader_that_comes_in(seed: int, segment: int) -> None:
    OtherReader.num_joined = 0
    results: list[object] = []
    config = Config(segment_size_bytes=segment, num_buffers=6, source_batch=4)

    def swap(simulation: Simulation) -> None:
        if simulation.num_steps % 6 == seed:
            is_other = simulation.num_steps % 12 == seed
            part = OtherReader if is_other else SpillingAdaptiveSpanningRecordDeserializer
            simulation.swap(SpillingAdaptiveSpanningRecordDeserializer=part)

    with Simulation(numbers(StreamEnvironment(config), 300, results), seed=seed) as simulation:
        simulation.run(on_step=swap)
    assert sorted(results) == list(range(1, 301)), f"seed {seed}"
    assert OtherReader.num_joined > 0


def test_a_function_is_swapped_from_the_next_record_on() -> None:
    results: list[object] = []
    environment = numbers(StreamEnvironment(Config(segment_size_bytes=64, source_batch=10)), 100, results)
    with Simulation(environment, policy="first") as simulation:
        simulation.run(max_steps=12)
        num_before = len(results)
        simulation.swap_function("map", lambda n: -n)
        simulation.run()
    assert 0 < num_before < 100
    assert all(number > 0 for number in results[:num_before])
    assert results[-1] == -99
    assert sorted(abs(n) if n <= 0 else n - 1 for n in results) == list(range(100))


def test_a_swap_of_what_cannot_change_leaves_the_parts_as_they_were() -> None:
    simulation = Simulation(numbers(StreamEnvironment(), 10, []))
    parts = simulation.deployment.parts
    with pytest.raises(LocalUsageError, match="did you mean SpanningRecordSerializer"):
        simulation.swap(SpanningRecordSerialiser=Other)
    with pytest.raises(LocalUsageError, match="no operator called 'nap'"):
        simulation.swap_function("nap", abs)
    with pytest.raises(LocalUsageError, match="is no function"):
        simulation.swap_function("map", 3)
    assert simulation.deployment.parts == parts
    simulation.deployment.close()


# -- the simulation's own --------------------------------------------------------------------------


def test_a_learner_chooses_among_what_is_enabled() -> None:
    results: list[object] = []
    with Simulation(numbers(StreamEnvironment(Config(source_batch=2)), 4, results)) as simulation:
        assert simulation.enabled() == [StepTask("source-0")]
        with pytest.raises(LocalUsageError, match="step sink-0 is not enabled; enabled: step source-0"):
            simulation.step(StepTask("sink-0"))
        while enabled := simulation.enabled():
            simulation.step(enabled[0])
    assert results == [1, 2, 3, 4]
    assert simulation.is_done


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_a_simulation_that_was_closed_or_has_failed_can_be_looked_at_and_takes_no_step(num_task_managers: int) -> None:
    def places() -> StreamEnvironment:
        return StreamEnvironment(Config(segment_size_bytes=16, num_buffers=40), parallelism=2)

    with Simulation(numbers(places(), 99, []), num_task_managers=num_task_managers) as closed:
        closed.run(max_steps=20)
    failed = Simulation(numbers(places(), 99, [], function=broken), num_task_managers=num_task_managers)
    with pytest.raises(UserCodeError) as why:
        failed.run()
    assert (closed.error, failed.error) == (None, why.value)
    for simulation, words in ((closed, "closed before its job was done"), (failed, r"has failed \(UserCodeError: ")):
        assert not simulation.enabled()
        assert simulation.snapshot().num_steps > 0
        for go_on in (simulation.step, simulation.run):
            with pytest.raises(LocalUsageError, match=words):
                go_on()
    with Simulation(numbers(places(), 9, []), num_task_managers=num_task_managers) as done:
        done.run()
    assert done.is_done
    assert done.step() is None
    assert done.run() is done


def test_time_jumps_to_the_flush_when_nothing_else_can_move() -> None:
    """Virtual time: a source that has nothing now leaves its records in an open buffer."""

    class Pausing:
        def __init__(self) -> None:
            self.batches = [[1], []]

        def read(self, max_records: int) -> list | None:
            from refimpl.records import StreamRecord

            return [StreamRecord(n) for n in self.batches.pop(0)] if self.batches else None

        def close(self) -> None: ...

    results: list[object] = []
    environment = StreamEnvironment(Config(buffer_timeout_ms=100))
    environment.source(lambda _i, _k: Pausing(), type=LONG).rebalance().map(abs, type=LONG).sink(results.append)
    with Simulation(environment, step_ms=1.0) as simulation:
        simulation.step(StepTask("source-0"))
        deadline = simulation.time_ms + 100
        writer = simulation.deployment.writers[0, 0]
        assert writer.partition.next_deadline(simulation.time_ms) == deadline
        flush = Flush("source-0 → map", deadline)
        simulation.enabled()
        simulation.time_ms = deadline
        assert flush in simulation.enabled()
        simulation.step(flush)
        simulation.step(StepTask("map → sink-0"))
        assert results == [1]


def test_an_unknown_policy_is_refused_by_name() -> None:
    with pytest.raises(LocalUsageError, match="'fastest' is none of random, round_robin, first"):
        Simulation(numbers(StreamEnvironment(), 1, []), policy="fastest")


@pytest.mark.parametrize("drive", [Simulation, ThreadedRun])
def test_a_trace_tells_what_happened(drive: Callable[..., object]) -> None:
    trace = Trace()
    drive(numbers(StreamEnvironment(Config(segment_size_bytes=16)), 20, []), trace=trace).run()
    kinds = {event.kind for event in trace}
    assert {"local channel", "recycle", "queue", "deliver", "made", "done"} <= kinds
    assert "deliver" in trace.story("segment", next(e.detail["segment"] for e in trace if e.kind == "deliver"))


def test_an_empty_job_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="start with a source"):
        Simulation(StreamEnvironment())


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun, AsyncRun, ProcessRun])
@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, None])
def test_what_is_no_number_of_task_managers_is_refused(driver: Any, number: object) -> None:
    with pytest.raises(LocalUsageError, match=re.escape(repr(number))):
        driver(numbers(StreamEnvironment(Config(), parallelism=2), 9, []), num_task_managers=number)
