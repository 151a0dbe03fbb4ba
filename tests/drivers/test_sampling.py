"""Back pressure on drivers whose clock runs: a sink that is held by an event, and what is said of it meanwhile.

While the sink stands still nothing moves any more, so each sample finds the same, however long it takes.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refimpl.cluster import BackPressureLevel, BackPressureMonitor, BackPressureStats
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, ThreadedRun
from refimpl.drivers.pressure_sampling import PressureQuestions, SampleTimer, subtasks_of
from refimpl.drivers.threads.flusher import keep_flushing
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from tests.support.polling import until
from widgets import JobView

FOREVER = range(10**12)
SMALL = Config(segment_size_bytes=64, num_buffers=60, buffer_timeout_ms=1, source_batch=8)


def job(sink: Callable[[object], object]) -> StreamEnvironment:
    environment = StreamEnvironment(SMALL)
    source = environment.source(lambda _subtask, _width: IterableReader(FOREVER), "source", LONG)
    source.rebalance().map(lambda n: n, "map", type=LONG).rebalance().sink(sink, "sink").slot_sharing_group("sinks")
    return environment


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Set, it lets the sink go on."""
    event = threading.Event()
    yield event
    event.set()


def is_jammed(snapshot: JobSnapshot) -> bool:
    return [task.is_held_back for task in snapshot.tasks] == [True, True, False]


def standing_still(run: ThreadedRun) -> tuple[JobSnapshot, JobSnapshot] | None:
    """Two looks between which nobody but the sink was busy."""
    before, after = run.snapshot(), run.snapshot()
    busy = [[task.times.busy_ms for task in each.tasks[:2]] for each in (before, after)]
    has_passed = all(a.times.total_ms < b.times.total_ms for a, b in zip(before.tasks, after.tasks, strict=True))
    return (before, after) if is_jammed(after) and has_passed and busy[0] == busy[1] else None


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_samples_on_threads_say_who_is_held_back(held: threading.Event, num_task_managers: int) -> None:
    run = ThreadedRun(job(lambda _value: held.wait()), num_task_managers=num_task_managers).start()
    try:
        until(lambda: is_jammed(run.snapshot()) and standing_still(run))
        names = {task.name.rpartition("-")[0]: [task.name] for task in run.snapshot().tasks}

        def sampled(vertex: str) -> BackPressureStats:
            questions = PressureQuestions(names, BackPressureMonitor(num_samples=7, delay_ms=1.0))
            assert questions.ask(vertex, [each.samples for each in run.task_managers]) is None
            return until(lambda: questions.ask(vertex, [each.samples for each in run.task_managers]))

        for vertex in ("source", "map"):  # a buffer that was still on its way may have let it take a last step
            stats = until(lambda vertex=vertex: (found := sampled(vertex)).ratios == (1.0,) and found)
            assert stats.level is BackPressureLevel.HIGH
        assert sampled("sink").ratios == (0.0,)
        assert sampled("sink").level is BackPressureLevel.OK
        with pytest.raises(LocalUsageError, match="no vertex 'mop'; there are source, map, sink"):
            run.back_pressure("mop")
    finally:
        held.set()
        run.cancel()


def test_the_time_of_each_task_on_threads_and_who_holds_all_up(held: threading.Event) -> None:
    run = ThreadedRun(job(lambda _value: held.wait())).start()
    try:
        before, after = until(lambda: standing_still(run))
        for earlier, later in zip(before.tasks[:2], after.tasks[:2], strict=True):
            assert later.times.idle_ms == earlier.times.idle_ms
            assert later.times.backpressured_ms > earlier.times.backpressured_ms
        sink, same = before.tasks[2].times, after.tasks[2].times
        assert (same.idle_ms, same.backpressured_ms) == (sink.idle_ms, sink.backpressured_ms)
        assert same.busy_ms > sink.busy_ms
        view = JobView(run)
        view.model()  # something to compare with
        model = until(lambda: (found := view.model())["loads"] and found)
        assert model["bottleneck"] == "bottleneck: sink-0 has too much to do"
        assert "bottleneck: sink-0 has too much to do" in view.text()
        view.close()
    finally:
        held.set()
        run.cancel()


