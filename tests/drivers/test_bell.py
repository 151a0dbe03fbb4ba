"""Threads that wait, those who wake them, and how long others keep the interpreter meanwhile."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from refimpl.config import Config
from refimpl.drivers import Bell, Flusher, Lull, ShortTurns, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from tests.support.driver_rig import TIMEOUT_S, Side, Tally, apart, nothing_left, until_inside


def test_a_ring_wakes_who_waits_and_a_second_one_nobody() -> None:
    monitor = threading.RLock()
    bell = Bell(monitor)
    with monitor:
        bell.ring()
    assert bell.num_rings == 0

    def wait() -> None:
        with monitor:
            bell.wait()

    waiting = threading.Thread(target=wait, name="waits at the bell")
    waiting.start()
    until_inside("waits at the bell", "wait")
    with monitor:
        assert bell.is_waiting
        bell.ring()
        bell.ring()
        assert not bell.is_waiting
    waiting.join(TIMEOUT_S)
    assert not waiting.is_alive()
    assert bell.num_rings == 1


def test_a_wait_with_a_time_ends_without_a_ring() -> None:
    monitor = threading.RLock()
    bell = Bell(monitor)
    with monitor:
        bell.wait(0.0)
        assert not bell.is_waiting
    assert bell.num_rings == 0


def test_who_rests_goes_on_when_another_has_run_out_of_work() -> None:
    monitor = threading.RLock()
    lull = Lull(monitor, longest_s=TIMEOUT_S)
    order = []

    def go() -> None:
        with monitor:
            order.append("rests")
            lull.rest()
            order.append("goes on")

    resting = threading.Thread(target=go, name="rests")
    resting.start()
    until_inside("rests", "rest")
    with monitor:
        order.append("works")
        lull.end()
        order.append("has run out")
    resting.join(TIMEOUT_S)
    assert order == ["rests", "works", "has run out", "goes on"]


def test_nobody_rests_for_long() -> None:
    monitor = threading.RLock()
    with monitor:
        assert not Lull(monitor, longest_s=0.0).rest()  # comes back though nobody ends it


class Reader:
    """A thread that waits at its bell, or rests first, and ends the rest of others when it has read."""

    def __init__(self, rests: bool) -> None:
        self.monitor = threading.RLock()
        self.bells = {"source": Bell(self.monitor), "sink": Bell(self.monitor)}
        self.lull = Lull(self.monitor, self.bells, longest_s=TIMEOUT_S)
        self.order: list[object] = []
        self._rests = rests
        self._thread = threading.Thread(target=self._run, name="reads")
        self._thread.start()
        until_inside("reads", "rest" if rests else "wait")

    def _run(self) -> None:
        with self.monitor:
            if self._rests:
                self.lull.rest()
            else:
                self.bells["sink"].wait()
            self.order.append("has read")
            self.lull.end()

    def join(self) -> None:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("rests", [False, True])
def test_who_has_flushed_lets_those_read_who_waited(rests: bool) -> None:
    reader = Reader(rests)
    with reader.monitor:
        reader.bells["sink"].ring()  # nobody is there if it rests
        reader.lull.step_aside("source", reader.order.append)
        reader.order.append("goes on")
        reader.lull.step_aside("source", reader.order.append)  # nobody more to wait for
    reader.join()
    assert reader.order == [TIMEOUT_S, "has read", 0.0, "goes on"]


def test_who_has_flushed_does_not_step_aside_for_itself_nor_for_those_at_work() -> None:
    monitor, rests = threading.RLock(), []
    bells = {"source": Bell(monitor), "sink": Bell(monitor)}
    lull = Lull(monitor, bells, longest_s=TIMEOUT_S)
    with monitor:
        bells["sink"].ring()  # it does not wait there
        bells["source"].num_rings = 3
        lull.step_aside("source", rests.append)
    assert rests == []


def test_after_a_rest_that_was_too_short_the_next_flush_goes_without() -> None:
    monitor, rests = threading.RLock(), []
    bells = {"source": Bell(monitor), "sink": Bell(monitor)}
    lull = Lull(monitor, bells, longest_s=0.0)
    counts = []
    with monitor:
        for _ in range(5):
            bells["sink"].num_rings += 1
            lull.step_aside("source", rests.append)
            counts.append(len(rests) // 2)
    assert counts == [1, 1, 2, 2, 3]


class LateRing:
    """A monitor that somebody else gets, and rings under, just before the one who has waited."""

    def __init__(self) -> None:
        self.bell = Bell(self)  # type: ignore[arg-type]

    def release(self) -> None:
        pass

    def acquire(self) -> None:
        self.bell.ring()


def test_a_ring_that_comes_when_the_time_is_over_is_not_kept_for_the_next_wait() -> None:
    bell = LateRing().bell
    bell.wait(0.0)
    assert bell.num_rings == 1
    assert bell._silence.locked()


def test_turns_are_as_short_as_the_shortest_timeout_wants_and_come_back() -> None:
    before = sys.getswitchinterval()
    long, none, ten, two, one = (ShortTurns(timeout_ms) for timeout_ms in (100, -1, 5, 2, 1))
    for each in (long, none, ten):
        each.start()
        assert sys.getswitchinterval() == before
    seen = []
    for act in (two.start, one.start, one.start, two.stop, two.stop, two.start, one.stop, two.stop):
        act()
        seen.append(round(sys.getswitchinterval() * 1000, 3))
    usual = round(before * 1000, 3)
    assert seen == [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0, usual]


def test_a_job_with_a_short_timeout_shortens_turns_and_counts_its_flushes() -> None:
    before = sys.getswitchinterval()
    config = Config(segment_size_bytes=1024, num_buffers=60, buffer_timeout_ms=1)
    with nothing_left(), Side(apart([1, 2], Tally(), config), 0) as side:
        side.start()
        assert sys.getswitchinterval() < before
        side.until(lambda: side.threads.flusher.num_flushes >= 3 or side.threads.is_ended)
    assert sys.getswitchinterval() == before


def test_turns_are_short_while_flushes_are_often_late() -> None:
    before = sys.getswitchinterval()
    turns, long = ShortTurns(2), ShortTurns(100)
    seen = []
    try:
        for late_ms in [0.9] * 50 + [1.1] + [0.9] * 50 + [1.1] * 20 + [0.9] * 200:
            turns.note_flush(late_ms)
            long.note_flush(1000 * late_ms)
            seen.append(sys.getswitchinterval() != before)
            assert sys.getswitchinterval() == pytest.approx(0.001 if seen[-1] else before)
    finally:
        turns.stop()
    assert not any(seen[:101])  # one of fifty is no reason
    first, last = seen.index(True), len(seen) - seen[::-1].index(True)
    assert first < 110
    assert all(seen[first:last])
    assert 160 < last < 280


def test_long_steps_make_turns_short_and_the_end_makes_them_long_again() -> None:
    before, shortest = sys.getswitchinterval(), []

    def until_short() -> Iterator[int]:
        give_up = time.monotonic() + TIMEOUT_S
        while sys.getswitchinterval() == before and time.monotonic() < give_up:
            done = time.monotonic() + 0.004
            while time.monotonic() < done:
                pass
            yield 1
        shortest.append(sys.getswitchinterval())

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1, source_batch=1))
    environment.source(lambda _i, _k: IterableReader(until_short()), type=LONG).rebalance().sink(Tally())
    with nothing_left(), ThreadedRun(environment) as run:
        assert run.start().join(TIMEOUT_S)
    assert shortest == [0.0005]
    assert sys.getswitchinterval() == before


def test_what_came_due_meanwhile_is_one_flush_and_none_comes_early(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(ms=0.0, monotonic=lambda: now.ms / 1000)
    monkeypatch.setattr("refimpl.drivers.flusher.time", now)
    flusher, never = (Flusher([], timeout_ms, threading.Condition()) for timeout_ms in (8, -1))
    seen, late = [], []
    flusher._on_flush = late.append
    for now.ms in (0, 7, 9, 10, 15, 17, 38, 39, 41):
        is_due = flusher.is_due
        assert flusher.flush_if_due() is is_due
        assert not never.is_due
        assert not never.flush_if_due()
        seen.append(flusher.num_flushes)
    assert seen == [0, 0, 1, 1, 1, 2, 3, 3, 4]
    assert late == pytest.approx([1, 1, 14, 1])
    assert never.num_flushes == 0


def test_the_time_to_the_next_flush_counts_from_the_end_of_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(ms=0.0, monotonic=lambda: now.ms / 1000)
    monkeypatch.setattr("refimpl.drivers.flusher.time", now)
    flusher, never = (Flusher([], timeout_ms, threading.Condition()) for timeout_ms in (8, -1))
    now.ms = 9
    assert flusher.flush_if_due()
    for each in (flusher, never):
        each.begin_anew(0.005)
    now.ms = 21
    assert not flusher.is_due
    flusher.begin_anew(0.0)
    seen = []
    for now.ms in (23, 28.5, 29.5):
        seen.append(flusher.is_due)
    assert seen == [False, False, True]
    assert not never.is_due


def test_a_task_at_work_flushes_if_the_flusher_gets_no_turn() -> None:
    class Starved(Flusher):
        def run(self, is_over: Callable[[], bool]) -> None: ...

    def until_flushed() -> Iterator[int]:
        while run.task_managers[0].flusher.num_flushes < 3:
            yield 1

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1))
    source = environment.source(lambda _i, _k: IterableReader(until_flushed()), type=LONG)
    source.filter(lambda _n: False).rebalance().sink(Tally())  # nothing else would stop it
    run = ThreadedRun(environment)
    threads = run.task_managers[0]
    threads.flusher = Starved(threads.deployment.partitions, 1, threading.Condition(threads.monitor))
    with nothing_left(), run:
        assert run.start().join(TIMEOUT_S)


def endless() -> ThreadedRun:
    """A source that is never held back: nothing of what it reads leaves it."""
    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=-1, source_batch=1))
    source = environment.source(lambda _i, _k: IterableReader(itertools.count()), type=LONG)
    source.filter(lambda _n: False).rebalance().sink(Tally())
    return ThreadedRun(environment)


def test_a_source_that_goes_on_by_itself_can_be_paused_slowed_and_cancelled() -> None:
    run = endless()
    threads = run.task_managers[0]
    task, _ = threads.deployment.tasks

    def until_under_way() -> None:
        started = threading.Event()
        task.submit(started.set)
        assert started.wait(TIMEOUT_S)

    with nothing_left(), run:
        run.start()
        run.slow("source", 60_000)
        until_inside(task.name, "let_pass")
        run.slow("source", 0)
        until_under_way()
        assert not threads._is_any_wanted
        run.pause()
        until_inside(task.name, "_wait_for_turn")
        num_steps = task.num_steps
        run.resume()
        until_under_way()
        assert task.num_steps > num_steps
        run.cancel()
        assert threads._is_any_wanted
        until_gone(task.name)


def until_gone(name: str) -> None:
    give_up = time.monotonic() + TIMEOUT_S
    while any(thread.name == name for thread in threading.enumerate()):
        assert time.monotonic() < give_up, f"{name} still runs"


def test_a_job_on_one_task_manager_steps_aside_after_a_flush() -> None:
    def until_aside() -> Iterator[int]:
        give_up = time.monotonic() + TIMEOUT_S
        while "source-0" not in threads._lull._num_woken:
            assert time.monotonic() < give_up
            yield 1

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1, source_batch=1))
    environment.source(lambda _i, _k: IterableReader(until_aside()), type=LONG).rebalance().sink(Tally())
    run = ThreadedRun(environment)
    threads = run.task_managers[0]
    with nothing_left(), run:
        assert run.start().join(TIMEOUT_S)
