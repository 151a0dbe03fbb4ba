"""Two threads that move the bytes of one connection: one reads, the other writes.

Rules of this file:
- The monitor is held for each call into the core, and never while a thread waits for the transport.
- Bytes are asked for when the last ones are written. So who speaks is decided at the last moment.
- Lent memory goes home when no thread can be reading it any more.
- An end that has said its last word lets the other end read it: half of the stream ends, and what
  still comes is thrown away, until the other end closes too or `LINGER_S` have passed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from refimpl.drivers.streams import ByteStream
from refimpl.errors import RemoteProtocolError
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.job.shuffle_environment import ShuffleEnvironment

__all__ = ["LINGER_S", "Carrier", "ConsumerEnd", "End", "Host", "ProducerEnd"]

LINGER_S = 5.0
_READ_BYTES = 256 * 1024
_WRITE_BYTES = 256 * 1024

_log = logging.getLogger("sluice.drivers.carrier")


class Host(Protocol):
    """The TaskManager a connection belongs to."""

    monitor: threading.RLock

    def wake(self) -> None:
        """Something has changed: wake whoever may be able to move. Under the monitor."""


class End(Protocol):
    """One end of a connection, as a carrier sees it. Everything is called under the monitor."""

    name: str

    @property
    def is_closed(self) -> bool: ...

    @property
    def is_reading(self) -> bool: ...

    @property
    def can_resume_reading(self) -> bool: ...

    @property
    def has_data_to_send(self) -> bool: ...

    def resume_reading(self) -> None: ...

    def data_to_send(self) -> list[bytes | memoryview]: ...

    def data_sent(self) -> None: ...

    def receive_data(self, data: bytes) -> None: ...

    def next_deadline(self, now_ms: float) -> float | None: ...

    def on_timeout(self, now_ms: float) -> None: ...

    def lose(self, cause: str) -> None:
        """The transport is gone, and no thread looks at lent memory."""


class ConsumerEnd:
    """The end that reads: its channels fail when the connection does."""

    def __init__(self, connection: ConsumerConnection) -> None:
        self.name = connection.name
        self._connection = connection
        self.next_deadline = connection.next_deadline
        self.on_timeout = connection.on_timeout
        self.receive_data = connection.receive_data
        self.resume_reading = connection.resume_reading
        self.lose = connection.receive_end

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    @property
    def is_reading(self) -> bool:
        return self._connection.is_reading

    @property
    def can_resume_reading(self) -> bool:
        return self._connection.can_resume_reading

    @property
    def has_data_to_send(self) -> bool:
        return self._connection.has_data_to_send

    def data_to_send(self) -> list[bytes | memoryview]:
        data = self._connection.data_to_send()
        return [data] if data else []

    def data_sent(self) -> None: ...


class ProducerEnd:
    """The end that is read from: what goes wrong here is the other end's trouble, and is logged."""

    is_reading = True
    can_resume_reading = False

    def __init__(self, connection: ProducerConnection, shuffle: ShuffleEnvironment) -> None:
        self.name = connection.name
        self._connection = connection
        self._shuffle = shuffle

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    @property
    def has_data_to_send(self) -> bool:
        return self._connection.has_data_to_send

    def resume_reading(self) -> None: ...

    def next_deadline(self, now_ms: float) -> float | None:
        return self._connection.next_deadline(now_ms)

    def on_timeout(self, now_ms: float) -> None:
        self._connection.on_timeout(now_ms)
        if self.is_closed:
            _log.warning("%s: nothing was asked for in time", self.name)

    def data_to_send(self) -> list[bytes | memoryview]:
        return self._connection.data_to_send(_WRITE_BYTES)

    def data_sent(self) -> None:
        self._connection.data_sent()

    def receive_data(self, data: bytes) -> None:
        try:
            self._connection.receive_data(data)
        except RemoteProtocolError as error:  # what is to be sent now tells the other end
            _log.warning("%s: %s", self.name, error)

    def lose(self, cause: str) -> None:
        if cause and not self.is_closed:  # the other end has trouble too, and is the one to say so
            _log.info("%s: %s", self.name, cause)
        self._shuffle.forget(self._connection)


class Carrier:
    """Moves the bytes of `end` over the stream that `open_stream` makes, on threads of its own.

    Flink:   NettyClient, NettyServer (runtime.io.network.netty), 1.11.4
    Differs: two threads for each connection; Netty's event loops share a few among all.
    """

    def __init__(self, host: Host, end: End, open_stream: Callable[[], ByteStream]) -> None:
        self.end = end
        self._host = host
        self._open_stream = open_stream
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

    def join(self, timeout_s: float) -> None:
        """Wait until nothing moves any more. Not under the monitor."""
        if self._reader.ident is not None:
            self._reader.join(timeout_s)

    # -- the threads -------------------------------------------------------------------------------

    def _run(self) -> None:
        """Open the stream, read it to its end, and see the writer off."""
        try:
            stream = self._open_stream()
        except OSError as error:
            with self._host.monitor:
                self.end.lose(str(error))
                self._host.wake()
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
        with self._host.monitor:
            self.end.lose(self._cause)
            self._host.wake()

    def _read(self, stream: ByteStream) -> None:
        try:
            while data := stream.read(_READ_BYTES):
                with self._host.monitor:
                    self.end.receive_data(data)
                    self._host.wake()
                    self._wait_to_read_on()
        except OSError as error:
            self._cause = self._cause or str(error)

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
        try:
            while pieces := self._next_pieces():
                stream.write(pieces)
                with self._host.monitor:
                    self.end.data_sent()
                    self._host.wake()
            stream.end()
        except OSError as error:
            self._cause = self._cause or str(error)
            stream.close()
            return
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