def test_a_loop_takes_samples_between_two_steps() -> None:
    """The sink rests after its first step for as long as nobody says otherwise."""

    async def watched() -> tuple[list[BackPressureStats], JobSnapshot]:
        run = AsyncRun(job(lambda _value: None))
        run.slow("sink", 60_000.0)
        running = asyncio.create_task(run.execute())
        while not is_jammed(run.snapshot()):
            await asyncio.sleep(0)
        names = {task.name.rpartition("-")[0]: [task.name] for task in run.snapshot().tasks}
        questions = PressureQuestions(names, BackPressureMonitor(num_samples=7, delay_ms=1.0))
        found = []
        async with asyncio.timeout(60):
            for vertex in names:
                while (stats := questions.ask(vertex, [run._newest.samples])) is None:
                    await asyncio.sleep(0)
                found.append(stats)
        assert run.back_pressure("map") is None
        last = run.snapshot()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return found, last

    found, last = asyncio.run(watched())
    assert [stats.ratios for stats in found] == [(1.0,), (1.0,), (0.0,)]
    assert all(task.times.backpressured_ms > 0 for task in last.tasks[:2])


@pytest.mark.slow
def test_processes_take_samples_and_say_so_when_they_are_asked_again(tmp_path: Path) -> None:
    gate = tmp_path / "go on"

    def stand_still(value: int) -> int:
        pause = threading.Event()
        while not gate.exists():
            pause.wait(0.01)
        return value

    environment = StreamEnvironment(SMALL)
    source = environment.source(lambda _subtask, _width: IterableReader(FOREVER), "source", LONG)
    slow = source.rebalance().map(lambda n: n, "map", type=LONG).rebalance().map(stand_still, "slow", type=LONG)
    slow.slot_sharing_group("slow").rebalance().sink(bool, "sink")
    with ProcessRun(environment, num_task_managers=2).start() as run:
        until(lambda: [task.is_held_back for task in run.snapshot().tasks] == [True, True, False, False])
        assert run.back_pressure("source") is None
        stats = until(lambda: (run.back_pressure("slow"), run.back_pressure("source"))[1])
        assert stats.level is BackPressureLevel.HIGH
        assert stats.ratios == (1.0,)
        idle = until(lambda: run.back_pressure("slow"))
        assert idle.ratios == (0.0,)
        times = {task.name: task.times for task in run.snapshot().tasks}
        assert times["source-0"].backpressured_ms > 0
        assert times["slow-0"].busy_ms > 0
        gate.touch()
        run.cancel()


def test_a_timer_without_orders_is_never_due_and_an_ended_task_has_no_ratio() -> None:
    with ThreadedRun(job(bool)) as run:
        timer = SampleTimer(run.deployment.tasks)
        assert timer.due_s == math.inf
        assert timer.standing() == {"source-0": True, "map-0": True, "sink-0": True}
        assert subtasks_of(job(bool).execution_graph(1)) == {
            "source": ["source-0"],
            "map": ["map-0"],
            "sink": ["sink-0"],
        }


def test_the_flusher_takes_samples_also_where_it_never_flushes() -> None:
    """A job that flushes by events alone has no other use for its timer."""
    found = list[tuple[object, float]]()

    class Clock:
        due_s = math.inf

        def flush_if_due(self) -> bool:
            return False

    with ThreadedRun(job(bool)) as run:
        timer = SampleTimer(run.deployment.tasks)
        monitor = BackPressureMonitor(num_samples=3, delay_ms=0.0)
        _, (order,) = monitor.ask("map", {"map-0": True}, 0.0)
        timer.sample(order, lambda _request, task, ratio: found.append((task, ratio)))
        keep_flushing(Clock(), timer, threading.Condition(), lambda: bool(found))  # type: ignore[arg-type]
    assert found == [("map-0", 0.0)]
