"""The process that brings a learner's progress to the class, so that nothing a learner does has to wait for it.

One for each learner's folder: whoever finds its lock taken leaves. `sluice join` starts it, and so does every event
that finds none; it ends when the learner leaves the class, or after hours in which nothing happened.
"""

from __future__ import annotations

import contextlib
import time

from course.learner import membership, progress
from course.learner.catchup import catch_up
from course.learner.courier_process import courier_lock
from course.learner.membership import Membership, Said
from course.places import state_folder

__all__ = ["ASK_S", "Courier"]

_LOOK_S = 0.5
ASK_S = 5.0
_LONGEST_WAIT_S = 20.0
_REFUSED_WAIT_S = 60.0
_IDLE_S = 3 * 3600.0
_PATIENCE_S = 12 * 3600.0


class Courier:
    """One round after the other: is there something new, does the class answer, what has it decided.

    `round` takes the time and returns for how long there is nothing to do; None ends it.
    """

    def __init__(self, began: float) -> None:
        self._file = state_folder() / "progress.jsonl"
        self._member: Membership | None = None
        self._said = Said()
        self._seen: tuple[int, float] | None = None
        self._delivered: tuple[int, float] | None = None
        self._news_at = began
        self._try_at = began
        self._ask_at = began
        self._failed = 0

    def round(self, now: float) -> float | None:
        """Do what is due."""
        import random

        from course.learner.outbox import ClassGone, ClassRefused, Outbox

        member = membership.current()
        if member is None:
            return None
        if member != self._member:
            self._member, self._said = member, membership.read_said(member)
            self._try_at = self._ask_at = now
            self._delivered = None
        if (look := self._look()) != self._seen:
            self._seen, self._news_at = look, now
        outbox = Outbox(self._file, member, self._said, membership.keep_said)
        if now - self._news_at > (_IDLE_S if look == self._delivered else _PATIENCE_S):
            return None
        if now < self._try_at:
            return min(_LOOK_S, self._try_at - now)
        try:
            if look != self._delivered:
                outbox.deliver()
                self._delivered = look
            elif now >= self._ask_at:
                outbox.ask_orders()
                self._ask_at = now + ASK_S * random.uniform(0.8, 1.2)
            else:
                return _LOOK_S
        except ClassGone as error:
            self._failed += 1
            self._later(str(error), now + min(_LONGEST_WAIT_S, 2.0**self._failed) * random.uniform(0.5, 1.0))
        except ClassRefused as error:
            self._later(str(error), now + (error.wait_s or _REFUSED_WAIT_S))
        else:
            self._failed = 0
            self._obey()
        return _LOOK_S

    def _look(self) -> tuple[int, float]:
        try:
            found = self._file.stat()
        except OSError:
            return (0, 0.0)
        return (found.st_size, found.st_mtime)

    def _later(self, error: str, try_at: float) -> None:
        self._try_at = try_at
        if self._said.error != error:
            self._said.error = error
            membership.keep_said(self._said)

    def _obey(self) -> None:
        """Do here what the instructor decided for all; each decision once."""
        orders, obeyed = self._said.orders, self._said.obeyed
        before = dict(obeyed)
        resets = dict(obeyed.get("resets", {}))
        for exercise, number in orders.get("resets", {}).items():
            if number > resets.get(exercise, 0):
                resets[exercise] = number
                progress.record("reset", exercise=exercise, by="class")
        obeyed["resets"] = resets
        if orders.get("catchup", 0) > obeyed.get("catchup", 0):
            obeyed["catchup"] = orders["catchup"]
            catch_up(orders["catchup"], by="class")
        if obeyed != before:
            membership.keep_said(self._said)


def main() -> None:
    """Be the courier of this folder, unless there is one."""
    with contextlib.suppress(OSError, ImportError), courier_lock() as is_free:
        courier = Courier(time.time())
        while is_free and (wait_s := courier.round(time.time())) is not None:
            time.sleep(wait_s)


if __name__ == "__main__":
    main()
