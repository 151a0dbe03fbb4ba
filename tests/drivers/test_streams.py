"""What every stream keeps, plain or over TLS; who may listen and connect where."""

from __future__ import annotations

import pickle
import random
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from refimpl.drivers.transport.addresses import resolve_address
from refimpl.drivers.transport.sockets import ClosedHereError, ConnectionFailedError, PlainStream, SocketUse, batches
from refimpl.drivers.transport.streams import Security, connect, listen
from refimpl.drivers.transport.tls import ClusterKeys
from refimpl.errors import ConfigError
from tests.support.stream_rig import TIMEOUT_S, Call, Wire, connected, read_exactly, read_to_end, within

MEGABYTES = random.Random(7).randbytes(6 << 20)
TOO_MUCH = [MEGABYTES] * 10  # more than the buffers of two sockets hold
RESETS = struct.pack("ii", 1, 0)  # what makes `close` send RST
SIZES = (0, 1, 2, 0, 3, 16_383, 16_384, 16_385, 5, 65_535, 65_536, 65_537, 200_000, 1)


@pytest.fixture(params=["plain", "tls"])
def security(request: pytest.FixtureRequest, keys: ClusterKeys) -> Security | None:
    return keys if request.param == "tls" else None


def cut_by_sizes(data: bytes) -> list[bytes]:
    pieces, at = [], 0
    for size in SIZES:
        pieces.append(data[at : at + size])
        at += size
    return pieces


# -- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bytes", [1, 7, 1_000, 16_384, 1 << 20])
def test_bytes_arrive_whatever_the_pieces_written_and_read(security: Security | None, max_bytes: int) -> None:
    pieces = cut_by_sizes(MEGABYTES)[: 5 if max_bytes < 100 else None]
    with connected(security) as (client, server):
        reading = Call(read_to_end, server, max_bytes)
        within(client.write, pieces[:3])
        within(client.write, pieces[3:])
        within(client.end)
        assert reading.result() == b"".join(pieces)


@pytest.mark.parametrize("max_bytes", [1, 100, 20_000])
def test_bytes_arrive_whatever_the_cuts_on_the_way(security: Security | None, max_bytes: int) -> None:
    data = MEGABYTES[: max_bytes * 100 + 10_000]
    with connected(security, Wire(max_bytes)) as (client, server):
        for one, other in ((client, server), (server, client)):
            reading = Call(read_exactly, other, len(data))
            within(one.write, [data])
            assert reading.result() == data


def test_more_pieces_than_the_system_takes_at_once(security: Security | None) -> None:
    pieces: list[bytes | memoryview] = [bytes([n % 251]) * (n % 3) for n in range(5_000)]
    with connected(security) as (client, server):
        reading = Call(read_to_end, server)
        within(client.write, [*pieces, memoryview(b"abcdefgh").cast("I")])
        within(client.end)
        assert reading.result() == b"".join(pieces) + b"abcdefgh"


def test_the_first_bytes_are_there_before_there_are_more(security: Security | None) -> None:
    with connected(security) as (client, server):
        within(client.write, [b"one"])
        assert within(server.read, 1 << 20) == b"one"
        within(client.write, [])
        within(client.write, [b"two"])
        assert within(server.read, 2) == b"tw"
        assert within(server.read, 2) == b"o"


def test_a_write_that_the_system_takes_in_parts_goes_on() -> None:
    with connected(None) as (client, server):
        assert isinstance(client, PlainStream)
        client.limit(TIMEOUT_S)  # with a limit the system does not wait until there is room for all
        client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        writing = Call(client.write, [MEGABYTES[at : at + 30_011] for at in range(0, len(MEGABYTES), 30_011)])
        assert within(read_exactly, server, len(MEGABYTES)) == MEGABYTES
        writing.result()


def test_portions_have_all_bytes_and_are_neither_empty_nor_too_large() -> None:
    pieces: list[bytes | memoryview] = [*cut_by_sizes(MEGABYTES), memoryview(MEGABYTES[:40_000]).cast("I")]
    portions = list(batches(pieces * 100, 10_000))
    assert b"".join(b"".join(portion) for portion in portions) == b"".join(pieces) * 100
    assert all(0 < sum(piece.nbytes for piece in portion) <= 10_000 and len(portion) <= 512 for portion in portions)
    assert all(len(piece) for portion in portions for piece in portion)


