"""Two threads that move the bytes of one connection: one reads, the other writes.

Rules of this file:
- The monitor is held for each call into the core, and never while a thread waits for the transport.
  It is taken once for each read and once for each write, however many frames go through.
- A thread that waits is woken by the end it waits for, and by nothing else: see `Waker`.
- While the writing thread waits, the reading thread writes what follows from what it has read, as far as the
  transport takes it without waiting: credit for data, data for credit. So may any thread that has given the end
  something to send. That saves waking a thread; the writing thread gets what is left.
- Where there is much to read the tasks do all that in the threads' place, and these sleep: see `LeaderFollowers`.
- Bytes are asked for when the last ones are written. So the order of messages is decided at the last moment.
- Lent memory goes home when no thread can be reading it any more.
- An end that has sent its last message lets the other end read it: half of the stream ends, and what
  still comes is read, until the other end closes too or `LINGER_S` have passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from refimpl.drivers.threads.leader_followers import LeaderFollowers
from refimpl.drivers.threads.wakeup import Waker
from refimpl.drivers.transport.ends import End
from refimpl.drivers.transport.sockets import ClosedHereError, PlainStream, rest_after
from refimpl.drivers.transport.streams import ByteStream
from refimpl.errors import SluiceError

__all__ = ["LINGER_S", "ConnectionIO", "ConnectionOwner"]

LINGER_S = 5.0
_BUSY_READS, _BUSY_S = 16, 0.05  # a connection with so many reads in so short a time: more than one in 3 ms


class ConnectionOwner(Protocol):
    """The TaskManager a connection belongs to."""

    monitor: threading.RLock
    leader_followers: LeaderFollowers

    def fail(self, error: BaseException) -> None:
        """A connection has found a bug of ours: the job ends with it. Not under the monitor."""


class ConnectionIO:
    """Moves the bytes of `end` over the stream that `open_stream` makes, on threads of its own.

    `abandon` lets an `open_stream` that waits for the other end fail, if that can be done.
    `on_change` is called, under the monitor, after each call into the end. `num_reads` counts calls of the stream.

    Flink:   NettyClient, NettyServer (runtime.io.network.netty), 1.11.4
    Differs: two threads for each connection, and the tasks for a busy one; Netty's event loops share a few among all.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        end: End,
        open_stream: Callable[[], ByteStream],
        abandon: Callable[[], None] = lambda: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.end = end
        self.num_reads = 0
        self.reader_waker = Waker(owner.monitor)
        self.writing = _Writing(end, Waker(owner.monitor), on_change)
        self._owner = owner
        self._on_change = on_change
        self._opened = _OpenedStream(open_stream, abandon)
        self._room = memoryview(bytearray(end.read_bytes))
        self._counted = 0, 0.0  # reads, up to when
        end.call_when_sendable(self._on_data_to_send)
        self._reader = threading.Thread(target=self._run, name=f"{end.name} (read)", daemon=True)

    def __repr__(self) -> str:
        return f"ConnectionIO({self.end.name})"

    @property
    def is_finished(self) -> bool:
        """Whether it has moved all it ever will, and has let go of its end."""
        return self._reader.ident is not None and not self._reader.is_alive()

    @property
    def has_not_opened(self) -> bool:
        """Whether it has ended, or ends now, without ever having had a stream."""
        return self._opened.stream is None and bool(self._opened.cause)

    def start(self) -> None:
        self._reader.start()

    def stop(self) -> None:
        """Cut the connection, wherever it is. Under the monitor."""
        self._end_waits()
        self._opened.cut()

    def write_at_once(self) -> None:
        """Write what there is without waiting; the writing thread writes the rest. Under the monitor."""
        writing, stream = self.writing, self._opened.stream
        while stream is not None and (pieces := writing.pieces_to_write()):
            writing.wrote(pieces, stream.write_at_once(pieces))

    def read_at_once(self) -> None:
        """Take in what has come, in place of the reading thread, which sees to the end. Under the monitor."""
        stream = self._opened.stream
        num_bytes = stream.read_at_once(self._room) if isinstance(stream, PlainStream) else 0
        if num_bytes:
            self._take_in(num_bytes)
            self.write_at_once()
        if num_bytes == 0 or not self.end.is_reading:
            self._owner.leader_followers.unwatch(self)

    def join(self, timeout_s: float) -> None:
        """Wait until nothing moves any more. Not under the monitor."""
        if self._reader.ident is not None:
            self._reader.join(timeout_s)

    # -- the life of a connection ------------------------------------------------------------------

    def _run(self) -> None:
        """Open the stream, read it to its end, and see the writer off."""
        opened = self._opened
        stream = opened.open()
        if stream is not None:
            writer = threading.Thread(target=self._write, args=(stream,), name=f"{self.end.name} (write)", daemon=True)
            with self._owner.monitor:
                opened.stream = stream
                is_stopped = opened.is_over
            if not is_stopped:
                with self._noting():  # the system may refuse a thread
                    writer.start()
                    self._read(stream)
            with self._owner.monitor:
                self._end_waits()
            stream.close()
            if writer.ident is not None:
                writer.join()
            opened.stop_lingering()
        with self._owner.monitor:
            self.end.lose(opened.cause)
            self._on_change()

    def _end_waits(self) -> None:
        """Let both threads come to their end. Under the monitor."""
        self._opened.is_over = True
        self._owner.leader_followers.unwatch(self)  # before the file is closed, whose number may be another's next
        self.writing.waker.wake()
        self.reader_waker.wake()

    def _linger_from_now(self) -> None:
        """Leave the other end some time to read our last message, and to end too. Under the monitor."""
        self._owner.leader_followers.unwatch(self)
        self._opened.linger()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note what goes wrong with the transport; what we closed ourselves has nothing to say."""
        try:
            yield
        except ClosedHereError:
            pass
        except OSError as error:
            self._opened.cause = self._opened.cause or str(error)
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins
            self._owner.fail(error)

    # -- the reading thread ------------------------------------------------------------------------

    def _read(self, stream: ByteStream) -> None:
        monitor, writing = self._owner.monitor, self.writing
        while num_bytes := stream.read_into(self._room):
            with monitor:
                self._take_in(num_bytes)
                pieces = writing.pieces_to_write() if self.end.has_data_to_send else []
                writing.is_reader_writing = bool(pieces)
                if not pieces:
                    self._prepare_to_read(stream)
            if pieces:
                num_bytes = stream.write_at_once(pieces)
                with monitor:
                    writing.is_reader_writing = False
                    writing.wrote(pieces, num_bytes)
                    writing.wake_if_needed()
                    self._prepare_to_read(stream)

    def _take_in(self, num_bytes: int) -> None:
        """Act on what was read. Under the monitor."""
        self.num_reads += 1
        self.writing.is_receiving = True
        self.end.receive_data(self._room[:num_bytes])
        self.writing.is_receiving = False
        self._on_change()

    def _prepare_to_read(self, stream: ByteStream) -> None:
        """Sleep while tasks read, or, without credits, until what has come has found its buffer. Under the monitor."""
        while not (self.end.is_closed or self._opened.is_over):
            if self.end.is_reading:
                if not self._delegate_reading(stream):
                    break
            elif self.end.can_resume_reading:
                self.end.resume_reading()
                self._on_change()
            else:
                self.end.call_when_readable(self.reader_waker.wake)
                self.reader_waker.wait()
        if self.end.is_closed:
            self.writing.waker.wake()
            self._linger_from_now()

    def _delegate_reading(self, stream: ByteStream) -> bool:
        """If there is much to read, leave it to the tasks while they do it; whether they did. Under the monitor."""
        num_before, before_s = self._counted
        if self.num_reads - num_before < _BUSY_READS:
            return False
        now_s = time.monotonic()
        self._counted = self.num_reads, now_s
        leader_followers, is_busy = self._owner.leader_followers, now_s - before_s <= _BUSY_S
        # TLS has bytes ready that the system does not know of: only its own thread can wait for them.
        if not is_busy or self._opened.is_lingering or not isinstance(stream, PlainStream):
            return False
        if not leader_followers.watch(self, stream.file_number):
            return False
        while leader_followers.is_watched(self):
            self.reader_waker.wait()
        self._counted = self.num_reads, time.monotonic()
        return True

    # -- the writing thread ------------------------------------------------------------------------

    def _write(self, stream: ByteStream) -> None:
        with self._noting():
            while pieces := self._next_pieces():
                stream.write(pieces)
                self.writing.num_writes += 1
            stream.end()
        with self._owner.monitor:  # also when writing has failed: the last message of the other end may say why
            self._linger_from_now()

    def _next_pieces(self) -> list[bytes | memoryview]:
        """The last pieces are written. What is next, after a wait if need be; empty when all is written."""
        with self._owner.monitor:
            self.end.data_sent()
            while not self._opened.is_over:
                pieces = self.writing.left_to_write()
                if pieces:
                    return pieces
                if self.end.is_closed and not self.writing.is_reader_writing:
                    break
                self.writing.wait()
        return []

    def _on_data_to_send(self) -> None:
        """The end has got something to send, or a deadline. Under the monitor."""
        if self.writing.is_receiving or self.writing.is_reader_writing:
            return  # the reading thread looks again afterwards
        if not self._owner.leader_followers.defers_write(self):
            self.writing.waker.wake()


class _Writing:
    """The bytes that a connection has to write: by the writing thread, or by another while that one waits.

    All under the monitor. `num_writes` counts calls of the stream.
    """

    def __init__(self, end: End, waker: Waker, on_change: Callable[[], None]) -> None:
        self.waker = waker  # of the writing thread
        self.num_writes = 0
        self.is_receiving = False
        self.is_reader_writing = False  # not under the monitor
        self._end = end
        self._on_change = on_change
        self._unwritten: list[memoryview] = []  # left by a write that did not wait

    def pieces_to_write(self) -> list[bytes | memoryview]:
        """Bytes for another thread than the writing one; none while that is active, and then looks for itself."""
        if self.is_reader_writing or not self.waker.is_waiting:
            return []
        pieces = [] if self._unwritten else self._end.data_to_send()
        if not pieces:
            self.wake_if_needed()
        return pieces

    def wrote(self, pieces: list[bytes | memoryview], num_bytes: int) -> None:
        """The transport has taken `num_bytes` of `pieces` without waiting."""
        self.num_writes += 1
        self._unwritten = rest_after(pieces, num_bytes)
        if not self._unwritten:
            self._end.data_sent()
        self._on_change()

    def wake_if_needed(self) -> None:
        """Wake the writing thread, if there is something for it."""
        if self._unwritten or self._end.has_data_to_send or self._end.is_closed or self._end.has_deadline:
            self.waker.wake()

    def left_to_write(self) -> list[bytes | memoryview]:
        """Bytes for the writing thread; none while the reading one writes."""
        if self._unwritten:
            pieces = list[bytes | memoryview](self._unwritten)
            self._unwritten = []
            return pieces
        if self.is_reader_writing:
            return []
        pieces = self._end.data_to_send()
        self._on_change()
        return pieces

    def wait(self) -> None:
        """Wait for something to write, or for the time at which something has to be done."""
        now_ms = time.monotonic() * 1000
        deadline_ms = self._end.next_deadline(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            self._end.on_timeout(now_ms)
            self._on_change()
            return
        self.waker.wait(None if deadline_ms is None else (deadline_ms - now_ms) / 1000)


class _OpenedStream:
    """The stream of one connection: it may be cut before it is open, and lingers after the last message.

    All under the monitor, but `open` and `stop_lingering`. `cause` is its first error.
    """

    def __init__(self, open_stream: Callable[[], ByteStream], abandon: Callable[[], None]) -> None:
        self.stream: ByteStream | None = None
        self.is_over = False
        self.cause = ""
        self._open_stream = open_stream
        self._abandon = abandon
        self._linger: threading.Timer | None = None

    @property
    def is_lingering(self) -> bool:
        return self._linger is not None

    def open(self) -> ByteStream | None:
        """The stream, or `None` and a `cause`."""
        try:
            return self._open_stream()
        except (OSError, SluiceError) as error:  # a SluiceError: keys that have become unusable, say
            self.cause = str(error)
            return None

    def cut(self) -> None:
        """Close it, or let it not be opened."""
        if self.stream is not None:
            self.stream.close()
        else:
            self._abandon()

    def linger(self) -> None:
        """Close it after a while; a second call changes nothing."""
        if self._linger is None and not self.is_over and self.stream is not None:
            self._linger = threading.Timer(LINGER_S, self.stream.close)
            self._linger.daemon = True
            try:
                self._linger.start()
            except RuntimeError:  # the system refuses a thread: then there is no time to give
                self._linger = None
                self.stream.close()

    def stop_lingering(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger.join()
