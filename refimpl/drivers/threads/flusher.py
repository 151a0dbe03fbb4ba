"""The threads that do what is due at a time: flush and take samples, and send barriers.

CPython lets a thread run 5 ms before another one gets its turn. A flusher that is due every millisecond would come
late by the five of each task that is at work, and the task that reads would wait for a turn too. So

- tasks look at the clock between two steps, and flush in the flusher's place;
- on a TaskManager by itself the task that has flushed yields its turn until the others have read: see `Handoff`;
- the interpreter's switch interval is shorter where flushes come late all the same, because steps are long; and where
  there are connections, for which no task yields: see `SwitchInterval`.

What remains for the flusher is the time when no task comes by. Rows 21 to 23 of `make bench` show what a short timeout
costs, beside how often the flusher came.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.pressure_sampling import SampleTimer
from refimpl.job.checkpoint_trigger import CheckpointTrigger

__all__ = ["keep_flushing", "send_barriers"]


def keep_flushing(
    clock: FlushClock, samples: SampleTimer, stopped: threading.Condition, is_over: Callable[[], bool]
) -> None:
    """Flush whenever `clock` says so, and take samples of the tasks when they are due, until it is over.

    `stopped` is on the monitor of the tasks that write, and notified when one of the two has changed or it may be over.
    """
    with stopped:
        while not is_over():
            due_s = min(clock.due_s, samples.due_s)
            stopped.wait(min(threading.TIMEOUT_MAX, max(0.0, due_s - time.monotonic())))
            clock.flush_if_due()
            samples.take_if_due()


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
