"""Processing time in whole jobs: it is passed in, and what waits for it is done on every driver."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, RunControl, Simulation, ThreadedRun
from refimpl.drivers.simulation.actions import StepTask, Timeout
from refimpl.job import StreamEnvironment, WatermarkStrategy
from refimpl.records import MAX_WATERMARK, StreamRecord, Watermark
from refimpl.task import (
    IterableReader,
    Operator,
    OperatorContext,
    Output,
    ProcessingTimers,
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
    TumblingWindows,
    WindowAssigner,
)

EPOCH_MS = 1_000_000

DRIVERS: dict[str, Callable[[StreamEnvironment], RunControl]] = {
    "simulation": lambda job: Simulation(job, seed=3, step_ms=1.0).run(),
    "simulation, 2 TaskManagers": lambda job: Simulation(job, seed=4, step_ms=1.0, num_task_managers=2).run(),
    "threads": lambda job: ThreadedRun(job).run(),
    "threads, 2 TaskManagers": lambda job: ThreadedRun(job, num_task_managers=2).run(),
    "loop": lambda job: AsyncRun(job).run(),
    "processes": lambda job: ProcessRun(job).run(),
}
SLOW = {"processes"}
EVERY_DRIVER = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in DRIVERS]


class Ticking(Operator):
    """Sets a timer `delay_ms` after its first record, and sends the time of its firing on; `count` of them in a row."""

    def __init__(self, delay_ms: int, count: int = 1) -> None:
        self.delay_ms = delay_ms
        self.num_left = count

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.timers = ProcessingTimers(context.time, self._on_timer)

    def process(self, record: StreamRecord) -> None:
        if self.num_left:
            self.timers.register(self.context.time.now_ms + self.delay_ms, "key", None)

    def _on_timer(self, timestamp: int, key: Hashable, _namespace: Hashable) -> None:
        if self.num_left:
            self.num_left -= 1
            self.output.collect(StreamRecord((key, timestamp, self.context.time.now_ms)))
            self.timers.register(timestamp + self.delay_ms, key, None)


class UntilTold:
    """A reader that has one record, then none for `num_empty` reads, each a pause of the driver's."""

    def __init__(self, num_empty: int, *_: int) -> None:
        self._left: list[Sequence[StreamRecord] | None] = [None, *[()] * num_empty, [StreamRecord("first")]]

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        return self._left.pop()

    def close(self) -> None: ...


def ticking_job(num_empty: int, delay_ms: int, count: int, **options: Any) -> tuple[StreamEnvironment, list[Any]]:
    environment = StreamEnvironment(Config(epoch_ms=EPOCH_MS, **options))
    results: list[Any] = []
    source = environment.source(partial(UntilTold, num_empty), "quiet")
    ticking = source.rebalance().transform("ticking", partial(Ticking, delay_ms, count)).set_parallelism(2)
    ticking.sink(results.append)
    return environment, results


@pytest.mark.parametrize("drive", EVERY_DRIVER)
def test_a_task_without_input_fires_its_timers_on_every_driver(drive: str) -> None:
    """The source is alive and says nothing, so nobody wakes the task but its deadline."""
    environment, results = ticking_job(num_empty=30, delay_ms=5, count=3)
    DRIVERS[drive](environment)
    assert len(results) == 3
    moments = [timestamp for _, timestamp, _ in results]
    assert [late - early for early, late in pairwise(moments)] == [5, 5]
    assert moments[0] >= EPOCH_MS + 5
    assert all(timestamp <= now for _, timestamp, now in results)


@pytest.mark.parametrize("drive", EVERY_DRIVER)
def test_pending_timers_do_not_fire_at_the_end_of_input(drive: str) -> None:
    environment, results = ticking_job(num_empty=0, delay_ms=10**9, count=1)
    DRIVERS[drive](environment)
    assert results == []


def test_after_the_end_of_input_a_task_waits_for_no_time() -> None:
    """Also while its last results still wait for buffers: what comes due meanwhile is not done."""
    environment, _ = ticking_job(num_empty=0, delay_ms=10**9, count=1)
    simulation = Simulation(environment).run()
    assert {task.chain.time.next_deadline for task in simulation.deployment.tasks} == {None}


def test_in_a_simulation_a_timeout_is_an_action_and_the_step_after_it_fires() -> None:
    environment, results = ticking_job(num_empty=400, delay_ms=5, count=1, buffer_timeout_ms=0)
    simulation = Simulation(environment, policy="first", step_ms=0.1)
    taken = []
    for _ in range(300):
        taken.append(simulation.step())
        if results:
            break
    timeouts = [each for each in taken if isinstance(each, Timeout)]
    assert len(timeouts) == 1
    name = timeouts[0].task
    assert str(timeouts[0]) == f"timeout {name} at {timeouts[0].time_ms:.3f} ms"
    assert taken[taken.index(timeouts[0]) + 1] == StepTask(name)
    ((_, timestamp, now),) = results
    assert timestamp == EPOCH_MS + timeouts[0].time_ms <= now
    with simulation:
        pass


