"""Who reads and writes for busy connections: the tasks, on their way, and whoever of them waits.

A thread that reads and has nothing else to do costs two changes of thread for each piece of work: one when bytes come,
one when it wakes the task they are for. Where bytes come all the time the task can look by itself:

    a task waits               it *keeps the lookout*: it waits for bytes instead of its bell, and reads them. One at a
                               time; a ring reaches it there too
    a task is at work          it *calls* between two steps, each millisecond: says what its steps have left to be said,
                               and reads what has come
    no task comes, for 5 ms    the *patrol* gives the connections back to their own threads

Rules of this file:
- Only a connection that has much to read is watched, and that is its own thread's to find out, see `Carrier`. That
  thread sleeps meanwhile. What is at rest, opens, ends or fails is for the threads.
- Nobody waits for a transport under the monitor: what is read or written here has come, or is taken, at once.
- A flush is said at once. What else is said later was full buffers, a millisecond late at most while tasks call.
"""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from refimpl.drivers.threads.wakeup import Bell
from refimpl.drivers.transport.ends import End

__all__ = ["Lookout", "Speakers", "Spoken"]

_Ready = Sequence[tuple[selectors.SelectorKey, int]]

_BETWEEN_CALLS_S = 0.001
_MANY_SOUNDS = 64
_LONGEST_ABSENCE_S = 0.005  # as long as CPython lets a thread wait for its turn anyway


class Spoken(Protocol):
    """A connection as it is seen from here: a `Carrier`."""

    end: End
    reader_bell: Bell

    def speak(self) -> None: ...

    def read_at_once(self) -> None: ...


class Speakers:
    """The connections that get something to say inside: each says it at the end, all in one. Under the monitor."""

    def __init__(self) -> None:
        self._waiting: dict[Spoken, None] | None = None

    def __enter__(self) -> None:
        self._waiting = {}

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        waiting, self._waiting = self._waiting, None
        if error is None:
            for carrier in waiting or ():
                carrier.speak()

    def note(self, carrier: Spoken) -> bool:
        """Whether it will speak at the end."""
        if self._waiting is not None:
            self._waiting[carrier] = None
        return self._waiting is not None


