"""A learner's parts of lesson 12 at work: a rule that names a running job's culprit, and Storm's queue in the race.

The job has one slow part in each of its phases. Every so many virtual milliseconds both rules are asked about the same
loads; where the learner's fails, ours goes on. In the race the learner's queue stands beside one of ours, which has
the same records; where it fails, ours is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from course.figures.pressure import PHASES, Look, looks_at_a_job
from course.swap.guard import Guard
from course.swap.report import first_lines
from refimpl.cluster import who_holds_back
from refimpl.rivals import DisruptorQueue, Phase, Run, Storm, Workload, measure, run_rival

__all__ = ["CulpritReport", "RaceReport", "run_in_a_race", "run_in_pressure"]

_RACE = (
    Phase("full", 10, 200.0, 250.0), Phase("consumer at 30 %", 30, 200.0, 75.0), Phase("full again", 10, 200.0, 250.0),
)  # fmt: skip
_SEED = 4


# -- who is named in a job ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CulpritReport:
    """Whom a rule named in each phase of a job, beside whom ours did; names of subtasks."""

    exercise: str
    part_name: str
    is_learners: bool
    looks: tuple[Look, ...]
    named: tuple[str, ...]
    num_in: int
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0
    num_lost: int = 0
    error: str = ""

    @property
    def is_equal(self) -> bool:
        return all(each == look.culprit for each, look in zip(self.named, self.looks, strict=True))

    def __repr__(self) -> str:
        lines = first_lines(self, f"asked {len(self.looks)} times while the job ran")
        for phase, words in enumerate(PHASES):
            named = [name for name, look in zip(self.named, self.looks, strict=True) if look.phase == phase]
            counts = {name: named.count(name) for name in dict.fromkeys(named)}
            told = ", ".join(f"{name} ({number})" for name, number in counts.items())
            lines.append(f"  {words.words:<28} {told}")
        same = sum(name == look.culprit for name, look in zip(self.named, self.looks, strict=True))
        sign = "✓" if self.is_equal else "✗"
        lines.append(f"{sign} {same} of {len(self.looks)} as ours; {self.num_in} records read, none lost")
        return "\n".join(lines)


def run_in_pressure(exercise_id: str, part: Any) -> CulpritReport:
    """Ask `part`, or ours, whom it blames, again and again in a job that runs."""
    looks, num_in = looks_at_a_job()
    if part is None:
        named = tuple(look.culprit for look in looks)
        return CulpritReport(exercise_id, who_holds_back.__name__, False, looks, named, num_in)
    with Guard(part) as guard:
        named = tuple(_asked(guard, look) for look in looks)
    name = getattr(part, "__name__", type(part).__name__)
    happened = tuple(guard.what_happened)
    return CulpritReport(exercise_id, name, True, looks, named, num_in, happened, guard.num_calls)


def _asked(guard: Guard, look: Look) -> str:
    if not guard.is_out:
        with guard.call():
            return look.name_of(guard.part(dict(look.loads), list(look.exchanges)))
    return look.culprit


# -- Storm's queue in the race -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RaceReport:
    """What became of Storm with another queue in each of its workers, beside what becomes of it with ours."""

    exercise: str
    part_name: str
    is_learners: bool
    ours: Run
    theirs: Run
    num_writes: tuple[int, int]
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0
    num_lost: int = 0
    error: str = ""

    @property
    def num_in(self) -> int:
        return sum(self.theirs.samples[-1].emitted)

    @property
    def is_equal(self) -> bool:
        return self.ours.samples == self.theirs.samples and self.num_writes[0] == self.num_writes[1]

    def __repr__(self) -> str:
        lines = first_lines(self, f"in each worker of Storm, for {len(self.ours.rates())} virtual seconds")
        lines.append(f"{'':<42}{'ours':>8}{'this one':>10}")
        both = measure(self.ours), measure(self.theirs)
        rows: tuple[tuple[str, Sequence[object]], ...] = (
            ("times the slow branch's source stood still", [each.phases[1].num_stops for each in both]),
            ("writes to ZooKeeper", self.num_writes),
            ("records inside at most", [each.peak_records for each in both]),
            ("the innocent branch kept", [f"{each.innocent:.0%}" for each in both]),
        )
        lines += [f"  {what:<42}{ours!s:>6}{theirs!s:>10}" for what, (ours, theirs) in rows]
        lines.append("✓ second by second as with ours" if self.is_equal else "✗ NOT what ours does")
        return "\n".join(lines)


def run_in_a_race(exercise_id: str, part: Any) -> RaceReport:
    """Run Storm with `part` as its queue, or with ours, under the load of the race."""
    ours, num_writes = _storm(DisruptorQueue)
    if part is None:
        return RaceReport(exercise_id, DisruptorQueue.__name__, False, ours, ours, (num_writes, num_writes))
    with Guard(part) as guard:
        theirs, their_writes = _storm(partial(_GuardedQueue, guard))
    name = getattr(part, "__name__", type(part).__name__)
    happened = tuple(guard.what_happened)
    return RaceReport(
        exercise_id, name, True, ours, theirs, (num_writes, their_writes), happened, guard.num_calls
    )  # fmt: skip


def _storm(make_queue: Callable[[], Any]) -> tuple[Run, int]:
    storm = Storm(make_queue=make_queue)
    run = run_rival(storm, Workload(_SEED, _RACE))
    return run, sum(worker.num_writes for worker in storm.workers)


class _GuardedQueue:
    """Ours and the learner's, with the same records; the learner's says when it throttles, until it fails."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._ours = DisruptorQueue()
        self._theirs: Any = None
        self._on_change: Callable[[], None] = lambda: None
        if not guard.is_out:
            with guard.call():
                self._theirs = guard.part()

    @property
    def on_change(self) -> Callable[[], None]:
        return self._on_change

    @on_change.setter
    def on_change(self, call: Callable[[], None]) -> None:
        self._on_change = call
        self._ours.on_change = lambda: call() if self._is_out else None
        if not self._is_out:
            self._theirs.on_change = call

    @property
    def _is_out(self) -> bool:
        return self._guard.is_out or self._theirs is None

    @property
    def is_throttling(self) -> bool:
        return self._ours.is_throttling if self._is_out else bool(self._theirs.is_throttling)

    @property
    def population(self) -> int:
        return self._ours.population

    @property
    def num_overflow(self) -> int:
        return self._ours.num_overflow

    @property
    def is_full(self) -> bool:
        return self._ours.is_full

    def add(self, record: float) -> None:
        self._ours.add(record)
        if not self._is_out:
            with self._guard.call():
                self._theirs.add(record)
            self._look_if_out()

    def consume(self) -> float | None:
        record = self._ours.consume()
        if not self._is_out:
            with self._guard.call():
                given = self._theirs.consume()
                if given != record:
                    self._guard.take_out(f"it gave {given!r}"[:60] + f" where {record!r} was next")
            self._look_if_out()
        return record

    def _look_if_out(self) -> None:
        """The worker is told to look again, since from now on ours is believed."""
        if self._is_out:
            self._on_change()
