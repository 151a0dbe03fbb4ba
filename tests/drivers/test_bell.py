"""Threads that wait, those who wake them, and how long others keep the interpreter meanwhile."""

from __future__ import annotations

import sys
import threading

from driver_bench import TIMEOUT_S, Side, Tally, apart, nothing_left, until_inside

from refimpl.config import Config
from refimpl.drivers import Bell, ShortTurns


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
