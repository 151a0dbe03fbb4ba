"""Whether memory stays flat: one process moves records by the hundred million, and says what it takes meanwhile.

    python -m tests.bench.memory                                     all ways; compiled if `make fast` has built it
    python -m tests.bench.memory emit batches --engine source --records 10000000

The memory is what the system says (RSS), sampled after each hundredth part of the records; the first tenth warms up.
A fitted line that rises by half a MiB or more counts as a leak: of 100 M records, 6 bytes for each buffer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from course.compiled.choice import ENGINES, EngineUnavailable, choose, in_use, wanted
from tests.bench.program import run_program

__all__ = ["WAYS", "Curve", "main", "moved", "sampled"]

MIB = 1 << 20
PARTS = 100
WARM_UP = 0.1
MOST_RISE_BYTES = MIB // 2
NUM_RECORDS = 100_000_000
WRONG_USE = 2

WAYS = {
    "emit": "a call for each record, from thread to thread",
    "emit_many": "a call for 1024 records",
    "batches": "a call for a batch of 4096 rows",
    "tcp": "a job of two TaskManagers, the records over a connection",
}

Sample = tuple[int, int]
"""How many records have gone in, and the bytes that the process takes."""
S = TypeVar("S", bound=Sized)


@dataclass(frozen=True, slots=True)
class Curve:
    """What a process took while records went through it."""

    samples: Sequence[Sample]

    @property
    def slope(self) -> float:
        """Bytes for each record, by least squares."""
        records, sizes = zip(*self.samples, strict=True)
        return statistics.linear_regression(records, sizes).slope

    @property
    def is_flat(self) -> bool:
        return self.slope * (self.samples[-1][0] - self.samples[0][0]) < MOST_RISE_BYTES

    def __str__(self) -> str:
        sizes = [size for _, size in self.samples]
        return (
            f"first {sizes[0] / MIB:.1f} MiB, last {sizes[-1] / MIB:.1f}, most {max(sizes) / MIB:.1f}; "
            f"{self.slope * 1e6:+.0f} B for a million records: {'flat' if self.is_flat else 'IT GROWS'}"
        )


def sampled(pieces: Iterable[S], num_records: int, weigh: Callable[[], int], found: list[Sample]) -> Iterator[S]:
    """The pieces; `found` gets a sample whenever another part of `num_records` has gone, but for the warm-up."""
    every = max(1, num_records // PARTS)
    num_taken, due = 0, max(every, int(num_records * WARM_UP))
    for piece in pieces:
        yield piece
        num_taken += len(piece)
        if num_taken >= due:
            found.append((num_taken, weigh()))
            due += every


def moved(way: str, num_records: int, watch: Callable[[Iterable[Any]], Iterator[Any]]) -> None:
    """Move `num_records` one way, or as many more as fill a batch; what goes in passes through `watch`."""
    from refimpl.config import Config
    from refimpl.drivers import ThreadedRun
    from refimpl.job import StreamEnvironment
    from tests.bench import contenders
    from tests.bench.contenders import BATCH, BATCH_BUFFERS, KIND, QUEUE_RECORDS, RECORD_BUFFERS, RECORDS, chunks
    from tests.bench.exchange import Exchange
    from tests.bench.measure import in_two_threads

    operator = contenders.Adding()
    if way == "emit":
        engine = Exchange(KIND, RECORD_BUFFERS)
        pieces = watch(chunks(RECORDS, num_records, 64))
        in_two_threads(lambda: engine.produce_records(pieces), lambda: engine.consume_records(operator.record))
    elif way == "emit_many":
        engine = Exchange(KIND, RECORD_BUFFERS)
        pieces = watch(chunks(RECORDS, num_records, QUEUE_RECORDS))
        in_two_threads(lambda: engine.produce_chunks(pieces), lambda: engine.consume_records(operator.record))
    elif way == "batches":
        engine = Exchange(KIND, BATCH_BUFFERS, takes_batches=True)
        num_batches = contenders.whole_batches(num_records)
        num_records = num_batches * BATCH
        pieces = watch(contenders.batches(num_batches))
        in_two_threads(
            lambda: engine.produce_batches(pieces),
            lambda: engine.consume_batches(lambda batch: operator.columns(batch.timestamps, *batch.columns)),
        )
    else:
        pieces = watch(chunks(RECORDS, num_records, 64))
        environment = StreamEnvironment(Config(buffer_timeout_ms=-1, num_buffers=128, source_batch=64))
        source = environment.source(lambda _subtask, _parallelism: Pieces(pieces), type=KIND)
        source.slot_sharing_group("producers").rebalance().sink(operator.value).slot_sharing_group("consumers")
        ThreadedRun(environment, num_task_managers=2).run()
    expected = contenders.checksum(num_records)
    assert operator.total == expected, f"{way}: the values of {num_records} records add up to {operator.total}"


class Pieces:
    """A source that hands out lists of records that are there already."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces

    def read(self, _max_records: int) -> Any:
        return next(self._pieces, None)

    def close(self) -> None: ...


def rss() -> Callable[[], int]:
    """What says how many bytes this process takes."""
    import psutil

    process = psutil.Process()
    return lambda: int(process.memory_info().rss)


def main() -> int:
    """Move records each way asked for, and print what memory did; 1 if it grew."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = "\n".join(f"{way}: {meaning}" for way, meaning in WAYS.items())
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"all by default\n{ways}")
    parser.add_argument("--records", type=int, default=NUM_RECORDS, metavar="N", help="for each way (100 000 000)")
    parser.add_argument("--engine", choices=ENGINES, help="which one (compiled if `make fast` has built it)")
    given = parser.parse_args()
    if unknown := [way for way in given.ways if way not in WAYS]:
        parser.error(f"there is no way {unknown[0]!r}; there are {', '.join(WAYS)}")
    if given.records < PARTS:
        parser.error(f"at least {PARTS} records")
    try:
        if remark := choose(wanted(sys.argv[1:])):
            print(remark, file=sys.stderr)
    except EngineUnavailable as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    print(f"engine {in_use()}, {given.records} records each way, {os.cpu_count()} cores", flush=True)
    all_flat, weigh = True, rss()
    for way in given.ways or WAYS:
        found: list[Sample] = []
        started_s = time.monotonic()
        moved(way, given.records, partial(sampled, num_records=given.records, weigh=weigh, found=found))
        curve = Curve(found)
        all_flat &= curve.is_flat
        print(f"{way:10} {curve}; {time.monotonic() - started_s:.0f} s", flush=True)
    return 0 if all_flat else 1


if __name__ == "__main__":
    run_program(main)
