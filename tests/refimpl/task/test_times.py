"""How a task's time goes, by the changes of its progress on a clock that the test sets."""

from __future__ import annotations

from refimpl.task import Progress, ProgressTimes, TaskTimes


class Clock:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


def test_each_stretch_counts_as_what_it_was_at_its_beginning() -> None:
    clock, times = Clock(), ProgressTimes()
    clock.now_ms = 100.0
    times.use_clock(clock)
    for at_ms, progress in ((103.0, Progress.MADE), (110.0, Progress.BACKPRESSURED), (130.0, Progress.IDLE)):
        clock.now_ms = at_ms
        times.note(progress)
    clock.now_ms = 131.0
    assert times.read() == TaskTimes(busy_ms=7.0, idle_ms=3.0 + 1.0, backpressured_ms=20.0)
    assert times.read().total_ms == 31.0


def test_what_is_done_spends_no_more_time_and_reading_changes_nothing() -> None:
    clock, times = Clock(), ProgressTimes()
    times.use_clock(clock)
    times.note(Progress.MADE)
    clock.now_ms = 5.0
    assert times.read() == times.read() == TaskTimes(busy_ms=5.0)
    times.note(Progress.DONE)
    clock.now_ms = 50.0
    assert times.read() == TaskTimes(busy_ms=5.0)


def test_without_a_clock_nothing_is_counted() -> None:
    times = ProgressTimes()
    times.note(Progress.MADE)
    assert times.read() == TaskTimes()
