"""Those who get in over TLS: what they agree on, and how a cut differs from an end."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from refimpl.drivers.transport.refusals import Refusal
from refimpl.drivers.transport.sockets import ClosedHereError, ConnectionFailedError
from refimpl.drivers.transport.streams import connect, listen
from refimpl.drivers.transport.tls import ClusterKeys
from tests.support.stream_rig import (
    TIMEOUT_S,
    Call,
    Server,
    Wire,
    connected,
    raw_context,
    read_exactly,
    within,
)

# -- those who get in --------------------------------------------------------------------------------


def test_the_newest_tls_is_taken(keys: ClusterKeys) -> None:
    for newest in ("TLSv1_3", "TLSv1_2"):
        listener = listen(security=keys)
        opening = Call(lambda listener=listener: listener.accept().open(TIMEOUT_S))
        with socket.create_connection(listener.address, TIMEOUT_S) as client:
            wrapped = within(raw_context(keys, keys, newest=newest).wrap_socket, client)
            assert wrapped.version() == newest.replace("_", ".")
            server = opening.result()
            within(server.write, [b"welcome"])
            assert within(wrapped.recv, 100) == b"welcome"
            server.close()
            assert within(wrapped.recv, 100) == b"", "with close_notify, or this would raise"
            wrapped.close()
        listener.close()


@pytest.mark.parametrize("newest", ["TLSv1_3", "TLSv1_2"])
def test_what_a_server_sends_after_the_handshake_is_not_data(keys: ClusterKeys, newest: str) -> None:
    """TLS 1.3 sends tickets for another session behind the handshake; ours does not, others do."""
    context = raw_context(keys, keys, is_server=True, newest=newest)
    assert context.num_tickets == 2

    def behaves(client: socket.socket) -> bytes:
        with context.wrap_socket(client, server_side=True) as wrapped:
            received = wrapped.recv(100)
            wrapped.sendall(received[::-1])
            wrapped.unwrap()
            return received

    server = Server(behaves)
    stream = within(connect, *server.address, keys, TIMEOUT_S)
    within(stream.write, [b"abc"])
    assert within(read_exactly, stream, 3) == b"cba"
    assert within(stream.read, 10) == b""
    stream.close()
    assert server.call.result() == b"abc"


@pytest.mark.slow
def test_new_keys_in_the_middle_of_a_connection(keys: ClusterKeys) -> None:
    """Python cannot ask for them, OpenSSL's own client can. The answer goes out before our next data, as it must."""
    program = shutil.which("openssl")
    is_real = program is not None and b"OpenSSL" in subprocess.check_output([program, "version"])
    if not is_real:
        pytest.skip("needs the program openssl; macOS has another one of this name")
    listener = listen(security=keys)
    command = [program, "s_client", "-msg", "-connect", "{}:{}".format(*listener.address)]
    command += ["-cert", keys.certificate, "-key", keys.key, "-CAfile", keys.certificate]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        server = within(lambda: listener.accept().open(TIMEOUT_S))
        for number in range(3):
            client.stdin.write("K\n")
            client.stdin.flush()
            assert "KEYUPDATE" in within(lambda: next(line for line in client.stderr if "KEYUPDATE" in line))
            client.stdin.write(f"data {number}\n")
            client.stdin.flush()
            assert within(read_exactly, server, 7) == b"data %d\n" % number
        within(server.write, [b"answer\n"])
        within(server.close)
        said, _ = client.communicate(timeout=TIMEOUT_S)
    finally:
        client.kill()
        listener.close()
    received = [line for line in said.splitlines() if line.startswith("<<<") and "KeyUpdate" in line]
    assert received, "the client asked us to change ours too"
    assert said.index(received[0]) < said.index("answer")


