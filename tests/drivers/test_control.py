"""Commands to a running job: the same on every driver, or a reason why not; and values that can be sent."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable
from typing import Any, get_args

import pytest

from refimpl.config import Config
from refimpl.drivers import (
    AsyncRun,
    Command,
    Pause,
    ProcessRun,
    Resume,
    RunControl,
    SetTimeout,
    Simulation,
    Slow,
    SparkRun,
    Swap,
    SwapFunction,
    ThreadedRun,
)
from refimpl.errors import LocalUsageError
from refimpl.job import Deployment, StreamEnvironment
from refimpl.records import LONG, SpanningRecordSerializer, StreamRecord
from refimpl.task import IterableReader
from tests.support.driver_rig import TIMEOUT_S

COMMANDS = [
    Pause(),
    Resume(),
    Slow("map", 5),
    Swap({"SpanningRecordSerializer": SpanningRecordSerializer}),
    SwapFunction("map", abs),
    SetTimeout(7),
]
RUNS = [
    Simulation,
    ThreadedRun,
    AsyncRun,
    ProcessRun,
    lambda environment: SparkRun(environment, None),  # it is asked nothing before it starts
]


def job(values: object = range(60), sink: object = bool) -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=60, source_batch=2))
    stream = environment.source(lambda _i, _n: IterableReader(values), type=LONG)
    stream.rebalance().map(lambda n: n, type=LONG).rebalance().sink(sink).slot_sharing_group("sinks")
    return environment


def test_there_is_a_command_here_of_each_kind() -> None:
    assert {type(each) for each in COMMANDS} == set(get_args(Command))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
def test_a_command_is_a_value_that_can_be_sent(command: Command) -> None:
    assert pickle.loads(pickle.dumps(command)) == command


@pytest.mark.parametrize("make", RUNS)
def test_a_driver_does_what_it_offers_and_says_why_not(make: type) -> None:
    with make(job()) as run:
        assert isinstance(run, RunControl)
        for command in COMMANDS:
            if run.offers(type(command)):
                run.do(command)
            else:
                said = f"{type(run).__name__} does not offer {type(command).__name__}: it"
                with pytest.raises(LocalUsageError, match=said):
                    run.do(command)


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (Simulation, {Pause, Resume, Slow}),
        (ThreadedRun, set()),
        (AsyncRun, set()),
        (ProcessRun, set()),
        (RUNS[-1], set(get_args(Command))),
    ],
)
def test_what_each_driver_offers(make: type, refused: set[type]) -> None:
    with make(job()) as run:
        assert {kind for kind in get_args(Command) if not run.offers(kind)} == refused


def test_spark_shows_nothing_of_a_task_that_runs_and_says_so() -> None:
    with RUNS[-1](job()) as run, pytest.raises(LocalUsageError, match="SparkRun has no snapshot: its TaskManagers run"):
        run.snapshot()


def deployed(environment: StreamEnvironment) -> Deployment:
    return Deployment(environment.execution_graph())


@pytest.mark.parametrize("make", [deployed, Simulation, ThreadedRun, AsyncRun])
def test_a_command_that_names_nothing_changes_nothing(make: Callable[[StreamEnvironment], Any]) -> None:
    run = make(job())
    for command, said in (
        (Slow("mpa", 5), "no task and no operator 'mpa'; there are source-0, map-0, sink-0"),
        (SwapFunction("mpa", abs), "no operator called 'mpa' holds a function"),
        (SwapFunction("source", abs), "no operator called 'source' holds a function"),
        (Swap({"Mpa": abs}), "there is no part called Mpa"),
    ):
        if make is Simulation and isinstance(command, Slow):
            continue
        with pytest.raises(LocalUsageError, match=said):
            run.do(command)
    for deployment in getattr(run, "deployments", [run]):
        assert all(task.rest_ms == 0 and not task._mail for task in deployment.tasks)
        deployment.close()


def test_a_command_reaches_the_part_of_the_job_it_names_and_no_other() -> None:
    """Sinks are on TaskManager 1, and what is told to them changes nothing on TaskManager 0."""
    environment = StreamEnvironment(Config(num_buffers=60))
    stream = environment.from_collection(range(9)).slot_sharing_group("producers").rebalance()
    stream.sink(bool).slot_sharing_group("consumers")
    parts = [Deployment(environment.execution_graph(2), number) for number in range(2)]
    for each in parts:
        each.do(Slow("sink", 5))
        each.do(SwapFunction("sink", abs))
    assert [[task.rest_ms for task in each.tasks] for each in parts] == [[0.0], [5]]
    for each in parts:
        each.close()


# -- in an event loop --------------------------------------------------------------------------------


class Numbers:
    """A source that never ends, and what has come of it."""

    def __init__(self) -> None:
        self.results: list[int] = []

    def __iter__(self):
        yield from range(10**12)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while len(self.results) < count:
                await asyncio.sleep(0)


def in_a_loop(use) -> None:
    async def main() -> None:
        numbers = Numbers()
        run = AsyncRun(job(numbers, numbers.results.append))
        task = asyncio.create_task(run.execute())
        await numbers.until(20)
        async with asyncio.timeout(TIMEOUT_S):
            await use(run, numbers)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_loop_can_be_paused_and_goes_on() -> None:
    async def use(run: AsyncRun, numbers: Numbers) -> None:
        run.pause()
        for _ in range(20):  # each task ends the step it is in
            await asyncio.sleep(0)
        num_steps = run.snapshot().num_steps
        await asyncio.sleep(0.02)
        assert run.snapshot().num_steps == num_steps
        run.resume()
        await numbers.until(len(numbers.results) + 50)

    in_a_loop(use)


def test_a_slowed_task_in_a_loop_rests_and_feels_at_once_that_it_need_not() -> None:
    async def use(run: AsyncRun, numbers: Numbers) -> None:
        run.slow("sink", 60_000)
        held = -1
        while held != len(numbers.results):
            held = len(numbers.results)
            await asyncio.sleep(0.05)
        run.slow("sink-0", 0)
        started = time.monotonic()
        await numbers.until(held + 50)
        assert time.monotonic() - started < TIMEOUT_S

    in_a_loop(use)


class OneRecord:
    """A reader that has one record, and none until it is told to end."""

    def __init__(self) -> None:
        self.is_over = False
        self._records = [StreamRecord(1)]

    def read(self, _max_records: int) -> list[StreamRecord] | None:
        records, self._records = self._records, []
        return None if self.is_over and not records else records

    def close(self) -> None: ...


def test_a_timeout_in_a_loop_may_change() -> None:
    """One record is written, and only time can bring it on its way."""

    async def main() -> None:
        reader, results = OneRecord(), []
        environment = StreamEnvironment(Config(num_buffers=40, source_batch=1, buffer_timeout_ms=-1))
        environment.source(lambda _i, _n: reader).rebalance().sink(results.append)
        run = AsyncRun(environment)
        task = asyncio.create_task(run.execute())
        await asyncio.sleep(0.1)
        assert results == []
        run.set_buffer_timeout(2)
        async with asyncio.timeout(TIMEOUT_S):
            while not results:
                await asyncio.sleep(0)
            reader.is_over = True
            await task
        assert results == [1]

    asyncio.run(main())
