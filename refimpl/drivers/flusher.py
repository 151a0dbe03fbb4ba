"""The thread that makes written bytes visible when their time has come, and how it gets the interpreter.

CPython lets a thread run 5 ms before another one gets its turn. A flusher that is due every
millisecond then comes late by the five of each task that is at work. So while a job with a short buffer
timeout runs, turns are shorter. The price is more switching for all threads of the process; rows 21 to 23
of `make bench` show it, beside how often the flusher came. A job with a longer timeout does not pay it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from refimpl.producer.result_partition import ResultPartition

__all__ = ["Flusher", "ShortTurns"]

_USUAL_MS = 5.0  # what CPython has, and what needs nothing done about it
_LEAST_MS = 0.1


class Flusher:
    """Flushes all of `partitions` once per buffer timeout; `num_flushes` says how often that was.

    `stopped` is on the monitor of whoever writes into them, and notified when it may be time to end.

    Flink:   RecordWriter.OutputFlusher, 1.11.4
    Differs: one for all outputs of a TaskManager; Flink has a thread for each.
    """

    def __init__(self, partitions: Sequence[ResultPartition], timeout_ms: int, stopped: threading.Condition) -> None:
        self.num_flushes = 0
        self._partitions = partitions
        self._timeout_s = timeout_ms / 1000
        self._stopped = stopped

    def run(self, is_over: Callable[[], bool]) -> None:
        """Flush until it is over. What came due while others had the interpreter is one flush."""
        due_s = time.monotonic() + self._timeout_s
        with self._stopped:
            while not is_over():
                self._stopped.wait(max(0.0, due_s - time.monotonic()))
                due_s += self._timeout_s * max(1, 1 + (time.monotonic() - due_s) // self._timeout_s)
                self.num_flushes += 1
                for partition in self._partitions:
                    partition.flush_all()


_lock = threading.Lock()
_wanted: Counter[float] = Counter()  # in ms, by how many runs
_before_s: list[float] = []  # what was there before the first of them


class ShortTurns:
    """Shortens the turns of this process's threads to half of `timeout_ms`, between `start` and `stop`.

    Several runs may be at work at once; the shortest turn wanted by any of them holds, and what was
    there before the first comes back after the last. A timeout of 5 ms or more, or none, changes nothing.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._turn_ms = max(_LEAST_MS, timeout_ms / 2)
        self._is_needed = 0 < timeout_ms < _USUAL_MS
        self._has_started = False

    def start(self) -> None:
        """From now on turns are short; a second call changes nothing."""
        with _lock:
            if self._is_needed and not self._has_started:
                self._has_started = True
                if not _wanted:
                    _before_s[:] = [sys.getswitchinterval()]
                _wanted[self._turn_ms] += 1
                _apply()

    def stop(self) -> None:
        """This run does not need it any more; a second call changes nothing."""
        with _lock:
            if self._has_started:
                self._has_started = False
                _wanted.subtract([self._turn_ms])
                if not _wanted[self._turn_ms]:
                    del _wanted[self._turn_ms]
                _apply()


def _apply() -> None:
    sys.setswitchinterval(min([*_before_s, *(turn_ms / 1000 for turn_ms in _wanted)]))
