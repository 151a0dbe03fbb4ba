"""Threads that wait, those who wake them, and how long others keep the interpreter meanwhile."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.threads import Handoff, SwitchInterval, Waker
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from tests.support.driver_rig import TIMEOUT_S, Side, Tally, apart, nothing_left, until_inside


def test_waking_wakes_the_thread_that_waits_and_a_second_time_none() -> None:
    monitor = threading.RLock()
    waker = Waker(monitor)
    with monitor:
        waker.wake()
    assert waker.num_wakes == 0

    def wait() -> None:
        with monitor:
            waker.wait()

    waiting = threading.Thread(target=wait, name="waits at the waker")
    waiting.start()
    until_inside("waits at the waker", "wait")
    with monitor:
        assert waker.is_waiting
        waker.wake()
        waker.wake()
        assert not waker.is_waiting
    waiting.join(TIMEOUT_S)
    assert not waiting.is_alive()
    assert waker.num_wakes == 1


def test_a_wait_with_a_time_ends_without_a_ring() -> None:
    monitor = threading.RLock()
    waker = Waker(monitor)
    with monitor:
        waker.wait(0.0)
        assert not waker.is_waiting
    assert waker.num_wakes == 0


def test_a_task_that_yields_goes_on_when_another_has_run_out_of_work() -> None:
    monitor = threading.RLock()
    handoff = Handoff(monitor, longest_s=TIMEOUT_S)
    order = []

    def go() -> None:
        with monitor:
            order.append("yields")
            handoff.yield_turn()
            order.append("goes on")

    resting = threading.Thread(target=go, name="yields")
    resting.start()
    until_inside("yields", "yield_turn")
    with monitor:
        order.append("works")
        handoff.give_turn()
        order.append("has run out")
    resting.join(TIMEOUT_S)
    assert order == ["yields", "works", "has run out", "goes on"]


def test_no_task_yields_for_long() -> None:
    monitor = threading.RLock()
    with monitor:
        assert not Handoff(monitor, longest_s=0.0).yield_turn()  # comes back though no task gives a turn


class Reader:
    """A thread that waits at its waker, or yields first, and gives others their turn when it has read."""

    def __init__(self, yields: bool) -> None:
        self.monitor = threading.RLock()
        self.wakers = {"source": Waker(self.monitor), "sink": Waker(self.monitor)}
        self.handoff = Handoff(self.monitor, self.wakers, longest_s=TIMEOUT_S)
        self.order: list[object] = []
        self._yields = yields
        self._thread = threading.Thread(target=self._run, name="reads")
        self._thread.start()
        until_inside("reads", "yield_turn" if yields else "wait")

    def _run(self) -> None:
        with self.monitor:
            if self._yields:
                self.handoff.yield_turn()
            else:
                self.wakers["sink"].wait()
            self.order.append("has read")
            self.handoff.give_turn()

    def join(self) -> None:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("yields", [False, True])
def test_a_task_that_has_flushed_yields_to_readers_that_waited(yields: bool) -> None:
    reader = Reader(yields)
    with reader.monitor:
        reader.wakers["sink"].wake()  # nothing waits there if it yields
        reader.handoff.yield_after_flush("source", reader.order.append)
        reader.order.append("goes on")
        reader.handoff.yield_after_flush("source", reader.order.append)  # nobody more to wait for
    reader.join()
    assert reader.order == [TIMEOUT_S, "has read", 0.0, "goes on"]


def test_who_has_flushed_does_not_step_aside_for_itself_nor_for_those_at_work() -> None:
    monitor, rests = threading.RLock(), []
    wakers = {"source": Waker(monitor), "sink": Waker(monitor)}
    handoff = Handoff(monitor, wakers, longest_s=TIMEOUT_S)
    with monitor:
        wakers["sink"].wake()  # it does not wait there
        wakers["source"].num_wakes = 3
        handoff.yield_after_flush("source", rests.append)
    assert rests == []


def test_after_a_rest_that_was_too_short_the_next_flush_goes_without() -> None:
    monitor, rests = threading.RLock(), []
    wakers = {"source": Waker(monitor), "sink": Waker(monitor)}
    handoff = Handoff(monitor, wakers, longest_s=0.0)
    counts = []
    with monitor:
        for _ in range(5):
            wakers["sink"].num_wakes += 1
            handoff.yield_after_flush("source", rests.append)
            counts.append(len(rests) // 2)
    assert counts == [1, 1, 2, 2, 3]


class LateWake:
    """A monitor that somebody else gets, and wakes under, just before the one who has waited."""

    def __init__(self) -> None:
        self.waker = Waker(self)  # type: ignore[arg-type]

    def release(self) -> None:
        pass

    def acquire(self) -> None:
        self.waker.wake()


def test_a_ring_that_comes_when_the_time_is_over_is_not_kept_for_the_next_wait() -> None:
    waker = LateWake().waker
    waker.wait(0.0)
    assert waker.num_wakes == 1
    assert waker._asleep.locked()


def test_turns_are_as_short_as_the_shortest_timeout_wants_and_come_back() -> None:
    before = sys.getswitchinterval()
    long, none, ten, two, one = (SwitchInterval(timeout_ms) for timeout_ms in (100, -1, 5, 2, 1))
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
        side.until(lambda: side.threads.flush_clock.num_flushes >= 3 or side.threads.is_ended)
    assert sys.getswitchinterval() == before


def test_turns_are_short_while_flushes_are_often_late() -> None:
    before = sys.getswitchinterval()
    interval, long = SwitchInterval(2), SwitchInterval(100)
    seen = []
    try:
        for late_ms in [0.9] * 50 + [1.1] + [0.9] * 50 + [1.1] * 20 + [0.9] * 200:
            interval.note_flush(late_ms)
            long.note_flush(1000 * late_ms)
            seen.append(sys.getswitchinterval() != before)
            assert sys.getswitchinterval() == pytest.approx(0.001 if seen[-1] else before)
    finally:
        interval.stop()
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
    monkeypatch.setattr("refimpl.drivers.flush_clock.time", now)
    clock, never = (FlushClock([], timeout_ms) for timeout_ms in (8, -1))
    seen, late = [], []
    clock._on_flush = late.append
    for now.ms in (0, 7, 9, 10, 15, 17, 38, 39, 41):
        is_due = clock.is_due
        assert clock.flush_if_due() is is_due
        assert not never.is_due
        assert not never.flush_if_due()
        seen.append(clock.num_flushes)
    assert seen == [0, 0, 1, 1, 1, 2, 3, 3, 4]
    assert late == pytest.approx([1, 1, 14, 1])
    assert never.num_flushes == 0


class Asked:
    """An output that notes when it is asked, and since when it was not."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float]] = []

    def on_timeout(self, now_ms: float, since_ms: float) -> None:
        self.calls.append((now_ms, since_ms))


