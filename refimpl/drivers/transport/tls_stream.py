"""A connection over TLS that one thread reads, another writes, and any thread may close.

Rules of this file:
- OpenSSL's objects may not be called by two threads at once. So they stand between two buffers in
  memory and are called under a lock, which no thread holds while it waits for the socket.
- Only a reader reads the socket and only a writer writes it. What OpenSSL wants to answer while it
  reads, to new keys for instance, waits for the next write. So two ends that both write a lot, and
  fill the system's buffers both ways, never wait for each other.
- An end is a message too, `close_notify`. A connection that ends without it was cut.
"""

from __future__ import annotations

import contextlib
import errno
import ssl
import sys
import threading
import time
from collections.abc import Sequence

from refimpl.drivers.transport.refusals import HandshakeError, Refusal, explain_refusal, may_be_tls
from refimpl.drivers.transport.sockets import ClosedHereError, ConnectionFailedError, PlainStream, batches

__all__ = ["TlsStream"]

_RECORD_BYTES = 16_384  # the most that TLS puts into one record
_READ_BYTES = 1 << 18
_WRITE_BYTES = 1 << 16  # encrypted at a time, under the lock
_LAST_WORD_S = 1.0  # for the other end to read why it was refused


class TlsStream:
    """A connection whose bytes only the cluster can read and change. As `ByteStream`."""

    def __init__(self, plain: PlainStream, context: ssl.SSLContext, is_server: bool) -> None:
        self.peer = plain.peer
        self._plain = plain
        self._lock = threading.Lock()  # for what follows; never held while the socket is waited for
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=is_server)
        self._ahead = b""  # decrypted before anybody has read it
        self._has_heard = False
        self._has_ended = False
        self._is_writing = False
        self._is_closed = False

    # -- the handshake, in one thread --------------------------------------------------------------------

    def shake_hands(self, timeout_s: float) -> bytes:
        """Agree on keys, within `timeout_s`; return the other end's certificate (DER), which was checked.

        Raises:
            HandshakeError: says what the other end is or does.
        """
        give_up_s = time.monotonic() + timeout_s
        try:
            while not self._shake():
                self._send(give_up_s)
                self._receive(give_up_s)
            self._send(give_up_s)
        except ssl.SSLError as error:
            self._let_it_read_why(min(give_up_s, time.monotonic() + _LAST_WORD_S))
            raise explain_refusal(self.peer, error) from error
        except TimeoutError as error:
            raise HandshakeError.of(self.peer, Refusal.TIMEOUT) from error
        except (HandshakeError, ClosedHereError):
            raise
        except OSError as error:
            raise HandshakeError.of(self.peer, Refusal.CLOSED) from error
        return self._tls.getpeercert(binary_form=True) or b""

    def _shake(self) -> bool:
        """Go on as far as the bytes at hand allow; whether this end is content."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _send(self, give_up_s: float) -> None:
        self._limit(give_up_s)
        self._plain.write([self._to_send.read()])

    def _receive(self, give_up_s: float) -> None:
        self._limit(give_up_s)
        data = self._plain.read(_READ_BYTES)
        if not data:
            raise HandshakeError.of(self.peer, Refusal.CLOSED)
        if not self._has_heard and not may_be_tls(data):
            raise HandshakeError.of(self.peer, Refusal.PLAIN_TCP)
        self._has_heard = True
        self._received.write(data)

    def _limit(self, give_up_s: float) -> None:
        """Let the next call on the socket give up at that time."""
        left_s = give_up_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._plain.limit(left_s)

    def _let_it_read_why(self, give_up_s: float) -> None:
        """Send the alert, and close only when the other end has: closing with bytes unread discards it."""
        with contextlib.suppress(OSError):
            self._send(give_up_s)
            self._plain.end()
            while self._plain.read(_READ_BYTES):
                self._limit(give_up_s)

    # -- a thread that reads, and one that writes --------------------------------------------------------

    def read(self, max_bytes: int) -> bytes:
        """Wait for some bytes, at most `max_bytes`; empty when the other end has ended.

        Raises:
            HandshakeError: the other end has refused us; only now does TLS 1.3 tell a client.
            ConnectionFailedError: the connection was cut, or its bytes were changed on the way.
        """
        while True:
            with self._lock:
                data = self._decrypted(max_bytes)
            if data or self._has_ended:
                return data
            encrypted = self._plain.read(_READ_BYTES)
            if not encrypted:
                raise ConnectionFailedError(f"{self.peer}: the connection was cut: it ended without saying so")
            with self._lock:
                self._received.write(encrypted)

    def read_into(self, room: memoryview) -> int:
        """As `read`; 0 when the other end has ended."""
        data = self.read(len(room))
        room[: len(data)] = data
        return len(data)

    def _decrypted(self, max_bytes: int) -> bytes:
        """The plain bytes in what was received so far. Under the lock."""
        pieces = [self._ahead[:max_bytes]] if self._ahead else []
        self._ahead = self._ahead[max_bytes:]
        num_free = max_bytes - sum(map(len, pieces))
        try:
            while num_free and not self._has_ended:
                pieces.append(self._tls.read(min(num_free, _RECORD_BYTES)))
                num_free -= len(pieces[-1])
                self._has_ended = not pieces[-1]
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._has_ended = True
        except ssl.SSLError as error:
            raise explain_refusal(self.peer, error) from error
        return b"".join(pieces)

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Hand all the bytes of all pieces to the system, encrypted."""
        with self._lock:
            self._is_writing = True  # until all is written: what `close` cuts off is no end
        for batch in batches(pieces, _WRITE_BYTES):
            with self._lock:
                encrypted = self._encrypted(batch)
            self._plain.write([encrypted])
        self._is_writing = False

    def write_at_once(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Nothing: encrypted bytes must be sent, and sending may have to wait."""
        return 0

    def _encrypted(self, batch: list[memoryview]) -> bytes:
        """These bytes after what was waiting to be sent. Under the lock."""
        rest = batch[0] if len(batch) == 1 else memoryview(b"".join(batch))
        try:
            while rest:
                rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as error:
            if self._is_closed:
                raise ClosedHereError from error
            raise BrokenPipeError(errno.EPIPE, "this connection has ended or failed") from error
        return self._to_send.read()

    def limit(self, timeout_s: float | None) -> None:
        """From now on let a call of the socket fail with `TimeoutError` after so long; never, if `None`."""
        self._plain.limit(timeout_s)

    # -- the end -------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Let the other end read to its end; nothing is written after it."""
        with self._lock:
            encrypted = self._farewell()
        self._plain.write([encrypted])
        self._plain.end()

    def close(self) -> None:
        """End both directions at once; what waits in `read` or `write` fails.

        In the middle of a write, or if the system takes no more bytes, the other end sees a cut.
        """
        with self._lock:
            encrypted = b"" if self._is_writing or self._is_closed else self._farewell()
            self._is_closed = True
        self._plain.write_at_once([encrypted])
        self._plain.close()

    def _farewell(self) -> bytes:
        """`close_notify`, after what was waiting to be sent. Under the lock."""
        with contextlib.suppress(ssl.SSLError, HandshakeError):
            # `unwrap` says farewell and then looks for the other end's. Data would be a mistake to it.
            self._ahead = self._decrypted(sys.maxsize)
            self._tls.unwrap()
        return self._to_send.read()
