"""How tasks read and write for busy connections: the leader waits for all of their sockets, and followers take over.

A thread that only reads costs two changes of thread for each piece of work: one when bytes come, one when it wakes
the task they are for. Where bytes come all the time the tasks can look by themselves:

    a task waits               the first one is the *leader*: it waits for bytes instead of at its waker, and reads
                               them. A wake-up reaches it there too
    a task is at work          it *polls* between two steps, each millisecond: writes what its steps have deferred, and
                               reads what has come
    no task comes, for 5 ms    the *watchdog* gives the connections back to their own threads

Rules of this file:
- Only a connection that has much to read is watched, and its own thread finds that out, see `ConnectionIO`. That
  thread sleeps meanwhile. A connection at rest, or that opens, ends or fails, is its threads' work.
- No thread waits for a transport under the monitor: bytes are read if they have come, and written if they are taken.
- A flush is written at once. Other messages follow full buffers; they are a millisecond late at most while tasks poll.
"""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from refimpl.drivers.threads.wakeup import Waker
from refimpl.drivers.transport.ends import End

__all__ = ["LeaderFollowers"]

_Ready = Sequence[tuple[selectors.SelectorKey, int]]

_BETWEEN_POLLS_S = 0.001  # as short as the shortest buffer timeout
_LONGEST_ABSENCE_S = 0.005  # CPython's switch interval: so long a thread may wait for its turn anyway
_MANY_INTERRUPTS = 64


class _PolledConnection(Protocol):
    """A connection as it is seen from here: a `ConnectionIO`."""

    end: End
    reader_waker: Waker

    def write_at_once(self) -> None: ...

    def read_at_once(self) -> None: ...


class _WriteBatch:
    """A block in which connections get something to write: each writes it at the end, once. Under the monitor."""

    def __init__(self) -> None:
        self._waiting: dict[_PolledConnection, None] | None = None

    def __enter__(self) -> None:
        self._waiting = {}

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        waiting, self._waiting = self._waiting, None
        if error is None:
            for connection in waiting or ():
                connection.write_at_once()

    def add(self, connection: _PolledConnection) -> bool:
        """Let it write at the end; false outside of such a block."""
        if self._waiting is not None:
            self._waiting[connection] = None
        return self._waiting is not None


