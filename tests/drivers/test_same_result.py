"""One job, four drivers, two TaskManagers, a million records of 1 B to 1 MB: the answer worked out by none of them.

`make test` takes the first 100 000 of them, with 25 of 100 kB or more; `make test-whole` all.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Callable, Iterator

import pytest

from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG, TupleType
from refimpl.task import IterableReader, MapOperator
from tests.support.driver_rig import nothing_left, num_out

NUM_RECORDS, NUM_OF_A_SAMPLE = 1_000_000, 100_000
NUM_KEYS = 64  # an even number: each key comes from one source, so its records have an order
ROW = TupleType(LONG, BYTES)
NOISE = random.Random(11).randbytes(2 << 20)


def size_of(number: int) -> int:
    """Mostly 1 to 50 B; one of 4000 has 100 kB, one of 40 000 has 1 MB."""
    if number % 4_000 == 1_234:
        return 1_000_000 if number % 40_000 == 1_234 else 100_000
    return 1 + number * 7 % 50


def rows(subtask: int, width: int, count: int) -> Iterator[tuple[int, bytes]]:
    for number in range(subtask, count, width):
        start = number * 31 % 1_000_003
        yield number, NOISE[start : start + size_of(number)]


class Ledger:
    """What came, by key: how many, and a checksum of every number and every byte in the order in which they came."""

    def __init__(self) -> None:
        self.counts = [0] * NUM_KEYS
        self.sums = [0] * NUM_KEYS

    def __call__(self, row: tuple[int, bytes]) -> None:
        number, payload = row
        key = -number % NUM_KEYS
        self.counts[key] += 1
        self.sums[key] = zlib.crc32(payload, zlib.crc32(b"%d" % number, self.sums[key]))

    @classmethod
    def by_hand(cls, count: int) -> Ledger:
        ledger = cls()
        for number, payload in rows(0, 1, count):
            ledger((-number, payload))
        return ledger


class Source:
    """Makes the reader of each subtask, in whatever process that is."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, subtask: int, width: int) -> IterableReader:
        return IterableReader(rows(subtask, width, self.count))


def job(count: int, ledger: Ledger) -> StreamEnvironment:
    """2 sources → by key → 4 maps → sink."""
    environment = StreamEnvironment(Config(source_batch=256), 4)
    (
        environment.source(Source(count), type=ROW, parallelism=2)
        .key_by(lambda row: row[0] % NUM_KEYS, LONG)
        .transform("negate", lambda: MapOperator(lambda row: (-row[0], row[1])), ROW)
        .to_first()
        .sink(ledger)
        .set_parallelism(1)
    )
    return environment


def simulate(environment: StreamEnvironment) -> None:
    with Simulation(environment, seed=3, check_every=0, num_task_managers=2) as simulation:
        simulation.run()
    assert num_out(*simulation.deployments) == 0


def on_threads(environment: StreamEnvironment) -> None:
    with ThreadedRun(environment, num_task_managers=2) as run:
        run.run()
    assert num_out(*run.deployments) == 0


def in_a_loop(environment: StreamEnvironment) -> None:
    with AsyncRun(environment, num_task_managers=2) as run:
        asyncio.run(run.execute())
    assert num_out(*run.deployments) == 0


def on_processes(environment: StreamEnvironment) -> None:
    with ProcessRun(environment, 2) as run:
        run.run()


@pytest.fixture(scope="module")
def num_records(is_whole: bool) -> int:
    return NUM_RECORDS if is_whole else NUM_OF_A_SAMPLE


@pytest.fixture(scope="module")
def answer(num_records: int) -> Ledger:
    return Ledger.by_hand(num_records)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("drive", [simulate, on_threads, in_a_loop, on_processes])
def test_records_of_any_size_give_the_answer_worked_out_by_hand(
    drive: Callable, answer: Ledger, num_records: int
) -> None:
    ledger = Ledger()
    with nothing_left():
        drive(job(num_records, ledger))
    assert sum(ledger.counts) == num_records
    assert ledger.counts == answer.counts
    assert ledger.sums == answer.sums


def test_a_sample_has_records_of_each_size() -> None:
    sizes = {size_of(number) for number in range(NUM_OF_A_SAMPLE)}
    assert sizes == {*range(1, 51), 100_000, 1_000_000} == {size_of(number) for number in range(NUM_RECORDS)}
