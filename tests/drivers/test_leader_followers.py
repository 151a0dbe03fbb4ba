"""Tasks that read and write for busy connections: who reads when, who is woken, and that nothing waits for nobody.

A connection is busy here with its second read, and the watchdog comes when a test lets it: so it is known who reads.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.threads import ConnectionIO, LeaderFollowers
from refimpl.drivers.transport import ClusterKeys
from refimpl.errors import RemoteProtocolError, RemoteTransportError
from refimpl.exchange import AddCredit, BufferResponse, CloseRequest, PartitionRequest, encode
from refimpl.job import Resume, StreamEnvironment
from refimpl.producer import ResultPartition
from refimpl.records import LONG
from refimpl.task import IterableReader, MapOperator
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
)

SMALL = Config(
    segment_size_bytes=64,
    num_buffers=200,
    buffer_timeout_ms=-1,
    buffers_per_channel=8,
    floating_buffers_per_gate=0,
    max_buffers_per_channel=8,
)
STEPWISE = replace(SMALL, source_batch=1, num_buffers=300)
FULL_AT_400 = 400 * 13 // 64  # of LONGs
NEVER = threading.TIMEOUT_MAX


@pytest.fixture(autouse=True)
def soon_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.connection_io._BUSY_READS", 2)
    monkeypatch.setattr("refimpl.drivers.threads.connection_io._BUSY_S", math.inf)


@pytest.fixture
def without_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.leader_followers._LONGEST_ABSENCE_S", NEVER)


def io_of(side: Side) -> ConnectionIO:
    (io,) = side.threads.connections.open
    return io


def is_watched(side: Side) -> bool:
    return side.threads.leader_followers.is_watched(io_of(side))


class Gate:
    """User code that stops at some values until it is let through."""

    def __init__(self, tally: Tally, *at: int) -> None:
        self._tally = tally
        self._inside = {value: threading.Event() for value in at}
        self._go = {value: threading.Event() for value in at}

    def __call__(self, value: int) -> None:
        if value in self._go:
            self._inside[value].set()
            assert self._go[value].wait(2 * TIMEOUT_S)
        self._tally(value)

    def until_at(self, value: int) -> None:
        assert self._inside[value].wait(TIMEOUT_S), f"it does not come to {value}"

    def open(self, *values: int) -> None:
        for value in values:
            self._go[value].set()


@contextmanager
def consumer(sink: Callable[[int], object], config: Config = SMALL, width: int = 1) -> Iterator[tuple[Side, Peer]]:
    """The end that reads, of `width` sinks, and a peer it reads from."""
    with nothing_left(), Meeting() as meeting, Side(apart([], sink, config, width), 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            yield side, peer


@contextmanager
def producer(environment: StreamEnvironment) -> Iterator[tuple[Side, Peer]]:
    """The end that is read, and a peer that has not asked for anything yet."""
    with nothing_left(), Side(environment, 0) as side:
        side.start()
        with call_on(side.address) as peer:
            yield side, peer


# -- the end that reads --------------------------------------------------------------------------------


def watched_consumer(side: Side, peer: Peer, tally: Tally, config: Config = SMALL) -> PartitionRequest:
    """Let the side's connection become busy: two frames, each read by itself; then a task is the leader."""
    (request,) = peer.hear_requests(1)
    for sequence in range(2):
        peer.send(data(request.receiver, sequence, sequence))
        tally.wait_for(sequence + 1)
        if config.credit_based:
            assert peer.hear() == AddCredit(1, request.receiver)
    side.until(lambda: side.stands_still and is_watched(side) and side.threads.leader_followers._has_leader)
    return request


