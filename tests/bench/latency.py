"""How long a record is under way at 10 000 a second: a job on one TaskManager, on two, and a bare socket.

Every record carries the time at which it was made, in ns of a clock that all processes of a machine share. The source
sleeps between records: where it would spin instead, it would keep the interpreter from those who are measured.
"""

from __future__ import annotations

import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from refimpl.config import Config
from refimpl.drivers import ProcessRun, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, StreamRecord, TupleType
from tests.bench.measure import Contender, Entry, Row, Turn, timed
from tests.bench.pair import across
from tests.bench.peers import LOOPBACK, accepted

__all__ = ["LATENCY"]

RECORDS_PER_S = 10_000
STAMP = TupleType(LONG, LONG)
WIRE = struct.Struct(">iBqqq")  # a record as long as the engine's
Stamped = tuple[int, int]
"""When it was made, in ns, and its number."""


def paced(num_records: int) -> Iterator[list[Stamped]]:
    """Records that become due at a steady rate, those that are due together."""
    clock, sleep = time.perf_counter_ns, time.sleep
    started_ns, made = clock(), 0
    while made < num_records:
        due = min(num_records, 1 + (clock() - started_ns) * RECORDS_PER_S // 1_000_000_000)
        if due <= made:
            sleep(0.5 / RECORDS_PER_S)
            continue
        yield [(clock(), number) for number in range(made, due)]
        made = due


class Source:
    """Reads what is due."""

    def __init__(self, num_records: int) -> None:
        self._pieces = paced(num_records)

    def read(self, _max_records: int) -> Sequence[StreamRecord] | None:
        piece = next(self._pieces, None)
        return None if piece is None else [StreamRecord(stamped, 0) for stamped in piece]

    def close(self) -> None: ...


class Collect:
    """Takes the time of each record that arrives, and hands all on with the last one."""

    def __init__(self, num_records: int) -> None:
        self._num_records = num_records
        self._arrived: list[tuple[int, int]] = []

    def __call__(self, stamped: Stamped) -> Iterable[list[tuple[int, int]]]:
        self._arrived.append((time.perf_counter_ns() - stamped[0], stamped[1]))
        return [self._arrived] if len(self._arrived) == self._num_records else []


Travel = Callable[[int], tuple[list[tuple[int, int]], float, float]]
"""Lets n records travel; returns (ns under way, number) of each that arrived, wall and CPU seconds."""


def job(num_records: int, timeout_ms: int, results: list[Any]) -> StreamEnvironment:
    environment = StreamEnvironment(Config(buffer_timeout_ms=timeout_ms))
    source = environment.source(lambda _subtask, _parallelism: Source(num_records), type=STAMP)
    source.slot_sharing_group("producers").rebalance().flat_map(Collect(num_records)).slot_sharing_group(
        "consumers"
    ).sink(results.append)
    return environment


def through_job(num_records: int, timeout_ms: int, *, remote: bool) -> tuple[list[tuple[int, int]], float, float]:
    results: list[list[tuple[int, int]]] = []
    environment = job(num_records, timeout_ms, results)
    run = ProcessRun(environment) if remote else ThreadedRun(environment)
    spent = timed(run.run)
    return results[0], *spent


class Arrivals:
    """The operator of the bare socket, in the other process."""

    def __init__(self) -> None:
        self.arrived: list[tuple[int, int]] = []


def through_socket(num_records: int) -> tuple[list[tuple[int, int]], float, float]:
    def produce(port: int, _shared: object) -> None:
        with socket.create_connection((LOOPBACK, port)) as out:
            out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in paced(num_records):
                for made_ns, number in piece:
                    out.sendall(WIRE.pack(25, 0, 0, made_ns, number))

    arrivals = Arrivals()
    wall_s, cpu_s = across(take_stamps, produce, arrivals)
    return arrivals.arrived, wall_s, cpu_s


def take_stamps(ready: Callable[[object], None], _shared: object, operator: Arrivals) -> None:
    clock, append, size = time.perf_counter_ns, operator.arrived.append, WIRE.size
    with accepted(ready) as source, source.makefile("rb") as file:
        while data := file.read(size):
            _, _, _, made_ns, number = WIRE.unpack(data)
            append((clock() - made_ns, number))


def entry(key: str, meaning: str, travel: Travel) -> Entry:
    """The contender that lets records travel at their pace, and finds out how long they were under way."""

    def run(num_records: int) -> Turn:
        arrived, wall_s, cpu_s = travel(num_records)
        under_way = sorted(ns / 1e6 for ns, _ in arrived[len(arrived) // 5 :])  # without the start
        found = {"p50_ms": statistics.median(under_way), "p99_ms": under_way[len(under_way) * 99 // 100]}
        return Turn(num_records, wall_s, cpu_s, len(arrived), found)

    def deliver(num_records: int) -> tuple[int, list[Row]]:
        return num_records, [(0, number, 0) for _, number in travel(num_records)[0]]

    return Entry(key, Contender(key, meaning, run, deliver, records_per_s=RECORDS_PER_S), numbered, int)


def numbered(num_records: int) -> list[Row]:
    return [(0, number, 0) for number in range(num_records)]


LATENCY = {
    made.key: made
    for made in (
        entry(
            "latency/local 1 ms",
            "a job on one TaskManager, buffer timeout 1 ms",
            lambda n: through_job(n, 1, remote=False),
        ),
        entry(
            "latency/remote 1 ms",
            "a job on two processes, buffer timeout 1 ms",
            lambda n: through_job(n, 1, remote=True),
        ),
        entry("latency/remote 0 ms", "the same, each record flushed", lambda n: through_job(n, 0, remote=True)),
        entry("latency/socket", "29 bytes sent for each record over loopback, nothing else", through_socket),
    )
}