class LeaderFollowers:
    """Lets the tasks of one TaskManager, which wait at `wakers`, read and write for its busy connections.

    All under the monitor, but `is_due` and `guard`. `num_polls` counts how often a task came by. `may_defer` says
    whether a write can wait until a task does.

    Source:  Schmidt, O'Ryan, Kircher, Pyarali: Leader/Followers (2000): one thread waits for events, and another one
             follows it when it has work
    Differs: followers are not threads of a pool, but tasks, which have work of their own; so a watchdog sees to it
             that there is no long time without a leader.
    """

    def __init__(self, monitor: threading.RLock, wakers: Mapping[str, Waker], may_defer: bool = True) -> None:
        self.writes = _WriteBatch()
        self.num_polls = 0
        self._wakers, self._may_defer = wakers, may_defer
        self._watched: dict[_PolledConnection, int] = {}  # each with the number of the file to wait at
        self._deferred: dict[_PolledConnection, None] = {}
        self._due_s = math.inf
        self._has_leader = self._is_closed = False
        self._poller: _Poller | None = None  # made for the first connection
        self._watchdog = _Watchdog(monitor)

    def __repr__(self) -> str:
        return f"LeaderFollowers({len(self._watched)} watched, {'a' if self._has_leader else 'no'} leader)"

    def is_watched(self, connection: _PolledConnection) -> bool:
        """Whether its own thread may sleep."""
        return connection in self._watched

    @property
    def is_due(self) -> bool:
        """Whether a task at work is to poll; any thread may ask."""
        return time.monotonic() >= self._due_s

    # -- connections -------------------------------------------------------------------------------

    def watch(self, connection: _PolledConnection, file_number: int) -> bool:
        """Read for `connection` from now on, until its `reader_waker` is woken; false if no task would."""
        if self._is_closed or not self._wakers:
            return False
        self._poller = self._poller or _Poller()
        self._poller.selector.register(file_number, selectors.EVENT_READ, connection)
        self._watched[connection] = file_number
        self._due_s = min(self._due_s, time.monotonic() + _BETWEEN_POLLS_S)
        self.promote()
        return True

    def unwatch(self, connection: _PolledConnection) -> None:
        """Let the thread of `connection` read; nothing if it does."""
        if (file_number := self._watched.pop(connection, None)) is not None and self._poller is not None:
            self._poller.selector.unregister(file_number)
            connection.reader_waker.wake()

    def defers_write(self, connection: _PolledConnection) -> bool:
        """Whether a task will call its `write_at_once`: when it leaves the monitor, or soon."""
        if connection.end.is_small and self.writes.add(connection):
            return True
        if not self._may_defer or connection not in self._watched:
            return False
        self._deferred[connection] = None
        self._watchdog.rouse()
        return True

    # -- tasks -------------------------------------------------------------------------------------

    def wait(self, waker: Waker, most_s: float | None = None) -> None:
        """Wait for a wake-up, or as the leader for bytes, and take them in; no longer than `most_s`.

        The task looks then whether it can work. If so it calls `promote`, else it waits again.
        """
        self.num_polls += 1
        if self._deferred:
            self.write_deferred()  # which sends buffers home, perhaps those that the task waits for
        elif self._has_leader or not self._watched or self._poller is None:
            waker.wait(most_s)
        else:
            self._has_leader = True
            try:
                ready = waker.wait_elsewhere(partial(self._poller.selector.select, most_s), self._poller.interrupt)
            finally:
                self._has_leader = False
                self.num_polls += 1
            self._take_in(ready)

    def promote(self) -> None:
        """The leader has work now, and may be away for long: let the next task that waits become the leader."""
        if not self._watched or self._has_leader:
            return
        for waker in self._wakers.values():
            if waker.is_waiting:
                waker.wake()
                return
        self._watchdog.rouse()

    def poll_if_due(self) -> None:
        """Each millisecond: write what is deferred and, without a leader, read what has come."""
        if not self.is_due:
            return
        self.num_polls += 1
        self.write_deferred()
        if self._watched and not self._has_leader and self._poller is not None:
            self._take_in(self._poller.selector.select(0))
        self._due_s = time.monotonic() + _BETWEEN_POLLS_S if self._watched else math.inf

    def write_deferred(self) -> None:
        """Write what was deferred."""
        while self._deferred:
            self._deferred.popitem()[0].write_at_once()

    def _take_in(self, ready: _Ready) -> None:
        for key, _ in ready:
            if key.data is None and self._poller is not None:
                self._poller.clear()
            elif key.data in self._watched:  # no thread has read it in between
                key.data.read_at_once()

    # -- the watchdog ------------------------------------------------------------------------------

    def guard(self) -> None:
        """See to it that tasks poll, until `close`. Not under the monitor; on a thread of its own."""
        with self._watchdog.monitor:
            while not self._is_closed:
                if not self._deferred and (self._has_leader or not self._watched):
                    self._watchdog.sleep()
                    continue
                num_polls = self.num_polls
                self._watchdog.wait()
                if self.num_polls != num_polls:
                    continue
                if self._has_leader:
                    self.write_deferred()
                else:
                    self._release_all()

    def close(self) -> None:
        """Leave all to the threads of the connections, for good; safe to repeat."""
        self._is_closed = True
        self._release_all()
        self._watchdog.wake()
        if self._poller is not None and not self._has_leader:
            self._poller.close()
            self._poller = None

    def _release_all(self) -> None:
        """Leave all to the threads of the connections, until they are watched again."""
        for connection in tuple(self._watched):
            self.unwatch(connection)
        self.write_deferred()


class _Watchdog:
    """The thread that guards: asleep while there is nothing to guard."""

    def __init__(self, monitor: threading.RLock) -> None:
        self.monitor = monitor
        self._waker = Waker(monitor)
        self.wake = self._waker.wake
        self._is_asleep = False

    def sleep(self) -> None:
        """Wait until there is something to guard."""
        self._is_asleep = True
        self._waker.wait()
        self._is_asleep = False

    def wait(self) -> None:
        """Leave the tasks some time to poll."""
        self._waker.wait(_LONGEST_ABSENCE_S)

    def rouse(self) -> None:
        """There is something to guard."""
        if self._is_asleep:
            self._waker.wake()


class _Poller:
    """Where one task waits for all connections at once, and a pipe by which it is interrupted."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker):
            each.setblocking(False)
        self.selector.register(self._woken, selectors.EVENT_READ)

    def interrupt(self) -> None:
        self._waker.send(b"!")

    def clear(self) -> None:
        """Forget the interruptions there were."""
        self._woken.recv(_MANY_INTERRUPTS)

    def close(self) -> None:
        self.selector.close()
        self._woken.close()
        self._waker.close()