# -- ends and cuts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_bytes", [0, 1, 5, 21, 22, 100, 10_000, 16_384, 16_406, 30_000])
def test_a_cut_is_no_end_wherever_it_comes(keys: ClusterKeys, num_bytes: int) -> None:
    """A connection that ends without TLS's own end was cut by somebody, or its process died."""
    data = bytes(range(256)) * 400
    wire = Wire()
    with connected(keys, wire) as (client, server):
        wire.cut_after(num_bytes)
        writing = Call(server.write, [data])
        received = bytearray()

        def read_on() -> None:
            while piece := client.read(1 << 16):
                received.extend(piece)

        with pytest.raises(ConnectionFailedError, match="the connection was cut: it ended without saying so"):
            within(read_on)
        assert data.startswith(received)
        assert len(received) == num_bytes // 16_406 * 16_384, "whole records only"
        with suppress(ConnectionError):  # it may have noticed
            writing.result()


def test_a_process_that_dies_is_a_cut(keys: ClusterKeys) -> None:
    context = raw_context(keys, keys, is_server=True)

    def dies(client: socket.socket) -> None:
        wrapped = context.wrap_socket(client, server_side=True)
        wrapped.sendall(b"and then")
        wrapped.close()  # without `unwrap`: no close_notify

    server = Server(dies)
    stream = within(connect, *server.address, keys, TIMEOUT_S)
    assert within(read_exactly, stream, 8) == b"and then"
    with pytest.raises(ConnectionFailedError, match="it ended without saying so"):
        within(stream.read, 10)
    stream.close()


def test_closing_in_the_middle_of_a_write_is_a_cut(keys: ClusterKeys) -> None:
    is_half_written, goes_on = threading.Event(), threading.Event()

    class Pieces(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield bytes(1 << 20)
            is_half_written.set()
            assert goes_on.wait(TIMEOUT_S)
            yield b"and the rest"

    with connected(keys) as (client, server):
        writing = Call(client.write, Pieces())
        within(read_exactly, server, 1 << 20)
        assert is_half_written.wait(TIMEOUT_S)
        within(client.close)
        goes_on.set()
        with pytest.raises(ClosedHereError):
            writing.result()
        with pytest.raises(ConnectionFailedError, match="it ended without saying so"):
            within(server.read, 10)


def test_bytes_changed_on_the_way_are_never_data(keys: ClusterKeys) -> None:
    wire = Wire()
    with connected(keys, wire) as (client, server):
        within(server.write, [b"first"])
        assert within(read_exactly, client, 5) == b"first"
        wire.flip_a_bit()
        within(server.write, [b"second"])
        with pytest.raises(ConnectionFailedError, match="no proper TLS") as caught:
            within(client.read, 100)
        assert caught.value.reason is Refusal.BROKEN


class OneAtATime:
    """OpenSSL's end of a connection, for one caller at a time, and taking only a part of what it is given."""

    def __init__(self, tls: ssl.SSLObject) -> None:
        self._tls = tls
        self._num_inside = 0

    def _alone(self, call: Callable[..., object], *arguments: object) -> object:
        assert not self._num_inside, "two threads at once"
        self._num_inside += 1
        try:
            return call(*arguments)
        finally:
            self._num_inside -= 1

    def read(self, num_bytes: int) -> object:
        return self._alone(self._tls.read, num_bytes)

    def write(self, data: memoryview) -> object:
        return self._alone(self._tls.write, data[:10_000])

    def unwrap(self) -> object:
        return self._alone(self._tls.unwrap)


def test_openssl_is_called_by_one_thread_at_a_time(keys: ClusterKeys) -> None:
    data = bytes(range(256)) * 20_000
    with connected(keys) as (client, server):
        for end in (client, server):
            end._tls = OneAtATime(end._tls)
        writing = [Call(end.write, [data]) for end in (client, server)]
        reading = [Call(read_exactly, end, len(data)) for end in (client, server)]
        assert [each.result() for each in reading] == [data, data]
        for each in writing:
            each.result()


def test_the_time_limit_is_one_of_the_handshake_only(keys: ClusterKeys) -> None:
    with connected(keys) as ends:
        assert [end._plain._socket.gettimeout() for end in ends] == [None, None]


def test_nothing_is_readable_on_the_way(keys: ClusterKeys) -> None:
    wire = Wire()
    with connected(keys, wire) as (client, server):
        within(server.write, [b"a secret that is long enough" * 100])
        assert within(read_exactly, client, 28) == b"a secret that is long enough"
    assert len(wire.seen) > 2_800
    assert b"secret" not in wire.seen
