"""Whether the processes of a run still answer: one that does not for too long is ended, and replaced.

Rule of this file: what is not sure to be dead is killed before anybody goes on without it. A process that was only
stopped never does anything more for attempts that others have taken over.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from refimpl.drivers.processes.child_process import ChildProcess

__all__ = ["HEARTBEAT_TIMEOUT_S", "ProcessHeartbeats"]

HEARTBEAT_TIMEOUT_S = 50.0
_ASKED_PER_TIMEOUT = 5


class ProcessHeartbeats:
    """Asks each of `children()` five times in `timeout_s` whether it is there; who owes all five answers is killed.

    One that has not come up yet has `HEARTBEAT_TIMEOUT_S` for that, or `timeout_s` if it is longer.
    Counted in questions and not in time: where this process was stopped itself, nobody else is to blame.

    Flink:   HeartbeatManagerSenderImpl (runtime.heartbeat), 1.11.4
    """

    def __init__(self, children: Callable[[], Sequence[ChildProcess]], timeout_s: float) -> None:
        self._children = children
        self._timeout_s = timeout_s
        self._most_at_start = math.ceil(_ASKED_PER_TIMEOUT * max(1.0, HEARTBEAT_TIMEOUT_S / timeout_s))
        self._ending = threading.Event()
        self._owed: dict[ChildProcess, tuple[Future[Any], int]] = {}
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Ask no more. Safe to repeat."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def ask(self) -> None:
        """Ask all; kill who has not answered for too long."""
        owed, self._owed = self._owed, {}
        for child in self._children():
            if child.is_lost:
                continue
            answer, num_asked = owed.get(child, (None, 0))
            if answer is None or answer.done():
                self._owed[child] = child.ask(b""), 1
            elif num_asked < (_ASKED_PER_TIMEOUT if child.has_answered else self._most_at_start):
                self._owed[child] = answer, num_asked + 1
            else:
                child.kill(f"did not answer for {self._timeout_s:g} s, and was ended")

    def _run(self) -> None:
        while not self._ending.wait(self._timeout_s / _ASKED_PER_TIMEOUT):
            self.ask()