# -- nobody waits for another ------------------------------------------------------------------------


def test_a_large_write_waits_for_a_slow_reader(security: Security | None) -> None:
    with connected(security) as (client, server):
        writing = Call(client.write, TOO_MUCH)
        first = b"".join(within(server.read, 3) for _ in range(200))
        assert not writing.is_done, "more bytes than the system holds have left, and nobody has read them"
        for _ in TOO_MUCH:
            assert first + within(read_exactly, server, len(MEGABYTES) - len(first)) == MEGABYTES
            first = b""
        writing.result()


def test_a_reader_reads_while_the_writer_of_its_end_is_stuck(security: Security | None) -> None:
    with connected(security) as (client, server):
        stuck = Call(client.write, TOO_MUCH)
        writing = Call(server.write, TOO_MUCH)
        for _ in TOO_MUCH:
            assert within(read_exactly, client, len(MEGABYTES)) == MEGABYTES
        writing.result()
        assert not stuck.is_done
        for _ in TOO_MUCH:
            assert within(read_exactly, server, len(MEGABYTES)) == MEGABYTES
        stuck.result()


def test_a_read_that_does_not_wait() -> None:
    room = memoryview(bytearray(8))
    with connected(None) as (client, server):
        assert isinstance(server, PlainStream)
        assert server.read_at_once(room) is None
        within(client.write, [b"abcd"])
        within(select.select, [server.file_number], [], [])
        assert server.read_at_once(room[:3]) == 3
        assert server.read_at_once(room) == 1
        assert bytes(room[:3]) == b"dbc"
        within(client.end)
        within(select.select, [server.file_number], [], [])
        assert server.read_at_once(room) == 0
        server.close()
        assert server.read_at_once(room) == 0
        assert server.file_number == -1


def test_both_ends_write_and_read_at_once(security: Security | None) -> None:
    with connected(security) as (client, server):
        data = (MEGABYTES, MEGABYTES[::-1])
        cuts = range(0, len(MEGABYTES), 30_011)
        writing = [
            Call(end.write, [each[at : at + 30_011] for at in cuts])
            for end, each in zip((client, server), data, strict=True)
        ]
        reading = [Call(read_exactly, end, len(MEGABYTES)) for end in (server, client)]
        assert tuple(each.result() for each in reading) == data
        for each in writing:
            each.result()


# -- ends ------------------------------------------------------------------------------------------


def test_an_end_comes_after_the_last_byte_and_stays(security: Security | None) -> None:
    with connected(security) as (client, server):
        within(client.write, [b"last"])
        within(client.end)
        assert within(read_exactly, server, 4) == b"last"
        assert [within(server.read, 10) for _ in range(3)] == [b"", b"", b""]


def test_the_other_direction_goes_on_after_an_end(security: Security | None) -> None:
    with connected(security) as (client, server):
        before = Call(server.write, [MEGABYTES])
        assert within(client.read, 1)
        within(client.end)  # with bytes on their way to us
        assert within(server.read, 10) == b""
        assert within(read_exactly, client, len(MEGABYTES) - 1) == MEGABYTES[1:]
        before.result()
        within(server.write, [b"more"])
        within(server.end)
        assert within(read_to_end, client) == b"more"


def test_nothing_is_written_after_an_end(security: Security | None) -> None:
    with connected(security) as (client, server):
        within(client.end)
        with pytest.raises(BrokenPipeError):
            within(client.write, [b"x"])
        assert within(server.read, 10) == b""


def test_closing_is_an_end_for_the_other_side(security: Security | None) -> None:
    with connected(security) as (client, server):
        within(client.write, [b"last"])
        within(client.close)
        assert within(read_to_end, server) == b"last"


def test_a_reset_is_no_end() -> None:
    listener = listen()
    client = socket.create_connection(listener.address, TIMEOUT_S)
    server = within(lambda: within(listener.accept).open(TIMEOUT_S))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    client.close()
    with pytest.raises(ConnectionResetError):
        within(server.read, 10)
    server.close()
    listener.close()


def test_writing_to_an_end_that_has_gone_fails(security: Security | None) -> None:
    def write_on() -> None:
        while True:
            client.write([bytes(100_000)])

    with connected(security) as (client, server):
        within(server.close)
        with pytest.raises(ConnectionError):
            within(write_on)


