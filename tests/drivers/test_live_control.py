"""What one may do to a job that runs: slow a task, give it its speed back, change the buffer timeout."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.threads import SwitchInterval
from refimpl.errors import LocalUsageError
from refimpl.job import SetTimeout, StreamEnvironment
from refimpl.task import IterableReader
from tests.support.polling import until

DEADLINE_S = 50.0  # less than the longest rest, so that one that is slept through fails


def job(num_records=10**6, timeout_ms=100):
    environment = StreamEnvironment(
        Config(segment_size_bytes=64, num_buffers=40, source_batch=2, buffer_timeout_ms=timeout_ms), 2
    )
    environment.from_collection(range(num_records)).rebalance().map(str).rebalance().sink(bool)
    return environment


def taken(run, name="sink-0"):
    return next(task for task in run.snapshot().tasks if task.name == name).num_records_in


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_a_slowed_task_holds_up_the_others_and_goes_on_when_it_may(num_task_managers):
    with ThreadedRun(job(), num_task_managers=num_task_managers) as run:
        run.start()
        until(lambda: taken(run) > 50)
        run.slow("sink", 60_000)
        until(lambda: not any(part.pool.is_available for part in run.snapshot().partitions))
        held = taken(run)
        snapshot = run.snapshot()
        assert [task.rest_ms for task in snapshot.tasks if task.name.startswith("sink")] == [60_000, 60_000]
        run.slow("sink-1", 0)
        run.slow("sink", 0)  # felt at once, in the middle of a rest
        until(lambda: taken(run) > held + 50, DEADLINE_S)


@pytest.mark.slow
def test_the_same_across_processes():
    with ProcessRun(job()) as run:
        run.start()
        until(lambda: taken(run) > 50)
        run.slow("sink", 60_000)
        until(lambda: not any(part.pool.is_available for part in run.snapshot().partitions))
        held = taken(run)
        run.slow("sink", 0)
        until(lambda: taken(run) > held + 50, DEADLINE_S)
        run.set_buffer_timeout(5)
        with pytest.raises(LocalUsageError, match="no task and no operator 'snik'"):
            run.slow("snik", 5)
        with pytest.raises(LocalUsageError, match="buffer_timeout_ms=0"):
            run.set_buffer_timeout(0)


def test_a_resting_job_can_be_cancelled_and_ends():
    run = ThreadedRun(job()).start()
    run.slow("map", 60_000)
    started = time.monotonic()
    run.cancel()
    assert time.monotonic() - started < DEADLINE_S
    assert all(thread.name != "sink-0" for thread in threading.enumerate())


def test_slow_changes_no_result():
    results = []
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40, source_batch=2), 2)
    environment.from_collection(range(60)).rebalance().map(lambda n: n * n).rebalance().sink(results.append)
    with ThreadedRun(environment) as run:
        run.slow("map", 1)
        run.start().slow("source", 1)
        run.join(DEADLINE_S)
    assert sorted(results) == [n * n for n in range(60)]


@pytest.mark.parametrize("rest_ms", [-1, "5", True, float("nan"), 60_001])
def test_what_is_no_rest_is_refused(rest_ms):
    with ThreadedRun(job(9)) as run, pytest.raises(LocalUsageError, match="cannot work: from 0 to 60000"):
        run.slow("map", rest_ms)


def test_a_name_that_is_not_there_is_refused():
    with ThreadedRun(job(9)) as run, pytest.raises(LocalUsageError, match="no operator 'mpa'; there are source-0"):
        run.slow("mpa", 5)


def test_a_shorter_timeout_lets_waiting_records_go():
    """One record is written, and the source waits: only time can bring it on its way."""
    gate, seen = threading.Event(), threading.Event()
    environment = StreamEnvironment(Config(num_buffers=40, source_batch=1, buffer_timeout_ms=-1))

    def values():
        yield 1
        gate.wait(DEADLINE_S)

    environment.source(lambda _i, _n: IterableReader(values())).rebalance().sink(lambda _n: seen.set())
    with ThreadedRun(environment) as run:
        run.start()
        until(lambda: taken(run, "source-0") == 1)
        assert not seen.wait(0.3)
        run.set_buffer_timeout(2)
        assert seen.wait(DEADLINE_S)
        gate.set()
        run.join(DEADLINE_S)


@pytest.mark.parametrize("timeout_ms", [0, -2, 1.5, True])
def test_what_is_no_timeout_is_refused(timeout_ms):
    with ThreadedRun(job(9)) as run, pytest.raises(LocalUsageError, match="buffer_timeout_ms="):
        run.set_buffer_timeout(timeout_ms)
    with ThreadedRun(job(9, timeout_ms=0)) as run, pytest.raises(LocalUsageError, match="it was built with 0"):
        run.set_buffer_timeout(100)


def test_a_simulation_feels_the_timeout_too():
    with Simulation(job(60)) as simulation:
        source = simulation.deployment.partitions[0]
        simulation.deployment.do(SetTimeout(7))
        simulation.run(max_steps=1)
        assert source.next_deadline(simulation.time_ms) == simulation.time_ms + 7
        simulation.deployment.do(SetTimeout(-1))
        assert source.next_deadline(simulation.time_ms) is None


def test_turns_follow_the_timeout_and_come_back():
    usual = sys.getswitchinterval()
    interval, others = SwitchInterval(100), SwitchInterval(4)
    interval.start()
    assert sys.getswitchinterval() == pytest.approx(usual)
    interval.change(2)
    others.start()
    assert sys.getswitchinterval() == pytest.approx(0.001)
    interval.change(50)
    assert sys.getswitchinterval() == pytest.approx(0.002)
    others.stop()
    assert sys.getswitchinterval() == pytest.approx(usual)
    interval.stop()
    interval.change(1)
    assert sys.getswitchinterval() == pytest.approx(usual)
