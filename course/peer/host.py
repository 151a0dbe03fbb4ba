"""What both ends are made of: one monitor, connections, and threads that wait for one another.

Rules of this file:
- The engine is called under the monitor. Values are made, serialised and summed outside it.
- Whoever leaves the monitor having changed something calls `wake`; only those who can go on wake up.
- The main thread alone ends things: it waits for the others, for Ctrl-C and for the time limit.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TextIO

from course.output import OutputLostError, let_go
from course.peer.tap import Tap
from refimpl.drivers.threads import LINGER_S, ConnectionIO, LeaderFollowers
from refimpl.drivers.transport import ByteStream, End

__all__ = ["Exclusion", "Host", "Speaker", "TimeLimitError", "Waiter"]

_SECONDS_TO_STOP = 5.0
_LOOK_S = 0.1  # how often to see whether anybody is connected, and whether Ctrl-C was pressed


class TimeLimitError(Exception):
    """`--max-seconds` have passed."""


class Speaker:
    """Tells the script that drives us what is going on, one line for each event.

    A script that has heard enough, such as `head -1`, may leave; the conversation goes on.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, event: str, **facts: Any) -> None:
        try:
            print(json.dumps({"event": event, **facts}), file=self._out, flush=True)
        except (BrokenPipeError, OutputLostError):
            let_go(self._out)


class Waiter:
    """Where one thread waits until calls of others have brought something about."""

    def __init__(self, monitor: threading.RLock) -> None:
        self._condition = threading.Condition(monitor)
        self._can_go_on: Callable[[], bool] | None = None

    def wait_until(self, can_go_on: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait until it is true, or the time is up. Under the monitor, which others have meanwhile."""
        self._can_go_on = can_go_on
        try:
            self._condition.wait_for(can_go_on, timeout_s)
        finally:
            self._can_go_on = None

    def wake(self) -> None:
        """Wake the thread if it can go on. Under the monitor."""
        if self._can_go_on is not None and self._can_go_on():
            self._condition.notify()


class Host:
    """One end as its connections know it, with its threads. Leaving the `with` block stops all of them.

    `max_seconds` is the time limit, from now on.
    """

    def __init__(self, tap: Tap, speaker: Speaker, max_seconds: float) -> None:
        self.say = speaker.say
        self.tap = tap
        self.monitor = threading.RLock()
        # There are no tasks: each connection reads and writes on its own threads.
        self.leader_followers = LeaderFollowers(self.monitor, {})
        self.stopping = threading.Event()
        self.error: BaseException | None = None  # the first one of any thread
        self._max_seconds = max_seconds
        self._deadline_s = time.monotonic() + max_seconds
        self._waiters: list[Waiter] = []
        self._connections: list[ConnectionIO] = []
        self._threads: list[threading.Thread] = []
        self._num_working = 0
        self._main = self.new_waiter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._cut()
        _join((*self._threads, *self._connections), _SECONDS_TO_STOP)

    # -- for everybody -----------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Wake whoever can go on now; the connections see to themselves. Under the monitor."""
        for waiter in self._waiters:
            waiter.wake()

    def new_waiter(self) -> Waiter:
        """A place to wait for one thread; `wake` looks after it."""
        waiter = Waiter(self.monitor)
        with self.monitor:
            self._waiters.append(waiter)
        return waiter

    def start(self, name: str, run: Callable[[], None], *, is_work: bool = True) -> None:
        """Start a thread, for some work or to serve those who work; what ends it early is in `error`."""
        thread = threading.Thread(target=self._run, args=(run, is_work), name=name, daemon=True)
        with self.monitor:
            self._threads.append(thread)
            self._num_working += is_work
        thread.start()

    def stop(self) -> None:
        """Let every thread that waits, or looks at `stopping`, come to its end."""
        with self.monitor:
            self.stopping.set()
            self.wake()

    def carry(self, end: End, open_stream: Callable[[], ByteStream]) -> None:
        """Connect `end` with the stream that `open_stream` makes; every frame is counted."""
        io = ConnectionIO(self, end, lambda: self.tap.tapped(open_stream()), on_change=self.wake)
        with self.monitor:
            self._connections.append(io)
            io.start()

    def fail(self, error: BaseException) -> None:
        """Note what a thread could not go on with; the main thread reports it. Not under the monitor."""
        with self.monitor:
            self.error = self.error or error
            self.wake()

    def _run(self, run: Callable[[], None], is_work: bool) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - reported by the main thread, which waits for this one
            self.fail(error)
        with self.monitor:
            self._num_working -= is_work
            self.wake()

    # -- for the main thread -----------------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._deadline_s - time.monotonic())

    @property
    def is_idle(self) -> bool:
        """Whether all work is done, or has failed."""
        return self._num_working == 0

    def wait_until(self, is_over: Callable[[], bool], patience_s: float = float("inf")) -> bool:
        """Wait until it is over; false if before that everybody who was connected was away for `patience_s`.

        Raises:
            TimeLimitError: the time limit has come.
        """
        since_s = float("inf")
        with self.monitor:
            while not is_over():
                now_s = time.monotonic()
                since_s = min(since_s, now_s) if self.tap.is_deserted else float("inf")
                if now_s - since_s >= patience_s:
                    return False
                if not self.seconds_left:
                    raise TimeLimitError(f"watchdog: --max-seconds {self._max_seconds} reached")
                self._main.wait_until(is_over, min(_LOOK_S, self.seconds_left))
        return True

    def settle(self) -> None:
        """Let the connections say their last words and end; cut those that have not after a while."""
        _join(self._connections, LINGER_S + 1)
        self._cut()
        _join(self._connections, _SECONDS_TO_STOP)

    def _cut(self) -> None:
        with self.monitor:
            for connection in self._connections:
                connection.stop()


class Exclusion:
    """The monitor of `host` for those whose every call may let others go on."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __enter__(self) -> None:
        self._host.monitor.acquire()

    def __exit__(self, *_exc: object) -> None:
        try:
            self._host.wake()
        finally:
            self._host.monitor.release()


def _join(threads: Iterable[threading.Thread | ConnectionIO], timeout_s: float) -> None:
    """Wait for the end of all of them, so long together at most."""
    give_up_s = time.monotonic() + timeout_s
    for each in threads:
        each.join(max(0.0, give_up_s - time.monotonic()))
