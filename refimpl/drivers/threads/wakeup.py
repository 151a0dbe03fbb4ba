"""Where a thread waits under a monitor, and how others wake it without looking at what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Waker", "let_pass"]

Found = TypeVar("Found")


class Waker:
    """The place where one thread waits; the thread that brings about what it waits for calls `wake`.

    Both happen under the monitor, and a thread looks first whether it must wait. So no wake-up is lost: what
    was there before the wait was seen, and what comes after finds a thread that waits. Waking costs nothing if no
    thread waits, nor does the second of two wake-ups before the thread has moved. `num_wakes` counts those that
    woke it.

    The thread has taken the monitor once and not again inside: one release must set it free. A lock of its
    own, which is taken all the time but for a wake-up, is a third of the work of a `threading.Condition`.
    """

    __slots__ = ("_asleep", "_monitor", "_wake", "is_waiting", "num_wakes")

    def __init__(self, monitor: threading.RLock) -> None:
        self.is_waiting = False
        self.num_wakes = 0
        self._monitor = monitor
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._wake: Callable[[], None] = self._asleep.release

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next wake-up, or for so long. Under the monitor, which other threads have meanwhile."""
        self.is_waiting = True
        is_woken = False
        self._monitor.release()
        try:
            is_woken = self._asleep.acquire(timeout=-1 if timeout_s is None else timeout_s)
        finally:
            self._monitor.acquire()
            if not (is_woken or self.is_waiting):  # woken after the time was over
                self._asleep.acquire(blocking=False)
            self.is_waiting = False

    def wait_elsewhere(self, wait: Callable[[], Found], interrupt: Callable[[], None]) -> Found:
        """Wait in `wait` instead, for what it finds; a wake-up calls `interrupt`, which is to end it. As `wait`."""
        self.is_waiting, self._wake = True, interrupt
        self._monitor.release()
        try:
            return wait()
        finally:
            self._monitor.acquire()
            self.is_waiting, self._wake = False, self._asleep.release

    def wake(self) -> None:
        """Wake the thread, if it waits. Under the monitor."""
        if self.is_waiting:
            self.is_waiting = False
            self.num_wakes += 1
            self._wake()


def let_pass(condition: threading.Condition, how_long_ms: Callable[[], float]) -> None:
    """Wait so long, counted from now; `how_long_ms` is asked again whenever `condition` is notified. Under its lock."""
    start_s = time.monotonic()
    while (left_s := start_s + how_long_ms() / 1000 - time.monotonic()) > 0:
        condition.wait(left_s)
