"""The way to another process: made when there is something to send, and again after it was lost."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from refimpl.drivers.cluster.rpc.sealed_stream import SealedStream
from refimpl.drivers.transport.few_warnings import logger
from refimpl.drivers.transport.streams import ByteStream
from refimpl.errors import ConfigError, RemoteProtocolError, described

__all__ = ["MAX_TO_SEND", "Outgoing"]

MAX_TO_SEND = 1024
_FIRST_WAIT_S, _MAX_WAIT_S = 0.05, 2.0

_log = logger("sluice.drivers.cluster")


class Outgoing:
    """What is to be sent to `place`, in order, on a thread of its own.

    `connect` makes a connection, or raises why not; it shows the stream that it works on, so that it can be cut.
    `on_lost` hears, under a lock and on that thread, why the connection has ended, could not be made, or takes nothing
    while `max_waiting` bodies wait: what was to be sent and has not arrived is lost then. What comes after that is for
    a new connection. Between two that could not be made there is a while, doubled each time up to 2 s.

    Flink:   ReconnectingRemoteTransport of Akka's remoting (runtime.rpc.akka), 1.11.4
    """

    def __init__(
        self,
        place: str,
        connect: Callable[[Callable[[ByteStream], None]], SealedStream],
        on_lost: Callable[[str], None],
        max_waiting: int = MAX_TO_SEND,
    ) -> None:
        self.place = place
        self._connect = connect
        self._on_lost = on_lost
        self._max_waiting = max_waiting
        self._waiting: deque[bytes] = deque()
        self._cut: Callable[[], None] | None = None
        self._why_lost = ""  # said by another thread, or by the other end
        self._is_closing = self._is_cut = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"to {place}", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether there is no connection, and nothing that one would be made for."""
        with self._changed:
            return self._cut is None and not self._waiting

    def send(self, body: bytes) -> None:
        """Let a body be sent after those before it. Never waits."""
        with self._changed:
            if self._is_closing:
                return
            if len(self._waiting) >= self._max_waiting:
                self._lose(f"it takes nothing, and {len(self._waiting)} messages wait for it")
            self._waiting.append(body)
            self._changed.notify_all()

    def finish(self) -> None:
        """Send what waits, if the connection is there or can be made at once, and take nothing more."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def close(self, within_s: float) -> None:
        """Wait for what `finish` lets be sent, at most `within_s`, then cut."""
        self.finish()
        self._thread.join(within_s)
        with self._changed:
            self._is_cut = True
            self._lose("this end has closed")
        self._thread.join()

    # -- on the thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        wait_s = _FIRST_WAIT_S
        while self._wait_for_something(None):
            try:
                stream = self._connect(self._shown)
            except (OSError, RemoteProtocolError, ConfigError) as error:
                self._tell(f"{error}")
                self._rest(wait_s)
                wait_s = min(2 * wait_s, _MAX_WAIT_S)
                continue
            self._tell(self._use(stream))
            wait_s = _FIRST_WAIT_S

    def _shown(self, stream: ByteStream) -> None:
        with self._changed:
            self._cut, self._why_lost = stream.close, ""
            if self._is_cut:
                stream.close()

    def _use(self, stream: SealedStream) -> str:
        """Send until the connection is lost; why it is."""
        watching = threading.Thread(target=self._watch, args=(stream,), name=f"to {self.place} (end)", daemon=True)
        watching.start()
        try:
            while self._wait_for_something(stream):
                with self._changed:
                    body = self._waiting.popleft() if self._waiting and not self._why_lost else None
                if body is not None:
                    stream.write(body)
            if not self._why_lost:
                stream.end()
        except OSError as error:
            with self._changed:
                self._why_lost = self._why_lost or described(error)
        stream.close()
        watching.join()
        with self._changed:
            self._cut = None
            return self._why_lost

    def _wait_for_something(self, stream: SealedStream | None) -> bool:
        """Wait until there is a body; false if the connection is lost, or there is none and there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing or (stream and self._why_lost))
            return bool(self._waiting) and not (stream and self._why_lost)

    def _rest(self, wait_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, wait_s)

    def _tell(self, why: str) -> None:
        """Forget what waits, and say that it is lost."""
        with self._changed:
            self._cut, num_lost = None, len(self._waiting)
            self._waiting.clear()
            if not self._is_closing:
                _log.info("the way to %s has ended, %d messages are lost: %s", self.place, num_lost, why)
                self._on_lost(why)

    def _watch(self, stream: SealedStream) -> None:
        """Who is sent to says nothing; all that can come is its end."""
        why = "it has said what nobody asks for"
        try:
            if stream.read() is None:
                why = "it has ended the connection"
        except (OSError, RemoteProtocolError) as error:
            why = described(error)
        with self._changed:
            self._lose(why)

    def _lose(self, why: str) -> None:
        """Cut the connection, and forget what waits for it. Under the lock."""
        self._why_lost = self._why_lost or why
        self._waiting.clear()
        if self._cut is not None:
            self._cut()
        self._changed.notify_all()
