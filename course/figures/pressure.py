"""The runs behind the figures of lesson 12: a job with a slow part in each phase, and who holds it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from refimpl.cluster import (
    BackPressureLevel,
    BackPressureMonitor,
    Exchange,
    Load,
    Place,
    TaskSampler,
    who_holds_back,
)
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs, PressureWatch
from refimpl.job import StreamEnvironment
from refimpl.rivals import SINK, SLOW, SOURCE, AtmCredit, Course, CreditSender, Phase, Workload
from widgets import Recording, topology

__all__ = ["PHASES", "RACE_PHASES", "HeatStrip", "Look", "Monitored", "balance", "heat_strip", "jammed_job",
           "looks_at_a_job", "monitored", "who_stores"]  # fmt: skip

_FAST_MS, _SLOW_MS = 0.1, 1.0
_SOURCE_MS = 0.3
_LOOK_MS = 50.0
_LOOKS_A_PHASE = 8
_NUM_SETTLING = 3
_SHADES = " ░▒▓█"


@dataclass(frozen=True, slots=True)
class PressurePhase:
    """A part of the run: who is slow in it, by the name of a subtask or of all of a kind."""

    words: str
    slow: str


PHASES = (
    PressurePhase("nobody is slow", ""),
    PressurePhase("the parser is slow", "parse"),
    PressurePhase("one of two windows is slow", "window-1"),
    PressurePhase("the sink is slow", "sink"),
)


RACE_PHASES = (
    Phase("full", 10, 200.0, 250.0), Phase("consumer at 30 %", 40, 200.0, 75.0), Phase("full again", 15, 200.0, 250.0),
)  # fmt: skip
"""A race that is short enough for a lesson."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of each subtask over one short time, and whom our rule names."""

    phase: int
    until_ms: float
    names: Mapping[Place, str]
    loads: Mapping[Place, Load]
    exchanges: tuple[Exchange[Place], ...]
    culprit: str = ""

    def name_of(self, found: Any) -> str:
        """A place, an exchange or `None` as a name.

        Raises:
            TypeError: it is none of these.
        """
        if found is None:
            return "nobody"
        if isinstance(found, Exchange):
            return f"{self.names[found.producer]} to {self.names[found.consumer]}"
        ends = tuple(found)
        if ends in self.names:
            return self.names[ends]
        if len(ends) == 2 and all(tuple(each) in self.names for each in ends):
            return " to ".join(self.names[tuple(each)] for each in ends)
        raise TypeError(f"{found!r} is no place, no exchange and not None")


class _PhasedCosts:
    """How long a record takes at a subtask, in ms: one of them is slow in each phase."""

    def __init__(self) -> None:
        self.phase = 0

    def of(self, name: str, usual_ms: float) -> Any:
        return lambda _now_ms, _number: _SLOW_MS if self._is_slow(name) else usual_ms

    def _is_slow(self, name: str) -> bool:
        slow = PHASES[self.phase].slow
        return bool(slow) and slow in (name, name.rpartition("-")[0])


def _job(num_records: int) -> StreamEnvironment:
    """A source, a parser, two windows, a sink; each record fills a buffer."""
    config = Config(source_batch=1, buffer_timeout_ms=0, segment_size_bytes=64, num_buffers=128)
    job = StreamEnvironment(config)
    parsed = job.from_collection(range(num_records), name="source").rebalance().map(_same, "parse")
    windows = parsed.rebalance().map(_same, "window").set_parallelism(2)
    windows.rebalance().sink(_ignore, "sink")
    return job


def _same(value: int) -> int:
    return value


def _ignore(_value: object) -> None:
    """A sink's function."""


def _costs(phased: _PhasedCosts) -> Costs:
    names = ("source-0", "parse-0", "window-0", "window-1", "sink-0")
    return Costs({name: phased.of(name, _SOURCE_MS if name == names[0] else _FAST_MS) for name in names})


