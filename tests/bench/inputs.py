"""Two inputs beside one: the same two sources, connected to an operator of two inputs, or united before one of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.task import Operator
from tests.bench.contenders import KIND, Reader, checksum, contender, expected, timed
from tests.bench.measure import Benchmark, Ratio

__all__ = ["BENCHMARKS"]


def same(value: object) -> object:
    return value


def connected(one: DataStream, other: DataStream) -> DataStream:
    return one.rebalance().connect(other.rebalance()).map(same, same, "same", KIND)


def united(one: DataStream, other: DataStream) -> DataStream:
    return one.union(other).rebalance().map(same, "same", KIND)


class End(Operator):
    """Tells of each record its value and its time, which a sink would not."""

    def __init__(self, tell: Callable[[Any, int | None], None]) -> None:
        self._tell = tell

    def process(self, record: StreamRecord) -> None:
        self._tell(record.value, record.timestamp)


class Half(Reader):
    """The first half of the records, or the second: pieces of 64, of which every other one is skipped."""

    def __init__(self, num_records: int, number: int) -> None:
        super().__init__(num_records)
        if number:
            self._skip()

    def read(self, max_records: int) -> Any:
        piece = super().read(max_records)
        self._skip()
        return piece

    def _skip(self) -> None:
        next(self._pieces, None)


def job(join: Callable[[DataStream, DataStream], DataStream]) -> Callable[[int, Any], tuple[int, float, float]]:
    """A job on three threads: two sources, and a task whose head is `join` of them."""

    def run(num_records: int, operator: Any) -> tuple[int, float, float]:
        environment = StreamEnvironment(Config(buffer_timeout_ms=-1, num_buffers=128, source_batch=64))
        one, other = (
            environment.source(
                lambda _subtask, _width, number=number: Half(num_records, number), f"half {number}", KIND
            )
            for number in (0, 1)
        )
        join(one, other).transform("end", lambda: End(operator.record))
        return num_records, *timed(ThreadedRun(environment).run)

    return run


BENCHMARKS = (
    Benchmark(
        "inputs",
        "two sources into one task, one record at a time, by ThreadedRun",
        (
            contender("two", "connect and map: an operator of two inputs", job(connected), is_ordered=False),
            contender("one", "union and map: an operator of one input", job(united), is_ordered=False),
        ),
        (Ratio("two", "one", goal=0.8, floor=0.7),),
        expected,
        checksum,
    ),
)
