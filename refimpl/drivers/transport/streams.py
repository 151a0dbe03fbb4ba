"""Connections to other processes, as drivers need them: bytes in, bytes out, and an end.

Rules of this file:
- One thread reads while another writes, and any thread may close. Neither waits for another.
- Without `security` only loopback addresses are used, whatever name they go by.
- One address gets its connections at a pace, see `Pace`.
- `accept` only accepts. What needs the other end's cooperation is `Incoming.open`, for a thread of
  that connection: a client that connects and says nothing keeps no other one out.

    listen(...)  -> Listener.accept() -> Incoming.open(timeout_s) -> ByteStream
    connect(...)                                                  -> ByteStream
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from refimpl.config import Config
from refimpl.drivers.transport.addresses import Address, resolve_address, show_address
from refimpl.drivers.transport.few_warnings import logger
from refimpl.drivers.transport.pace import Pace
from refimpl.drivers.transport.sockets import ClosedHereError, ConnectionFailedError, PlainStream, SocketUse
from refimpl.errors import ConfigError

__all__ = [
    "ByteStream",
    "Handshake",
    "Incoming",
    "Listener",
    "Security",
    "connect",
    "listen",
    "reach",
]

_log = logger("sluice.drivers.streams")

_PAUSE_S = 0.1  # before accepting again, when the machine has run out of something
_BACKLOG = 128  # clients the system lets wait to be accepted


# -- what the driver sees ------------------------------------------------------------------------------


class ByteStream(Protocol):
    """A connection to another process. Whatever goes wrong with it is an `OSError`."""

    peer: str

    def read(self, max_bytes: int) -> bytes:
        """Wait for some bytes, at most `max_bytes`; empty when the other end has ended."""

    def read_into(self, room: memoryview) -> int:
        """`read` into memory of the caller's; how many bytes, 0 when the other end has ended."""

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Hand all the bytes of all pieces to the system, waiting as long as that takes."""

    def write_at_once(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Write as much as is taken without waiting; how many bytes. While no thread is in `write`."""

    def limit(self, timeout_s: float | None) -> None:
        """From now on let a call of the socket fail with `TimeoutError` after so long; never, if `None`."""

    def end(self) -> None:
        """Let the other end read to its end; nothing is written after it. For the thread that writes."""

    def close(self) -> None:
        """End both directions at once; what waits in `read` or `write` fails. Any thread, any time.

        What was not read yet is lost, and then perhaps, at the other end, what was written last. To be
        sure of that: `end()`, and read to the end before closing.
        """


class Handshake(Protocol):
    """Makes a protected stream of a connected one, or closes it and raises an `OSError` that says why."""

    def __call__(self, stream: PlainStream, *, is_server: bool, timeout_s: float) -> ByteStream: ...


class Security(Protocol):
    """The protection of connections, as a value that other processes can be given too."""

    def load(self) -> Handshake:
        """Read keys, or what else it needs.

        Raises:
            ConfigError: it cannot be used, and why.
        """


class Incoming:
    """A client that has connected, and has not identified itself yet."""

    def __init__(self, stream: PlainStream, handshake: Handshake | None) -> None:
        self.peer = stream.peer
        self._stream = stream
        self._handshake = handshake

    def open(self, timeout_s: float) -> ByteStream:
        """Shake hands, if that is needed; a client that fails is logged and its connection closed.

        Raises:
            OSError: what is wrong with the client.
        """
        if self._handshake is None:
            return self._stream
        try:
            return self._handshake(self._stream, is_server=True, timeout_s=timeout_s)
        except ClosedHereError:
            raise
        except OSError as error:
            _log.warning("refused a connection: %s", error)
            raise

    def close(self) -> None:
        """Turn the client away; what waits in `open` fails. Any thread, any time."""
        self._stream.close()