def test_a_task_that_waits_reads_what_it_waits_for_and_nobody_else_is_woken(without_watchdog: None) -> None:
    with consumer(tally := Tally()) as (side, peer):
        request = watched_consumer(side, peer, tally)
        io, (waker,) = io_of(side), side.threads.turns.wakers.values()
        before = [each.num_wakes for each in (waker, io.reader_waker, io.writing.waker)]
        for sequence in range(2, 20):
            reads = io.num_reads
            peer.send(data(request.receiver, sequence, sequence))
            tally.wait_for(sequence + 1)
            assert peer.hear() == AddCredit(1, request.receiver)
            side.until(lambda: side.stands_still)
            assert io.num_reads == reads + 1
        assert [each.num_wakes for each in (waker, io.reader_waker, io.writing.waker)] == before
        peer.send(last(request.receiver, 20))
        assert side.end() is None
    assert tally == [*range(20)]


def test_a_wake_up_reaches_the_leader(without_watchdog: None) -> None:
    with consumer(tally := Tally()) as (side, peer):
        watched_consumer(side, peer, tally)
        (waker,) = side.threads.turns.wakers.values()
        leader_followers = side.threads.leader_followers
        for turn in range(5):
            wakes, calls = waker.num_wakes, leader_followers.num_polls
            side.threads.do(Resume())  # wakes every task
            side.until(lambda least=calls + 2: leader_followers.num_polls >= least and leader_followers._has_leader)
            assert waker.num_wakes - wakes == 1, f"turn {turn}"
            assert leader_followers.num_polls == calls + 2, "once away and once back"
        side.threads.cancel()
        assert side.has_ended.wait(TIMEOUT_S)


def test_a_connection_can_be_cut_while_it_is_watched(without_watchdog: None) -> None:
    with consumer(tally := Tally()) as (side, peer):
        watched_consumer(side, peer, tally)
        with side.threads.monitor:
            io_of(side).stop()
        io_of(side).join(TIMEOUT_S)
        assert io_of(side).is_finished
        assert peer.hear() is None


def test_there_is_no_watchdog_left_when_the_job_is_cancelled_and_user_code_does_not_return(
    monkeypatch: pytest.MonkeyPatch, without_watchdog: None
) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.task_manager._SECONDS_TO_STOP", 0.2)
    gate = Gate(tally := Tally(), 2)
    with consumer(gate) as (side, peer):
        request = watched_consumer(side, peer, tally)
        peer.send(data(request.receiver, 2, 2))
        gate.until_at(2)
        (watchdog,) = [thread for thread in threading.enumerate() if thread.name == "tm-1 (watchdog)"]
        side.threads.cancel()
        watchdog.join(TIMEOUT_S)
        assert not watchdog.is_alive()
        gate.open(2)


def test_a_connection_nobody_comes_by_for_goes_back_to_its_thread() -> None:
    gate = Gate(tally := Tally(), 2)
    with consumer(gate) as (side, peer):
        request = watched_consumer(side, peer, tally)
        peer.send(data(request.receiver, 2, 2))
        gate.until_at(2)
        side.until(lambda: not is_watched(side))  # the watchdog
        reads = io_of(side).num_reads
        peer.send(data(request.receiver, 3, 3))
        side.until(lambda: io_of(side).num_reads > reads)
        gate.open(2)
        peer.send(last(request.receiver, 4))
        assert side.end() is None
    assert tally == [*range(4)]


def test_a_task_at_work_polls_between_two_steps(monkeypatch: pytest.MonkeyPatch, without_watchdog: None) -> None:
    """It has a queue to work through, a buffer a step; what comes meanwhile is taken in."""
    monkeypatch.setattr("refimpl.drivers.threads.leader_followers._BETWEEN_POLLS_S", 0.0)
    monkeypatch.setattr("refimpl.drivers.threads.task_manager.BUFFERS_PER_STEP", 1)
    gate = Gate(tally := Tally(), 2, 4)
    with consumer(gate) as (side, peer):
        request = watched_consumer(side, peer, tally)
        peer.send(*(data(request.receiver, sequence, sequence) for sequence in (2, 3, 4, 5)))
        gate.until_at(2)
        reads = io_of(side).num_reads
        peer.send(data(request.receiver, 6, 6))
        gate.open(2)
        gate.until_at(4)
        with side.threads.monitor:
            assert io_of(side).num_reads == reads + 1
            assert is_watched(side)
        gate.open(4)
        peer.send(last(request.receiver, 7))
        assert side.end() is None
    assert tally == [*range(7)]


