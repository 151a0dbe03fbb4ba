"""Processing time for drivers whose clock runs by itself: when a task is told, and how long it may wait."""

from __future__ import annotations

import time

from refimpl.task.task import Task

__all__ = ["ProcessingClock"]


class ProcessingClock:
    """`epoch_ms` now, and from now on what has passed on the monotonic clock; without one, the time of day.

    So it never goes back, also where somebody sets the clock of the machine.
    """

    def __init__(self, epoch_ms: int | None) -> None:
        start_ms = time.time() * 1000 if epoch_ms is None else epoch_ms
        self._offset_ms = start_ms - time.monotonic() * 1000

    @property
    def now_ms(self) -> float:
        return self._offset_ms + time.monotonic() * 1000

    def tell(self, task: Task) -> None:
        """Tell a task what time it is, before a step of it."""
        task.on_timeout(self.now_ms)

    def wait_s(self, task: Task) -> float | None:
        """How many seconds from now on `task` wants to be told again; `None` if it waits for no time."""
        now_ms = self.now_ms
        deadline_ms = task.next_deadline(now_ms)
        return None if deadline_ms is None else max(0.0, deadline_ms - now_ms) / 1000