def test_an_output_is_asked_once_per_timeout_and_told_since_when_it_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(ms=0.0, monotonic=lambda: now.ms / 1000)
    monkeypatch.setattr("refimpl.drivers.flush_clock.time", now)
    output = Asked()
    clock = FlushClock([output], 8)  # type: ignore[list-item]
    for now.ms in (7, 9, 15, 38):
        clock.flush_if_due()
    clock.set_timeout(2)
    for now.ms in (39, 41):
        clock.flush_if_due()
    assert [tuple(map(round, call)) for call in output.calls] == [(9, 0), (38, 8), (41, 38)]


def test_the_time_to_the_next_flush_counts_from_the_end_of_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(ms=0.0, monotonic=lambda: now.ms / 1000)
    monkeypatch.setattr("refimpl.drivers.flush_clock.time", now)
    clock, never = (FlushClock([], timeout_ms) for timeout_ms in (8, -1))
    now.ms = 9
    assert clock.flush_if_due()
    for each in (clock, never):
        each.begin_anew(0.005)
    now.ms = 21
    assert not clock.is_due
    clock.begin_anew(0.0)
    seen = []
    for now.ms in (23, 28.5, 29.5):
        seen.append(clock.is_due)
    assert seen == [False, False, True]
    assert not never.is_due


def test_a_task_at_work_flushes_if_the_flusher_gets_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.task_manager.keep_flushing", lambda *_: None)

    def until_flushed() -> Iterator[int]:
        while run.task_managers[0].flush_clock.num_flushes < 3:
            yield 1

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1))
    source = environment.source(lambda _i, _k: IterableReader(until_flushed()), type=LONG)
    source.filter(lambda _n: False).rebalance().sink(Tally())  # nothing else would stop it
    run = ThreadedRun(environment)
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
        until_inside(task.name, "wait_for_turn")
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
        while "source-0" not in threads.turns.handoff._num_woken:
            assert time.monotonic() < give_up
            yield 1

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1, source_batch=1))
    environment.source(lambda _i, _k: IterableReader(until_aside()), type=LONG).rebalance().sink(Tally())
    run = ThreadedRun(environment)
    threads = run.task_managers[0]
    with nothing_left(), run:
        assert run.start().join(TIMEOUT_S)
