"""What is measured of a run, by the same code for a machine of ours and for the engine.

A run is samples of a few counts, and how long each record was inside. What was emitted and has not left is inside, be
it in a queue, an overflow list, a waiting batch, on a wire or in a socket's buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from statistics import fmean, pstdev

from refimpl.rivals.workload import INNOCENT, RECORD_BYTES, SLOW, Phase

__all__ = ["HELD", "SAMPLE_MS", "Measures", "PhaseMeasures", "Run", "Sample", "measure"]

HELD = 1
"""The number of the phase in which the consumer is held."""
SAMPLE_MS = 100.0
_STEADY_S = 40
_WINDOW_S = 5
_NEAR = 0.1
_STOPPED = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """How many records had been emitted and had left by branch, and how many bytes of memory were taken."""

    emitted: tuple[int, ...]
    left: tuple[int, ...]
    memory_bytes: int

    @property
    def num_inside(self) -> int:
        return sum(self.emitted) - sum(self.left)


@dataclass(frozen=True, slots=True)
class Run:
    """One system under one workload: a sample at the end of each `SAMPLE_MS`, and how long the slow branch's took."""

    name: str
    seed: int
    phases: tuple[Phase, ...]
    samples: tuple[Sample, ...]
    latencies_ms: tuple[float, ...]

    def rates(self, branch: int = SLOW, *, of_sink: bool = False) -> list[float]:
        """Records a second at the source, or at the sink, in each second."""
        counts = [(each.left if of_sink else each.emitted)[branch] for each in self.samples]
        per_s = round(1000 / SAMPLE_MS)
        ends = [0, *counts[per_s - 1 :: per_s]]
        return [float(later - before) for before, later in pairwise(ends)]

    @property
    def num_inside(self) -> list[int]:
        """Records of both branches that have been emitted and have not left, at the end of each second."""
        per_s = round(1000 / SAMPLE_MS)
        return [each.num_inside for each in self.samples[per_s - 1 :: per_s]]


@dataclass(frozen=True, slots=True)
class PhaseMeasures:
    """One phase: rates in records a second, times in seconds.

    `oscillation` is the coefficient of variation of the source's rate in the last 40 s, second by second; `deviation`
    how far it was from what is sustainable, as the root of the mean square; `num_stops` how often it stood still.
    `reaction_s` is when the source came within 10 % of what is sustainable and stayed
    there; infinite if it never did.
    """

    name: str
    sustainable_per_s: float
    throughput_per_s: float
    innocent_per_s: float
    oscillation: float
    deviation: float
    num_stops: int
    reaction_s: float
    peak_records: int


@dataclass(frozen=True, slots=True)
class Measures:
    """All phases of a run. `recovery_s` is when the source is at 90 % again once the consumer is released.

    `innocent` is how much of its own rate the innocent branch had in the worst phase.
    """

    name: str
    seed: int
    phases: tuple[PhaseMeasures, ...]
    recovery_s: float
    peak_records: int
    peak_bytes: int
    peak_memory_bytes: int
    p99_latency_ms: float
    innocent: float


def measure(run: Run) -> Measures:
    """Measure a run; its second phase is the one in which the consumer is held."""
    source, sink, innocent = run.rates(), run.rates(of_sink=True), run.rates(INNOCENT, of_sink=True)
    phases = list[PhaseMeasures]()
    begin = 0
    for phase in run.phases:
        seconds = slice(begin, begin + phase.seconds)
        samples = run.samples[begin * 10 : (begin + phase.seconds) * 10]
        steady = source[seconds][-_STEADY_S:]
        phases.append(
            PhaseMeasures(
                phase.name,
                phase.sustainable_per_s,
                fmean(sink[seconds]),
                fmean(innocent[seconds]),
                pstdev(steady) / fmean(steady) if any(steady) else 0.0,
                sqrt(fmean((rate / phase.sustainable_per_s - 1) ** 2 for rate in steady)),
                _num_stops(steady, phase.sustainable_per_s),
                _reaction_s(source[seconds], phase.sustainable_per_s),
                max(sample.num_inside for sample in samples),
            )
        )
        begin += phase.seconds
    released = sum(phase.seconds for phase in run.phases[: HELD + 1])
    peak = max(phase.peak_records for phase in phases)
    latencies = sorted(run.latencies_ms)
    return Measures(
        run.name,
        run.seed,
        tuple(phases),
        _recovery_s(source[released : released + run.phases[HELD + 1].seconds], run.phases[HELD + 1].sustainable_per_s),
        peak,
        peak * RECORD_BYTES,
        max(sample.memory_bytes for sample in run.samples),
        latencies[ceil(0.99 * len(latencies)) - 1] if latencies else 0.0,
        min(phase.innocent_per_s for phase in phases) / run.phases[0].sustainable_per_s,
    )


def _num_stops(rates: Sequence[float], sustainable: float) -> int:
    """How often a source that ran stands still."""
    stopped = [rate <= _STOPPED * sustainable for rate in rates]
    return sum(now and not before for before, now in pairwise(stopped)) + stopped[0]


def _reaction_s(rates: Sequence[float], sustainable: float) -> float:
    """From which second on each window of `_WINDOW_S` is near what is sustainable."""
    width = min(_WINDOW_S, len(rates))
    windows = [fmean(rates[begin : begin + width]) for begin in range(len(rates) - width + 1)]
    for begin in range(len(windows), -1, -1):
        if begin == 0 or abs(windows[begin - 1] - sustainable) > _NEAR * sustainable:
            return float(begin) if begin < len(windows) else float("inf")
    raise AssertionError("a range down to 0 ends there")


def _recovery_s(rates: Sequence[float], sustainable: float) -> float:
    """The first second in which the rate is at 90 %, and stays there on the whole for the next."""
    for second in range(len(rates) - 1):
        if fmean(rates[second : second + 2]) >= 0.9 * sustainable:
            return float(second + 1)
    return float("inf")
