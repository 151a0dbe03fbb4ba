"""The timer: its first time lies in [pause, interval], drawn by seed; then it keeps its interval."""

from __future__ import annotations

from refimpl.checkpoint import PeriodicTrigger


def first_of(interval_ms: int, pause_ms: int, seed: int, now_ms: float = 1_000.0) -> float:
    timer = PeriodicTrigger(interval_ms, pause_ms, seed)
    timer.start(now_ms)
    assert timer.due_ms is not None
    return timer.due_ms - now_ms


def test_the_first_time_lies_anywhere_from_the_pause_to_the_interval() -> None:
    drawn = {first_of(7, 4, seed) for seed in range(100)}
    assert drawn == {4, 5, 6, 7}


def test_the_same_seed_draws_the_same_time() -> None:
    assert first_of(10_000, 0, seed=3) == first_of(10_000, 0, seed=3)
    assert len({first_of(10_000, 0, seed) for seed in range(20)}) > 10


def test_a_pause_longer_than_the_interval_is_the_interval() -> None:
    timer = PeriodicTrigger(5, 20, 0)
    timer.start(0)
    assert timer.due_ms == 20
    assert timer.fires(20)
    assert timer.due_ms == 40


def test_it_fires_once_however_late_one_looks_and_keeps_its_beat() -> None:
    timer = PeriodicTrigger(10, 10, 0)
    timer.start(0)
    assert not timer.fires(9.5)
    assert timer.fires(35)
    assert timer.due_ms == 40
    assert not timer.fires(35)


def test_moved_it_goes_on_from_there() -> None:
    timer = PeriodicTrigger(10, 10, 0)
    timer.start(0)
    timer.move(13)
    assert timer.fires(13)
    assert timer.due_ms == 23


def test_stopped_it_stays_stopped() -> None:
    timer = PeriodicTrigger(10, 10, 0)
    timer.start(0)
    timer.stop()
    timer.move(1)
    assert timer.due_ms is None
    assert not timer.fires(100)


def test_without_an_interval_it_never_fires() -> None:
    timer = PeriodicTrigger(0, 20, 0)
    timer.start(0)
    assert timer.due_ms is None
