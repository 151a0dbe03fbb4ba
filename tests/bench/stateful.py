"""What a task remembers: with and without checkpoints, made bytes, written to disk; timers, and a sink of two phases.

With fewer records than there are keys, there are as many keys as records; a benchmark has 100 000, which are 10 MB.
"""

from __future__ import annotations

import heapq
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink, line
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import LONG, STRING
from refimpl.shortcuts.tables import write_table_at_once
from refimpl.state import KeyedStateBackend, OperatorStates, Section, SnapshotStore, SubtaskState
from refimpl.task import FunctionContext, IterableReader, KeyedProcessFunction, ProcessContext
from refimpl.task.timers import TimerQueue
from tests.bench.measure import Contender, Entry, Turn, timed

__all__ = ["STATEFUL"]

NUM_KEYS = 100_000
TEXT = "x" * 92  # with its key and lengths about 10 MB in all
NUM_COUNTS = 1_000
FEW_SECONDS = 600_000
"""Records of a job that checkpoints each second: a last checkpoint is made at its end, which is none of each second."""
GROUPS = range(128)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        yield Path(name)


@cache
def texts(num_keys: int, is_even: bool = True) -> dict[int, str]:
    """Texts of a hundred characters, or of up to twice as many that have as many on average."""
    if is_even:
        return {key: f"{TEXT}{key:08d}" for key in range(num_keys)}
    return {key: f"{(2 * TEXT)[key * 7_919 % (2 * len(TEXT)) :]}{key:08d}" for key in range(num_keys)}


@cache
def states(num_keys: int, is_even: bool = True) -> OperatorStates:
    """Text by key."""
    backend = KeyedStateBackend(LONG)
    state = backend.value_state("texts", STRING)
    for key, text in texts(num_keys, is_even).items():
        backend.current_key = key
        state.update(text)
    return OperatorStates(backend, {})


def entry(key: str, meaning: str, run: Callable[[int], tuple[int, float, float]], **options: Any) -> Entry:
    """One whose `run` says itself what it did: how many, in how long. What it must have done it checks."""

    def turn(num_records: int) -> Turn:
        moved, wall_s, cpu_s = run(num_records)
        return Turn(moved, wall_s, cpu_s, moved)

    made = Contender(key, meaning, turn, lambda n: (run(n)[0], []), **options)
    return Entry(key, made, lambda _: [], int)


# -- a job with 10 MB of state ---------------------------------------------------------------------


class Counting(KeyedProcessFunction):
    """Counts by key, and holds text besides, which it has from the start."""

    def __init__(self, num_keys: int) -> None:
        self._num_keys = num_keys

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count", LONG)
        table = context.value_state("texts", STRING)
        for key, text in texts(self._num_keys).items():
            table._table.put(key, None, text)  # before there is a record there is no key

    def process_element(self, value: int, ctx: ProcessContext) -> Iterable[int]:
        self.count.update((self.count.value() or 0) + 1)
        return (value,)


def followed(environment: StreamEnvironment, store: SnapshotStore | None) -> tuple[float, float]:
    """Run a job in one thread; a second of its clock is a second of work. How long it took with its operators open.

    By the wall's clock a machine that is busy with others' work would do nothing but checkpoints.
    """
    run = Simulation(environment, policy="round_robin", check_every=0, store=store)
    for _ in range(4):
        run.step()
    began_s = time.process_time()

    def follow(simulation: Simulation) -> None:
        simulation.time_ms = (time.process_time() - began_s) * 1_000

    return timed(lambda: run.run(on_step=follow))


def numbers(num_records: int, interval_ms: int) -> tuple[StreamEnvironment, DataStream]:
    given = {"num_buffers": 64, "source_batch": 64, "buffer_timeout_ms": -1, "checkpoint_interval_ms": interval_ms}
    given |= {
        "shortcuts": True,
        "min_pause_ms": interval_ms,
    }  # a checkpoint may take longer than that, and the job has to go on
    environment = StreamEnvironment(Config(**given))
    return environment, environment.source(lambda _i, _n: IterableReader(range(num_records)), "numbers", LONG)


def counted(num_records: int, interval_ms: int) -> tuple[int, float, float]:
    """A job of two tasks; the store is on disk, and synced."""
    environment, source = numbers(num_records, interval_ms)
    seen: list[int] = []
    keyed = source.key_by(lambda number: number % NUM_COUNTS, LONG)
    keyed.process(Counting(min(num_records, NUM_KEYS)), "count", LONG).sink(seen.append)
    with folder() as place:
        spent = followed(environment, FileStore(place) if interval_ms else None)
    assert len(seen) == num_records
    return num_records, *spent


# -- bytes, and a disk -----------------------------------------------------------------------------


def repeated(num_records: int, work: Callable[[Path, int, int], object]) -> tuple[int, float, float]:
    """Do `work` with a folder, a number and how many keys, as often as makes about that many records."""
    num_keys = min(num_records, NUM_KEYS)
    times = num_records // num_keys
    ready(num_keys)  # what it begins with is there, and so is what others begin with
    states(num_keys, False)
    with folder() as place:

        def work_all() -> None:
            for number in range(times):
                work(place, number, num_keys)  # nobody keeps it: a store has it, and the memory is used again

        return times * num_keys, *timed(work_all)