@cache
def looks_at_a_job() -> tuple[tuple[Look, ...], int]:
    """Run the job through all phases in virtual time, and look at it again and again; also how much its source read.

    The first looks of a phase do not count: what was stuck in the one before has to come through.
    """
    looks: list[Look] = []
    phased = _PhasedCosts()
    with Simulation(_job(100_000), policy="timed", costs=_costs(phased), check_every=0) as run:
        watch = PressureWatch(run)
        names = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
        exchanges = watch.exchanges
        until_ms = 0.0
        for phase in range(len(PHASES)):
            phased.phase = phase
            for number in range(_NUM_SETTLING + _LOOKS_A_PHASE):
                until_ms += _LOOK_MS
                while run.time_ms < until_ms:
                    run.step()
                loads = watch.loads()
                if number >= _NUM_SETTLING:
                    look = Look(phase, until_ms, names, loads, exchanges)
                    looks.append(_with_culprit(look))
        num_in = next(task.num_records_in for task in run.snapshot().tasks if task.name == "source-0")
    return tuple(looks), num_in


def _with_culprit(look: Look) -> Look:
    culprit = look.name_of(who_holds_back(look.loads, look.exchanges))
    return Look(look.phase, look.until_ms, look.names, look.loads, look.exchanges, culprit)


# -- the strip ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatStrip:
    """A row for each subtask, a column for each look: how much of the time it was held back, or busy."""

    looks: tuple[Look, ...]

    def __repr__(self) -> str:
        names = list(self.looks[0].names.values())
        width = max(map(len, names))
        lines = [f"{'':<{width}}  held back{'':<{self._num_columns - 9}}   busy"]
        for place, name in self.looks[0].names.items():
            held = self._row([look.loads[place].held_back for look in self.looks])
            busy = self._row([look.loads[place].busy for look in self.looks])
            lines.append(f"{name:<{width}}  {held}   {busy}".rstrip())
        marks = "".join(str(number + 1).ljust(_LOOKS_A_PHASE + 1) for number in range(len(PHASES)))
        lines.append(f"{'phase':<{width}}  {marks}  {marks}".rstrip())
        lines.append(f"{_SHADES[1]} up to a quarter of the time … {_SHADES[-1]} more than three quarters")
        lines += [f"{number + 1}  {phase.words}" for number, phase in enumerate(PHASES)]
        return "\n".join(lines)

    @property
    def _num_columns(self) -> int:
        return len(self.looks) + len(PHASES) - 1

    def _row(self, shares: Sequence[float]) -> str:
        cells = [_shade(share) for share in shares]
        groups = [cells[at : at + _LOOKS_A_PHASE] for at in range(0, len(cells), _LOOKS_A_PHASE)]
        return " ".join("".join(group) for group in groups)


def _shade(share: float) -> str:
    return _SHADES[0] if share <= 0.02 else _SHADES[min(4, 1 + int(share * 4))]


def heat_strip() -> HeatStrip:
    """Look at the job in all of its phases."""
    return HeatStrip(looks_at_a_job()[0])


def jammed_job(until_ms: float = 400.0, steps_a_look: int = 60) -> Recording:
    """The job with its sink slow from the start, to be stepped through."""
    phased = _PhasedCosts()
    phased.phase = 3
    with Simulation(_job(100_000), policy="timed", costs=_costs(phased), check_every=0) as run:
        recording = Recording(topology(run.snapshot()), 500)
        recording.add(run.snapshot(), "start")
        while run.time_ms < until_ms:
            for _ in range(steps_a_look):
                run.step()
            recording.add(run.snapshot(), "on")
    return recording


