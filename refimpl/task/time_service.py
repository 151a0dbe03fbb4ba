"""Processing time as a task knows it: what its driver said last, and what is to be done when more of it has passed.

Nothing here looks at a clock. A driver says what time it is before each step, and when a deadline has come; what is due
is then done in the next step, before input is taken: user code runs where it always runs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable

from refimpl.task.timers import Timer, TimerQueue

__all__ = ["ProcessingTimeService", "ProcessingTimers"]


class ProcessingTimeService:
    """The processing time of one task in ms, and the calls that wait for it.

    `now_ms` is as the driver passed it in last, a whole number that never falls.

    Flink:   ProcessingTimeService, SystemProcessingTimeService (streaming.runtime.tasks), 1.11.4
    Differs: time stands still within a step. A call comes as soon as its time has come; Flink waits 1 ms longer.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._has_begun = False
        self._num_registered = 0
        self._waiting: list[tuple[int, int]] = []  # when, and the number of a call, also of those that were cancelled
        self._calls: dict[int, Callable[[int], None]] = {}

    @property
    def next_deadline(self) -> int | None:
        """When the earliest call is to be made, in ms; `None` if none waits."""
        while self._waiting and self._waiting[0][1] not in self._calls:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    @property
    def is_due(self) -> bool:
        """Whether `fire_due` would call something."""
        return bool(self._waiting) and (head := self.next_deadline) is not None and head <= self.now_ms

    def advance(self, now_ms: float) -> None:
        """Note what time it is; parts of a ms do not count yet."""
        now = math.floor(now_ms)
        if now > self.now_ms or not self._has_begun:
            self._has_begun, self.now_ms = True, now

    def register(self, timestamp_ms: int, call: Callable[[int], None]) -> int:
        """Call `call(timestamp_ms)` when that time has come, at once if it has; the number is for `cancel`."""
        number = self._num_registered
        self._num_registered += 1
        self._calls[number] = call
        heapq.heappush(self._waiting, (timestamp_ms, number))
        return number

    def cancel(self, number: int) -> None:
        """Do not make a call; nothing happens if it has been made."""
        self._calls.pop(number, None)

    def fire_due(self) -> None:
        """Make the calls whose time has come, in order, and those that are registered meanwhile if they are due."""
        while self.is_due:
            timestamp_ms, number = heapq.heappop(self._waiting)
            self._calls.pop(number)(timestamp_ms)

    def close(self) -> None:
        """Forget all calls: what waits at the end of input is not made.

        Flink:   ProcessingTimeService.quiesce, 1.11.4
        """
        self._waiting.clear()
        self._calls.clear()


class ProcessingTimers:
    """The timers of one operator in processing time; `on_timer` is called for each, with its moment, key and namespace.

    Only the earliest is a deadline of the task: an earlier one takes its place. Those that are overdue when they are
    registered, as after a restore, fire in the next step, before its input.

    Flink:   InternalTimerServiceImpl (streaming.api.operators), 1.11.4
    """

    def __init__(self, time: ProcessingTimeService, on_timer: Callable[[int, Hashable, Hashable], None]) -> None:
        self.queue = TimerQueue()
        self._time = time
        self._on_timer = on_timer
        self._armed_ms: int | None = None
        self._call = -1  # the number of the deadline, if there is one

    @property
    def now_ms(self) -> int:
        return self._time.now_ms

    def register(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Fire for (key, namespace) when processing time reaches `timestamp` (ms)."""
        self.queue.register(timestamp, key, namespace)
        self._arm()

    def delete(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Do not fire for (key, namespace) at `timestamp`; nothing happens if there is no such timer."""
        self.queue.delete(timestamp, key, namespace)

    def items(self) -> list[Timer]:
        """Those that are set, in the order they would fire."""
        return self.queue.items()

    def _arm(self) -> None:
        head = self.queue.head
        if head is None or (self._armed_ms is not None and self._armed_ms <= head):
            return
        self._time.cancel(self._call)
        self._armed_ms = head
        self._call = self._time.register(head, self._fire)

    def _fire(self, timestamp_ms: int) -> None:
        self._armed_ms = None
        for timer in self.queue.advance(timestamp_ms):
            self._on_timer(*timer)
        self._arm()
