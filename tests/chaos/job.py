"""The job under test: all that has state, time or a transaction, between two sources and the files of one sink.

    flights (a file) ──┬─ sliding windows ──────────┐
                       ├─ session windows ──────────┼─ lines of text in files, each once
                       └─┐                          │
    weather (made up) ───┴─ pairs, and their counts ┘

A result does not depend on the order in which the two sources are read, and no record is late. So the committed lines,
sorted, are always the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.job.data_stream import DataStream
from refimpl.records import StreamRecord
from refimpl.task import (
    FunctionContext,
    KeyedCoProcessFunction,
    ProcessContext,
    SessionWindows,
    SlidingWindows,
)

__all__ = ["batch_run", "flights", "results", "weather", "write_flights"]

NUM_KEYS = 4
DISORDER_MS = 6
SIZE_MS, SLIDE_MS, GAP_MS, BUCKET_MS = 24, 12, 7, 20

Record = tuple[int, int, int]
"""Key, number, and event time in ms."""


def flights(num_records: int) -> list[Record]:
    """What stands in the file."""
    random = Random(1)
    return [(random.randrange(NUM_KEYS), each, each * 2 + random.randrange(DISORDER_MS)) for each in range(num_records)]


def weather(number: int) -> Record:
    """One of the records that are made up: it depends on its number only."""
    random = Random(number)
    return random.randrange(NUM_KEYS), number, number * 3 + random.randrange(DISORDER_MS)


def write_flights(path: Path, num_records: int) -> None:
    path.write_text("".join(f"{key},{number},{time_ms}\n" for key, number, time_ms in flights(num_records)))


class LineReader:
    """Every n-th line of a file; a reader that can begin anywhere. `held` as in `results`."""

    def __init__(self, path: Path, subtask: int, num_subtasks: int, held: Path | None = None) -> None:
        self._lines = path.read_text().splitlines()[subtask::num_subtasks]
        self._position = 0
        self._held = held

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if _is_held(self._held, self._position + max_records, len(self._lines)):
            return []
        lines = self._lines[self._position : self._position + max_records]
        self._position += len(lines)
        return [StreamRecord(tuple(map(int, line.split(",")))) for line in lines] or None

    def close(self) -> None: ...


class Generator:
    """Records that are made up; a reader that cannot begin anywhere but at the beginning. `held` as in `results`."""

    def __init__(self, num_records: int, subtask: int, num_subtasks: int, held: Path | None = None) -> None:
        own = range(subtask, num_records, num_subtasks)
        self._numbers, self._num_records, self._num_read = iter(own), len(own), 0
        self._held = held

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if _is_held(self._held, self._num_read + max_records, self._num_records):
            return []
        numbers = list(islice(self._numbers, max_records))
        self._num_read += len(numbers)
        return [StreamRecord(weather(number)) for number in numbers] or None

    def close(self) -> None: ...


def _is_held(held: Path | None, until: int, num_records: int) -> bool:
    """Whether what comes up to there must wait."""
    return held is not None and until > num_records // 2 and not held.exists()


class CountAndSum:
    """How many there are in a window, and the sum of their numbers."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Record, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def merge(self, accumulator: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator


class Pairs(KeyedCoProcessFunction):
    """Each flight with each weather of its key and bucket of time; and, when a bucket is over, how many of each."""

    def open(self, context: FunctionContext) -> None:
        self._sides = context.map_state("flights"), context.map_state("weather")

    def process_element1(self, value: Record, ctx: ProcessContext) -> Iterable[Any]:
        return self._met(0, value, ctx)

    def process_element2(self, value: Record, ctx: ProcessContext) -> Iterable[Any]:
        return self._met(1, value, ctx)

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterable[Any]:
        counts = [len(side.get(timestamp) or ()) for side in self._sides]
        for side in self._sides:
            side.remove(timestamp)
        yield "bucket", ctx.current_key, timestamp, *counts

    def _met(self, side: int, value: Record, ctx: ProcessContext) -> Iterable[Any]:
        end = value[2] // BUCKET_MS * BUCKET_MS + BUCKET_MS - 1
        own, other = self._sides[side], self._sides[1 - side]
        own.put(end, [*(own.get(end) or ()), value[1]])
        ctx.timers.register_event_time_timer(end)
        for number in other.get(end) or ():
            flight, report = (value[1], number) if side == 0 else (number, value[1])
            yield "pair", value[0], flight, report


def text(kind: str) -> Callable[[Any], str]:
    """Makes a line of a result; the words in it are separated by spaces."""
    return lambda result: " ".join([kind, *(str(part) for part in _flat(result))])


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def results(job: StreamEnvironment, source: Path, num_records: int, held: Path | None = None) -> DataStream:
    """The lines of text that the job comes to: it reads `source`, and makes up as many records more.

    With `held` the second half of both comes when there is a file of that name.
    """
    lines = job.source(lambda i, n: LineReader(source, i, n, held), "flights").set_parallelism(2)
    made_up = job.source(lambda i, n: Generator(num_records, i, n, held), "weather").set_parallelism(1)
    first = lines.assign_timestamps(lambda value: value[2], DISORDER_MS, every=2, name="flight times")
    second = made_up.assign_timestamps(lambda value: value[2], DISORDER_MS, every=2, name="weather times")
    keyed = first.set_parallelism(2).key_by(lambda value: value[0])
    other = second.set_parallelism(1).key_by(lambda value: value[0])
    sliding = keyed.window(SlidingWindows(SIZE_MS, SLIDE_MS)).aggregate(CountAndSum(), name="sliding")
    sessions = keyed.window(SessionWindows(GAP_MS)).aggregate(CountAndSum(), name="sessions")
    pairs = keyed.connect(other).process(Pairs(), name="pairs")
    return sliding.map(text("sliding"), name="sliding text").union(
        sessions.map(text("session"), name="session text"), pairs.map(text("met"), name="pair text")
    )


def batch_run(source: Path, num_records: int) -> list[str]:
    """What the job gives without checkpoints, files and faults, sorted."""
    job, lines = StreamEnvironment(), list[str]()
    write_flights(source, num_records)
    results(job, source, num_records).sink(lines.append)
    Simulation(job, check_every=0).run()
    return sorted(lines)