class Listener:
    """A place where other processes may connect. One thread accepts, any may close."""

    def __init__(self, listening: socket.socket, handshake: Handshake | None) -> None:
        self.address: tuple[str, int] = listening.getsockname()[:2]
        self._socket = listening
        self._handshake = handshake
        self._pace = Pace()
        self._use = SocketUse(self._wake, self._close)
        self._closing = threading.Event()
        self._is_exhausted = False
        # macOS does not wake a blocked `accept`, so we wait for two sockets and close by the second.
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        listening.setblocking(False)

    def accept(self) -> Incoming | None:
        """Wait for the next client; `None` when the listener is closed."""
        try:
            with self._use:
                while not self._use.is_closed:
                    self._selector.select(self._pace.wait_s())
                    self._take_in()
                    if (found := self._pace.next()) is not None:
                        return Incoming(PlainStream(*found), self._handshake)
        except ClosedHereError:
            pass
        return None

    def close(self) -> None:
        """Accept no client any more, and wake the thread in `accept`. Connections stay."""
        self._closing.set()
        self._use.close()

    def _take_in(self) -> None:
        """Let a client that has connected wait for its turn."""
        try:
            connected, address = self._socket.accept()
        except (BlockingIOError, ConnectionError):  # there is none, or it was gone before its turn came
            return
        except OSError as error:
            if not self._is_exhausted:
                _log.warning("cannot accept connections, but goes on trying: %s", error)
            self._is_exhausted = True
            self._closing.wait(_PAUSE_S)
            return
        self._is_exhausted = False
        connected.setblocking(True)  # on macOS it has this from the socket that listens
        self._pace.come(connected, address[0], show_address(*address[:2]))

    def _wake(self) -> None:
        self._waker.send(b"x")

    def _close(self) -> None:
        self._selector.close()
        self._pace.close()
        for each in (self._socket, self._waker, self._woken):
            each.close()


# -- making connections --------------------------------------------------------------------------------


def listen(host: str = "127.0.0.1", port: int = 0, security: Security | None = None) -> Listener:
    """Let other processes connect to an address of this machine; port 0 takes one that is free.

    Raises:
        ConfigError: the address needs `security` or cannot be had, or `security` cannot be used.
    """
    found = resolve_address(host, port, is_protected=security is not None)
    handshake = None if security is None else security.load()
    reasons = []
    for address in found:
        try:
            return Listener(_listening(address), handshake)
        except OSError as error:
            reasons.append(error.strerror or str(error))
    raise ConfigError("port", port, f"on {host} it says: {reasons[0]}; port 0 takes one that is free")


def reach(
    host: str, port: int, security: Security | None, config: Config, is_over_within: Callable[[float], bool]
) -> ByteStream:
    """Connect, again and again if need be, with a wait that doubles, unless it `is_over_within` that time.

    Raises:
        ConfigError, ConnectionFailedError: as `connect`, of the last try.

    Flink:   PartitionRequestClientFactory.connectWithRetries (runtime.io.network.netty), 1.11.4
    Differs: waits in between.
    """
    wait_ms: float = config.request_backoff_initial_ms
    for _ in range(config.connect_retries):
        try:
            return connect(host, port, security, config.connect_timeout_ms / 1000)
        except OSError:
            if is_over_within(wait_ms):
                raise
        wait_ms = min(2 * wait_ms, config.request_backoff_max_ms)
    return connect(host, port, security, config.connect_timeout_ms / 1000)


def connect(host: str, port: int, security: Security | None, timeout_s: float) -> ByteStream:
    """Connect to another process, within `timeout_s` in all.

    Raises:
        ConfigError: the address needs `security` or is none, or `security` cannot be used.
        ConnectionFailedError: nothing listens there, or the ends do not trust each other.
    """
    found = resolve_address(host, port, is_protected=security is not None)
    handshake = None if security is None else security.load()
    give_up_s = time.monotonic() + timeout_s
    reasons = []
    for address in found:
        try:
            stream = _reach(address, give_up_s - time.monotonic())
        except OSError as error:
            reasons.append(error.strerror or str(error))
            continue
        if handshake is None:
            return stream
        return handshake(stream, is_server=False, timeout_s=give_up_s - time.monotonic())
    # Flink: PartitionRequestClientFactory, 1.11.4
    raise ConnectionFailedError(
        f"Connecting to remote task manager '{show_address(host, port)}' has failed: {reasons[0]}. "
        f"This might indicate that the remote task manager has been lost"
    )


def _listening(address: Address) -> socket.socket:
    family, where = address
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _reach(address: Address, timeout_s: float) -> PlainStream:
    family, where = address
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.settimeout(max(timeout_s, 0.001))
        connecting.connect(where)
        # On one machine a connection to a free port can meet itself, if the system gives it that port.
        if connecting.getsockname() == connecting.getpeername():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there")
        connecting.settimeout(None)
    except BaseException:
        connecting.close()
        raise
    return PlainStream(connecting, show_address(*where[:2]))