# -- closing ----------------------------------------------------------------------------------------


def test_closing_wakes_a_reader(security: Security | None) -> None:
    with connected(security) as (client, _server):
        reading = Call(client.read, 10).until_inside("read")
        within(client.close)
        with pytest.raises(ClosedHereError, match="this end has closed the connection"):
            reading.result()


def test_closing_wakes_a_writer(security: Security | None) -> None:
    with connected(security) as (client, _server):
        writing = Call(client.write, TOO_MUCH).until_inside("write")
        within(client.close)
        with pytest.raises(ClosedHereError):
            writing.result()


def test_closing_in_the_middle_of_a_write_wakes_both(security: Security | None) -> None:
    with connected(security) as (client, server):
        calls = [Call(client.write, TOO_MUCH), Call(client.read, 10)]
        within(read_exactly, server, 100_000)  # so the writer is at it
        within(client.close)
        for call in calls:
            with pytest.raises(ClosedHereError):
                call.result()


def test_closing_again_does_nothing_and_nothing_works_after_it(security: Security | None) -> None:
    with connected(security) as (client, _server):
        closing = [Call(client.close) for _ in range(8)]
        for each in closing:
            each.result()
        within(client.close)
        for call in (lambda: client.read(1), lambda: client.write([b"x"]), client.end):
            with pytest.raises(ClosedHereError):
                within(call)


def test_a_file_number_is_free_again_only_when_nobody_is_inside() -> None:
    told: list[str] = []
    use = SocketUse(lambda: told.append("wake"), lambda: told.append("close"))
    with use:
        use.close()
        use.close()
        assert told == ["wake"]
    assert told == ["wake", "close"]
    with pytest.raises(ClosedHereError), use:
        pass
    assert told == ["wake", "close"]


def test_closing_from_many_threads_while_others_read_and_write(security: Security | None) -> None:
    for _round in range(20):
        with connected(security) as (client, server):
            busy = [Call(client.write, [MEGABYTES]), Call(read_to_end, client)]
            busy += [Call(server.write, [MEGABYTES]), Call(read_to_end, server)]
            for each in [Call(end.close) for end in (client, server) for _ in range(2)]:
                each.result()
            for call in busy:
                try:
                    call.result()
                except OSError:
                    continue  # which of the ends closed first is open


# -- listening ---------------------------------------------------------------------------------------


def test_closing_a_listener_wakes_who_accepts(security: Security | None, caplog: pytest.LogCaptureFixture) -> None:
    listener = listen(security=security)
    accepting = Call(listener.accept).until_inside("select")
    within(listener.close)
    assert accepting.result() is None
    within(listener.close)
    assert within(listener.accept) is None
    assert not caplog.records
    with pytest.raises(ConnectionFailedError):
        within(connect, *listener.address, security, TIMEOUT_S)


def test_connections_outlive_their_listener(security: Security | None) -> None:
    with connected(security) as (client, server):  # its listener is open
        within(client.write, [b"x"])
        assert within(server.read, 1) == b"x"
    listener = listen(security=security)
    serving = Call(lambda: listener.accept().open(TIMEOUT_S))
    client = within(connect, *listener.address, security, TIMEOUT_S)
    server = serving.result()
    listener.close()
    within(client.write, [b"x"])
    assert within(server.read, 1) == b"x"
    client.close()
    server.close()


def test_both_ends_know_the_address_of_the_other(security: Security | None) -> None:
    with connected(security) as (client, server):
        assert client.peer.startswith("127.0.0.1:")
        assert server.peer.startswith("127.0.0.1:")
        assert client.peer != server.peer


def test_a_client_that_has_gone_does_not_disturb_the_next(security: Security | None) -> None:
    listener = listen(security=security)
    gone = socket.create_connection(listener.address, TIMEOUT_S)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    gone.close()
    opened: list[bool] = []

    def serve() -> None:
        while incoming := listener.accept():
            try:
                incoming.open(TIMEOUT_S).write([b"hello"])
                opened.append(True)
            except OSError:
                opened.append(False)  # on some systems it is not even accepted

    serving = Call(serve)
    client = within(connect, *listener.address, security, TIMEOUT_S)
    assert within(read_exactly, client, 5) == b"hello"
    client.close()
    listener.close()
    serving.result()
    assert opened[-1]