def sections(num_keys: int, is_even: bool = True) -> list[Section]:
    return states(num_keys, is_even).snapshot("count", GROUPS, len(GROUPS), write_table_at_once)


def state_of(number: int, num_keys: int) -> SubtaskState:
    return SubtaskState.of(f"chk-{number}/count-0-0.state", sections(num_keys))


def pickled(num_keys: int, is_even: bool = True) -> bytes:
    return pickle.dumps(texts(num_keys, is_even), protocol=5)


def put(place: Path, number: int, num_keys: int) -> None:
    state = state_of(number, num_keys)
    FileStore(place).put(state.file.key, state.parts)


def written(place: Path, number: int, data: bytes) -> None:
    with (place / f"{number}.bin").open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@cache
def ready(num_keys: int) -> bytes:
    """As many bytes as a snapshot has."""
    return b"".join(state_of(0, num_keys).parts)


SNAPSHOTS: dict[str, tuple[str, Callable[[Path, int, int], object]]] = {
    "bytes": ("text by key made bytes by key group", lambda _place, _number, keys: sections(keys)),
    "pickle": ("pickle.dumps of the same dict", lambda _place, _number, keys: pickled(keys)),
    "uneven": ("the same with texts of many lengths", lambda _place, _number, keys: sections(keys, False)),
    "pickle, uneven": ("pickle.dumps of that dict", lambda _place, _number, keys: pickled(keys, False)),
    "put": ("bytes made a state file, in a FileStore, synced", put),
    "pickle, fsync": ("pickle.dumps, written and synced", lambda place, n, keys: written(place, n, pickled(keys))),
    "raw, fsync": ("as many bytes, written and synced", lambda place, n, keys: written(place, n, ready(keys))),
}

# -- timers ----------------------------------------------------------------------------------------

FAN = 1_000


def timer_queue(num_timers: int) -> tuple[int, float, float]:
    """Timers of 1 000 keys, set in no order of time, and time that follows them."""
    fired: list[int] = []

    def work() -> None:
        timers = TimerQueue()
        for number in range(num_timers):
            timers.register(number + number * 7_919 % FAN, number % FAN, None)
            if number % FAN == 0:
                fired.extend(timestamp for timestamp, _, _ in timers.advance(number))
        fired.extend(timestamp for timestamp, _, _ in timers.advance(num_timers + FAN))

    spent = timed(work)
    assert len(fired) == num_timers
    return num_timers, *spent


def bare_heap(num_timers: int) -> tuple[int, float, float]:
    fired: list[int] = []

    def work() -> None:
        heap: list[tuple[int, int]] = []
        for number in range(num_timers):
            heapq.heappush(heap, (number + number * 7_919 % FAN, number % FAN))
            if number % FAN == 0:
                while heap and heap[0][0] <= number:
                    fired.append(heapq.heappop(heap)[0])
        while heap:
            fired.append(heapq.heappop(heap)[0])

    spent = timed(work)
    assert len(fired) == num_timers
    return num_timers, *spent


# -- sinks -----------------------------------------------------------------------------------------


def two_phases(num_records: int) -> tuple[int, float, float]:
    """A job whose sink writes a file for each checkpoint: synced, renamed, renamed."""
    with folder() as place:
        environment, source = numbers(num_records, 1_000)
        source.rebalance().sink_to(FileSink(place / "out"))
        spent = followed(environment, FileStore(place / "store"))
        assert sum(file.read_bytes().count(b"\n") for file in (place / "out").iterdir()) == num_records
    return num_records, *spent


def plain_file(num_records: int) -> tuple[int, float, float]:
    """A job whose sink writes a line for each record into one file, which is synced at the end."""
    with folder() as place, (place / "out").open("xb") as file:
        environment, source = numbers(num_records, 0)
        source.rebalance().sink(lambda number: file.write(line(number)))

        def work() -> None:
            followed(environment, None)
            file.flush()
            os.fsync(file.fileno())

        spent = timed(work)
        assert (place / "out").read_bytes().count(b"\n") == num_records
    return num_records, *spent


STATEFUL: dict[str, Entry] = {
    made.key: made
    for made in (
        entry(
            "state/checkpoints",
            "keyed counts beside 10 MB, a checkpoint each second",
            lambda n: counted(n, 1_000),
            least_records=FEW_SECONDS,
        ),
        entry("state/none", "the same without checkpoints", lambda n: counted(n, 0), least_records=FEW_SECONDS),
        *(
            entry(f"snapshot/{name}", meaning, partial(repeated, work=work), least_records=NUM_KEYS)
            for name, (meaning, work) in SNAPSHOTS.items()
        ),
        entry("timers/queue", "event timers: set, and fired as time follows", timer_queue),
        entry("timers/heapq", "the same with heapq alone", bare_heap),
        entry("sink/two phases", "a job, lines into a FileSink, a checkpoint each second", two_phases),
        entry("sink/plain", "the same job without checkpoints, lines into one file", plain_file),
    )
}
