"""What processes of a cluster do to each other when they are slow, dead, strange or mad: nothing that grows."""

from __future__ import annotations

import socket
import threading

import pytest

from refimpl.cluster.messages import Registered
from refimpl.drivers.cluster.rpc.address import parse_place, place_of, rpc_address
from refimpl.drivers.cluster.rpc.codec import Codec
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost, Inbox
from refimpl.drivers.cluster.rpc.incoming import Acceptor
from refimpl.drivers.cluster.rpc.outgoing import Outgoing
from refimpl.drivers.cluster.rpc.sealed_stream import FrameReader, FrameWriter, Hello, SealedStream, request_seal
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.transport.streams import ByteStream, connect, listen
from refimpl.errors import LocalUsageError
from tests.support.polling import until
from tests.support.rpc_rig import LONG_S, SECRET, envelope, services, took


def member(service: RpcService, here: str = "127.0.0.1:1") -> SealedStream:
    """A connection of who knows the secret, and may say anything."""
    stream = connect(*parse_place(service.place), None, LONG_S)
    return request_seal(stream, SECRET, Hello("envelopes", here, service.place), 1 << 20, LONG_S)


def is_cut(sealed: SealedStream) -> bool:
    try:
        return sealed.read() is None
    except OSError:
        return True


class Patient:
    """Who is accepted for, and gives everybody all the time there is."""

    def accept(self, stream: ByteStream, timeout_s: float) -> tuple[Hello, SealedStream]:
        while stream.read(1):
            pass
        raise ConnectionResetError("it has gone")

    def serve(self, hello: Hello, stream: SealedStream) -> None:
        raise AssertionError("nobody proves anything")


def test_strangers_wait_in_a_number_and_the_oldest_is_dropped_first() -> None:
    listener = listen()
    acceptor = Acceptor(listener, Patient(), max_unproved=5)
    strangers = [socket.create_connection(listener.address) for _ in range(8)]
    for each in strangers[:3]:
        each.settimeout(LONG_S)
        assert each.recv(1) == b""
    until(lambda: acceptor.num_unproved == 5)
    for each in strangers[3:]:
        each.settimeout(0)
        with pytest.raises(BlockingIOError):
            each.recv(1)
    for each in strangers[3:5]:
        each.close()
    until(lambda: acceptor.num_unproved == 3)
    acceptor.close()
    assert acceptor.num_unproved == 0
    for each in strangers:
        each.close()


@pytest.mark.parametrize(
    "body",
    [
        b"no envelope",
        Codec().encode(envelope("tm@127.0.0.1:2", "jm@{place}", Registered())),
        Codec().encode(envelope("tm@127.0.0.1:1", "jm@127.0.0.1:2", Registered())),
    ],
    ids=["no envelope", "of another", "for another"],
)
def test_a_member_that_says_what_it_may_not_is_cut_and_that_is_told(body: bytes) -> None:
    with services(1) as (one,):
        sealed = member(one)
        sealed.write(body.replace(b"{place}", one.place.encode()))
        assert is_cut(sealed)
        (lost,) = took(one, 1)
        assert isinstance(lost, ConnectionLost)
        assert lost.place == "127.0.0.1:1"
        sealed.close()


def test_a_member_that_wants_what_there_is_not_is_cut() -> None:
    with services(1) as (one,):
        stream = connect(*parse_place(one.place), None, LONG_S)
        sealed = request_seal(stream, SECRET, Hello("coffee", "127.0.0.1:1", one.place), 1 << 20, LONG_S)
        assert is_cut(sealed)
        sealed.close()
        assert one.poll(0) == []


def test_who_connects_anew_takes_the_place_of_its_old_connection() -> None:
    with services(1) as (one,):
        sent = [envelope("tm@127.0.0.1:1", one.address("jm"), Registered()) for _ in range(3)]
        older = member(one)
        older.write(Codec().encode(sent[0]))
        assert took(one, 1) == [sent[0]]
        newer = member(one)
        newer.write(Codec().encode(sent[1]))
        first, second = took(one, 2)
        assert isinstance(first, ConnectionLost)
        assert second == sent[1]
        assert is_cut(older)
        newer.write(Codec().encode(sent[2]))
        assert took(one, 1) == [sent[2]]
        for each in (older, newer):
            each.close()


