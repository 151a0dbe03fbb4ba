"""The pace at which one address may connect.

A client that connects again and again takes time from the job: for each connection a thread or a coroutine begins and
ends. So after a burst the connections of one address are served so many a second. The others wait in a line, and those
whose client has left meanwhile are dropped for nothing: a client that comes and goes keeps nobody out for long, not
even one at its own address. Another address has a line of its own.
"""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from refimpl.drivers.transport.addresses import is_loopback

__all__ = ["Pace"]

_BURST, _PER_S = 256, 50.0
_MOST_WAITING = 256  # of one address
_SECONDS_BETWEEN_LOOKS = 0.1  # for clients that have left a full line
_LOOPBACK = "loopback"  # a local client has 16 million addresses

Connected = tuple[socket.socket, str]
"""A socket that was accepted, and its client's address as it is shown."""


class Pace:
    """The lines of sockets that were accepted and are not served yet. One thread at a time.

    Ownership: a socket belongs to it from `come` until `next` gives it out; one that is dropped is closed.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lines: dict[str, _Line] = {}

    def __repr__(self) -> str:
        return f"Pace({len(self._lines)} addresses, {sum(len(each.waiting) for each in self._lines.values())} wait)"

    def come(self, connected: socket.socket, host: str, peer: str) -> None:
        """A client at `host` has connected; one too many is turned away."""
        line = self._lines.setdefault(_address_of(host), _Line())
        if len(line.waiting) >= _MOST_WAITING:
            line.drop_gone(self._now_s())
        if len(line.waiting) >= _MOST_WAITING:
            connected.close()
        else:
            line.waiting.append((connected, peer, line.due_s > self._now_s()))

    def next(self) -> Connected | None:
        """The next to be served now; `None` if nobody waits, or all wait for the pace."""
        now_s = self._now_s()
        for address, line in [*self._lines.items()]:
            if (found := line.next(now_s)) is not None:
                return found
            if line.is_forgotten(now_s):
                del self._lines[address]
        return None

    def wait_s(self) -> float | None:
        """How long until `next` is worth while; `None` if nobody waits."""
        due_s = min((line.due_s for line in self._lines.values() if line.waiting), default=math.inf)
        return None if due_s == math.inf else max(0.0, due_s - self._now_s())

    def close(self) -> None:
        """Turn away whoever waits."""
        for line in self._lines.values():
            for connected, *_ in line.waiting:
                connected.close()
            line.waiting.clear()


class _Line:
    """The clients of one address that wait; `due_s` is when the first of them may be served."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[socket.socket, str, bool]] = deque()  # and whether it came faster than the pace
        self._paid_until_s = -math.inf  # as if those served so far had come at the pace
        self._looked_s = -math.inf

    @property
    def due_s(self) -> float:
        return self._paid_until_s - (_BURST - 1) / _PER_S

    def is_forgotten(self, now_s: float) -> bool:
        """Whether nothing is known of this address that a new line would not know."""
        return not self.waiting and self._paid_until_s <= now_s

    def next(self, now_s: float) -> Connected | None:
        if self.due_s > now_s:
            return None
        while self.waiting:
            connected, peer, came_too_soon = self.waiting.popleft()
            if came_too_soon and _is_gone(connected):
                connected.close()
                continue
            self._paid_until_s = max(self._paid_until_s, now_s) + 1 / _PER_S
            return connected, peer
        return None

    def drop_gone(self, now_s: float) -> None:
        """Drop whoever has left, if the last look was some time ago or found somebody."""
        if now_s < self._looked_s + _SECONDS_BETWEEN_LOOKS:
            return
        there = deque[tuple[socket.socket, str, bool]]()
        for each in self.waiting:
            if _is_gone(each[0]):
                each[0].close()
            else:
                there.append(each)
        if len(there) == len(self.waiting):
            self._looked_s = now_s
        self.waiting = there


def _is_gone(connected: socket.socket) -> bool:
    """Whether the client has ended the connection and said nothing."""
    try:
        return not connected.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _address_of(host: str) -> str:
    with suppress(ValueError):
        return _LOOPBACK if is_loopback(host.partition("%")[0]) else host
    return host
