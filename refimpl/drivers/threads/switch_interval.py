"""CPython's switch interval: how long a thread of this process runs before another one gets its turn.

It is one setting for the whole process, and several runs may want it shorter at the same time. So what each of them
wants is kept here, for all; the shortest holds, and what was set before the first comes back after the last. Shorter
turns mean more switching for all threads.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter

__all__ = ["SwitchInterval"]

_USUAL_MS = 5.0
"""CPython's default (`sys.getswitchinterval`): a timeout that long needs nothing done about it."""
_LEAST_MS = 0.1
_OFTEN, _SELDOM = 1 / 2, 1 / 16  # shares of late flushes, at which turns become short, and long again

_lock = threading.Lock()
_wanted_ms: Counter[float] = Counter()  # by how many runs
_before_s: list[float] = []  # what was set before the first of them


class SwitchInterval:
    """Shortens the turns of this process's threads to half of `timeout_ms`, between `start` and `stop`.

    `note_flush` starts and stops it as needed. A timeout of 5 ms or more, or none, changes nothing.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._turn_ms = _turn_ms(timeout_ms)
        self._is_running = False
        self._share_late = 0.0  # of the flushes, the last counts most
        self._wanted_ms: float | None = None  # what is counted in `_wanted_ms` for this run

    def start(self) -> None:
        """From now on turns are short; a second call changes nothing."""
        with _lock:
            self._is_running = True
            self._want(self._turn_ms)

    def note_flush(self, late_ms: float) -> None:
        """Start if flushes often come later than such a turn, and stop if they seldom do."""
        is_late = self._turn_ms is not None and late_ms > self._turn_ms
        # Short turns come fast (1/8) and go slowly (1/32): to leave them is an attempt, and may have to be undone.
        self._share_late += (1 - self._share_late) / 8 if is_late else -self._share_late / 32
        if self._share_late > _OFTEN:
            self.start()
        elif self._share_late < _SELDOM:
            self.stop()

    def change(self, timeout_ms: int) -> None:
        """Another timeout, from now on if turns are short, else from the start on."""
        with _lock:
            self._turn_ms = _turn_ms(timeout_ms)
            if self._is_running:
                self._want(self._turn_ms)

    def stop(self) -> None:
        """This run does not need it any more; a second call changes nothing."""
        with _lock:
            self._is_running = False
            self._want(None)

    def _want(self, turn_ms: float | None) -> None:
        if turn_ms == self._wanted_ms:
            return
        if self._wanted_ms is None and not _wanted_ms:
            _before_s[:] = [sys.getswitchinterval()]
        if turn_ms is not None:
            _wanted_ms[turn_ms] += 1
        if self._wanted_ms is not None:
            _wanted_ms.subtract([self._wanted_ms])
            if not _wanted_ms[self._wanted_ms]:
                del _wanted_ms[self._wanted_ms]
        self._wanted_ms = turn_ms
        sys.setswitchinterval(min([*_before_s, *(turn_ms / 1000 for turn_ms in _wanted_ms)]))


def _turn_ms(timeout_ms: int) -> float | None:
    """How long a turn may be for such a timeout; `None`: as long as it is."""
    return max(_LEAST_MS, timeout_ms / 2) if 0 < timeout_ms < _USUAL_MS else None