OUT_OF_FILES = """
import logging, resource, socket, sys, threading
from refimpl.drivers.transport.streams import listen

class Said(logging.Handler):
    def emit(self, record):
        print(record.getMessage())

class Pauses(threading.Event):  # counts pauses, and makes none
    left = 3
    def wait(self, timeout):
        self.left -= 1
        if self.left == 0:
            third_pause.set()

logging.getLogger("sluice").addHandler(Said())
third_pause = threading.Event()
listener = listen()
listener._closing = Pauses()
clients = [socket.create_connection(listener.address, 20) for _ in range(3)]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 1, hard))
accepted = []
thread = threading.Thread(target=lambda: accepted.extend(listener.accept() for _ in clients), daemon=True)
thread.start()
assert third_pause.wait(120)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
thread.join(120)
print("accepted", len(accepted))
"""


@pytest.mark.slow
def test_accepting_goes_on_when_the_machine_has_files_to_open_again() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OUT_OF_FILES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=60)
    said = done.stdout.splitlines()
    assert said[0].startswith("cannot accept connections, but goes on trying: [Errno 24]"), done
    assert said[1:] == ["accepted 3"]


# -- addresses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.3.4", "::1", "localhost", "::ffff:127.0.0.1"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert resolve_address(host, 0, is_protected=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "8.8.8.8", "128.0.0.1", "fe80::1", "::ffff:10.0.0.1", "2001:db8::1"])
def test_other_addresses_need_keys(host: str) -> None:
    for call in (lambda: listen(host), lambda: connect(host, 80, None, TIMEOUT_S)):
        with pytest.raises(ConfigError, match=r"`sluice cluster keys DIR`") as refused:
            within(call)
        assert host in str(refused.value)
        assert refused.value.option == "host"
    assert resolve_address(host, 0, is_protected=True)


def test_a_name_needs_keys_if_any_of_its_addresses_does(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 0)) for ip in ("127.0.0.1", "192.0.2.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1 can be reached from outside"):
        listen("innocent.example")


@pytest.mark.parametrize(("host", "port", "option"), [
    ("no-such-host.invalid", 80, "host"), ("", 80, "host"), ("a..b", 80, "host"),
    ("127.0.0.1", -1, "port"), ("127.0.0.1", 65_536, "port"), ("127.0.0.1", True, "port"), ("127.0.0.1", "x", "port"),
])  # fmt: skip
def test_what_is_no_address_is_said(host: str, port: int, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_knows(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if host.endswith(".invalid"):  # no test asks a name server
        monkeypatch.setattr(socket, "getaddrinfo", nobody_knows)
    for call in (lambda: listen(host, port), lambda: connect(host, port, None, TIMEOUT_S)):
        with pytest.raises(ConfigError) as refused:
            within(call)
        assert refused.value.option == option


def test_a_port_that_is_taken_is_said() -> None:
    taken = listen()
    with pytest.raises(ConfigError, match="Address already in use; port 0 takes one that is free"):
        listen(*taken.address)
    taken.close()


def test_nobody_there_is_said_as_flink_says_it() -> None:
    gone = listen()
    gone.close()
    with pytest.raises(ConnectionFailedError, match=r"manager '127.0.0.1:\d+' has failed: Connection refused"):
        within(connect, *gone.address, None, TIMEOUT_S)


def test_a_connection_that_meets_itself_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    really_connect = socket.socket.connect

    def from_the_same_port(self: socket.socket, address: tuple[str, int]) -> None:
        self.bind(address)  # as the system may, when it chooses a port for this end
        really_connect(self, address)

    free = listen()
    free.close()
    monkeypatch.setattr(socket.socket, "connect", from_the_same_port)
    with pytest.raises(ConnectionFailedError, match="has failed: nobody listens there"):
        within(connect, *free.address, None, TIMEOUT_S)


def test_the_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(ConnectionFailedError("nobody is there")))
    assert (type(error), str(error)) == (ConnectionFailedError, "nobody is there")


def test_a_last_word_never_waits() -> None:
    with connected(None) as (client, _server):
        assert isinstance(client, PlainStream)
        stuck = Call(client.write, TOO_MUCH).until_inside("write")
        within(client.write_at_once, [MEGABYTES])
        within(client.close)
        with pytest.raises(ClosedHereError):
            stuck.result()
