"""Two threads that move the bytes of one connection: one reads, the other writes.

Rules of this file:
- The monitor is held for each call into the core, and never while a thread waits for the transport.
  It is taken once for each read and once for each write, however many frames go through.
- A thread that waits is woken by the end it waits for, and by nobody else: see `Bell`.
- While nobody writes, the thread that reads says what follows from what it has read, as far as the
  transport takes it without waiting: credit for data, data for credit. Whoever else has given the end
  something to say may say it too. That saves waking a thread; who writes gets what is left.
- Where there is much to read the tasks do all that in the threads' place, and these sleep: see `Lookout`.
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

from refimpl.drivers.threads.leader_followers import Lookout
from refimpl.drivers.threads.wakeup import Bell
from refimpl.drivers.transport.ends import End
from refimpl.drivers.transport.sockets import ClosedHereError, PlainStream, rest_after
from refimpl.drivers.transport.streams import ByteStream
from refimpl.errors import SluiceError

__all__ = ["LINGER_S", "Carrier", "Host"]

LINGER_S = 5.0
_MANY_READS, _SHORT_S = 16, 0.05  # so many in so short a time are much to read


class Host(Protocol):
    """The TaskManager a connection belongs to."""

    monitor: threading.RLock
    lookout: Lookout

    def fail(self, error: BaseException) -> None:
        """A connection has found a bug of ours: the job ends with it. Not under the monitor."""


class Carrier:
    """Moves the bytes of `end` over the stream that `open_stream` makes, on threads of its own.

    `abandon` lets an `open_stream` that waits for the other end fail, if that can be done.
    `on_change` is called, under the monitor, after each call into the end. `num_reads` and `num_writes`
    count calls of the stream.

    Flink:   NettyClient, NettyServer (runtime.io.network.netty), 1.11.4
    Differs: two threads for each connection, and the tasks for a busy one; Netty's event loops share a few among all.
    """

    def __init__(
        self,
        host: Host,
        end: End,
        open_stream: Callable[[], ByteStream],
        abandon: Callable[[], None] = lambda: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.end = end
        self.num_reads = 0
        self.num_writes = 0
        self.writer_bell = Bell(host.monitor)
        self.reader_bell = Bell(host.monitor)
        self._host = host
        self._open_stream = open_stream
        self._abandon = abandon
        self._on_change = on_change
        self._stream: ByteStream | None = None
        self._room = memoryview(bytearray(end.read_bytes))
        self._counted = 0, 0.0  # reads, up to when
        self._linger: threading.Timer | None = None
        self._is_over = False
        self._cause = ""
        self._unsaid: list[memoryview] = []  # of what was to be said without waiting
        self._is_receiving = False
        self._is_speaking = False  # the thread that reads, not under the monitor
        end.call_when_sendable(self._on_data_to_send)
        self._reader = threading.Thread(target=self._run, name=f"{end.name} (read)", daemon=True)

    def __repr__(self) -> str:
        return f"Carrier({self.end.name})"

    @property
    def is_finished(self) -> bool:
        """Whether it has moved all it ever will, and has let go of its end."""
        return self._reader.ident is not None and not self._reader.is_alive()

    def start(self) -> None:
        self._reader.start()

    def stop(self) -> None:
        """Cut the connection, wherever it is. Under the monitor."""
        self._end_waits()
        if self._stream is not None:
            self._stream.close()
        else:
            self._abandon()

    def speak(self) -> None:
        """Say what there is to say, without waiting; the thread that writes says the rest. Under the monitor."""
        while self._stream is not None and (pieces := self._pieces_to_say()):
            self._have_said(pieces, self._stream.write_at_once(pieces))

    def read_at_once(self) -> None:
        """Take in what has come, in place of the thread that reads; the end is left to that. Under the monitor."""
        num_bytes = self._stream.read_at_once(self._room) if isinstance(self._stream, PlainStream) else 0
        if num_bytes:
            self._take_in(num_bytes)
            self.speak()
        if num_bytes == 0 or not self.end.is_reading:
            self._host.lookout.unwatch(self)

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
        writer = threading.Thread(target=self._write, args=(stream,), name=f"{self.end.name} (write)", daemon=True)
        with self._host.monitor:
            self._stream = stream
            is_stopped = self._is_over
        if not is_stopped:
            writer.start()
            self._read(stream)
        with self._host.monitor:
            self._end_waits()
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
            self._on_change()

    def _end_waits(self) -> None:
        """Let both threads come to their end. Under the monitor."""
        self._is_over = True
        self._host.lookout.unwatch(self)  # before the file is closed, whose number may be another's next
        self.writer_bell.ring()
        self.reader_bell.ring()

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
            while num_bytes := stream.read_into(self._room):
                with self._host.monitor:
                    self._take_in(num_bytes)
                    pieces = self._pieces_to_say() if self.end.has_data_to_send else []
                    self._is_speaking = bool(pieces)
                    if not pieces:
                        self._prepare_to_read(stream)
                if pieces:
                    num_bytes = stream.write_at_once(pieces)
                    with self._host.monitor:
                        self._is_speaking = False
                        self._have_said(pieces, num_bytes)
                        self._wake_writer()
                        self._prepare_to_read(stream)

    def _take_in(self, num_bytes: int) -> None:
        """Act on what was read. Under the monitor."""
        self.num_reads += 1
        self._is_receiving = True
        self.end.receive_data(self._room[:num_bytes])
        self._is_receiving = False
        self._on_change()

    def _on_data_to_send(self) -> None:
        """Somebody has given the end something to say, or a deadline."""
        if self._is_receiving or self._is_speaking:
            return  # it looks again afterwards
        if not self._host.lookout.lets_speak(self):
            self.writer_bell.ring()

    def _pieces_to_say(self) -> list[bytes | memoryview]:
        """What to say at once; nothing while somebody writes, who then looks for himself. Under the monitor."""
        if self._is_speaking or not self.writer_bell.is_waiting:
            return []
        pieces = [] if self._unsaid else self.end.data_to_send()
        if not pieces:
            self._wake_writer()
        return pieces

    def _have_said(self, pieces: list[bytes | memoryview], num_bytes: int) -> None:
        """The transport has taken so much without waiting. Under the monitor."""
        self.num_writes += 1
        self._unsaid = rest_after(pieces, num_bytes)
        if not self._unsaid:
            self.end.data_sent()
        self._on_change()

    def _wake_writer(self) -> None:
        if self._unsaid or self.end.has_data_to_send or self.end.is_closed or self.end.has_deadline:
            self.writer_bell.ring()

    def _prepare_to_read(self, stream: ByteStream) -> None:
        """Sleep while others read, or, without credits, until what has come has found its buffer. Under the monitor."""
        while not (self.end.is_closed or self._is_over):
            if self.end.is_reading:
                if not self._let_others_read(stream):
                    break
            elif self.end.can_resume_reading:
                self.end.resume_reading()
                self._on_change()
            else:
                self.end.call_when_readable(self.reader_bell.ring)
                self.reader_bell.wait()
        if self.end.is_closed:
            self.writer_bell.ring()
            self._linger_from_now(stream)

    def _let_others_read(self, stream: ByteStream) -> bool:
        """If there is much to read, leave it to the tasks while they do it; whether they did. Under the monitor."""
        num_before, before_s = self._counted
        if self.num_reads - num_before < _MANY_READS:
            return False
        now_s = time.monotonic()
        self._counted = self.num_reads, now_s
        lookout, is_much = self._host.lookout, now_s - before_s <= _SHORT_S
        # TLS has bytes ready that the system does not know of: only its own thread can wait for them.
        if not is_much or self._linger is not None or not isinstance(stream, PlainStream):
            return False
        if not lookout.watch(self, stream.file_number):
            return False
        while lookout.is_watched(self):
            self.reader_bell.wait()
        self._counted = self.num_reads, time.monotonic()
        return True

    def _write(self, stream: ByteStream) -> None:
        with self._noting():
            while pieces := self._next_pieces():
                stream.write(pieces)
                self.num_writes += 1
            stream.end()
        with self._host.monitor:  # also when writing has failed: what the other end said last may be why
            self._linger_from_now(stream)

    def _linger_from_now(self, stream: ByteStream) -> None:
        """Leave the other end some time to read our last word, and to end too. Under the monitor."""
        self._host.lookout.unwatch(self)
        if self._linger is None and not self._is_over:
            self._linger = threading.Timer(LINGER_S, stream.close)
            self._linger.daemon = True
            self._linger.start()

    def _next_pieces(self) -> list[bytes | memoryview]:
        """The last pieces are written. What is next, after a wait if need be; empty when all is said."""
        with self._host.monitor:
            self.end.data_sent()
            while not self._is_over:
                if self._unsaid:
                    pieces = list[bytes | memoryview](self._unsaid)
                    self._unsaid = []
                    return pieces
                if self._is_speaking:
                    self._wait()
                    continue
                pieces = self.end.data_to_send()
                self._on_change()
                if pieces:
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
            self._on_change()
            return
        self.writer_bell.wait(None if deadline_ms is None else (deadline_ms - now_ms) / 1000)