# -- the monitor -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Monitored:
    """What each subtask's samples came to: how many found an output without a buffer, and the level of that ratio."""

    num_samples: int
    delay_ms: float
    took_ms: float
    rows: tuple[tuple[str, int], ...]

    def __repr__(self) -> str:
        took = f"the answer was there after {self.took_ms:,.0f} ms"
        lines = [f"{self.num_samples} samples, {self.delay_ms:g} ms apart: {took}"]
        for name, held in self.rows:
            ratio = held / self.num_samples
            level = BackPressureLevel.of(ratio).name
            lines.append(f"  {name:<9} {held:>4} of {self.num_samples} held back   ratio {ratio:.2f}   {level}")
        return "\n".join(lines)


def monitored(phase: int = 3) -> Monitored:
    """Ask Flink's monitor about the job while one phase of it lasts, with its own numbers, in virtual time."""
    phased = _PhasedCosts()
    phased.phase = phase
    with Simulation(_job(100_000), policy="timed", costs=_costs(phased), check_every=0) as run:
        watch = PressureWatch(run)
        sampler, monitor = TaskSampler(watch.is_held_back), BackPressureMonitor()
        names = tuple(each.name for each in run.graph.vertices)
        while run.time_ms < _LOOK_MS * _NUM_SETTLING:
            run.step()
        begun_ms = run.time_ms
        _, (order,) = monitor.ask("job", dict.fromkeys(names, True), begun_ms)
        sampler.begin(order, begun_ms)
        found: list[tuple[int, Any, float]] = []
        while not found:
            run.step()
            found = sampler.on_timeout(run.time_ms)
        took_ms = run.time_ms - begun_ms
    ratios = {str(task): ratio for _, task, ratio in found}
    rows = tuple((name, round(ratios[name] * order.num_samples)) for name in names)
    return Monitored(order.num_samples, order.delay_ms, took_ms, rows)


# -- credit in ATM networks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """Where cells of the slow branch lie while its last node forwards nothing, by node, per link and end to end."""

    allocation: tuple[int, int]
    per_link: tuple[int, int]
    end_to_end: tuple[int, int]

    def __repr__(self) -> str:
        lines = ["cells stored while node 3 forwards nothing"]
        lines.append(f"{'':<14}{'node 2':>8}{'node 3':>8}   allocation of a loop")
        rows = (self.per_link, self.end_to_end)
        for name, stored, allocation in zip(("link by link", "end to end"), rows, self.allocation, strict=True):
            lines.append(f"  {name:<12}{stored[0]:>8}{stored[1]:>8}   {allocation:>6}")
        return "\n".join(lines)


def who_stores(delay_ms: float = 10.0, peak_per_s: float = 600.0) -> Stored:
    """Let the last of three nodes stand still, and count where cells wait, with a loop per link and one over all."""
    per_link, one_loop = (AtmCredit(delay_ms, peak_per_s, end_to_end=each) for each in (False, True))
    allocation = per_link.allocation, one_loop.allocation
    return Stored(allocation, _stored(per_link, delay_ms), _stored(one_loop, delay_ms))


def _stored(network: AtmCredit, delay_ms: float) -> tuple[int, int]:
    course = Course(network, Workload(0, (Phase("still", 100, 600.0, 0.001),)), delay_ms)
    course.run_until(5_000.0)
    return len(network.queues[SOURCE + 1, SLOW]), len(network.queues[SINK, SLOW])


def balance(allocation: int, *steps: str) -> str:
    """One circuit, step by step: `send 3` sends three cells, `credit 2` says that two in all were forwarded."""
    sender = CreditSender(allocation)
    lines = [f"{'':<12}{'Buf_Alloc':>10}{'Tx_Cnt':>8}{'Fwd_Cnt':>9}{'Crd_Bal':>9}"]
    for step in ("start", *steps):
        name, _, number = step.partition(" ")
        for _ in range(int(number) if name == "send" else 0):
            sender.send()
        if name == "credit":
            sender.receive_credit(int(number))
        lines.append(
            f"  {step:<10}{sender.allocation:>10}{sender.num_sent:>8}{sender.num_forwarded:>9}{sender.balance:>9}"
        )
    return "\n".join(lines)
