"""Threads that wait, those who wake them, and how long others keep the interpreter meanwhile."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from driver_bench import TIMEOUT_S, Side, Tally, apart, nothing_left, until_inside

from refimpl.config import Config
from refimpl.drivers import Bell, Flusher, Lull, ShortTurns, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader


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
        Lull(monitor, longest_s=0.0).rest()  # comes back though nobody ends it


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


def test_what_came_due_meanwhile_is_one_flush_and_none_comes_early(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(ms=0.0, monotonic=lambda: now.ms / 1000)
    monkeypatch.setattr("refimpl.drivers.flusher.time", now)
    flusher, never = (Flusher([], timeout_ms, threading.Condition()) for timeout_ms in (8, -1))
    seen = []
    for now.ms in (0, 7, 9, 10, 15, 17, 38, 39, 41):
        flusher.flush_if_due()
        never.flush_if_due()
        seen.append(flusher.num_flushes)
    assert seen == [0, 0, 1, 1, 1, 2, 3, 3, 4]
    assert never.num_flushes == 0


def test_a_task_at_work_flushes_if_the_flusher_gets_no_turn() -> None:
    class Starved(Flusher):
        def run(self, is_over: Callable[[], bool]) -> None: ...

    def until_flushed() -> Iterator[int]:
        while run.task_managers[0].flusher.num_flushes < 3:
            yield 1

    environment = StreamEnvironment(Config(num_buffers=60, buffer_timeout_ms=1))
    environment.source(lambda _i, _k: IterableReader(until_flushed()), type=LONG).rebalance().sink(Tally())
    run = ThreadedRun(environment)
    threads = run.task_managers[0]
    threads.flusher = Starved(threads.deployment.partitions, 1, threading.Condition(threads.monitor))
    with nothing_left(), run:
        assert run.start().join(TIMEOUT_S)
