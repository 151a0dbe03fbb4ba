"""When the timer asks for a checkpoint."""

from __future__ import annotations

import random

__all__ = ["PeriodicTrigger"]


class PeriodicTrigger:
    """Fires every `interval_ms`, or every `min_pause_ms` if that is longer; never if `interval_ms` is 0.

    The first time lies at random between pause and interval, so that many jobs started together do not all write at
    the same time.

    Flink:   CheckpointCoordinator.ScheduledTrigger, getRandomInitDelay (runtime.checkpoint), 1.11.4
    Differs: who looks late fires once; Flink's timer fires once for each time that was missed.
    """

    def __init__(self, interval_ms: int, min_pause_ms: int, seed: int) -> None:
        self._interval_ms = max(interval_ms, min_pause_ms) if interval_ms else 0
        self._min_pause_ms = min_pause_ms
        self._random = random.Random(seed)
        self.due_ms: float | None = None

    def start(self, now_ms: float) -> None:
        """Begin anew, with a first time drawn anew."""
        if self._interval_ms:
            self.due_ms = now_ms + self._random.randint(self._min_pause_ms, self._interval_ms)

    def stop(self) -> None:
        """Fire no more."""
        self.due_ms = None

    def move(self, at_ms: float) -> None:
        """Fire at `at_ms` next, unless stopped."""
        if self.due_ms is not None:
            self.due_ms = at_ms

    def fires(self, now_ms: float) -> bool:
        """Whether it is time; if so, the next time is set."""
        if self.due_ms is None or now_ms < self.due_ms:
            return False
        self.due_ms += self._interval_ms * (1 + (now_ms - self.due_ms) // self._interval_ms)
        return True
