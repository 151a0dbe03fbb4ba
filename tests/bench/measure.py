"""Contenders take turns, A B C A B C, and are compared within each round.

Rules of this file:
- A ratio is the median of the ratios of single rounds. Whatever else the machine does falls on neighbours in time
  alike, so such a ratio holds where the figures themselves drift.
- Every turn is checked: a contender that does not deliver what it was given has no speed.
- Next to the clock stands the CPU time of the whole process, which other users of the machine hardly move.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = [
    "Benchmark",
    "Contender",
    "Figure",
    "Outcome",
    "Ratio",
    "Row",
    "Turn",
    "WrongAnswerError",
    "in_two_threads",
    "measure",
    "timed",
]

Row = tuple[int, int, int]
"""A record: time, key, value."""


class WrongAnswerError(Exception):
    """A contender did not deliver the records it was given."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of one contender: what it moved, how long it took, what arrived."""

    num_records: int
    wall_s: float
    cpu_s: float
    checksum: int


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to bring records from one place to another.

    `run(n)` moves n records, or some more to fill a batch. `deliver(n)` does the same untimed, and returns how many it
    moved and all that arrived. `lacking()` says why neither can be done here, such as a package that is not installed.
    """

    name: str
    meaning: str
    run: Callable[[int], Turn]
    deliver: Callable[[int], tuple[int, list[Row]]]
    is_ordered: bool = True
    lacking: Callable[[], str | None] = lambda: None


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


@dataclass(slots=True)
class Outcome:
    """The turns of one benchmark, by contender, in rounds."""

    benchmark: Benchmark
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    def records_per_s(self, name: str) -> Figure:
        return Figure.of([turn.num_records / turn.wall_s for turn in self.turns[name]])

    def cpu_ns_per_record(self, name: str) -> Figure:
        return Figure.of([turn.cpu_s / turn.num_records * 1e9 for turn in self.turns[name]])

    def wall_ratio(self, ratio: Ratio) -> Figure:
        """How many records `one` moves in the time `other` moves one."""
        return self._ratio(ratio, lambda turn: turn.wall_s / turn.num_records)

    def cpu_ratio(self, ratio: Ratio) -> Figure:
        """How many records `one` moves for the work `other` puts into one."""
        return self._ratio(ratio, lambda turn: turn.cpu_s / turn.num_records)

    def _ratio(self, ratio: Ratio, cost: Callable[[Turn], float]) -> Figure:
        pairs = zip(self.turns[ratio.one], self.turns[ratio.other], strict=True)
        return Figure.of([cost(other) / cost(one) for one, other in pairs])


NUM_CHECKED = 20_011  # records compared one by one before anything is timed; a prime fits no batch and no buffer
NUM_FIRST = 2_000  # records of the turn that finds out how many fit the time asked for


def measure(
    benchmark: Benchmark,
    rounds: int,
    seconds: float,
    num_records: int | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> Outcome:
    """Check all contenders, then let them take turns of `seconds` each, or of `num_records` records.

    Raises:
        WrongAnswerError: a contender lost, changed or invented a record.
    """
    sizes = {}
    for contender in benchmark.contenders:
        say(f"{benchmark.name}: checking {contender.name}")
        _check_delivery(benchmark, contender, min(NUM_CHECKED, num_records or NUM_CHECKED))
        sizes[contender.name] = num_records or _fitting(benchmark, contender, seconds)
    outcome = Outcome(benchmark, {contender.name: [] for contender in benchmark.contenders})
    for number in range(rounds):
        # Every second round goes backwards, so that nobody always follows the same neighbour.
        for contender in benchmark.contenders[:: -1 if number % 2 else 1]:
            say(f"{benchmark.name}: round {number + 1} of {rounds}, {contender.name}")
            outcome.turns[contender.name].append(_turn(benchmark, contender, sizes[contender.name]))
    return outcome


def _turn(benchmark: Benchmark, contender: Contender, num_records: int) -> Turn:
    gc.collect()  # nobody pays for what the one before left behind
    turn = contender.run(num_records)
    if turn.checksum != benchmark.checksum(turn.num_records):
        raise WrongAnswerError(
            f"{contender.name} was given {turn.num_records} records with the sum "
            f"{benchmark.checksum(turn.num_records)}; the sum of what arrived is {turn.checksum}"
        )
    return turn


def _check_delivery(benchmark: Benchmark, contender: Contender, num_records: int) -> None:
    num_moved, arrived = contender.deliver(num_records)
    expected = benchmark.expected(num_moved)
    if arrived != expected:
        first = next((i for i, (a, b) in enumerate(zip(arrived, expected, strict=False)) if a != b), len(arrived))
        raise WrongAnswerError(
            f"{contender.name} was given {num_moved} records and delivered {len(arrived)}; "
            f"the first that differs is number {first}"
        )


def _fitting(benchmark: Benchmark, contender: Contender, seconds: float) -> int:
    """How many records take about `seconds`; found by turns that grow, which also warm everything up."""
    num_records = NUM_FIRST
    while True:
        turn = _turn(benchmark, contender, num_records)
        if turn.wall_s >= seconds / 4:
            return max(1, int(turn.num_records * seconds / turn.wall_s))
        num_records *= 4


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Do `work`; return the (wall, CPU) seconds it took, the CPU time of all threads."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


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
