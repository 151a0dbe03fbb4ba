"""A connection on two threads: how it begins, also late; how it ends, also in the middle; and that it wakes up."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.threads import ConnectionIO
from refimpl.drivers.transport.ends import ConsumerEnd
from refimpl.drivers.transport.sockets import ClosedHereError, PlainStream
from refimpl.drivers.transport.tls import ClusterKeys
from refimpl.errors import PartitionNotFoundError, RemoteTransportError
from refimpl.exchange import AddCredit, CloseRequest, ConsumerConnection, ErrorResponse, ProducerConnection, encode
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.java_writer import write_java_error
from refimpl.invariants import check_all
from refimpl.job import ConnectionId
from refimpl.producer import ResultPartition
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
    hide_partitions,
    last,
    nothing_left,
    requests_of,
    until_inside,
)

SMALL = Config(segment_size_bytes=64, num_buffers=60, buffer_timeout_ms=1, request_backoff_initial_ms=1)
GARBAGE = bytes(range(200, 256))


def consumer_of_nothing(tally: Tally, config: Config = SMALL) -> Side:
    return Side(apart([], tally, config), 1)


# -- the beginning -----------------------------------------------------------------------------------


def test_nobody_listens_and_the_error_says_where_after_every_attempt() -> None:
    with Meeting() as meeting:
        address = meeting.address
    with nothing_left(), consumer_of_nothing(Tally(), replace(SMALL, connect_retries=2)) as side:
        error = side.start(address).end()
    assert isinstance(error, RemoteTransportError)
    where = f"{address[0]}:{address[1]}"
    assert f"tm-1 reads tm-0 at {where}" in str(error)
    assert f"Connecting to remote task manager '{where}' has failed: Connection refused" in str(error)


def test_a_task_manager_that_comes_late_is_tried_again() -> None:
    config = replace(SMALL, connect_retries=100_000, request_backoff_max_ms=20)
    with nothing_left(), socket.socket() as late, consumer_of_nothing(tally := Tally(), config) as side:
        late.bind(("127.0.0.1", 0))  # it does not listen: connections are refused
        side.start(late.getsockname())
        until_inside("(read)", "wait_for")  # between two attempts
        late.listen()
        late.settimeout(TIMEOUT_S)
        with Peer(late.accept()[0]) as peer:
            (request,) = peer.hear_requests(1)
            peer.send(data(request.receiver, 0, 1, 2), last(request.receiver, 1))
            assert side.end() is None
    assert tally == [1, 2]


def test_a_wait_between_two_attempts_can_be_stopped() -> None:
    with Meeting() as meeting:
        address = meeting.address
    config = replace(SMALL, request_backoff_initial_ms=3_600_000, request_backoff_max_ms=3_600_000)
    with nothing_left(), consumer_of_nothing(Tally(), config) as side:
        side.start(address)
        until_inside("(read)", "wait_for")


def test_a_connection_that_opens_after_the_stop_is_closed_and_never_used() -> None:
    opening, go = threading.Event(), threading.Event()
    ours, theirs = socket.socketpair()

    def open_stream() -> PlainStream:
        opening.set()
        assert go.wait(TIMEOUT_S)
        return PlainStream(ours, "them")

    with consumer_of_nothing(Tally()) as side, theirs:
        connection = side.deployment.shuffle.connect(ConnectionId(0), "late")
        io = ConnectionIO(side.threads, ConsumerEnd(connection), open_stream)
        io.start()
        assert opening.wait(TIMEOUT_S)
        with side.threads.monitor:
            io.stop()
        go.set()
        io.join(TIMEOUT_S)
        assert io.is_finished
        assert theirs.recv(100) == b""


def test_a_client_that_connects_over_tls_and_says_nothing_does_not_hold_up_the_end(keys: ClusterKeys) -> None:
    with nothing_left(), Side(apart([1], print, SMALL), 0, security=keys) as side:
        side.start()
        with call_on(side.address) as silent:
            until_inside(f"{silent.port} (read)", "shake_hands")
            side.threads.close()
            assert silent.hear() is None


@pytest.mark.parametrize("_attempt", range(10))
def test_a_client_that_comes_in_during_the_end_is_turned_away(_attempt: int) -> None:
    with nothing_left(), Side(apart([1], print, SMALL), 0) as side:
        side.start()
        closing = threading.Thread(target=side.threads.close)
        with side.threads.monitor, call_on(side.address) as client:
            until_inside("(accept)", "accept")
            closing.start()
            until_inside(closing.name, "cancel")
            client_is_there = client.socket
            side.threads.monitor.release()
            closing.join(TIMEOUT_S)
            side.threads.monitor.acquire()
            assert not closing.is_alive()
            assert client_is_there.recv(1) == b""


# -- a partition that comes late ---------------------------------------------------------------------


def test_a_partition_that_comes_late_is_asked_for_again_and_loses_nothing() -> None:
    config = replace(SMALL, request_backoff_max_ms=10**6)
    environment = apart(records := list(range(100)), tally := Tally(), config)
    with nothing_left(), Side(environment, 0) as there, Side(environment, 1) as here:
        known = there.deployment.shuffle._partition_by_id
        later = dict(known)
        known.clear()
        there.start()
        here.start(there.address)
        (connection,) = here.deployment.shuffle.consumer_connections
        here.until(lambda: connection.retries.num_not_found.total() >= 4)
        with there.threads.monitor:
            known.update(later)
        assert here.end() is None
        assert there.end() is None
    assert tally == records


def test_a_partition_that_never_comes_is_given_up_after_the_longest_wait() -> None:
    config = replace(SMALL, request_backoff_max_ms=8)
    environment = apart([1], Tally(), config)
    with nothing_left(), Side(environment, 0) as there, Side(environment, 1) as here:
        hide_partitions(there.deployment)
        there.start()
        error = here.start(there.address).end()
    assert isinstance(error, PartitionNotFoundError)
    assert error.num_requests == 5  # at once, and after 1, 2, 4 and 8 ms


# -- the end -----------------------------------------------------------------------------------------


def test_a_consumer_says_goodbye_and_stays_until_the_producer_has_heard_it() -> None:
    with nothing_left(), Meeting() as meeting, consumer_of_nothing(tally := Tally()) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            (request,) = peer.hear_requests(1)
            peer.send(data(request.receiver, 0, 1), last(request.receiver, 1))
            assert side.end() is None
            said = [message for message in peer.hear_all() if not isinstance(message, AddCredit)]
            assert said == [CloseRequest()]
            (io,) = side.threads.connections.open
            peer.send(GARBAGE)  # nobody listens, but nobody resets the connection either
            assert not io.is_finished
            peer.socket.shutdown(socket.SHUT_WR)
            io.join(TIMEOUT_S)
            assert io.is_finished
            assert peer.socket.recv(1) == b""
    assert tally == [1]


def test_a_peer_that_does_not_end_after_the_last_word_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.connection_io.LINGER_S", 0.05)
    with nothing_left(), Meeting() as meeting, consumer_of_nothing(Tally()) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            (request,) = peer.hear_requests(1)
            peer.send(last(request.receiver, 0))
            assert side.end() is None
            (io,) = side.threads.connections.open
            io.join(TIMEOUT_S)
            assert io.is_finished


def test_a_peer_that_lies_and_reads_nothing_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.connection_io.LINGER_S", 0.05)
    config = replace(SMALL, segment_size_bytes=8 << 20, num_buffers=12)  # a frame is more than sockets hold
    environment = apart([bytes(8 << 20)] * 100, print, config, value_type=BYTES)
    (request,) = requests_of(environment, credit=1_000)
    with nothing_left(), Side(environment, 0).start() as side, call_on(side.address) as lazy:
        lazy.send(encode(request))
        until_inside(f"{lazy.port} (write)", "write")
        lazy.send(GARBAGE)
        side.until(lambda: not side.deployment.shuffle.producer_connections and side.stands_still)
        with side.threads.monitor:
            check_all(side.deployment)


class Deaf:
    """A transport that cannot be written, and has something to read after that."""

    peer = "them"

    def __init__(self, said: bytes) -> None:
        self._said = [said]
        self._has_failed = threading.Event()
        self._is_closed = False

    def read_into(self, room: memoryview) -> int:
        assert self._has_failed.wait(TIMEOUT_S)
        if self._is_closed:
            raise ClosedHereError
        said = self._said.pop() if self._said else b""
        room[: len(said)] = said
        return len(said)

    def write(self, pieces: object) -> None:
        self._has_failed.set()
        raise BrokenPipeError(32, "Broken pipe")

    def end(self) -> None: ...

    def close(self) -> None:
        self._is_closed = True


def test_what_the_other_end_said_last_is_read_also_when_nothing_can_be_written() -> None:
    error = write_java_error(JavaError("java.io.IOException", "no more"))
    with nothing_left(), consumer_of_nothing(Tally()) as side:
        connection = side.deployment.shuffle.connect(ConnectionId(0), "to tm-0")
        io = ConnectionIO(side.threads, ConsumerEnd(connection), lambda: Deaf(encode(ErrorResponse(error))))
        io.start()
        io.join(TIMEOUT_S)
        assert "IOException: no more" in str(connection.error)


def test_an_end_of_the_stream_is_not_called_our_own_doing() -> None:
    with nothing_left(), Meeting() as meeting:
        for _ in range(20):  # two threads learn of it, in any order
            with consumer_of_nothing(Tally()) as side:
                side.start(meeting.address)
                with meeting.accept() as peer:
                    peer.hear_requests(1)
                error = side.end()
                assert "closed by remote task manager" in str(error)
                assert "this end has closed" not in str(error)


# -- our own bugs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [ConsumerConnection, ProducerConnection])
@pytest.mark.parametrize("method", ["receive_data", "data_to_send"])
def test_a_broken_law_on_a_connections_thread_ends_the_run(
    end: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise AssertionError("a law is broken")

    monkeypatch.setattr(end, method, broken)
    with nothing_left(), ThreadedRun(apart(range(50), Tally(), SMALL), num_task_managers=2) as run:
        run.start()
        with pytest.raises(AssertionError, match="a law is broken"):
            run.join(TIMEOUT_S)
    assert all(each.pool.num_free == 60 for each in run.deployments)


def test_a_broken_law_on_the_flushers_thread_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_partition: ResultPartition) -> None:
        raise AssertionError("a law is broken")

    monkeypatch.setattr(ResultPartition, "flush_all", broken)
    job = apart(range(10**9), Tally(), SMALL)
    failure = pytest.raises(AssertionError, match="a law is broken")
    with nothing_left(), ThreadedRun(job, num_task_managers=2) as run, failure:
        run.start().join(TIMEOUT_S)