def test_time_does_not_pass_for_a_timer_alone() -> None:
    """Else a job that stands still for ever would not be found to."""
    environment, _ = ticking_job(num_empty=10**6, delay_ms=10**6, count=1)
    simulation = Simulation(environment, step_ms=0.01)
    for _ in range(200):
        simulation.step()
    assert simulation.time_ms < 1_000
    with simulation:
        pass


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("drive", EVERY_DRIVER)
@pytest.mark.parametrize(
    "windows",
    [TumblingProcessingTimeWindows(4), SlidingProcessingTimeWindows(8, 4), ProcessingTimeSessionWindows(4)],
    ids=repr,
)
def test_windows_of_processing_time_fire_without_input_on_every_driver(windows: WindowAssigner, drive: str) -> None:
    environment = StreamEnvironment(Config(epoch_ms=EPOCH_MS), parallelism=2)
    results: list[Any] = []
    quiet = environment.source(partial(UntilTold, 40), "quiet", parallelism=1)
    quiet.key_by(lambda value: value).window(windows).aggregate(Count()).sink(results.append)
    DRIVERS[drive](environment)
    assert len(results) == (2 if isinstance(windows, SlidingProcessingTimeWindows) else 1)
    assert {(key, count) for key, _, _, count in results} == {("first", 1)}
    assert all(start >= EPOCH_MS - 8 and end - start in (4, 8) for _, start, end, _ in results)


class Count:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def merge(self, one: int, other: int) -> int:
        return one + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Quiet:
    """A reader whose first subtask has `values` and ends after `num_empty` reads; the others have none for longer."""

    def __init__(self, values: Sequence[int], num_empty: int, subtask: int, _parallelism: int) -> None:
        mine = [StreamRecord(value, value) for value in values] if subtask == 0 else []
        num_empty *= 1 if subtask == 0 else 3
        self._left: list[Sequence[StreamRecord] | None] = [None, *[()] * num_empty, mine]

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        return self._left.pop()

    def close(self) -> None: ...


class Probing(Operator):
    """Sends each watermark on as a value, but the last."""

    def process(self, record: StreamRecord) -> None: ...

    def process_watermark(self, watermark: Watermark) -> None:
        super().process_watermark(watermark)
        if watermark != MAX_WATERMARK:
            self.output.collect(StreamRecord(watermark.timestamp))


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("drive", EVERY_DRIVER)
@pytest.mark.parametrize("is_idle", [False, True])
def test_one_quiet_subtask_holds_event_time_back_unless_it_is_idle(is_idle: bool, drive: str) -> None:
    environment = StreamEnvironment(Config(auto_watermark_interval_ms=3), parallelism=2)
    results: list[Any] = []
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(10).with_timestamp_assigner(lambda value: value)
    if is_idle:
        strategy = strategy.with_idleness(5)
    timed = environment.source(partial(Quiet, [70, 100, 90], 20), "rows").assign_timestamps_and_watermarks(strategy)
    timed.rebalance().transform("probing", Probing).set_parallelism(1).sink(results.append)
    DRIVERS[drive](environment)
    assert set(results) == ({89} if is_idle else set())


@pytest.mark.parametrize("drive", EVERY_DRIVER)
def test_how_old_markers_came_to_each_subtask_can_be_read_from_a_run(drive: str) -> None:
    environment = StreamEnvironment(Config(latency_tracking_interval_ms=2, buffer_timeout_ms=1), parallelism=2)
    source = environment.source(partial(Quiet, range(5), 20), "rows")
    windows = source.key_by(lambda value: value).window(TumblingWindows(10**6)).aggregate(Count())
    windows.map(lambda row: row, name="behind").sink([].append)
    source.map(lambda value: value, name="beside").sink([].append, "other sink")
    run = DRIVERS[drive](environment)
    found = {(each.source, each.operator, each.subtask): each for each in run.snapshot().latencies}
    named = {operator for _, operator, _ in found}
    assert named == {"window", "behind", "sink", "beside", "other sink"}
    assert {source for source, _, _ in found} == {"rows"}
    assert all(each.min_ms <= each.p50_ms <= each.p95_ms <= each.max_ms for each in found.values())
    assert sum(each.count for (_, operator, _), each in found.items() if operator == "window") > 5


def test_latency_markers_change_nothing_else() -> None:
    """They are drawn by a seed of their own: records go where they go without them."""
    answers = []
    for interval_ms in (0, 1):
        environment = StreamEnvironment(Config(latency_tracking_interval_ms=interval_ms, seed=5), parallelism=3)
        results: list[Any] = []
        source = environment.source(lambda i, n: IterableReader(range(i, 300, n)), "rows")
        source.shuffle().transform("who", Who).sink(results.append)
        Simulation(environment, seed=5, step_ms=1.0).run()
        answers.append(sorted(results))
    assert answers[0] == answers[1]


class Who(Operator):
    """Sends each value on with the number of the subtask it came to."""

    def process(self, record: StreamRecord) -> None:
        self.output.collect(StreamRecord((record.value, self.context.subtask)))
