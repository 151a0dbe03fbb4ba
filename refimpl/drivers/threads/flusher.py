"""The threads that do what is due: make written bytes visible, send barriers; and how they get the interpreter.

CPython lets a thread run 5 ms before another one gets its turn. A flusher that is due every millisecond would come
late by the five of each task that is at work, and whoever is to read would wait for a turn too. So

- tasks look at the clock between two steps, and flush in the flusher's place;
- on a TaskManager by itself the task that has flushed steps aside until the others have read: see `Lull`;
- turns are shorter where flushes come late all the same, because steps are long; and where connections wait, for which
  nobody steps aside.

What remains for the flusher is the time when no task comes by. Shorter turns mean more switching for all threads of the
process. Rows 21 to 23 of `make bench` show what a short timeout costs, beside how often the flusher came.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from refimpl.job.checkpoint_trigger import CheckpointTrigger
from refimpl.producer.result_partition import ResultPartition

__all__ = ["Flusher", "ShortTurns", "send_barriers"]

_USUAL_MS = 5.0  # what CPython has, and what needs nothing done about it
_LEAST_MS = 0.1
_OFTEN, _SELDOM = 1 / 2, 1 / 16


class Flusher:
    """Flushes all of `partitions` once per buffer timeout; `num_flushes` says how often that was.

    `stopped` is on the monitor of whoever writes into them, and notified when it may be time to end. `on_flush` is told
    of each flush how many ms it came late.

    Flink:   RecordWriter.OutputFlusher, 1.11.4
    Differs: one for all outputs of a TaskManager; Flink has a thread for each.
    """

    def __init__(
        self,
        partitions: Sequence[ResultPartition],
        timeout_ms: int,
        stopped: threading.Condition,
        on_flush: Callable[[float], None] = lambda late_ms: None,
    ) -> None:
        self.num_flushes = 0
        self._partitions = partitions
        self._stopped = stopped
        self._on_flush = on_flush
        with stopped:
            self.set_timeout(timeout_ms)

    @property
    def is_due(self) -> bool:
        """Whether the time has come; anybody may look."""
        return time.monotonic() >= self._due_s

    def set_timeout(self, timeout_ms: int) -> None:
        """Flush so often from now on; not at all by time if it is not above 0. Under the monitor."""
        self._timeout_s = timeout_ms / 1000
        self._due_s = time.monotonic() + self._timeout_s if timeout_ms > 0 else math.inf
        self._stopped.notify_all()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Flush until it is over."""
        with self._stopped:
            while not is_over():
                self._stopped.wait(min(threading.TIMEOUT_MAX, max(0.0, self._due_s - time.monotonic())))
                self.flush_if_due()

    def flush_if_due(self) -> bool:
        """Flush if the time has come. Under the monitor; who is there anyway, with work to do, asks on the way.

        What came due while others had the interpreter is one flush.
        """
        late_s = time.monotonic() - self._due_s
        if late_s < 0:
            return False
        self._due_s += self._timeout_s * (1 + late_s // self._timeout_s)
        self.num_flushes += 1
        for partition in self._partitions:
            partition.flush_all()
        self._on_flush(late_s * 1000)
        return True

    def begin_anew(self, rest_s: float) -> None:
        """Count the time to the next flush from the end of a rest that begins now: the one who rests writes nothing.

        Others may write meanwhile; what they do waits so much longer, at most. Under the monitor.
        """
        if self._due_s < math.inf:
            self._due_s = time.monotonic() + rest_s + self._timeout_s


def send_barriers(
    trigger: CheckpointTrigger, stopped: threading.Condition, on_sent: Callable[[], None], is_over: Callable[[], bool]
) -> None:
    """Let the sources send a barrier whenever it is due, until it is over or they have ended; time starts now.

    `on_sent` is called under the monitor, which is that of `stopped`, and is to wake the sources.
    """
    start_s = time.monotonic()
    with stopped:
        while not is_over() and (deadline_ms := trigger.next_deadline) is not None:
            now_ms = (time.monotonic() - start_s) * 1000
            if trigger.on_timeout(now_ms):
                on_sent()
            else:
                stopped.wait((deadline_ms - now_ms) / 1000)


_lock = threading.Lock()
_wanted: Counter[float] = Counter()  # in ms, by how many runs
_before_s: list[float] = []  # what was there before the first of them


class ShortTurns:
    """Shortens the turns of this process's threads to half of `timeout_ms`, between `start` and `stop`.

    `note_flush` starts and stops them as they are needed. Several runs may be at work at once; the shortest turn
    wanted by any of them holds, and what was there before the first comes back after the last. A timeout of 5 ms or
    more, or none, changes nothing.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._turn_ms = _turn_ms(timeout_ms)
        self._is_running = False
        self._share_late = 0.0  # of the flushes, the last counts most
        self._wanted_ms: float | None = None  # what is counted in `_wanted` for this run

    def start(self) -> None:
        """From now on turns are short; a second call changes nothing."""
        with _lock:
            self._is_running = True
            self._want(self._turn_ms)

    def note_flush(self, late_ms: float) -> None:
        """A flush came so late. Start when they often come later than such a turn, and stop when they seldom do."""
        is_late = self._turn_ms is not None and late_ms > self._turn_ms
        self._share_late += (1 - self._share_late) / 8 if is_late else -self._share_late / 32  # stopping is an attempt
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
        if self._wanted_ms is None and not _wanted:
            _before_s[:] = [sys.getswitchinterval()]
        if turn_ms is not None:
            _wanted[turn_ms] += 1
        if self._wanted_ms is not None:
            _wanted.subtract([self._wanted_ms])
            if not _wanted[self._wanted_ms]:
                del _wanted[self._wanted_ms]
        self._wanted_ms = turn_ms
        _apply()


def _turn_ms(timeout_ms: int) -> float | None:
    """How long a turn may be for such a timeout; `None`: as long as it is."""
    return max(_LEAST_MS, timeout_ms / 2) if 0 < timeout_ms < _USUAL_MS else None


def _apply() -> None:
    sys.setswitchinterval(min([*_before_s, *(turn_ms / 1000 for turn_ms in _wanted)]))
