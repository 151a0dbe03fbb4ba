"""Contenders take turns, A B C A B C, and are compared within each round.

Rules of this file:
- A ratio is the median of the ratios of single rounds. Whatever else the machine does falls on neighbours in time
  alike, so such a ratio holds where the figures themselves drift.
- Every turn is checked: a contender that does not deliver what it was given has no speed.
- Next to the clock stands the CPU time of all processes that took part, which other users of the machine hardly move.
"""

from __future__ import annotations

import gc
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = [
    "Benchmark",
    "Contender",
    "ContenderError",
    "Entry",
    "Figure",
    "Ratio",
    "Row",
    "Turn",
    "WrongAnswerError",
    "in_two_threads",
    "play",
    "timed",
]

Row = tuple[int, int, int]
"""A record: time, key, value."""


class WrongAnswerError(Exception):
    """A contender did not deliver the records it was given."""


class ContenderError(Exception):
    """A contender that is not ours failed while it was measured; `key` is its name."""

    def __init__(self, key: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.key = key


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of one contender: what it moved, how long it took, what arrived, and what else was found out.

    `found` has what is not a speed, by name with its unit: `p50_ms`, `flushes_per_s`, `growth_mib`.
    """

    num_records: int
    wall_s: float
    cpu_s: float
    checksum: int
    found: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to bring records from one place to another.

    `run(n)` moves n records, or some more to fill a batch. `deliver(n)` does the same untimed, and returns how many it
    moved and all that arrived. `lacking()` says why neither can be done here, such as a package that is not installed.
    One that keeps a pace has `records_per_s`: its turns are as long as that makes them. One whose beginning and end
    cost something has `least_records`, so many that this does not show.
    """

    name: str
    meaning: str
    run: Callable[[int], Turn]
    deliver: Callable[[int], tuple[int, list[Row]]]
    is_ordered: bool = True
    lacking: Callable[[], str | None] = lambda: None
    records_per_s: float | None = None
    least_records: int = 1


@dataclass(frozen=True, slots=True)
class Ratio:
    """What is compared: how many times as fast `one` is as `other`, and what the design asks for.

    Below `floor` something is broken; `goal` is bold, and within reach.
    """

    one: str
    other: str
    goal: float | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Contenders that do the same work, and the ratios to report.

    `expected(n)` lists the first n records, `checksum(n)` is the sum a turn that moves them must come to.
    """

    name: str
    meaning: str
    contenders: Sequence[Contender]
    ratios: Sequence[Ratio]
    expected: Callable[[int], list[Row]]
    checksum: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender under the name it has among all, and what it must come to."""

    key: str
    contender: Contender
    expected: Callable[[int], list[Row]]
    checksum: Callable[[int], int]

    @property
    def is_ours(self) -> bool:
        return not self.key.startswith(("peers/", "flink/"))


@dataclass(frozen=True, slots=True)
class Figure:
    """A median and what the middle half of the rounds lie between; with under four rounds, all of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        middle = statistics.median(values)
        if len(values) < 4:
            return cls(middle, min(values), max(values))
        quartiles = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, quartiles[0], quartiles[2])


NUM_CHECKED = 20_011  # no multiple of anything that a batch or a segment could hold
NUM_FIRST = 1_000
SECONDS_OF_PACED = 4  # times as long as others: what happens now and then must happen often enough


def play(
    entries: Sequence[Entry],
    rounds: int,
    seconds: float,
    num_records: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    turns: dict[str, list[Turn]] | None = None,
) -> dict[str, list[Turn]]:
    """Let all take turns, each as many records as take about `seconds`; return, or add to, the turns of each.

    Raises:
        WrongAnswerError: a contender lost, changed or invented a record.
        ContenderError: one that is not ours failed; an error of ours is raised as it is.
    """
    sizes = {}
    for entry in entries:
        say(f"checking {entry.key}")
        _check_delivery(entry, min(NUM_CHECKED, num_records or NUM_CHECKED))
        sizes[entry.key] = num_records or _fitting(entry, seconds)
    turns = {} if turns is None else turns
    for number in range(rounds):
        # Every second round goes backwards, so that nobody always follows the same neighbour.
        for entry in entries[:: -1 if number % 2 else 1]:
            say(f"round {number + 1} of {rounds}, {entry.key}")
            turns.setdefault(entry.key, []).append(_turn(entry, sizes[entry.key]))
    return turns


def _turn(entry: Entry, num_records: int) -> Turn:
    gc.collect()  # nobody pays for what the one before left behind
    with _blamed(entry):
        turn = entry.contender.run(num_records)
    if turn.checksum != entry.checksum(turn.num_records):
        raise WrongAnswerError(
            f"{entry.key} was given {turn.num_records} records with the sum "
            f"{entry.checksum(turn.num_records)}; the sum of what arrived is {turn.checksum}"
        )
    return turn


@contextmanager
def _blamed(entry: Entry) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if entry.is_ours:
            raise
        raise ContenderError(entry.key, error) from error


def _check_delivery(entry: Entry, num_records: int) -> None:
    with _blamed(entry):
        num_moved, arrived = entry.contender.deliver(num_records)
    expected = entry.expected(num_moved)
    if not entry.contender.is_ordered:
        arrived, expected = sorted(arrived), sorted(expected)
    if arrived != expected:
        first = next((i for i, (a, b) in enumerate(zip(arrived, expected, strict=False)) if a != b), len(arrived))
        raise WrongAnswerError(
            f"{entry.key} was given {num_moved} records and delivered {len(arrived)}; "
            f"the first that differs is number {first}"
        )


def _fitting(entry: Entry, seconds: float) -> int:
    """How many records take about `seconds`; found by turns that grow, which also warm everything up.

    The size is that of the faster of two turns: one that the machine held up would make all turns of this run tiny.
    """
    if (pace := entry.contender.records_per_s) is not None:
        return max(1, int(pace * seconds * SECONDS_OF_PACED))
    num_records = NUM_FIRST
    while True:
        turn = _turn(entry, num_records)
        if turn.wall_s >= seconds / 4:
            turn = min(turn, _turn(entry, num_records), key=lambda each: each.wall_s / each.num_records)
        if turn.wall_s >= seconds / 4:
            return max(entry.contender.least_records, int(turn.num_records * seconds / turn.wall_s))
        num_records *= 4


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Do `work`; return the (wall, CPU) seconds it took, with all threads and the processes that ended meanwhile."""
    cpu, wall = _cpu_s(), time.perf_counter()
    work()
    return time.perf_counter() - wall, _cpu_s() - cpu


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_two_threads(produce: Callable[[], None], consume: Callable[[], None]) -> tuple[float, float]:
    """Run both at once, `consume` in this thread; return (wall, CPU) seconds.

    `produce` must end `consume` also when it fails; its exception is raised here.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            produce()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that can report it
            failures.append(error)

    # A daemon: after Ctrl-C nobody takes what it produces, and it must not keep the process alive.
    thread = threading.Thread(target=run, name="producer", daemon=True)

    def both() -> None:
        thread.start()
        consume()
        thread.join()

    spent = timed(both)
    if failures:
        raise failures[0]
    return spent
