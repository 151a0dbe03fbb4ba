"""Where threads wait under a monitor, and how others wake them without looking at what they wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Bell", "Lull", "let_pass"]

_LONGEST_LULL_S = 0.001


class Bell:
    """The place of one thread: it waits here, and whoever has brought about what it waits for rings.

    Both under the monitor, and whoever waits looks first whether it must. So no ring is lost: what
    was there before the wait was seen, and what comes after finds somebody waiting. A ring for nobody
    costs nothing, and the second of two rings before the thread has moved does not either.
    `num_rings` counts those that woke somebody.

    Who waits has taken the monitor once and not again inside: one release must set it free. A lock of its
    own, which is taken all the time but for a ring, is a third of the work of a `threading.Condition`.
    """

    __slots__ = ("_monitor", "_silence", "is_waiting", "num_rings")

    def __init__(self, monitor: threading.RLock) -> None:
        self.is_waiting = False
        self.num_rings = 0
        self._monitor = monitor
        self._silence = threading.Lock()
        self._silence.acquire()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next ring, or for so long. Under the monitor, which others have meanwhile."""
        self.is_waiting = True
        is_rung = False
        self._monitor.release()
        try:
            is_rung = self._silence.acquire(timeout=-1 if timeout_s is None else timeout_s)
        finally:
            self._monitor.acquire()
            if not (is_rung or self.is_waiting):  # rung after the time was over
                self._silence.acquire(blocking=False)
            self.is_waiting = False

    def ring(self) -> None:
        """Wake the thread, if it waits. Under the monitor."""
        if self.is_waiting:
            self.is_waiting = False
            self.num_rings += 1
            self._silence.release()


class Lull:
    """Where a task that has run out of work first lets the others get ahead, so that it finds more at once.

    Two threads of one interpreter hardly ever run at the same time; what they hand each other buffer by
    buffer costs them more in changes of turn than in work. A task that rests here is left alone until another
    one has run out too, or for a millisecond. So the producer fills what buffers there are, then the
    consumer empties them all; `make bench ONLY=7` shows the difference.

    All under the monitor. Nobody may rest who is waited for by others than the tasks of this monitor.
    """

    __slots__ = ("_condition", "_longest_s")

    def __init__(self, monitor: threading.RLock, longest_s: float = _LONGEST_LULL_S) -> None:
        self._condition = threading.Condition(monitor)
        self._longest_s = longest_s

    def rest(self) -> None:
        """Wait for `end`, but not long."""
        self._condition.wait(self._longest_s)

    def end(self) -> None:
        """Wake whoever rests: the one who calls has run out of work."""
        self._condition.notify_all()


def let_pass(condition: threading.Condition, how_long_ms: Callable[[], float]) -> None:
    """Wait so long, counted from now; `how_long_ms` is asked again whenever `condition` is notified. Under its lock."""
    start_s = time.monotonic()
    while (left_s := start_s + how_long_ms() / 1000 - time.monotonic()) > 0:
        condition.wait(left_s)