def test_a_leader_that_has_work_promotes_the_next_task_that_waits(without_watchdog: None) -> None:
    """Four tasks read one connection. One after the other stays in user code, and the rest are served."""
    gate = Gate(tally := Tally(), 10, 11, 12, 13)
    with consumer(gate, width=4) as (side, peer):
        receivers = [each.receiver for each in peer.hear_requests(16)[::4]]
        for turn in range(2):
            peer.send(data(receivers[0], turn, turn))
            tally.wait_for(turn + 1)
        side.until(lambda: side.stands_still and is_watched(side) and side.threads.leader_followers._has_leader)
        seen = dict.fromkeys(receivers, 0) | {receivers[0]: 2}
        for index, receiver in enumerate(receivers):
            peer.send(data(receiver, seen[receiver], 10 + index))
            gate.until_at(10 + index)
            with side.threads.monitor:
                assert is_watched(side)
        gate.open(10, 11, 12, 13)
        tally.wait_for(6)


def test_a_task_that_waits_when_a_connection_becomes_busy_becomes_the_leader(without_watchdog: None) -> None:
    """Sink 0 is in user code when it does; nobody but the others can read what comes for them."""
    gate = Gate(tally := Tally(), 1)
    with consumer(gate, width=4) as (side, peer):
        requests = peer.hear_requests(16)
        wakers = side.threads.turns.wakers.values()
        side.until(lambda: side.stands_still)
        peer.send(data(requests[0].receiver, 0, 1))
        gate.until_at(1)
        side.until(lambda: sum(waker.is_waiting for waker in wakers) == 3)
        peer.send(data(requests[0].receiver, 1, 2))  # for the one that is not there
        side.until(lambda: is_watched(side))
        peer.send(data(requests[4].receiver, 0, 3))
        tally.wait_for(1)
        gate.open(1)
        tally.wait_for(3)
    assert sorted(tally) == [1, 2, 3]


