"""Peers that lie, leave and want nothing: one TaskManager on threads, and over real sockets nothing but frames."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    encode,
    read_java_error,
)
from refimpl.invariants import check_all
from refimpl.job import ConnectionId
from refimpl.records import BYTES
from tests.support.driver_rig import (
    TIMEOUT_S,
    Meeting,
    Peer,
    Side,
    Tally,
    apart,
    call_on,
    data,
    last,
    nothing_left,
    requests_of,
    until_inside,
)
from tests.support.raw_frames import frame

Leave = Callable[[Peer], None]

TINY = Config(segment_size_bytes=32, num_buffers=60, buffer_timeout_ms=1)

# -- over sockets: a producer that lies --------------------------------------------------------------


def response(receiver: bytes, size: int, payload: bytes = b"", sequence: int = 1) -> bytes:
    """A data frame that says its payload has `size` bytes."""
    body = receiver + sequence.to_bytes(4, "big") + bytes(4) + b"\x00\x00" + size.to_bytes(4, "big", signed=True)
    return frame(body + payload, 0)


LIES = {
    "garbage": (lambda _: random.Random(5).randbytes(500), "magic|is not between"),
    "wrong magic": (lambda r: frame(r, 4, magic=0xBADC0DE), "magic 0badc0de"),
    "unknown id": (lambda r: frame(r, 77), "77"),
    "a length of 2^31 - 1": (lambda r: frame(r, 0, length=2**31 - 1), "a frame of 2147483647 B is not between"),
    "a negative length": (lambda r: frame(r, 0, length=-5), "a frame of -5 B is not between"),
    "a length that leaves no header": (lambda r: frame(r, 0, length=3), "a frame of 3 B is not between"),
    "a negative size": (lambda r: response(r, -1), "payload of -1 B"),
    "a size beyond the frame": (lambda r: response(r, 50, b"four"), "payload of 50 B"),
    "a consumer's message": (lambda r: encode(AddCredit(1, r)), "a producer sent AddCredit"),
}
MISTAKES = {
    "a gap": (lambda r: data(r, 2, 8), "sequence number 1, but received 2"),
    "a duplicate": (lambda r: data(r, 0, 7), "sequence number 1, but received 0"),
    "a sequence number below zero": (lambda r: data(r, -1, 7), "sequence number 1, but received -1"),
    "more than a buffer holds": (lambda r: response(r, 33, bytes(33)), "33 B do not fit a buffer of 32 B"),
}


@pytest.mark.parametrize("name", [*LIES, *MISTAKES])
def test_a_producer_that_lies_fails_the_connection_or_the_channel_it_lies_about(name: str) -> None:
    lie, said = {**LIES, **MISTAKES}[name]
    environment = apart([], tally := Tally(), TINY, 2)
    with nothing_left(), Meeting() as meeting, Side(environment, 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            receiver, *others = (request.receiver for request in peer.hear_requests(4))
            peer.send(data(receiver, 0, 7))
            tally.wait_for(1)
            peer.send(lie(receiver))
            error = side.end()
            assert isinstance(error, RemoteProtocolError)
            assert any(word in str(error) for word in said.split("|")), error
            reads = side.deployment.shuffle.remote_reads[ConnectionId(0)]
            failed = [read.channel.receiver for read in reads if read.channel.error]
            assert sorted(failed) == sorted([receiver, *others] if name in LIES else [receiver])
            side.threads.close()
            peer.hear_all()
    assert tally == [7]


def test_a_producer_that_ignores_credit_is_told_the_number_and_the_credit() -> None:
    config = replace(TINY, floating_buffers_per_gate=0)
    environment = apart([], slow := Slow(tally := Tally()), config)
    with nothing_left(), Meeting() as meeting, Side(environment, 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            (request,) = peer.hear_requests(1)
            assert request.credit == 2
            stranger = b"nobody asked me."
            peer.send(data(request.receiver, 0, 0))
            assert slow.reached.wait(TIMEOUT_S)
            peer.send(data(request.receiver, 1, 1), data(request.receiver, 2, 2), data(stranger, 0, 9))
            while getattr(peer.hear(), "receiver", b"") != stranger:  # what stood before it has been dealt with
                pass
            slow.go.set()
            error = side.end()
            assert isinstance(error, RemoteProtocolError)
            assert "sequence number 2 with credit 0" in str(error)
    assert tally == [0]


class Slow:
    """A sink that lets nothing through before it may."""

    def __init__(self, sink: Tally) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()
        self._sink = sink

    def __call__(self, value: object) -> None:
        self.reached.set()
        assert self.go.wait(TIMEOUT_S)
        self._sink(value)


def test_data_for_an_unknown_receiver_is_cancelled_and_harms_nobody() -> None:
    environment = apart([], tally := Tally(), TINY)
    with nothing_left(), Meeting() as meeting, Side(environment, 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            (request,) = peer.hear_requests(1)
            stranger = b"nobody asked me."
            peer.send(data(stranger, 0, 9), data(request.receiver, 0, 7), last(stranger, 1), last(request.receiver, 1))
            assert side.end() is None
            said = peer.hear_all()  # the connection ends by itself
    assert tally == [7]
    said = [each for each in said if not isinstance(each, AddCredit)]
    assert said == [CancelPartitionRequest(stranger), CloseRequest()]


# -- over sockets: a consumer that lies, or leaves ---------------------------------------------------

BAD_REQUESTS = {
    "garbage": lambda _: random.Random(5).randbytes(500),
    "wrong magic": lambda r: frame(r, 4, magic=0xBADC0DE),
    "unknown id": lambda r: frame(r, 77),
    "a producer's message": lambda r: data(r, 0, 1),
    "a length of 2^31 - 1": lambda r: frame(r, 6, length=2**31 - 1),
    "a negative length": lambda r: frame(r, 6, length=-5),
    "a negative credit": lambda r: frame((-3).to_bytes(4, "big", signed=True) + r, 6),
    "a frame too short": lambda r: frame(r[:7], 4),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_consumer_that_lies_is_told_and_others_read_on(name: str) -> None:
    environment = apart(range(50), print, TINY)
    (request,) = requests_of(environment, 1_000)
    with nothing_left(), Side(environment, 0).start() as side, call_on(side.address) as good:
        with call_on(side.address) as bad:
            bad.send(BAD_REQUESTS[name](request.receiver))
            *_, answer = bad.hear_all()  # we close the connection
            assert isinstance(answer, ErrorResponse)
            assert answer.receiver is None
            assert read_java_error(answer.error).class_name.endswith("DecoderException")
        good.send(encode(request))
        assert read_numbers(good, request.receiver) == list(range(50))
        good.send(encode(CloseRequest()))
        assert good.hear() is None
        assert side.end() is None


def read_numbers(peer: Peer, *receivers: bytes) -> list[int]:
    """The LONGs of these channels in the order of the channels, up to the end of all their partitions."""
    payloads = dict.fromkeys(receivers, b"")
    left = set(receivers)
    while left:
        message = peer.hear()
        assert isinstance(message, BufferResponse), f"{message} came instead of the end"
        if message.data_type.is_buffer:
            payloads[message.receiver] += bytes(message.payload)
        else:
            left.remove(message.receiver)
    return [number for payload in payloads.values() for number in numbers_in(payload)]


def numbers_in(payload: bytes) -> list[int]:
    elements = [payload[at : at + 13] for at in range(0, len(payload), 13)]
    return [int.from_bytes(each[5:], "big") for each in elements if each[4] == 1]  # the other one is a watermark


def test_a_consumer_that_grants_nothing_gets_nothing_and_memory_stays_bounded() -> None:
    environment = apart(range(1_000), print, TINY)
    (request,) = requests_of(environment, 2)
    unknown = AddCredit(1, b"I asked nothing.")
    with nothing_left(), Side(environment, 0).start() as side, call_on(side.address) as peer:
        peer.send(encode(request))
        payload = b"".join(bytes(peer.hear().payload) for _ in range(2))
        side.until(lambda: side.stands_still)
        peer.send(encode(unknown))
        assert isinstance(peer.hear(), ErrorResponse)  # and no third buffer before it
        with side.threads.monitor:
            check_all(side.deployment)
            assert side.deployment.partitions[0].pool.num_requested <= 1 * 2 + 8 + 1
        peer.send(encode(AddCredit(1_000, request.receiver)))
        while isinstance(message := peer.hear(), BufferResponse) and message.data_type.is_buffer:
            payload += bytes(message.payload)
        assert numbers_in(payload) == list(range(1_000))
        peer.send(encode(CloseRequest()))
        assert peer.hear() is None
        assert side.end() is None


def say_goodbye(peer: Peer) -> None:
    peer.send(encode(CloseRequest()))
    assert isinstance(peer.hear_all(), list)


def say_nothing_more(peer: Peer) -> None:
    peer.socket.shutdown(socket.SHUT_WR)
    assert isinstance(peer.hear_all(), list)


def vanish(peer: Peer) -> None:
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()


@pytest.mark.parametrize("leave", [say_goodbye, say_nothing_more, vanish])
def test_a_consumer_that_leaves_early_gives_back_what_it_held_and_others_read_on(leave: Leave) -> None:
    environment = apart(range(2_000), print, TINY, 2)
    request, *others = requests_of(environment, 1_000)
    others = [each for each in others if each.partition != request.partition]
    with nothing_left(), Side(environment, 0).start() as side, call_on(side.address) as good:
        with call_on(side.address) as leaving:
            leaving.send(encode(request))
            assert isinstance(leaving.hear(), BufferResponse)
            leave(leaving)
        good.send(*map(encode, others))
        numbers = read_numbers(good, *(each.receiver for each in others))
        assert len(numbers) == 1_000
        assert len(set(numbers)) == 1_000
        shuffle = side.deployment.shuffle
        side.until(lambda: len(shuffle.producer_connections) == 1)
        assert shuffle.find(request.partition, request.first).is_consumed
        side.until(lambda: side.stands_still)
        side.until(lambda: not any(each.lent_buffers for each in shuffle.producer_connections))
        with side.threads.monitor:
            check_all(side.deployment)


def test_a_consumer_that_stops_reading_keeps_nobody_else_waiting_and_can_be_stopped() -> None:
    config = replace(TINY, segment_size_bytes=8 << 20, num_buffers=30)  # a frame is more than sockets hold
    environment = apart([bytes(8 << 20)] * 100, print, config, 2, BYTES)
    request, *others = requests_of(environment, 1_000)
    other = next(each for each in others if each.partition != request.partition)
    with (
        nothing_left(),
        Side(environment, 0).start() as side,
        call_on(side.address) as lazy,
        call_on(side.address) as good,
    ):
        lazy.send(encode(request))
        until_inside(f"{lazy.port} (write)", "write")
        good.send(encode(other))
        assert isinstance(good.hear(), BufferResponse)
        side.threads.close()
