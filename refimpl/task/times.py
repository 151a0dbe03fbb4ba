"""How a task's time went: busy, idle, back-pressured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refimpl.task.snapshot import Progress, TaskTimes

__all__ = ["ProgressTimes"]


@dataclass(frozen=True, slots=True)
class _Standing:
    """Since when a task has had its progress, and how its time went before."""

    progress: Progress
    since_ms: float
    before: TaskTimes


class ProgressTimes:
    """Counts how long a task was busy, idle and back-pressured, by the changes of its progress on a clock.

    Without a clock nothing is counted. A task that rests after a step, since somebody slows it, is busy. What `read`
    gives is whole at any time, also while another thread notes a change.

    Flink:   TaskIOMetricGroup (runtime.metrics.groups): busyTimeMsPerSecond, idleTimeMsPerSecond and
             backPressuredTimeMsPerSecond, 1.13
    Differs: soft and hard back pressure are one number.
    """

    def __init__(self) -> None:
        self._clock_ms: Callable[[], float] | None = None
        self._standing = _Standing(Progress.IDLE, 0.0, TaskTimes())

    def use_clock(self, clock_ms: Callable[[], float]) -> None:
        """Count from now on; `clock_ms` says what time it is."""
        self._clock_ms = clock_ms
        self._standing = _Standing(Progress.IDLE, clock_ms(), TaskTimes())

    def note(self, progress: Progress) -> None:
        """From now on the task has this progress."""
        if self._clock_ms is not None:
            now_ms = self._clock_ms()
            self._standing = _Standing(progress, now_ms, _after(self._standing, now_ms))

    def read(self) -> TaskTimes:
        """How the time went until now."""
        return TaskTimes() if self._clock_ms is None else _after(self._standing, self._clock_ms())


def _after(standing: _Standing, now_ms: float) -> TaskTimes:
    before, passed_ms = standing.before, max(0.0, now_ms - standing.since_ms)
    match standing.progress:
        case Progress.MADE:
            return TaskTimes(before.busy_ms + passed_ms, before.idle_ms, before.backpressured_ms)
        case Progress.IDLE:
            return TaskTimes(before.busy_ms, before.idle_ms + passed_ms, before.backpressured_ms)
        case Progress.BACKPRESSURED:
            return TaskTimes(before.busy_ms, before.idle_ms, before.backpressured_ms + passed_ms)
    return before