def test_the_other_end_goes_while_it_is_watched(without_watchdog: None) -> None:
    with nothing_left(), Meeting() as meeting, Side(apart([], tally := Tally(), SMALL), 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            watched_consumer(side, peer, tally)
        error = side.end()
    assert isinstance(error, RemoteTransportError)
    assert "Connection unexpectedly closed by remote task manager" in str(error)


def test_bytes_that_are_no_frames_while_it_is_watched(without_watchdog: None) -> None:
    with consumer(tally := Tally()) as (side, peer):
        watched_consumer(side, peer, tally)
        peer.send(bytes(range(200, 256)))
        assert isinstance(side.end(), RemoteProtocolError)


def test_our_own_bug_while_a_task_reads_ends_the_job(monkeypatch: pytest.MonkeyPatch, without_watchdog: None) -> None:
    with consumer(tally := Tally()) as (side, peer):
        request = watched_consumer(side, peer, tally)

        def fail(_data: object) -> None:
            raise ZeroDivisionError("ours")

        monkeypatch.setattr(io_of(side).end, "receive_data", fail)
        peer.send(data(request.receiver, 2, 2))
        assert isinstance(side.end(), ZeroDivisionError)


def test_without_credits_who_finds_no_room_leaves_the_rest_to_the_thread(without_watchdog: None) -> None:
    """More comes than there are buffers: the connection is not read until one is free, and then all arrives."""
    config = replace(SMALL, credit_based=False, floating_buffers_per_gate=2)
    gate = Gate(tally := Tally(), 2)
    with consumer(gate, config) as (side, peer):
        request = watched_consumer(side, peer, tally, config)
        peer.send(data(request.receiver, 2, 2))
        gate.until_at(2)
        for sequence in range(3, 60):
            peer.send(data(request.receiver, sequence, sequence))
        peer.send(last(request.receiver, 60))
        gate.open(2)
        assert side.end() is None
    assert tally == [*range(60)]


def test_a_connection_with_tls_keeps_its_own_thread(keys: ClusterKeys) -> None:
    seen: list[bool] = []
    environment = apart(range(3000), tally := Tally(), SMALL)
    with nothing_left(), ThreadedRun(environment, None, 2, keys) as run:
        for each in run.task_managers:
            leader_followers = each.leader_followers
            watch = leader_followers.watch
            leader_followers.watch = lambda *arguments, watch=watch: seen.append(watch(*arguments)) or seen[-1]  # type: ignore[method-assign]
        run.run()
    assert sorted(tally) == [*range(3000)]
    assert seen == []


def test_where_no_task_waits_nothing_is_watched() -> None:
    with consumer(Tally()) as (side, peer):
        peer.hear_requests(1)
        leader_followers = LeaderFollowers(side.threads.monitor, {})
        with side.threads.monitor:
            assert not leader_followers.watch(io_of(side), 0)
            assert not leader_followers.is_watched(io_of(side))


# -- the end that is read ------------------------------------------------------------------------------


class Stops:
    """A source of numbers that stops before each of `at` until it is let through."""

    def __init__(self, *at: int, end: int) -> None:
        self._end = end
        self._inside = {number: threading.Event() for number in at}
        self._go = {number: threading.Event() for number in at}

    def __iter__(self) -> Iterator[int]:
        for number in range(self._end):
            if number in self._go:
                self._inside[number].set()
                assert self._go[number].wait(2 * TIMEOUT_S)
            yield number

    def until_at(self, number: int) -> None:
        assert self._inside[number].wait(TIMEOUT_S), f"it does not come to {number}"

    def go(self, number: int) -> None:
        self._go[number].set()


def producer_of(values: Callable[[], Iterator[int]], config: Config) -> StreamEnvironment:
    environment = StreamEnvironment(config)
    source = environment.source(lambda _i, _k: IterableReader(values()), type=LONG).slot_sharing_group("producers")
    source.rebalance().sink(print).slot_sharing_group("consumers")
    return environment


def hear_data(peer: Peer, count: int) -> list[BufferResponse]:
    heard = [peer.hear() for _ in range(count)]
    assert all(isinstance(each, BufferResponse) and each.data_type.is_buffer for each in heard), heard
    return [each for each in heard if isinstance(each, BufferResponse)]


def hear_to_the_end(peer: Peer) -> list[BufferResponse]:
    """All data until the event behind it."""
    heard: list[BufferResponse] = []
    while isinstance(message := peer.hear(), BufferResponse) and message.data_type.is_buffer:
        heard.append(message)
    assert isinstance(message, BufferResponse), message
    return heard


def watched_producer(side: Side, peer: Peer, request: PartitionRequest) -> None:
    """Two messages, each read by itself."""
    peer.send(encode(replace(request, credit=1)))
    hear_data(peer, 1)
    side.until(lambda: io_of(side).num_reads == 1 and side.stands_still)
    peer.send(encode(AddCredit(1, request.receiver)))
    hear_data(peer, 1)
    side.until(lambda: is_watched(side))


def test_a_task_without_buffers_says_what_it_has_and_hears_the_credit_for_more(without_watchdog: None) -> None:
    environment = producer_of(lambda: iter(range(10**9)), SMALL)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        side.until(lambda: side.stands_still)
        watched_producer(side, peer, request)
        io = io_of(side)
        side.until(lambda: side.stands_still)
        before = [each.num_wakes for each in (io.reader_waker, io.writing.waker)]
        for _turn in range(10):
            peer.send(encode(AddCredit(3, request.receiver)))
            hear_data(peer, 3)
        assert [each.num_wakes for each in (io.reader_waker, io.writing.waker)] == before
        assert is_watched(side)


def credit_ahead(side: Side, peer: Peer, request: PartitionRequest, credit: int) -> None:
    """Credit for more than there is to send: then whatever comes can leave."""
    reads = io_of(side).num_reads
    peer.send(encode(AddCredit(credit, request.receiver)))
    side.until(lambda: io_of(side).num_reads > reads)


def test_what_was_put_off_leaves_also_if_the_task_does_not_come_by() -> None:
    """Buffers become full in a step that then stays in user code."""
    source = Stops(400, end=500)
    environment = producer_of(lambda: iter(source), STEPWISE)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        side.until(lambda: side.stands_still)
        watched_producer(side, peer, request)
        credit_ahead(side, peer, request, 1000)
        source.until_at(400)
        hear_data(peer, FULL_AT_400 - 2)
        source.go(400)
        assert side.end() is None


def test_a_connection_that_is_not_busy_has_a_thread_that_writes(
    monkeypatch: pytest.MonkeyPatch, without_watchdog: None
) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.connection_io._BUSY_S", -1.0)
    source = Stops(400, end=500)
    environment = producer_of(lambda: iter(source), STEPWISE)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        peer.send(encode(request))
        hear_data(peer, 1)
        for _ in range(3):  # each read by itself
            peer.send(encode(AddCredit(1, request.receiver)))
            hear_data(peer, 1)
        peer.send(encode(AddCredit(1000, request.receiver)))
        source.until_at(400)
        hear_data(peer, FULL_AT_400 - 4)
        source.go(400)
        assert side.end() is None


@pytest.mark.parametrize("timeout_ms", [0, 1])
def test_a_flush_is_written_at_once(timeout_ms: int, without_watchdog: None) -> None:
    """The task stays in user code and nobody comes by: who flushes says it, be that the flusher or the task itself."""
    source = Stops(10, 400, end=500)
    environment = producer_of(lambda: iter(source), replace(STEPWISE, buffer_timeout_ms=timeout_ms))
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        source.until_at(10)
        peer.send(encode(request))
        num_bytes = len(hear_data(peer, 1)[0].payload)
        peer.send(encode(AddCredit(1000, request.receiver)))
        num_bytes += len(hear_data(peer, 1)[0].payload)
        side.until(lambda: is_watched(side))
        source.go(10)
        source.until_at(400)
        while num_bytes < 400 * 13:
            num_bytes += len(hear_data(peer, 1)[0].payload)
        source.go(400)
        assert side.end() is None


def test_full_buffers_and_the_last_word_leave_without_the_thread_that_writes(
    monkeypatch: pytest.MonkeyPatch, without_watchdog: None
) -> None:
    monkeypatch.setattr("refimpl.drivers.threads.leader_followers._BETWEEN_POLLS_S", 0.0)
    source = Stops(30, 400, end=409)
    environment = producer_of(lambda: iter(source), STEPWISE)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        source.until_at(30)
        peer.send(encode(request))
        hear_data(peer, 1)
        peer.send(encode(AddCredit(1000, request.receiver)))
        hear_data(peer, 30 * 13 // 64 - 1)
        io = io_of(side)
        side.until(lambda: is_watched(side) and io.writing.waker.is_waiting)
        wakes = io.writing.waker.num_wakes
        source.go(30)
        source.until_at(400)
        hear_data(peer, FULL_AT_400 - 30 * 13 // 64)
        assert io.writing.waker.num_wakes == wakes
        source.go(400)
        assert side.end() is None
        num_bytes = 410 * 13  # a watermark is last, and as long
        assert sum(len(each.payload) for each in hear_to_the_end(peer)) == num_bytes - FULL_AT_400 * 64


def test_what_the_system_does_not_take_at_once_is_written_by_the_thread_in_its_order(without_watchdog: None) -> None:
    """All credit comes at once, while nobody reads: more may leave than fits the way."""
    count = 100
    config = replace(STEPWISE, segment_size_bytes=1 << 17, buffers_per_channel=count, max_buffers_per_channel=count)
    environment = producer_of(lambda: iter(range(10**9)), replace(config, source_batch=10_000))
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        side.until(lambda: side.stands_still)
        watched_producer(side, peer, request)
        side.until(lambda: side.stands_still and side.threads.leader_followers._has_leader)
        peer.send(encode(AddCredit(count - 5, request.receiver)))
        io = io_of(side)
        side.until(lambda: not io.writing.waker.is_waiting)
        assert [each.sequence_number for each in hear_data(peer, count - 5)] == [*range(2, count - 3)]


def test_a_consumer_that_says_goodbye_while_it_is_watched(without_watchdog: None) -> None:
    environment = producer_of(lambda: iter(range(10**9)), SMALL)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        side.until(lambda: side.stands_still)
        watched_producer(side, peer, request)
        peer.send(encode(CloseRequest()))
        assert peer.hear() is None


def test_who_has_no_tasks_any_more_reads_on_its_threads(without_watchdog: None) -> None:
    environment = producer_of(lambda: iter(range(30)), STEPWISE)
    (request,) = requests_of(environment, credit=1)
    with producer(environment) as (side, peer):
        assert side.end() is None
        peer.send(encode(request))
        heard = hear_data(peer, 1)
        while heard[-1].data_type.is_buffer:
            peer.send(encode(AddCredit(1, request.receiver)))
            message = peer.hear()
            assert isinstance(message, BufferResponse)
            heard.append(message)


def first_of(side: Side) -> ResultPartition:
    """What the first subtask of the source produces."""
    return min(side.deployment.shuffle.partitions.items())[1]


def test_what_one_task_defers_is_written_also_while_another_one_is_the_leader() -> None:
    """The one that keeps it hears nothing, and the one that has put it off stays in user code."""
    source = Stops(20, 400, end=500)

    def values(subtask: int, _width: int) -> IterableReader:
        return IterableReader(iter(source) if subtask == 0 else range(10**9))

    environment = StreamEnvironment(STEPWISE, 2)
    stream = environment.source(values, type=LONG).slot_sharing_group("producers")
    stream.forward().sink(print).slot_sharing_group("consumers")
    requests = requests_of(environment, credit=1)
    with nothing_left(), Side(environment, 0) as side:
        shuffle = side.deployment.shuffle
        (mine,) = [each for each in requests if shuffle.find(each.partition, 0) is first_of(side).create_view(0)]
        side.start()
        source.until_at(20)
        side.until(lambda: sum(waker.is_waiting for waker in side.threads.turns.wakers.values()) == 1)
        with call_on(side.address) as peer:
            peer.send(encode(mine))
            hear_data(peer, 1)
            peer.send(encode(AddCredit(1000, mine.receiver)))
            hear_data(peer, 20 * 13 // 64 - 1)
            side.until(lambda: is_watched(side) and side.threads.leader_followers._has_leader)
            source.go(20)
            source.until_at(400)
            hear_data(peer, FULL_AT_400 - 20 * 13 // 64)
            source.go(400)


# -- whole jobs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("credit_based", [True, False])
@pytest.mark.parametrize("num_task_managers", [2, 3])
def test_jobs_whose_connections_are_always_watched_lose_nothing(num_task_managers: int, credit_based: bool) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    config = Config(
        segment_size_bytes=dice.choice([64, 512, 4096]),
        num_buffers=400,
        buffer_timeout_ms=dice.choice([-1, 1, 20]),
        credit_based=credit_based,
        source_batch=dice.choice([1, 16, 256]),
    )
    count = 20_000
    environment = StreamEnvironment(config, num_task_managers)
    tally = Tally()
    (
        environment.source(lambda i, k: IterableReader(range(i, count, k)), type=LONG)
        .key_by(lambda value: value % 64, LONG)
        .transform("plus one", lambda: MapOperator(lambda value: value + 1), LONG)
        .rebalance()
        .sink(tally)
    )
    with nothing_left(), ThreadedRun(environment, num_task_managers=num_task_managers) as run:
        run.run()
    assert sorted(tally) == [*range(1, count + 1)]
