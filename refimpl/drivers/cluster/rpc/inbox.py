"""What has come for the components of a process, in the order in which it came, and not more than there is room for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refimpl.cluster.fencing import Envelope

__all__ = ["MAX_WAITING", "ConnectionLost", "Inbox"]

MAX_WAITING = 256


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The way to or from `place` has ended: of what was on it and has not been told of, nothing will come.

    Whoever is still there is connected with anew by the next message. Between two of these every envelope arrives,
    in order. With `is_refused` whoever is there does not take this process for one of its cluster.
    """

    place: str
    why: str
    is_refused: bool = False


class Inbox:
    """A queue that many threads fill and one empties. Each place has `max_waiting` envelopes in it and then waits."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._waiting: list[tuple[str, Envelope[Any] | ConnectionLost]] = []
        self._num_of: Counter[str] = Counter()
        self._newest: dict[str, Envelope[Any] | ConnectionLost] = {}
        self._is_woken = False
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, place: str, envelope: Envelope[Any], is_wanted: Callable[[], bool]) -> None:
        """Let an envelope in, as soon as there is room; unless nobody takes any more, or it is not wanted then."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._num_of[place] < self._max_waiting or self._is_closed or not is_wanted()
            )
            if is_wanted():
                self._put(place, envelope)

    def put_at_once(self, place: str, envelope: Envelope[Any]) -> bool:
        """Let an envelope in if there is room now."""
        with self._changed:
            return self._num_of[place] < self._max_waiting and self._put(place, envelope)

    def tell(self, lost: ConnectionLost) -> None:
        """Let it be known that a connection has ended; said twice with nothing in between it is said once."""
        with self._changed:
            if not isinstance(self._newest.get(lost.place), ConnectionLost):
                self._put(lost.place, lost)
            self._changed.notify_all()  # what was wanted before may not be now

    def wake(self) -> None:
        """Let who waits in `take`, or comes there next, return at once. Any thread, any time."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def take(self, timeout_s: float | None) -> list[Envelope[Any] | ConnectionLost]:
        """All there is; if that is nothing, wait for something, at most `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_woken or self._is_closed, timeout_s)
            taken = [each for _place, each in self._waiting]
            self._waiting.clear()
            self._num_of.clear()
            self._newest.clear()
            self._is_woken = False
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """Take nothing in any more, and let everybody go who waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _put(self, place: str, each: Envelope[Any] | ConnectionLost) -> bool:
        if self._is_closed:
            return False
        self._waiting.append((place, each))
        self._num_of[place] += 1
        self._newest[place] = each
        self._changed.notify_all()
        return True
