"""Two ends of a connection in one process, a wire between them that can be cut, and calls that may not hang."""

from __future__ import annotations

import datetime
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from course.spark.cluster_keys import new_pair
from refimpl.drivers.transport.streams import ByteStream, Security, connect, listen
from refimpl.drivers.transport.tls import ClusterKeys

TIMEOUT_S = 120.0  # only so that a call that hangs fails; nothing waits for it

Result = TypeVar("Result")


class Call(Generic[Result]):
    """A call in a thread of its own."""

    def __init__(self, function: Callable[..., Result], *arguments: object, **options: object) -> None:
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self._call = lambda: function(*arguments, **options)
        self._name = getattr(function, "__name__", repr(function))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._call())
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error

    def result(self) -> Result:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self._name} has not returned for {TIMEOUT_S:.0f} s"
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def until_inside(self, *names: str) -> Call[Result]:
        """Go on when the call has come into a function of one of these names, or has returned."""
        give_up_s = time.monotonic() + TIMEOUT_S
        while self._thread.is_alive() and time.monotonic() < give_up_s:
            frame = sys._current_frames().get(self._thread.ident or 0)
            if frame is not None and frame.f_code.co_name in names:
                break
        return self


def within(function: Callable[..., Result], *arguments: object, **options: object) -> Result:
    """The outcome of a call that could hang, and fails then."""
    return Call(function, *arguments, **options).result()


def read_to_end(stream: ByteStream, max_bytes: int = 1 << 16) -> bytes:
    pieces = []
    while data := stream.read(max_bytes):
        assert len(data) <= max_bytes
        pieces.append(data)
    return b"".join(pieces)


def read_exactly(stream: ByteStream, num_bytes: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < num_bytes:
        data = stream.read(num_bytes - len(pieces))
        assert data, f"the end came after {len(pieces)} of {num_bytes} bytes"
        pieces += data
    return bytes(pieces)


@contextmanager
def connected(security: Security | None, wire: Wire | None = None) -> Iterator[tuple[ByteStream, ByteStream]]:
    """A client's stream and a server's, of one connection; over `wire`, if there is one."""
    with ExitStack() as stack:
        listener = listen(security=security)
        stack.callback(listener.close)
        serving = Call(lambda: listener.accept().open(TIMEOUT_S))
        host, port = listener.address if wire is None else wire.lead_to(listener.address)
        client = connect(host, port, security, TIMEOUT_S)
        stack.callback(client.close)
        server = serving.result()
        stack.callback(server.close)
        yield client, server


class Wire:
    """A relay between two sockets that passes bytes on in pieces, changes them, or is cut."""

    def __init__(self, max_bytes: int = 1 << 16) -> None:
        self.seen = bytearray()  # on its way to the client
        self._max_bytes = max_bytes
        self._left: int | None = None  # to the client, before the cut
        self._flips = False
        self._sockets: list[socket.socket] = []

    def lead_to(self, address: tuple[str, int]) -> tuple[str, int]:
        """Wait for one client; return where."""
        listening = socket.create_server(("127.0.0.1", 0))
        Call(self._relay, listening, address)
        return listening.getsockname()

    def cut_after(self, num_bytes: int) -> None:
        """Let so many more bytes go to the client, then end both connections."""
        self._left = num_bytes

    def flip_a_bit(self) -> None:
        """Change the next byte that goes to the client."""
        self._flips = True

    def _relay(self, listening: socket.socket, address: tuple[str, int]) -> None:
        with listening:
            listening.settimeout(TIMEOUT_S)
            client = listening.accept()[0]
        server = socket.create_connection(address, TIMEOUT_S)
        self._sockets = [client, server]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        forth = Call(self._pass_on, client, server, lambda data: data)
        self._pass_on(server, client, self._changed)
        forth.result()
        for each in self._sockets:
            each.close()

    def _pass_on(self, source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes | None]) -> None:
        with suppress(OSError):
            while data := source.recv(self._max_bytes):
                changed = change(data)
                if changed is None:
                    break
                target.sendall(changed)
        for each, way in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR if self._left == 0 else way)

    def _changed(self, data: bytes) -> bytes | None:
        self.seen += data
        if self._flips:
            self._flips = False
            return bytes([data[0] ^ 1]) + data[1:]
        if self._left is None:
            return data
        passed = data[: self._left]
        self._left -= len(passed)
        return passed or None


def write_keys(folder: Path, first_day: int = -1, last_day: int = 1) -> ClusterKeys:
    """Keys that are valid from one day to another, counted from today."""
    now = datetime.datetime.now(datetime.UTC)
    certificate, key = new_pair(now + datetime.timedelta(first_day), now + datetime.timedelta(last_day))
    return write_pair(folder, certificate, key)


def write_pair(folder: Path, certificate: bytes, key: bytes) -> ClusterKeys:
    keys = ClusterKeys.in_folder(folder)
    folder.mkdir(exist_ok=True)
    keys.certificate.write_bytes(certificate)
    keys.key.touch(0o600)
    keys.key.write_bytes(key)
    return keys


def pem_of(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    how = serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


# -- other people's TLS --------------------------------------------------------------------------------


def raw_context(
    keys: ClusterKeys | None, trusts: ClusterKeys | None, *, is_server: bool = False, newest: str = "TLSv1_3"
) -> ssl.SSLContext:
    """Somebody else's TLS: shows these keys, or none, and believes that certificate, or everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = ssl.TLSVersion[newest]
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE if trusts is None else ssl.CERT_REQUIRED
    if trusts is not None:
        context.load_verify_locations(trusts.certificate)
    if keys is not None:
        context.load_cert_chain(keys.certificate, keys.key)
    return context


class Server:
    """Somebody else's server, which `behaves` towards one client."""

    def __init__(self, behaves: Callable[[socket.socket], object]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(TIMEOUT_S)
        self.address = self._listening.getsockname()
        self.call = Call(self._serve, behaves)

    def _serve(self, behaves: Callable[[socket.socket], object]) -> object:
        with self._listening:
            client = self._listening.accept()[0]
        client.settimeout(TIMEOUT_S)
        with client:
            return behaves(client)
