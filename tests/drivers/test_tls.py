"""Who gets in over TLS, who does not, and what each end is told."""

from __future__ import annotations

import datetime
import itertools
import logging
import re
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from refimpl.drivers.transport import tls_stream
from refimpl.drivers.transport.refusals import HandshakeError, Refusal, may_be_tls
from refimpl.drivers.transport.sockets import ClosedHereError
from refimpl.drivers.transport.streams import ByteStream, connect, listen
from refimpl.drivers.transport.tls import ClusterKeys
from tests.support.stream_rig import (
    TIMEOUT_S,
    Call,
    Server,
    pem_of,
    raw_context,
    read_to_end,
    within,
    write_pair,
)

RESETS = struct.pack("ii", 1, 0)  # what makes `close` send RST

HELLO_OF_TLS_1_0 = bytes.fromhex(
    "16 0301 002d"  # a record: handshake, TLS 1.0, 45 bytes
    "01 000029 0301" + 32 * "5a" + "00"  # ClientHello, TLS 1.0, random, no session
    "0002 c013 01 00"  # one suite, no compression, no extensions
)
Visit = Callable[..., tuple[object, HandshakeError]]
FLINK_REQUEST = bytes.fromhex("00000010 badc0ffe 05") + bytes(7)  # a CloseRequest or so: what a plain peer says first


def said_by(socket_: socket.socket) -> bytes | str:
    """What comes over this socket, or why nothing does."""
    try:
        return socket_.recv(100)
    except OSError as error:
        return str(error)


@pytest.fixture
def refused(keys: ClusterKeys, caplog: pytest.LogCaptureFixture) -> Iterator[Visit]:
    """Let a stranger visit a server; return what the stranger has seen, and the server's error."""
    listener = listen(security=keys)

    def visit(
        stranger: Callable[[socket.socket], object], timeout_s: float = TIMEOUT_S
    ) -> tuple[object, HandshakeError]:
        caplog.clear()
        client = socket.create_connection(listener.address, TIMEOUT_S)
        incoming = within(listener.accept)
        opening = Call(incoming.open, timeout_s)
        with client:
            seen = within(stranger, client)
            if timeout_s < TIMEOUT_S:
                with pytest.raises(HandshakeError):
                    opening.result()
        with pytest.raises(HandshakeError) as caught:
            opening.result()
        (record,) = caplog.records
        assert (record.name, record.levelno) == ("sluice.drivers.streams", logging.WARNING)
        assert record.getMessage() == f"refused a connection: {caught.value}"
        assert incoming.peer == caught.value.peer
        assert f"{incoming.peer}: {caught.value.reason.value}" in record.getMessage()
        return seen, caught.value

    yield visit
    listener.close()


# -- those who do not get in -------------------------------------------------------------------------


@pytest.mark.parametrize("newest", ["TLSv1_3", "TLSv1_2"])
@pytest.mark.parametrize("reason", [Refusal.NO_CERTIFICATE, Refusal.OTHER_CERTIFICATE])
def test_a_client_without_the_certificate(
    refused: Visit, keys: ClusterKeys, other_keys: ClusterKeys, newest: str, reason: Refusal
) -> None:
    shown = other_keys if reason is Refusal.OTHER_CERTIFICATE else None

    def stranger(client: socket.socket) -> object:
        context = raw_context(shown, keys, newest=newest)
        try:
            wrapped = context.wrap_socket(client)
        except ssl.SSLError as error:
            return str(error)
        with wrapped:
            wrapped.sendall(FLINK_REQUEST * 1000)  # TLS 1.3: the client is content before the server is
            return said_by(wrapped)

    seen, error = refused(stranger)
    assert error.reason is reason
    assert re.search("alert", str(seen)), "the client is told, and not only cut off"


