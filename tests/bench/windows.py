"""Windows, one record at a time and in batches, beside what others have for them.

All count the same rows: a key of a hundred, a value, a time that rises by a millisecond each ten rows. What the windows
hold in all is known: each value as often as it has windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import numpy as np

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, Field, RecordBatch, StreamRecord, TupleType
from refimpl.task import SlidingWindows, TumblingWindows, WindowAssigner
from tests.bench.measure import Entry, timed
from tests.bench.peers import lacking
from tests.bench.stateful import entry

__all__ = ["WINDOWS"]

SIZE_MS, SLIDE_MS = 60, 20
TUMBLING_MS = 1_000  # a hundred rows for each key: what a batch is for
NUM_KEYS = 100
BATCH = 4_096
PIECE = 64
KIND = TupleType(LONG, LONG, LONG)
FIRST_MS = 1_000_000  # behind the first window of each kind
EPOCH = datetime.fromtimestamp(0, UTC)


class Sum:
    """The sum of the values of a window."""

    accumulator_type = LONG

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: tuple[int, int, int], accumulator: int) -> int:
        return accumulator + value[1]

    def accumulate_groups(self, batch: RecordBatch, starts: Any) -> Sequence[int]:
        sums: list[int] = np.add.reduceat(batch[1], starts).tolist()
        return sums

    def merge(self, one: int, other: int) -> int:
        return one + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


@cache
def rows(num: int) -> list[StreamRecord]:
    return [StreamRecord((number % NUM_KEYS, number, FIRST_MS + number // 10)) for number in range(num)]


@cache
def columns(num: int) -> tuple[Any, Any, Any]:
    numbers = np.arange(num, dtype=np.int64)
    return numbers % NUM_KEYS, numbers, FIRST_MS + numbers // 10


@cache
def datetimes(num: int) -> list[tuple[str, tuple[int, datetime]]]:
    """The same rows as bytewax takes them: a text for a key, and a moment, whose seconds are our milliseconds."""
    moments = [EPOCH + timedelta(seconds=record.value[2]) for record in rows(num)]
    pairs = zip(rows(num), moments, strict=True)
    return [(str(record.value[0]), (record.value[1], moment)) for record, moment in pairs]


def in_all(num: int, num_windows: int) -> int:
    return num_windows * (num * (num - 1) // 2)


class Pieces:
    """A source that hands out rows that are there, or batches of columns."""

    def __init__(self, num: int, in_batches: bool) -> None:
        self._pieces: Iterator[Any] = iter(
            [RecordBatch([column[start : start + BATCH] for column in columns(num)]) for start in range(0, num, BATCH)]
            if in_batches
            else [rows(num)[start : start + PIECE] for start in range(0, num, PIECE)]
        )

    def read(self, _max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        return next(self._pieces, None)

    def close(self) -> None: ...


def ours(num: int, windows: WindowAssigner, num_windows: int, in_batches: bool) -> tuple[int, float, float]:
    """A job on two threads: a source with its watermarks, and a task of windows and sink."""
    environment = StreamEnvironment(Config(num_buffers=128, source_batch=PIECE, buffer_timeout_ms=-1))
    total: list[int] = []
    pieces = Pieces(num, in_batches)
    source = environment.source(lambda _i, _n: pieces, "rows", KIND).assign_timestamps(Field(2), 0, every=1_000)
    source.key_by(Field(0), LONG).window(windows).aggregate(Sum()).sink(lambda row: total.append(row[3]))
    spent = timed(ThreadedRun(environment).run)
    assert sum(total) == in_all(num, num_windows)
    return num, *spent


def in_bytewax(num: int) -> tuple[int, float, float]:
    """fold_window over a keyed stream, in batches of 64 from the source; one worker.

    Its event time goes on with the clock of the machine too, so it has to be much faster: a row is a tenth of a second
    behind the one before.
    """
    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    total: list[Any] = []
    flow = Dataflow("windows")
    stream = op.input("source", flow, TestingSource(datetimes(num), batch_size=PIECE))
    clock: Any = win.EventClock(ts_getter=lambda value: value[1], wait_for_system_duration=timedelta(minutes=1))
    windower = win.SlidingWindower(
        length=timedelta(seconds=SIZE_MS), offset=timedelta(seconds=SLIDE_MS), align_to=EPOCH
    )
    folded = win.fold_window(
        "fold",
        stream,
        clock,
        windower,
        lambda: 0,
        lambda total, value: total + value[0],
        lambda one, other: one + other,
    )
    op.output("sink", folded.down, TestingSink(total))
    spent = timed(lambda: run_main(flow))
    assert sum(each for _key, (_window, each) in total) == in_all(num, SIZE_MS // SLIDE_MS)
    return num, *spent


def in_polars(num: int) -> tuple[int, float, float]:
    """group_by_dynamic of one frame that holds all rows, by key."""
    import polars as pl

    found: list[int] = []

    def work() -> None:
        keys, values, times = columns(num)
        frame = pl.DataFrame({"key": keys, "value": values, "time": times}).set_sorted("time")
        windows = frame.group_by_dynamic("time", every=f"{TUMBLING_MS}i", group_by="key").agg(pl.col("value").sum())
        found.append(windows["value"].sum())

    columns(num)
    spent = timed(work)
    assert found == [in_all(num, 1)]
    return num, *spent


SLIDING = SlidingWindows(SIZE_MS, SLIDE_MS)
WINDOWS: dict[str, Entry] = {
    made.key: made
    for made in (
        entry("windows/sliding", "a sum by key, three windows a record", lambda n: ours(n, SLIDING, 3, False)),
        entry("windows/batches", "tumbling, in batches", lambda n: ours(n, TumblingWindows(TUMBLING_MS), 1, True)),
        entry("peers/bytewax, sliding", "the same", in_bytewax, lacking=partial(lacking, "bytewax")),
        entry("peers/polars", "group_by_dynamic", in_polars, lacking=partial(lacking, "polars")),
    )
}
