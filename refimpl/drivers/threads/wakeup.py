"""Where threads wait under a monitor, and how others wake them without looking at what they wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["Bell", "Lull", "let_pass"]

_LONGEST_LULL_S = 0.001

Found = TypeVar("Found")


class Bell:
    """The place of one thread: it waits here, and whoever has brought about what it waits for rings.

    Both under the monitor, and whoever waits looks first whether it must. So no ring is lost: what
    was there before the wait was seen, and what comes after finds somebody waiting. A ring for nobody
    costs nothing, and the second of two rings before the thread has moved does not either.
    `num_rings` counts those that woke somebody.

    Who waits has taken the monitor once and not again inside: one release must set it free. A lock of its
    own, which is taken all the time but for a ring, is a third of the work of a `threading.Condition`.
    """

    __slots__ = ("_monitor", "_silence", "_wake", "is_waiting", "num_rings")

    def __init__(self, monitor: threading.RLock) -> None:
        self.is_waiting = False
        self.num_rings = 0
        self._monitor = monitor
        self._silence = threading.Lock()
        self._silence.acquire()
        self._wake: Callable[[], None] = self._silence.release

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

    def wait_at(self, wait: Callable[[], Found], wake: Callable[[], None]) -> Found:
        """Wait in another place instead, for something to be found or until a ring lets `wake` end it. As `wait`."""
        self.is_waiting, self._wake = True, wake
        self._monitor.release()
        try:
            return wait()
        finally:
            self._monitor.acquire()
            self.is_waiting, self._wake = False, self._silence.release

    def ring(self) -> None:
        """Wake the thread, if it waits. Under the monitor."""
        if self.is_waiting:
            self.is_waiting = False
            self.num_rings += 1
            self._wake()


class Lull:
    """Where a task first lets the others get ahead, because it has run out of work, or because it has flushed.

    Two threads of one interpreter hardly ever run at the same time; what they hand each other buffer by
    buffer costs them more in changes of turn than in work. A task that rests here is left alone until another
    one has run out too, or for a millisecond. So the producer fills what buffers there are, then the
    consumer empties them all; `make bench ONLY=7` shows the difference. And whoever is to read what was flushed
    does so at once, not when the turn of the one who flushed is over.

    All under the monitor. Nobody may rest who is waited for by others than the tasks of this monitor, which have
    `bells`.
    """

    __slots__ = ("_bells", "_condition", "_longest_s", "_num_resting", "_num_woken", "_was_too_short")

    def __init__(
        self, monitor: threading.RLock, bells: Mapping[str, Bell] = {}, longest_s: float = _LONGEST_LULL_S
    ) -> None:
        self._condition = threading.Condition(monitor)
        self._bells = bells
        self._longest_s = longest_s
        self._num_resting = 0
        self._num_woken: dict[str, int] = {}
        self._was_too_short: dict[str, bool] = {}

    def rest(self) -> bool:
        """Wait for `end`, but not long; whether it came."""
        self._num_resting += 1
        is_ended = self._condition.wait(self._longest_s)
        self._num_resting -= 1
        return is_ended

    def end(self) -> None:
        """Wake whoever rests: the one who calls has run out of work."""
        self._condition.notify_all()

    def step_aside(self, name: str, begin_anew: Callable[[float], None]) -> None:
        """After a flush by task `name`: let those read who have been woken since the last time, or rest; if any.

        Whoever was at work all the time would not be helped. Where a rest was too short for them, the next flush goes
        without one: more gathers meanwhile. `begin_anew` is told before a rest how many seconds it may take, and 0.0
        after it, for the clock of flushes.
        """
        is_any_woken = self._num_resting > 0 or self._count_woken(name) != self._num_woken.get(name, 0)
        if not is_any_woken or self._was_too_short.pop(name, False):
            return
        begin_anew(self._longest_s)
        self.end()
        self._was_too_short[name] = not self.rest()
        begin_anew(0.0)
        self._num_woken[name] = self._count_woken(name)

    def _count_woken(self, name: str) -> int:
        return sum([bell.num_rings for other, bell in self._bells.items() if other != name])


def let_pass(condition: threading.Condition, how_long_ms: Callable[[], float]) -> None:
    """Wait so long, counted from now; `how_long_ms` is asked again whenever `condition` is notified. Under its lock."""
    start_s = time.monotonic()
    while (left_s := start_s + how_long_ms() / 1000 - time.monotonic()) > 0:
        condition.wait(left_s)
