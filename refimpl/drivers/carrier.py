"""Two threads that move the bytes of one connection: one reads, the other writes.

Rules of this file:
- The monitor is held for each call into the core, and never while a thread waits for the transport.
- Bytes are asked for when the last ones are written. So who speaks is decided at the last moment.
- Lent memory goes home when no thread can be reading it any more.
- An end that has said its last word lets the other end read it: half of the stream ends, and what
  still comes is read, until the other end closes too or `LINGER_S` have passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from refimpl.drivers.ends import End
from refimpl.drivers.sockets import ClosedHereError
from refimpl.drivers.streams import ByteStream
from refimpl.errors import SluiceError

__all__ = ["LINGER_S", "Carrier", "Host"]

LINGER_S = 5.0
_READ_BYTES = 256 * 1024


class Host(Protocol):
    """The TaskManager a connection belongs to."""

    monitor: threading.RLock

    def wake(self) -> None:
        """Something has changed: wake whoever may be able to move. Under the monitor."""

    def fail(self, error: BaseException) -> None:
        """A connection has found a bug of ours: the job ends with it. Not under the monitor."""


class Carrier:
    """Moves the bytes of `end` over the stream that `open_stream` makes, on threads of its own.

    `abandon` lets an `open_stream` that waits for the other end fail, if that can be done.

    Flink:   NettyClient, NettyServer (runtime.io.network.netty), 1.11.4
    Differs: two threads for each connection; Netty's event loops share a few among all.
    """

    def __init__(
        self,
        host: Host,
        end: End,
        open_stream: Callable[[], ByteStream],
        abandon: Callable[[], None] = lambda: None,
    ) -> None:
        self.end = end
        self._host = host
        self._open_stream = open_stream
        self._abandon = abandon
        self._waker = threading.Condition(host.monitor)
        self._is_writer_waiting = False
        self._is_reader_waiting = False
        self._stream: ByteStream | None = None
        self._linger: threading.Timer | None = None
        self._is_over = False
        self._cause = ""
        self._reader = threading.Thread(target=self._run, name=f"{end.name} (read)", daemon=True)

    def __repr__(self) -> str:
        return f"Carrier({self.end.name})"

    @property
    def is_finished(self) -> bool:
        """Whether it has moved all it ever will, and has let go of its end."""
        return self._reader.ident is not None and not self._reader.is_alive()

    def start(self) -> None:
        self._reader.start()

    def wake(self) -> None:
        """Wake the threads that would find something to do now. Under the monitor."""
        can_end = self._is_over or self.end.is_closed
        can_write = self._is_writer_waiting and (can_end or self.end.has_data_to_send)
        can_read = self._is_reader_waiting and (can_end or self.end.can_resume_reading)
        if can_write or can_read:
            self._waker.notify_all()

    def stop(self) -> None:
        """Cut the connection, wherever it is. Under the monitor."""
        self._is_over = True
        self._waker.notify_all()
        if self._stream is not None:
            self._stream.close()
        else:
            self._abandon()

    def join(self, timeout_s: float) -> None:
        """Wait until nothing moves any more. Not under the monitor."""
        if self._reader.ident is not None:
            self._reader.join(timeout_s)

    # -- the threads -------------------------------------------------------------------------------

    def _run(self) -> None:
        """Open the stream, read it to its end, and see the writer off."""
        try:
            stream = self._open_stream()
        except (OSError, SluiceError) as error:  # a SluiceError: keys that have become unusable, say
            self._cause = str(error)
            self._lose()
            return
        writer = threading.Thread(
            target=self._write, args=(stream,), name=f"{self.end.name} (write)", daemon=True
        )
        with self._host.monitor:
            self._stream = stream
            is_stopped = self._is_over
        if not is_stopped:
            writer.start()
            self._read(stream)
        with self._host.monitor:
            self._is_over = True
            self._waker.notify_all()
        stream.close()
        if writer.ident is not None:
            writer.join()
        if self._linger is not None:
            self._linger.cancel()
            self._linger.join()
        self._lose()

    def _lose(self) -> None:
        with self._host.monitor:
            self.end.lose(self._cause)
            self._host.wake()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note what goes wrong with the transport; what we closed ourselves has nothing to say."""
        try:
            yield
        except ClosedHereError:
            pass
        except OSError as error:
            self._cause = self._cause or str(error)
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins
            self._host.fail(error)

    def _read(self, stream: ByteStream) -> None:
        with self._noting():
            while data := stream.read(_READ_BYTES):
                with self._host.monitor:
                    self.end.receive_data(data)
                    self._host.wake()
                    if self.end.is_closed:
                        self._linger_from_now(stream)
                    self._wait_to_read_on()

    def _wait_to_read_on(self) -> None:
        """Without credits, wait until what has come has found its buffer. Under the monitor."""
        self._is_reader_waiting = True
        while not (self.end.is_reading or self.end.is_closed or self._is_over):
            if self.end.can_resume_reading:
                self.end.resume_reading()
                self._host.wake()
            else:
                self._waker.wait()
        self._is_reader_waiting = False

    def _write(self, stream: ByteStream) -> None:
        with self._noting():
            while pieces := self._next_pieces():
                stream.write(pieces)
                with self._host.monitor:
                    self.end.data_sent()
                    self._host.wake()
            stream.end()
        with self._host.monitor:  # also when writing has failed: what the other end said last may be why
            self._linger_from_now(stream)

    def _linger_from_now(self, stream: ByteStream) -> None:
        """Leave the other end some time to read our last word, and to end too. Under the monitor."""
        if self._linger is None and not self._is_over:
            self._linger = threading.Timer(LINGER_S, stream.close)
            self._linger.daemon = True
            self._linger.start()

    def _next_pieces(self) -> list[bytes | memoryview]:
        """What is to be written next, after a wait if need be; empty when all is said."""
        with self._host.monitor:
            while not self._is_over:
                pieces = self.end.data_to_send()
                if pieces:
                    self._host.wake()  # room in a queue
                    return pieces
                if self.end.is_closed:
                    break
                self._wait()
        return []

    def _wait(self) -> None:
        """Wait for something to say, or for the time at which something has to be done."""
        now_ms = time.monotonic() * 1000
        deadline_ms = self.end.next_deadline(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            self.end.on_timeout(now_ms)
            self._host.wake()
            return
        self._is_writer_waiting = True
        self._waker.wait(None if deadline_ms is None else (deadline_ms - now_ms) / 1000)
        self._is_writer_waiting = False