def test_a_client_with_a_certificate_that_the_clusters_key_has_signed(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The trusted certificate may have been made elsewhere, as one that may sign others."""
    authority_key, leaf_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority, leaf = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("a", "b"))
    folders = []
    for name, subject, key in (("authority", authority, authority_key), ("leaf", leaf, leaf_key)):
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(1))
            .not_valid_after(now + datetime.timedelta(1))
            .add_extension(x509.BasicConstraints(ca=subject == authority, path_length=None), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        folders.append(write_pair(tmp_path / name, certificate.public_bytes(serialization.Encoding.PEM), pem_of(key)))
    cluster, signed = folders
    listener = listen(security=cluster)
    opening = Call(lambda: listener.accept().open(TIMEOUT_S))
    with socket.create_connection(listener.address, TIMEOUT_S) as client:
        wrapped = within(raw_context(signed, cluster).wrap_socket, client)
        assert not isinstance(within(said_by, wrapped), bytes) or said_by(wrapped) == b""
        wrapped.close()
    with pytest.raises(HandshakeError) as caught:
        opening.result()
    assert caught.value.reason is Refusal.OTHER_CERTIFICATE
    assert "presented another certificate" in caplog.text
    listener.close()


def sends(data: bytes) -> Callable[[socket.socket], object]:
    def stranger(client: socket.socket) -> object:
        client.sendall(data)
        return said_by(client)

    return stranger


@pytest.mark.parametrize(("data", "reason"), [
    (FLINK_REQUEST, Refusal.PLAIN_TCP),
    (b"\0", Refusal.PLAIN_TCP),
    (b"GET / HTTP/1.1\r\n\r\n", Refusal.PLAIN_TCP),
    (bytes(range(255, 0, -1)) * 1000, Refusal.PLAIN_TCP),
    (b"\x16\x03\x01\x00\x05hello", Refusal.BROKEN),
    (b"\x16\x03\x03\xff\xff" + b"z" * 70_000, Refusal.BROKEN),
    (b"\x15\x03\x03\x00\x02\x02\x28", Refusal.BROKEN),
    (HELLO_OF_TLS_1_0, Refusal.TOO_OLD),
])  # fmt: skip
def test_a_client_that_speaks_something_else(refused: Visit, data: bytes, reason: Refusal) -> None:
    seen, error = refused(sends(data))
    assert error.reason is reason, error
    assert not isinstance(seen, bytes) or seen[:1] in (b"", b"\x15"), "the end, or an alert"


def test_a_client_that_says_nothing(refused: Visit) -> None:
    _seen, error = refused(lambda client: None, timeout_s=0.05)
    assert error.reason is Refusal.TIMEOUT


def test_a_client_that_stops_in_the_middle(refused: Visit, keys: ClusterKeys) -> None:
    hello = ssl.MemoryBIO()
    client = raw_context(None, keys).wrap_bio(ssl.MemoryBIO(), hello)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    data = hello.read()
    for num_bytes in (1, 4, 100, len(data)):
        assert refused(lambda c, n=num_bytes: c.sendall(data[:n]), timeout_s=0.05)[1].reason is Refusal.TIMEOUT
        assert refused(lambda c, n=num_bytes: c.sendall(data[:n]))[1].reason is Refusal.CLOSED


def test_a_client_that_closes(refused: Visit) -> None:
    def resets(client: socket.socket) -> None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)

    for stranger in (lambda client: None, resets):
        assert refused(stranger)[1].reason is Refusal.CLOSED


def test_a_client_that_dribbles_has_no_more_time_than_others(refused: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one of the whole handshake: here a second passes with each byte that comes."""
    now_s = itertools.count()

    def dribbles(client: socket.socket) -> None:
        def look_at_the_clock() -> float:
            client.sendall(b"z")
            return next(now_s)

        client.sendall(b"\x16\x03\x01\x40\x00")
        monkeypatch.setattr(tls_stream, "time", SimpleNamespace(monotonic=look_at_the_clock))
        client.sendall(b"z")

    monkeypatch.setattr(tls_stream, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    _seen, error = refused(dribbles, timeout_s=4.0)
    assert error.reason is Refusal.TIMEOUT
    assert next(now_s) >= 4


def test_a_client_that_is_refused_may_go_on_until_it_has_read_why(refused: Visit, keys: ClusterKeys) -> None:
    """A connection closed with bytes unread is reset, and over a real network the alert may be lost with it."""

    def stranger(client: socket.socket) -> None:
        wrapped = raw_context(None, keys).wrap_socket(client)
        with pytest.raises(ssl.SSLError, match=r"(?i)certificate[ _]required"):
            wrapped.recv(100)
        with socket.socket(fileno=wrapped.detach()) as raw:
            raw.settimeout(TIMEOUT_S)
            assert raw.recv(100) == b"", "the alert was the last word"
            for _ in range(10):
                raw.sendall(b"what was on its way")

    assert refused(stranger)[1].reason is Refusal.NO_CERTIFICATE


def test_closing_an_incoming_connection_wakes_its_handshake(
    keys: ClusterKeys, caplog: pytest.LogCaptureFixture
) -> None:
    listener = listen(security=keys)
    with socket.create_connection(listener.address, TIMEOUT_S):
        incoming = within(listener.accept)
        opening = Call(incoming.open, TIMEOUT_S).until_inside("read")
        within(incoming.close)
        with pytest.raises(ClosedHereError):
            opening.result()
    listener.close()
    assert not caplog.records, "that was not the client's fault"


def test_other_connections_go_on_while_strangers_come(keys: ClusterKeys, other_keys: ClusterKeys) -> None:
    listener = listen(security=keys)
    streams: list[ByteStream] = []

    def serve() -> None:
        while incoming := listener.accept():
            Call(lambda incoming=incoming: streams.append(incoming.open(TIMEOUT_S)))

    serving = Call(serve)
    silent = [socket.create_connection(listener.address, TIMEOUT_S) for _ in range(30)]
    for number, each in enumerate(silent):
        each.sendall((b"", b"\x16", FLINK_REQUEST)[number % 3])
    for _round in range(3):
        with pytest.raises(HandshakeError):
            within(connect, *listener.address, other_keys, TIMEOUT_S)
        client = within(connect, *listener.address, keys, TIMEOUT_S)
        within(client.write, [bytes(100_000)])
        within(client.end)
        while not streams:
            assert not serving.is_done
        assert within(read_to_end, streams[0]) == bytes(100_000)
        streams.pop().close()
        client.close()
    listener.close()
    serving.result()
    for each in silent:
        each.close()


# -- what a client is told ---------------------------------------------------------------------------


def refusal_by(server: Server, keys: ClusterKeys, timeout_s: float = TIMEOUT_S) -> Refusal:
    with pytest.raises(HandshakeError) as caught:
        within(connect, *server.address, keys, timeout_s)
    assert caught.value.peer == "{}:{}".format(*server.address)
    assert caught.value.reason.value in str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize("newest", ["TLSv1_3", "TLSv1_2"])
def test_a_server_with_another_certificate(keys: ClusterKeys, other_keys: ClusterKeys, newest: str) -> None:
    context = raw_context(other_keys, keys, is_server=True, newest=newest)
    server = Server(lambda client: context.wrap_socket(client, server_side=True))
    assert refusal_by(server, keys) is Refusal.OTHER_CERTIFICATE
    with pytest.raises(ssl.SSLError, match=r"(?i)alert[ _]unknown[ _]ca"):
        server.call.result()


def test_our_server_with_another_certificate(
    keys: ClusterKeys, other_keys: ClusterKeys, caplog: pytest.LogCaptureFixture
) -> None:
    """Each end can say what is wrong: they are of two clusters."""
    listener = listen(security=other_keys)
    opening = Call(lambda: listener.accept().open(TIMEOUT_S))
    with pytest.raises(HandshakeError) as at_client:
        within(connect, *listener.address, keys, TIMEOUT_S)
    with pytest.raises(HandshakeError) as at_server:
        opening.result()
    assert at_client.value.reason is Refusal.OTHER_CERTIFICATE
    assert at_server.value.reason is Refusal.REFUSED_CERTIFICATE
    assert "it has another certificate than this process; every process of a cluster needs the same keys" in caplog.text
    listener.close()


def test_tls_1_3_tells_a_client_at_its_first_read(keys: ClusterKeys, other_keys: ClusterKeys) -> None:
    """A server that we believe, and that believes somebody else."""
    context = raw_context(keys, other_keys, is_server=True)

    def refuse(client: socket.socket) -> None:
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(client, server_side=True)

    server = Server(refuse)
    stream = within(connect, *server.address, keys, TIMEOUT_S)
    with pytest.raises(HandshakeError) as caught:
        within(stream.read, 100)
    assert caught.value.reason is Refusal.REFUSED_CERTIFICATE
    stream.close()
    server.call.result()


@pytest.mark.parametrize(("answer", "reason"), [
    (b"\0\0\0\x20 what a plain peer may say", Refusal.PLAIN_TCP),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", Refusal.PLAIN_TCP),
    (b"\x16\x03\x03\x00\x05hello", Refusal.BROKEN),
    (b"", Refusal.CLOSED),
])  # fmt: skip
def test_a_server_that_speaks_something_else(keys: ClusterKeys, answer: bytes, reason: Refusal) -> None:
    def behaves(client: socket.socket) -> None:
        client.recv(10_000)
        client.sendall(answer)

    assert refusal_by(Server(behaves), keys) is reason


def test_a_server_that_says_nothing(keys: ClusterKeys) -> None:
    server = Server(lambda client: client.recv(1 << 16) and client.recv(1))  # until the client closes
    assert refusal_by(server, keys, timeout_s=0.2) is Refusal.TIMEOUT
    server.call.result()


def test_our_plain_server_and_a_client_with_keys(keys: ClusterKeys) -> None:
    """The server's own protocol turns a TLS greeting away; here it only closes."""
    listener = listen()
    serving = Call(lambda: listener.accept().open(TIMEOUT_S))
    connecting = Call(connect, *listener.address, keys, TIMEOUT_S)
    server = serving.result()
    assert may_be_tls(within(server.read, 100))
    server.close()
    with pytest.raises(HandshakeError) as caught:
        connecting.result()
    assert caught.value.reason is Refusal.CLOSED
    listener.close()
