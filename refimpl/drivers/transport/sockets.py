"""A connected socket that one thread reads, another writes, and any thread may close.

Rules of this file:
- A socket is closed when no thread is inside a call on it, so that no call meets another file's number.
- Nothing here waits for anything but the socket: a reader never for the writer, `close` for neither.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

from refimpl.errors import RemoteTransportError

__all__ = ["ClosedHereError", "ConnectionFailedError", "PlainStream", "SocketUse", "batches", "rest_after"]

_MAX_PIECES = 512  # of one call; the least IOV_MAX of the systems we know is 1024
_MAX_BYTES = 1 << 20  # of one call; macOS refuses more than 2 GiB


class ConnectionFailedError(RemoteTransportError, ConnectionError):
    """A connection could not be made, was refused by one of its ends, or was cut; the text says why."""


class ClosedHereError(ConnectionAbortedError):
    """This end has closed the connection, perhaps while the call was waiting."""

    def __str__(self) -> str:
        return "this end has closed the connection"


class SocketUse:
    """Closes a socket once, and not while a call on it is running in another thread.

    The system gives the number of a closed file to the next one that is opened, and a call that was
    still running would go on with a stranger's bytes. So `close` wakes the calls, and the last one to
    return closes.
    """

    def __init__(self, wake: Callable[[], None], close: Callable[[], None]) -> None:
        self.is_closed = False
        self._wake = wake
        self._close = close
        self._num_inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self.is_closed:
                raise ClosedHereError
            self._num_inside += 1

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with self._lock:
            self._num_inside -= 1
            if self.is_closed and not self._num_inside:
                self._close()
        if self.is_closed and isinstance(error, OSError):
            raise ClosedHereError from error

    def close(self) -> None:
        """Close now, or when no call is running any more."""
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            if self._num_inside:
                self._wake()
            else:
                self._close()


class PlainStream:
    """A TCP connection as it is: anybody on the way can read and change its bytes."""

    def __init__(self, connected: socket.socket, peer: str) -> None:
        self.peer = peer
        self._socket = connected
        self._use = SocketUse(self._wake, self._socket.close)
        # macOS does not take options of a connection that has ended already; the first read will say so.
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, max_bytes: int) -> bytes:
        """Wait for some bytes, at most `max_bytes`; empty when the other end has ended."""
        with self._use:
            data = self._socket.recv(max_bytes)
        if not data and self.is_closed:
            raise ClosedHereError
        return data

    def read_into(self, room: memoryview) -> int:
        """Wait for some bytes, at most as many as there is room for; 0 when the other end has ended."""
        with self._use:
            num_bytes = self._socket.recv_into(room)
        if not num_bytes and self.is_closed:
            raise ClosedHereError
        return num_bytes

    def read_at_once(self, room: memoryview) -> int | None:
        """`read_into` without waiting: `None` if nothing has come, 0 also if `read_into` would fail."""
        try:
            with self._use:
                return self._socket.recv_into(room, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return 0

    @property
    def file_number(self) -> int:
        """Where the system says that something has come; -1 once it is closed."""
        return self._socket.fileno()

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Hand all the bytes of all pieces to the system, without copying them together."""
        with self._use:
            num_bytes = sum([len(piece) if type(piece) is bytes else memoryview(piece).nbytes for piece in pieces])
            sent = 0
            if len(pieces) <= _MAX_PIECES and num_bytes <= _MAX_BYTES:
                sent = self._socket.sendmsg(pieces)
                if sent == num_bytes:  # nearly always
                    return
            left = rest_after([memoryview(piece).cast("B") for piece in pieces], sent)
            for batch in batches(left, _MAX_BYTES):
                rest = batch
                while rest:
                    rest = rest_after(rest, self._socket.sendmsg(rest))

    def write_at_once(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Write as much as the system takes without waiting; how many bytes."""
        with contextlib.suppress(OSError), self._use:
            return self._socket.sendmsg(pieces[:_MAX_PIECES], (), socket.MSG_DONTWAIT)
        return 0

    def end(self) -> None:
        """Let the other end read to its end; nothing is written after it."""
        with self._use:
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End both directions at once; what waits in `read` or `write` fails."""
        self._use.close()

    @property
    def is_closed(self) -> bool:
        return self._use.is_closed

    def limit(self, timeout_s: float | None) -> None:
        """From now on let a read or a write fail with `TimeoutError` after so long; never, if `None`."""
        with self._use:
            self._socket.settimeout(timeout_s)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is not connected any more, so no call waits
            self._socket.shutdown(socket.SHUT_RDWR)


# -- pieces --------------------------------------------------------------------------------------------


def batches(pieces: Sequence[bytes | memoryview], max_bytes: int) -> Iterator[list[memoryview]]:
    """All bytes of all pieces, in portions that one call may take; none is empty."""
    batch: list[memoryview] = []
    room = max_bytes
    for piece in pieces:
        rest = memoryview(piece).cast("B")
        while rest:
            batch.append(rest[:room])
            rest = rest[room:]
            room -= len(batch[-1])
            if not room or len(batch) == _MAX_PIECES:
                yield batch
                batch, room = [], max_bytes
    if batch:
        yield batch


def rest_after(pieces: Sequence[bytes | memoryview], num_bytes: int) -> list[memoryview]:
    """The pieces that are left after the first `num_bytes`."""
    for index, piece in enumerate(pieces):
        if num_bytes < len(piece):
            return [memoryview(piece)[num_bytes:], *[memoryview(each) for each in pieces[index + 1 :]]]
        num_bytes -= len(piece)
    return []
