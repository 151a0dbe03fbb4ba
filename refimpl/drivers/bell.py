"""Where a thread waits under a monitor, and how others wake it without looking at what it waits for."""

from __future__ import annotations

import threading

__all__ = ["Bell"]


class Bell:
    """The place of one thread: it waits here, and whoever has brought about what it waits for rings.

    Both under the monitor, and whoever waits looks first whether it must. So no ring is lost: what
    was there before the wait was seen, and what comes after finds somebody waiting. A ring for nobody
    costs nothing, and the second of two rings before the thread has moved does not either.
    `num_rings` counts those that woke somebody.
    """

    __slots__ = ("_condition", "is_waiting", "num_rings")

    def __init__(self, monitor: threading.RLock) -> None:
        self.is_waiting = False
        self.num_rings = 0
        self._condition = threading.Condition(monitor)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next ring, or for so long. Under the monitor, which others have meanwhile."""
        self.is_waiting = True
        self._condition.wait(timeout_s)
        self.is_waiting = False

    def ring(self) -> None:
        """Wake the thread, if it waits. Under the monitor."""
        if self.is_waiting:
            self.is_waiting = False
            self.num_rings += 1
            self._condition.notify()