def test_what_nobody_takes_fills_the_inbox_and_then_its_sender_waits() -> None:
    inbox = Inbox(max_waiting=2)
    sent = envelope("a@h:1", "b@h:2", Registered())
    assert [inbox.put_at_once("h:1", sent) for _ in range(3)] == [True, True, False]
    assert inbox.put_at_once("h:3", sent)
    putting = threading.Thread(target=inbox.put, args=("h:1", sent, lambda: True))
    putting.start()
    assert len(inbox.take(LONG_S)) == 3
    putting.join()
    assert inbox.take(LONG_S) == [sent]


def test_a_reader_that_waits_for_room_goes_when_all_ends() -> None:
    with services(1) as (one,):
        sealed = member(one)
        body = Codec().encode(envelope("tm@127.0.0.1:1", one.address("jm"), Registered()))
        for _ in range(1_000):
            sealed.write(body)
        one.close(0)
        assert is_cut(sealed)
        sealed.close()


def test_the_end_of_a_connection_is_told_once_however_often_it_is_heard() -> None:
    inbox = Inbox()
    for _ in range(1_000):
        inbox.tell(ConnectionLost("h:1", "gone"))
        inbox.tell(ConnectionLost("h:2", "gone"))
    assert [each.place for each in inbox.take(0) if isinstance(each, ConnectionLost)] == ["h:1", "h:2"]
    inbox.tell(ConnectionLost("h:1", "gone"))
    assert len(inbox.take(0)) == 1


def test_what_somebody_does_not_read_is_lost_at_a_bound_and_that_is_told() -> None:
    """A process that is paused: its connection stands, and it takes nothing."""
    lost: list[str] = []
    silent, ours = socket.socketpair()
    told = threading.Event()

    class Stuck:
        peer = "stuck"

        def write(self, pieces: list[bytes]) -> None:
            ours.recv(1)  # until it is closed

        def read(self, max_bytes: int) -> bytes:
            return ours.recv(1)

        def limit(self, timeout_s: float | None) -> None: ...

        def end(self) -> None: ...

        def close(self) -> None:
            ours.shutdown(socket.SHUT_RDWR)

    def open_stream(show: object) -> SealedStream:
        stream: ByteStream = Stuck()  # type: ignore[assignment]
        assert callable(show)
        show(stream)
        return SealedStream(stream, FrameWriter(bytes(32)), FrameReader(bytes(32), 100))

    def on_lost(why: str) -> None:
        lost.append(why)
        told.set()

    outgoing = Outgoing("h:1", open_stream, on_lost, max_waiting=3)
    until(lambda: [outgoing.send(b"x"), told.is_set()][1])
    assert "it takes nothing, and 3 messages wait for it" in lost[0]
    outgoing.close(0)
    silent.close()
    ours.close()


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    with services(3) as made:
        for one in made:
            for other in made:
                one.send(envelope(one.address("a"), other.address("b"), Registered()))
        for each in made:
            took(each, 3)
    until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize(
    "place", ["h", "h:", ":1", "h:0", "h:65536", "h:1:2", "a b:1", "[::1]", "[::1]:x", "h:1\n", ""]
)
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(LocalUsageError, match="a place is"):
        parse_place(place)


def test_addresses() -> None:
    assert parse_place("[::1]:80") == ("::1", 80)
    assert place_of(rpc_address("tm-1", "h.example:1")) == "h.example:1"
    for bad in ("", "x", "@h:1", "h:1"):
        with pytest.raises(LocalUsageError):
            place_of(bad)
    with pytest.raises(LocalUsageError):
        rpc_address("a@b", "h:1")
