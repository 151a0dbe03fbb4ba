"""How the tasks of one monitor hand each other their turns: many buffers at a time, not one by one.

Two threads of one interpreter hardly ever run at the same time; what they hand each other buffer by
buffer costs them more in changes of turn than in work. So a task that has run out of work yields, and the
producer fills what buffers there are, then the consumer empties them all; `make bench ONLY=7` shows the difference.
And a task that has flushed yields, so that what was flushed is read at once, not when its turn is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from refimpl.drivers.threads.wakeup import Waker

__all__ = ["Handoff"]

_LONGEST_YIELD_S = 0.001  # so that a task waits no longer than a short buffer timeout


class Handoff:
    """Where a task yields its turn until another task has run out of work, or for a millisecond.

    All under the monitor. No task may yield for which others wait than the tasks of this monitor, which have `wakers`.
    """

    __slots__ = ("_condition", "_longest_s", "_num_woken", "_num_yielding", "_wakers", "_was_too_short")

    def __init__(
        self, monitor: threading.RLock, wakers: Mapping[str, Waker] = {}, longest_s: float = _LONGEST_YIELD_S
    ) -> None:
        self._condition = threading.Condition(monitor)
        self._wakers = wakers
        self._longest_s = longest_s
        self._num_yielding = 0
        self._num_woken: dict[str, int] = {}
        self._was_too_short: dict[str, bool] = {}

    def yield_turn(self) -> bool:
        """Wait for `give_turn` of another task, but not long; whether it came."""
        self._num_yielding += 1
        has_come = self._condition.wait(self._longest_s)
        self._num_yielding -= 1
        return has_come

    def give_turn(self) -> None:
        """Wake the tasks that have yielded: the one that calls has run out of work."""
        self._condition.notify_all()

    def yield_after_flush(self, name: str, begin_anew: Callable[[float], None]) -> None:
        """After a flush by task `name`: yield to tasks that were woken since the last time, or have yielded; if any.

        A task that was at work all the time would not be helped. Where a turn was too short for the others, the next
        flush goes without one: more gathers meanwhile. `begin_anew`, of the clock of flushes, is told before it how
        many seconds it may take, and 0.0 after it.
        """
        is_any_woken = self._num_yielding > 0 or self._count_woken(name) != self._num_woken.get(name, 0)
        if not is_any_woken or self._was_too_short.pop(name, False):
            return
        begin_anew(self._longest_s)
        self.give_turn()
        self._was_too_short[name] = not self.yield_turn()
        begin_anew(0.0)
        self._num_woken[name] = self._count_woken(name)

    def _count_woken(self, name: str) -> int:
        return sum([waker.num_wakes for other, waker in self._wakers.items() if other != name])
