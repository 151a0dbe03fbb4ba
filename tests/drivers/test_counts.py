"""What a buffer costs, as counts: calls of the transport, messages, wakes, holds of the monitor.

No machine changes them. One side of a job is real, with its threads; the other is a peer that says one thing at a time,
so it is known who waits.
"""

from __future__ import annotations

import threading

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.threads import ConnectionIO
from refimpl.exchange import AddCredit, BufferResponse, encode
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from tests.support.driver_rig import Meeting, Side, Tally, apart, call_on, data, nothing_left, requests_of

NUM = 8
SMALL = Config(
    segment_size_bytes=64,
    num_buffers=200,
    buffer_timeout_ms=-1,
    buffers_per_channel=NUM,
    floating_buffers_per_gate=0,
    max_buffers_per_channel=NUM,
)


def two_into_one(tally: Tally) -> StreamEnvironment:
    """Two sources on TaskManager 0, and one sink on TaskManager 1 that reads both: a gate with two channels."""
    environment = StreamEnvironment(SMALL, 2)
    source = environment.source(lambda _i, _k: IterableReader([]), type=LONG).slot_sharing_group("producers")
    source.rebalance().sink(tally).set_parallelism(1).slot_sharing_group("consumers")
    return environment


def io_of(side: Side) -> ConnectionIO:
    (io,) = side.threads.connections.open
    return io


def test_a_drain_is_one_read_one_ring_and_one_message_with_the_credit_of_all_channels() -> None:
    with nothing_left(), Meeting() as meeting, Side(two_into_one(tally := Tally()), 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            requests = peer.hear_requests(2)
            side.until(lambda: side.stands_still and io_of(side).writing.waker.is_waiting)
            io, (waker,) = io_of(side), side.threads.turns.wakers.values()
            before = (io.num_reads, io.writing.num_writes, waker.num_wakes, io.writing.waker.num_wakes)
            steps = side.deployment.tasks[0].num_steps
            frames = [data(each.receiver, sequence, sequence) for sequence in range(NUM) for each in requests]
            peer.send(*frames)  # less than a system sends at once: it comes in one piece
            tally.wait_for(2 * NUM)
            heard = [peer.hear(), peer.hear()]
            assert sorted(heard, key=lambda each: each.receiver) == [
                AddCredit(NUM, receiver) for receiver in sorted(each.receiver for each in requests)
            ]
            side.until(lambda: side.stands_still)
            after = (io.num_reads, io.writing.num_writes, waker.num_wakes, io.writing.waker.num_wakes)
            assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 1, 0]
            assert side.deployment.tasks[0].num_steps - steps == 1


def test_what_credit_allows_leaves_in_one_call_and_the_task_is_woken_once() -> None:
    environment = apart(range(10**6), Tally(), SMALL)
    (request,) = requests_of(environment, credit=NUM - 1)
    with nothing_left(), Side(environment, 0) as side:
        side.start()
        side.until(lambda: side.stands_still)  # every buffer is full, or the open one
        (waker,) = side.threads.turns.wakers.values()
        with call_on(side.address) as peer:
            for turn in range(3):
                side.until(lambda: side.stands_still)
                wakes = waker.num_wakes
                peer.send(encode(request if turn == 0 else AddCredit(NUM - 1, request.receiver)))
                heard = [peer.hear() for _ in range(NUM - 1)]
                assert all(isinstance(each, BufferResponse) and each.data_type.is_buffer for each in heard)
                side.until(lambda least=turn + 1: io_of(side).writing.num_writes >= least and side.stands_still)
                io = io_of(side)
                assert io.writing.num_writes == io.num_reads == turn + 1
                assert waker.num_wakes - wakes == 1
                assert io.writing.waker.num_wakes == 0  # who reads the credit says what it allows


def test_a_task_with_nothing_to_do_is_not_woken() -> None:
    environment = apart([], tally := Tally(), SMALL, width=4)
    with nothing_left(), Meeting() as meeting, Side(environment, 1) as side:
        side.start(meeting.address)
        with meeting.accept() as peer:
            requests = peer.hear_requests(16)
            side.until(lambda: side.stands_still)
            for sequence in range(5):
                peer.send(data(requests[0].receiver, sequence, sequence))
                tally.wait_for(sequence + 1)
                side.until(lambda: side.stands_still)
            wakes = sorted(waker.num_wakes for waker in side.threads.turns.wakers.values())
            assert wakes == [0, 0, 0, 5]


class CountedLock(threading._RLock):  # type: ignore[misc, name-defined]
    """Counts how often it was taken anew."""

    num_taken = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._is_owned():
            type(self).num_taken += 1
        return super().acquire(blocking, timeout)

    __enter__ = acquire


def test_the_monitor_is_taken_a_fixed_number_of_times_for_a_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    monkeypatch.setattr("refimpl.drivers.threads.task_manager.threading.RLock", CountedLock)
    with nothing_left(), Meeting() as meeting, Side(two_into_one(tally), 1) as side:
        monkeypatch.undo()
        side.start(meeting.address)
        with meeting.accept() as peer:
            requests = peer.hear_requests(2)
            side.until(lambda: side.stands_still and io_of(side).writing.waker.is_waiting)
            before = CountedLock.num_taken
            peer.send(*(data(each.receiver, sequence, sequence) for sequence in range(NUM) for each in requests))
            tally.wait_for(2 * NUM)
            assert [type(peer.hear()) for _ in range(2)] == [AddCredit] * 2
            # One for the read of 16 buffers; one for the task that it wakes; one for the end of the step, which gives
            # them back and looks for more.
            assert CountedLock.num_taken - before == 3


def test_a_source_takes_the_monitor_for_its_buffers_and_not_for_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two jobs that fill one buffer each, one with a single step and one with sixty."""
    counts = []
    for source_batch in (600, 10):
        taken: list[str] = []

        class Noted(CountedLock):
            def acquire(self, blocking: bool = True, timeout: float = -1, taken: list[str] = taken) -> bool:
                if not self._is_owned():
                    taken.append(threading.current_thread().name)
                return super().acquire(blocking, timeout)

            __enter__ = acquire

        environment = StreamEnvironment(Config(num_buffers=20, buffer_timeout_ms=-1, source_batch=source_batch))
        environment.source(lambda _i, _k: IterableReader(range(600)), type=LONG).rebalance().sink(tally := Tally())
        monkeypatch.setattr("refimpl.drivers.threads.task_manager.threading.RLock", Noted)
        with nothing_left(), ThreadedRun(environment) as run:
            monkeypatch.undo()
            run.run()
        tally.wait_for(600)
        counts.append(taken.count("source-0"))
    assert counts[0] == counts[1] > 0
