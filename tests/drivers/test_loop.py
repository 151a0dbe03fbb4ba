"""A job in an event loop: beside whatever else runs there, and leaving nothing in it however it ends."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable

import psutil
import pytest

from refimpl.config import Config
from refimpl.drivers import AsyncRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.exchange import ConsumerConnection, ProducerConnection
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG, SpanningRecordSerializer
from refimpl.task import IterableReader
from tests.support.driver_rig import TIMEOUT_S, apart, nothing_left, num_out

SMALL = Config(segment_size_bytes=64, num_buffers=60, buffer_timeout_ms=1, source_batch=8)
FOREVER = range(10**12)
WIDTHS = pytest.mark.parametrize("count", [1, 2])


class Results(list):
    """A sink, and a way for a coroutine to wait for some results."""

    def __call__(self, value: object) -> None:
        self.append(value)

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while len(self) < count:
                await asyncio.sleep(0)


def job(values: object, sink: Callable, function: Callable = lambda n: n, config: Config = SMALL) -> StreamEnvironment:
    """Source and map on TaskManager 0, sink on TaskManager 1, if there are two."""
    environment = StreamEnvironment(config)
    stream = environment.source(lambda _subtask, _parallelism: IterableReader(values), type=LONG)
    stream.rebalance().map(function, type=LONG).rebalance().sink(sink).slot_sharing_group("sinks")
    return environment


async def leaving_nothing(count: int, environment: StreamEnvironment, use: Callable[[AsyncRun], Awaitable]) -> AsyncRun:
    """Use a run in the loop of this test; afterwards the loop, the pools and the files are as before."""
    this, files = psutil.Process(), psutil.Process().num_fds()
    run = AsyncRun(environment, num_task_managers=count)
    async with asyncio.timeout(TIMEOUT_S):
        await use(run)
    assert num_out(*run.deployments) == 0
    for _ in range(20):  # a connection that was just being accepted is closed by the loop
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert this.num_fds() == files
    return run


def in_a_loop(count: int, environment: StreamEnvironment, use: Callable[[AsyncRun], Awaitable]) -> AsyncRun:
    with nothing_left():
        return asyncio.run(leaving_nothing(count, environment, use))


# -- it ends well ------------------------------------------------------------------------------------


@WIDTHS
def test_a_run_is_awaited_where_a_loop_runs(count: int) -> None:
    async def use(run: AsyncRun) -> None:
        assert not run.is_done
        assert await run.execute() is run
        assert run.is_done
        with pytest.raises(LocalUsageError, match="started before"):
            await run.execute()

    in_a_loop(count, job(range(500), results := Results()), use)
    assert results == list(range(500))


@WIDTHS
def test_a_run_makes_a_loop_of_its_own_where_none_runs(count: int) -> None:
    with nothing_left():
        assert AsyncRun(job(range(500), results := Results()), num_task_managers=count).run().is_done
    assert results == list(range(500))


def test_a_run_is_not_run_but_awaited_inside_a_loop() -> None:
    async def use(run: AsyncRun) -> None:
        with pytest.raises(LocalUsageError, match="await AsyncRun"):
            run.run()
        await run.execute()  # nothing has happened before

    in_a_loop(2, job(range(100), results := Results()), use)
    assert results == list(range(100))


def test_a_frame_larger_than_sockets_hold_arrives_as_it_was_sent() -> None:
    # Lent memory may not be given back, and written anew, before the system has taken all of it.
    values = [bytes([n]) * (5 << 20) for n in range(30)]
    config = Config(segment_size_bytes=5 << 20, num_buffers=16, source_batch=1)
    sums: list[int] = []
    environment = apart(values, lambda value: sums.append(zlib.crc32(value)), config, value_type=BYTES)
    in_a_loop(2, environment, lambda run: run.execute())
    assert sums == [zlib.crc32(value) for value in values]


# -- beside it ---------------------------------------------------------------------------------------


@WIDTHS
def test_others_have_their_turn_and_may_look_swap_and_stop_it(count: int) -> None:
    async def use(run: AsyncRun) -> None:
        task = asyncio.create_task(run.execute())
        await results.wait_for(200)
        steps = [run.snapshot().num_steps]
        run.swap_function("map", lambda n: -n)
        run.swap(SpanningRecordSerializer=SpanningRecordSerializer)
        await results.wait_for(len(results) + 500)
        steps.append(run.snapshot().num_steps)
        assert steps[0] < steps[1]
        assert not run.is_done
        with pytest.raises(LocalUsageError, match="no operator called 'nap'"):
            run.swap_function("nap", abs)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_a_loop(count, job(FOREVER, results := Results()), use)
    assert list(map(abs, results)) == list(range(len(results)))
    assert results[-1] < 0


def test_connections_that_come_and_go_leave_nothing_and_keep_nobody_out() -> None:
    heard: list[str] = []

    def num_kept() -> int:
        return sum(type(each) in (socket.socket, asyncio.Task) for each in gc.get_objects())

    async def use(run: AsyncRun) -> None:
        for_all = asyncio.get_running_loop()
        for_all.set_exception_handler(lambda _loop, context: heard.append(context["message"]))
        task = asyncio.create_task(run.execute())
        await results.wait_for(1)
        before, kept = len(asyncio.all_tasks()), num_kept()
        this = psutil.Process()
        (address,) = [
            each.laddr
            for each in this.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN
            and any(other.raddr == each.laddr for other in this.net_connections("tcp"))
        ]
        files = this.num_fds()
        for number in range(600):
            came = socket.create_connection(address)
            came.send(b"nonsense" if number % 2 else b"")
            came.close()
            await asyncio.sleep(0)
        async with asyncio.timeout(TIMEOUT_S):
            while (len(asyncio.all_tasks()), this.num_fds()) != (before, files):
                await asyncio.sleep(0)
        gc.collect()  # what was not asked for its exception says so now
        assert num_kept() < kept + 100  # some by what was logged
        await results.wait_for(len(results) + 500)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_a_loop(2, job(FOREVER, results := Results()), use)
    assert heard == []


# -- it ends otherwise -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1, 90, 10))  # before its first turn there is nothing to cancel
@WIDTHS
def test_cancelling_gives_everything_back_whenever_it_comes(count: int, start: int) -> None:
    async def use(run: AsyncRun, turns: int) -> None:
        task = asyncio.create_task(run.execute())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for turns in range(start, start + 10):
        results = Results()
        in_a_loop(count, job(FOREVER, results), lambda run, turns=turns: use(run, turns))
        assert results == list(range(len(results))), f"cancelled after {turns} turns"


@WIDTHS
def test_control_c_cancels_it(count: int) -> None:
    def interrupt(n: int) -> None:
        if n == 300:
            signal.raise_signal(signal.SIGINT)

    run = AsyncRun(job(FOREVER, interrupt), num_task_managers=count)
    with nothing_left(), pytest.raises(KeyboardInterrupt):
        run.run()
    assert num_out(*run.deployments) == 0


@pytest.mark.parametrize("name", ["map", "sink"])
@WIDTHS
def test_an_error_of_the_user_ends_it_and_names_its_place(count: int, name: str) -> None:
    def wrong(n: int) -> int:
        if n == 37:
            raise ValueError("not this one")
        return n

    async def use(run: AsyncRun) -> None:
        with pytest.raises(UserCodeError, match=f"{name}, subtask 0, raised ValueError: not this one") as caught:
            await run.execute()
        assert isinstance(caught.value.__cause__, ValueError)

    in_a_loop(count, job(FOREVER, wrong) if name == "sink" else job(FOREVER, Results(), wrong), use)


@pytest.mark.parametrize("end", [ConsumerConnection, ProducerConnection])
@pytest.mark.parametrize("method", ["receive_data", "data_to_send"])
def test_a_broken_law_in_a_connection_ends_it(end: type, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise AssertionError("a law is broken")

    async def use(run: AsyncRun) -> None:
        with pytest.raises(AssertionError, match="a law is broken"):
            await run.execute()

    monkeypatch.setattr(end, method, broken)
    in_a_loop(2, job(range(100), Results()), use)


def test_a_partition_that_comes_late_is_asked_for_again() -> None:
    config = Config(segment_size_bytes=64, num_buffers=60, request_backoff_initial_ms=1, request_backoff_max_ms=10**6)

    async def use(run: AsyncRun) -> None:
        known = run.deployments[0].shuffle._partition_by_id
        later = dict(known)
        known.clear()
        task = asyncio.create_task(run.execute())
        connections = run.deployments[1].shuffle.consumer_connections
        while not connections or connections[0].retries.num_not_found.total() < 4:
            await asyncio.sleep(0)
        known.update(later)
        await task

    in_a_loop(2, job(range(100), results := Results(), config=config), use)
    assert results == list(range(100))


def test_no_thread_is_started() -> None:
    threads: set[threading.Thread] = set()
    in_a_loop(2, job(range(100), lambda _: threads.update(threading.enumerate())), lambda run: run.execute())
    assert threads <= set(threading.enumerate())
