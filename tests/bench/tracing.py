"""What a trace that is on costs: the same job with and without one, in turn.

    python -m tests.bench.tracing                     a table; all of it as JSON into a file
    python -m tests.bench.tracing --rounds 20 --json -

Each job runs on `ThreadedRun`, records and batches, on one TaskManager and, over TCP, on two. A turn with a trace ends
when the last of its files has its name. The two turns of a round stand next to each other, in changing order, and a
ratio is the median over rounds; the CPU ratio counts all threads, those that write files too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from course.data.trace_files import FileTrace
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, RecordBatch, StreamRecord, TupleType, Vectorized
from refimpl.trace import Trace
from tests.bench.measure import Figure, WrongAnswerError, timed
from tests.bench.report import deliver, machine, machine_in_words, number, spread

FILE = Path(__file__).resolve().parents[2] / ".cache" / "bench" / "tracing.json"
GOAL = 0.95
FORMAT = "sluice-bench-tracing/1"
KIND = TupleType(LONG, LONG)
BATCH_ROWS = 4096
RECORDS_PER_READ = 1024


class _Reader:
    """Hands out the same records, or the same batch, again and again."""

    def __init__(self, chunk: Sequence[StreamRecord] | RecordBatch, num_chunks: int) -> None:
        self._chunk = chunk
        self._left = num_chunks

    def read(self, _max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        self._left -= 1
        return self._chunk if self._left >= 0 else None

    def close(self) -> None: ...


class _Count:
    """A sink that counts, records or batches."""

    def __init__(self) -> None:
        self.num_records = 0

    def one(self, _value: object) -> None:
        self.num_records += 1

    def many(self, batch: RecordBatch) -> None:
        self.num_records += len(batch)


def records(num_records: int) -> tuple[StreamEnvironment, _Count, int]:
    """Records one by one, through a network of one channel, to a sink."""
    chunk = [StreamRecord((i, 7 * i), i) for i in range(RECORDS_PER_READ)]
    num_chunks = -(-num_records // RECORDS_PER_READ)
    environment, count = StreamEnvironment(Config(object_reuse=True)), _Count()
    source = environment.source(lambda _i, _n: _Reader(chunk, num_chunks), type=KIND).slot_sharing_group("source")
    source.rebalance().sink(count.one).slot_sharing_group("sink")
    return environment, count, num_chunks * RECORDS_PER_READ


def _batches(num_records: int, *, is_keyed: bool) -> tuple[StreamEnvironment, _Count, int]:
    rows = np.arange(BATCH_ROWS)
    batch = RecordBatch([rows % 1000, 7 * rows], rows)
    num_batches = -(-num_records // BATCH_ROWS)
    environment, count = StreamEnvironment(Config()), _Count()
    source = environment.source(lambda _i, _n: _Reader(batch, num_batches), type=KIND).slot_sharing_group("source")
    routed = source.key_by(0) if is_keyed else source.rebalance()
    routed.sink(Vectorized(count.one, count.many)).slot_sharing_group("sink")
    return environment, count, num_batches * BATCH_ROWS


def keyed_batches(num_records: int) -> tuple[StreamEnvironment, _Count, int]:
    """Batches, each record to the channel of its key."""
    return _batches(num_records, is_keyed=True)


def plain_batches(num_records: int) -> tuple[StreamEnvironment, _Count, int]:
    """Batches that are only copied: the most buffers in a second, so the dearest place for a trace."""
    return _batches(num_records, is_keyed=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A job and how wide it runs; `num_records` take about half a second."""

    name: str
    make: Callable[[int], tuple[StreamEnvironment, _Count, int]]
    num_task_managers: int
    num_records: int


CASES = (
    Case("records", records, 1, 800_000),
    Case("records, TCP", records, 2, 800_000),
    Case("keyed batches", keyed_batches, 1, 12_000_000),
    Case("keyed batches, TCP", keyed_batches, 2, 12_000_000),
    Case("plain batches", plain_batches, 1, 30_000_000),
    Case("plain batches, TCP", plain_batches, 2, 20_000_000),
)


def turn(case: Case, num_records: int, *, is_traced: bool) -> tuple[float, float, int]:
    """One run: (wall, CPU) seconds, and how many events were written.

    Raises:
        WrongAnswerError: a record was lost, or an event.
    """
    environment, count, num_expected = case.make(num_records)
    num_events = 0
    with TemporaryDirectory(prefix="sluice-tracing-") as folder:
        trace: Trace | None = FileTrace(folder) if is_traced else None
        run = ThreadedRun(environment, trace, case.num_task_managers)

        def work() -> None:
            run.run()
            if trace is not None:
                trace.close()

        spent = timed(work)
        if isinstance(trace, FileTrace):
            num_events = trace.num_written
            num_noted = trace.num_events + trace.num_lost
            if num_events != num_noted:
                raise WrongAnswerError(f"{case.name}: {num_events} of {num_noted} events were written")
    if count.num_records != num_expected:
        raise WrongAnswerError(f"{case.name}: {count.num_records} of {num_expected} records came")
    return *spent, num_events


def measure(rounds: int, scale: float = 1.0, cases: Sequence[Case] = CASES) -> list[dict[str, Any]]:
    """All cases, each by itself, as rows."""
    found = []
    for case in cases:
        num_records = max(1, int(case.num_records * scale))
        for is_traced in (False, True):
            turn(case, max(1, num_records // 20), is_traced=is_traced)  # everything is loaded and warm
        turns: dict[bool, list[tuple[float, float, int]]] = {False: [], True: []}
        for index in range(rounds):
            for is_traced in (False, True)[:: -1 if index % 2 else 1]:
                turns[is_traced].append(turn(case, num_records, is_traced=is_traced))
        pairs = list(zip(turns[False], turns[True], strict=True))
        cpu_s = [on[1] - off[1] for off, on in pairs]
        found.append(
            {
                "job": case.name,
                "task_managers": case.num_task_managers,
                "records": num_records,
                "events": turns[True][-1][2],
                "throughput": spread(Figure.of([off[0] / on[0] for off, on in pairs])),
                "cpu": spread(Figure.of([off[1] / on[1] for off, on in pairs])),
                "cpu_us_per_event": Figure.of(cpu_s).median / max(1, turns[True][-1][2]) * 1e6,
                "goal": GOAL,
            }
        )
    return found


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows with their columns under each other."""
    lines = [("job", "events", "throughput on / off [middle half]", "CPU", "us per event", "goal", "")]
    for row in rows:
        median, low, high = (row["throughput"][each] for each in ("median", "low", "high"))
        cost = f"{row['cpu_us_per_event']:.2f}"
        verdict = "goal" if median >= row["goal"] else "missed"
        lines.append(
            (
                row["job"],
                f"{row['events']:,}",
                f"{number(median)} [{number(low)} .. {number(high)}]",
                number(row["cpu"]["median"]),
                cost,
                f"≥ {row['goal']}",
                verdict,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        "python -m tests.bench.tracing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="rounds of each job (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many records as usual (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="where to write all figures, '-' to print them")
    given = parser.parse_args(arguments)
    load_before = os.getloadavg()[0]
    rows = measure(given.rounds, given.scale)
    answer = {"format": FORMAT, "machine": machine(load_before), "rounds": given.rounds, "rows": rows}
    path = deliver(answer, given.json, FILE)
    if path is not None:
        print(as_table(rows), machine_in_words(answer["machine"]), f"All of it: {path}", sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
