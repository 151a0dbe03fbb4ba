"""Experiments on running jobs: the producer follows its consumer; what a buffer timeout costs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot, StreamEnvironment
from widgets.base import whole_number
from widgets.paper import Curve, Panel, PaperFigure
from widgets.throughput_view import ThroughputView

__all__ = ["ConsumerSpeed", "Phase", "throughput_by_timeout"]

_LONGEST_REST_MS = 10_000.0
_USUAL_TIMEOUTS_MS = (1, 2, 5, 10, 50, 100)


class Slowable(Protocol):
    """A running job whose tasks can be slowed."""

    @property
    def is_done(self) -> bool: ...

    def snapshot(self) -> JobSnapshot: ...

    def slow(self, name: str, rest_ms: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: how fast the consumer was let be, and what every task took in a second."""

    percent: float
    records_per_s: dict[str, float]

    def __repr__(self) -> str:
        rates = ", ".join(f"{name} {rate:.0f}" for name, rate in self.records_per_s.items())
        return f"{self.percent:g} %: {rates} records/s"


_OF_THE_TEXTS = (("sender", 60), ("reader", 30), ("", 100), ("reader", 30), ("", 100))
_LOOKS_PER_PHASE = 16


class ConsumerSpeed:
    """The experiment of the texts about Flink's backpressure: who is slow sets the pace of all, some seconds each.

    The producer, the first operator of the run, is held at 60 %. Then it is let go and the consumer `name` is held at
    30 %; then nobody is; then the consumer again; then nobody. With `percents` the consumer is held at each of these.

    100 % is how many records pass in a second while the consumer rests `pace_ms` after each buffer, which is measured
    first. Whoever is held rests as long as it takes: a step of a source is a number of records, that of a consumer a
    buffer, and both have work to do. Each change is marked in `view`. It works in the background from
    `start` on; `join` waits for the end, `stop` ends it, `phases` is what was measured. The first half of a phase is
    left to settle.

        run = ThreadedRun(environment).start()
        view = ThroughputView(run)
        experiment = ConsumerSpeed(run, "sink", view=view).start()

    Raises:
        LocalUsageError: a percentage is not above 0, there is no such task (at the first change), or it has been
            started before.
    Raises (join):
        Exception: why it ended early; `error` has it, too.
    """

    def __init__(
        self,
        run: Slowable,
        name: str,
        percents: Sequence[float] | None = None,
        seconds: float = 4.0,
        pace_ms: float = 4.0,
        view: ThroughputView | None = None,
    ) -> None:
        is_some = percents is None or (isinstance(percents, Sequence) and bool(percents))
        if not is_some or not all(_is_within(each, 1_000) for each in percents or ()):
            raise LocalUsageError(f"percents={percents!r} cannot work: each is above 0, at most 1000")
        if not _is_within(seconds, 600) or not _is_within(pace_ms, 1_000):
            raise LocalUsageError(f"seconds={seconds!r}, pace_ms={pace_ms!r}: more than 0, at most 600 and 1000")
        if view is not None and not isinstance(view, ThroughputView):
            raise LocalUsageError(f"view={view!r} cannot be marked; give a ThroughputView")
        self.phases: list[Phase] = []
        self.error: BaseException | None = None
        self._run, self._name, self._view = run, name, view
        self._producer = run.snapshot().tasks[0].operators[0] if percents is None else None
        self._plan = _OF_THE_TEXTS if percents is None else tuple(("", percent) for percent in percents)
        self._seconds, self._pace_ms = seconds, pace_ms
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sluice-experiment", daemon=True)

    def __repr__(self) -> str:
        if self._thread.ident is None:
            return f"{self._name}: not started; .start() begins the experiment"
        return "\n".join([f"{self._name}: {len(self.phases)} of {len(self._plan)} phases", *map(repr, self.phases)])

    def start(self) -> Self:
        """Begin; the consumer has its pace when this returns."""
        if self._thread.ident is not None:
            raise LocalUsageError("this experiment has been started before; make a new one")
        self._run.slow(self._name, self._pace_ms)
        self._thread.start()
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; whether it has come."""
        if self._thread.ident is None:
            raise LocalUsageError("this experiment has not been started; there is nothing to wait for")
        self._thread.join(timeout_s)
        if self.error is not None:
            raise self.error
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End it; the task has its full speed again."""
        self._is_stopped.set()

    def _work(self) -> None:
        try:
            self._go_through()
        except BaseException as error:  # noqa: BLE001 - the run may end, or be lost, at any moment; raised by `join`
            self.error = error

    def _go_through(self) -> None:
        if not self._is_over(self._seconds / 4):
            before = self._run.snapshot()
            if not self._is_over(self._seconds / 4):
                self._go_through_phases(_rate_of(self._name, before, self._run.snapshot()))
        if not self._run.is_done:
            for name in filter(None, (self._name, self._producer)):
                self._run.slow(name, 0)

    def _go_through_phases(self, most_per_s: float) -> None:
        for who, percent in self._plan:
            held = _Held(self._run, self._producer if who == "sender" and self._producer else self._name)
            for name in {*filter(None, (self._name, self._producer))} - {held.name}:
                self._run.slow(name, self._pace_ms if name == self._name else 0)
            held.rest(self._pace_ms * 100 / percent)
            if self._view is not None:
                self._view.mark(f"{who} {percent:g} %".strip())
            target = most_per_s * percent / 100
            before = None if self._is_held_over(held, target) else self._run.snapshot()
            if before is None or self._is_held_over(held, target):
                break
            self.phases.append(Phase(percent, _rates(before, self._run.snapshot())))

    def _is_held_over(self, held: _Held, target_per_s: float) -> bool:
        """Hold it for half a phase; whether the experiment is over."""
        for _ in range(_LOOKS_PER_PHASE // 2):
            if self._is_over(self._seconds / _LOOKS_PER_PHASE):
                return True
            held.look(target_per_s)
        return False

    def _is_over(self, wait_s: float) -> bool:
        return self._is_stopped.wait(wait_s) or self._run.is_done


class _Held:
    """An operator that is held at so many records a second, by how long it rests after a step."""

    def __init__(self, run: Slowable, name: str) -> None:
        self.name = name
        self._run = run
        self._rest_ms = 0.0
        self._before = run.snapshot()

    def rest(self, rest_ms: float) -> None:
        self._rest_ms = rest_ms
        self._run.slow(self.name, rest_ms)

    def look(self, target_per_s: float) -> None:
        """Let it rest longer if it was faster since the last look, shorter if it was slower; at most twice, or half."""
        now = self._run.snapshot()
        ratio = _rate_of(self.name, self._before, now) / max(1.0, target_per_s)
        self._before = now
        self.rest(min(_LONGEST_REST_MS, self._rest_ms * min(2.0, max(0.5, ratio))))


def throughput_by_timeout(
    make_job: Callable[[int], StreamEnvironment],
    name: str,
    timeouts_ms: Sequence[int] = _USUAL_TIMEOUTS_MS,
    seconds: float = 1.0,
    rounds: int = 3,
    num_task_managers: int = 2,
    say: Callable[[str], None] | None = None,
) -> PaperFigure:
    """Measure how much flows with each buffer timeout: records a second into operator `name`.

    `make_job(timeout_ms)` makes the job, which must last longer than `1.5 * seconds`. Every timeout has its turn in
    every round; the figure has medians and the middle half. `say` is told what is measured just now; by default that
    is printed to the error stream.

    Raises:
        LocalUsageError: a number makes no sense, there is no operator `name`, or a job ended before it was measured.
    """
    is_some = isinstance(timeouts_ms, Sequence) and bool(timeouts_ms)
    is_repeated = isinstance(rounds, int) and not isinstance(rounds, bool) and rounds >= 1
    if not is_some or not is_repeated or not _is_within(seconds, 600):
        raise LocalUsageError(f"{timeouts_ms=}, {rounds=}, {seconds=}: at least one of each, and at most 600 seconds")
    for timeout in timeouts_ms:
        whole_number("timeouts_ms", timeout, -1, 2**31)
    whole_number("num_task_managers", num_task_managers, 1, 1_000)
    if not callable(make_job):
        raise LocalUsageError(f"make_job={make_job!r} makes no job; give a function of a buffer timeout")
    rates: dict[int, list[float]] = {timeout: [] for timeout in timeouts_ms}
    for number in range(rounds):
        for timeout in timeouts_ms:
            (say or _say)(f"buffer timeout {timeout} ms, round {number + 1} of {rounds}")
            job = make_job(timeout)
            if not isinstance(job, StreamEnvironment):
                raise LocalUsageError(f"make_job({timeout}) gave a {type(job).__name__}, and not a StreamEnvironment")
            with ThreadedRun(job, num_task_managers=num_task_managers) as run:
                run.start()
                run.join(seconds / 2)
                before = run.snapshot()
                if run.join(seconds):
                    raise LocalUsageError(f"the job ended in less than {1.5 * seconds:g} s; give it more records")
                after = run.snapshot()
            by_vertex = _rates(before, after)
            found = next((each for each in by_vertex if name in each.split(" → ")), None)
            if found is None:
                raise LocalUsageError(f"no operator {name!r}; there are {', '.join(by_vertex)}")
            rates[timeout].append(by_vertex[found])
    import numpy as np

    quartiles = [np.percentile(values, (25, 50, 75)).tolist() for values in rates.values()]
    lows, middles, highs = zip(*quartiles, strict=True)
    curve = Curve(name, list(rates), middles, lows, highs)
    panel = Panel("buffer timeout, ms", f"records a second into {name}", [curve], is_log_x=True)
    return PaperFigure("What a buffer timeout costs", [panel])


def _is_within(value: object, most: float) -> bool:
    """Whether it is a number above 0, and at most `most`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most


def _say(words: str) -> None:
    print(words, file=sys.stderr)


def _rates(before: JobSnapshot, after: JobSnapshot) -> dict[str, float]:
    """Records in a second of every vertex between two moments."""
    passed_s = max(1e-9, (after.time_ms - before.time_ms) / 1_000)
    rates: dict[str, float] = {}
    for old, new in zip(before.tasks, after.tasks, strict=True):
        name = new.name.rpartition("-")[0]
        rates[name] = rates.get(name, 0.0) + (new.num_records_in - old.num_records_in) / passed_s
    return rates


def _rate_of(name: str, before: JobSnapshot, after: JobSnapshot) -> float:
    """Records in a second of the tasks with this name, or with this operator."""
    passed_s = max(1e-9, (after.time_ms - before.time_ms) / 1_000)
    pairs = zip(before.tasks, after.tasks, strict=True)
    return (
        sum(n.num_records_in - o.num_records_in for o, n in pairs if name == n.name or name in n.operators) / passed_s
    )