class Lookout:
    """Lets the tasks of one TaskManager, which wait at `bells`, read and write for its busy connections.

    All under the monitor, but `is_due` and `patrol`. `num_calls` counts how often a task came by; `may_put_off` is
    whether what is to be said can wait until one does.

    Source:  Schmidt, O'Ryan, Kircher, Pyarali: Leader/Followers (2000), for the one thread that waits and is
             followed by another when it has work
    Differs: followers are not threads of a pool, but tasks, which have work of their own; so a patrol sees to it that
             the place is not empty for long.
    """

    def __init__(self, monitor: threading.RLock, bells: Mapping[str, Bell], may_put_off: bool = True) -> None:
        self.speakers = Speakers()
        self.num_calls = 0
        self._bells, self._may_put_off = bells, may_put_off
        self._watched: dict[Spoken, int] = {}  # each with the number of the file to wait at
        self._put_off: dict[Spoken, None] = {}
        self._due_s = math.inf
        self._is_kept = self._is_closed = False
        self._place: _Place | None = None  # made for the first connection
        self._monitor, self._patrol = monitor, Bell(monitor)
        self._is_patrol_asleep = False

    def __repr__(self) -> str:
        return f"Lookout({len(self._watched)} watched, {'kept' if self._is_kept else 'empty'})"

    def is_watched(self, carrier: Spoken) -> bool:
        """Whether its own thread may sleep."""
        return carrier in self._watched

    @property
    def is_due(self) -> bool:
        """Whether a task at work is to call; anybody may look."""
        return time.monotonic() >= self._due_s

    # -- connections -------------------------------------------------------------------------------

    def watch(self, carrier: Spoken, file_number: int) -> bool:
        """Read for `carrier` from now on, until its `reader_bell` rings; false if nobody will."""
        if self._is_closed or not self._bells:
            return False
        self._place = self._place or _Place()
        self._place.selector.register(file_number, selectors.EVENT_READ, carrier)
        self._watched[carrier] = file_number
        self._due_s = min(self._due_s, time.monotonic() + _BETWEEN_CALLS_S)
        self.pass_on()
        return True

    def unwatch(self, carrier: Spoken) -> None:
        """Let the thread of `carrier` read; nothing if it does."""
        if (file_number := self._watched.pop(carrier, None)) is not None and self._place is not None:
            self._place.selector.unregister(file_number)
            carrier.reader_bell.ring()

    def lets_speak(self, carrier: Spoken) -> bool:
        """Whether a task will call `carrier.speak`: when it leaves the monitor, or soon."""
        if carrier.end.is_brief and self.speakers.note(carrier):
            return True
        if not self._may_put_off or carrier not in self._watched:
            return False
        self._put_off[carrier] = None
        self._rouse_patrol()
        return True

    # -- tasks -------------------------------------------------------------------------------------

    def wait(self, bell: Bell) -> None:
        """Wait for a ring of `bell`, or for bytes and take them in. Look then: wait again, or `pass_on` and work."""
        self.num_calls += 1
        if self._put_off:
            self.speak()  # which sends buffers home, perhaps what is waited for
        elif self._is_kept or not self._watched or self._place is None:
            bell.wait()
        else:
            self._is_kept = True
            try:
                ready = bell.wait_at(self._place.selector.select, self._place.sound_horn)
            finally:
                self._is_kept = False
                self.num_calls += 1
            self._take_in(ready)

    def pass_on(self) -> None:
        """Whoever waited has work now, and may be away for long: let the next one that waits keep the lookout."""
        if not self._watched or self._is_kept:
            return
        for bell in self._bells.values():
            if bell.is_waiting:
                bell.ring()
                return
        self._rouse_patrol()

    def call_if_due(self) -> None:
        """Say what was put off, and read what has come unless somebody waits for it, each millisecond."""
        if not self.is_due:
            return
        self.num_calls += 1
        self.speak()
        if self._watched and not self._is_kept and self._place is not None:
            self._take_in(self._place.selector.select(0))
        self._due_s = time.monotonic() + _BETWEEN_CALLS_S if self._watched else math.inf

    def speak(self) -> None:
        """Say what was put off."""
        while self._put_off:
            self._put_off.popitem()[0].speak()

    def _take_in(self, ready: _Ready) -> None:
        for key, _ in ready:
            if key.data is None and self._place is not None:
                self._place.silence_horn()
            elif key.data in self._watched:  # nobody has been here between
                key.data.read_at_once()

    # -- the patrol --------------------------------------------------------------------------------

    def patrol(self) -> None:
        """See to it that somebody comes by, until `close`. Not under the monitor; on a thread of its own."""
        with self._monitor:
            while not self._is_closed:
                if not self._put_off and (self._is_kept or not self._watched):
                    self._is_patrol_asleep = True
                    self._patrol.wait()
                    self._is_patrol_asleep = False
                    continue
                num_calls = self.num_calls
                self._patrol.wait(_LONGEST_ABSENCE_S)
                if self.num_calls != num_calls:
                    continue
                if self._is_kept:
                    self.speak()
                else:
                    self.give_up()

    def give_up(self) -> None:
        """Leave all to the threads of the connections."""
        for carrier in tuple(self._watched):
            self.unwatch(carrier)
        self.speak()

    def close(self) -> None:
        """Give up for good; safe to repeat."""
        self._is_closed = True
        self.give_up()
        self._patrol.ring()
        if self._place is not None and not self._is_kept:
            self._place.close()
            self._place = None

    def _rouse_patrol(self) -> None:
        if self._is_patrol_asleep:
            self._patrol.ring()


class _Place:
    """Where one task waits for all connections at once, and for a horn."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._ears, self._horn = socket.socketpair()
        for each in (self._ears, self._horn):
            each.setblocking(False)
        self.selector.register(self._ears, selectors.EVENT_READ)

    def sound_horn(self) -> None:
        self._horn.send(b"!")

    def silence_horn(self) -> None:
        self._ears.recv(_MANY_SOUNDS)

    def close(self) -> None:
        self.selector.close()
        self._ears.close()
        self._horn.close()
