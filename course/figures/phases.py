"""The producer that follows its consumer, each held in turn, in virtual seconds: 60-30-100-30-100 percent.

python -m course.figures.phases [--json]      the rates of each second
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from course.figures.channels import FULL_RECORD, SEGMENT_BYTES
from course.figures.jam import PHASES, Phase
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.records import BYTES
from refimpl.task import IterableReader

__all__ = ["PhasedJob", "Sample", "Sampled", "in_phases"]

_BEST_PER_S = 100
_STEPS_A_LOOK = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """One virtual second: how many records each end had in it, and its longest queues, in buffers."""

    phase: int
    producer: int
    consumer: int
    queued: int
    received: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """What each second of a run in phases had; both ends can do `best_per_s` records."""

    phases: tuple[Phase, ...]
    best_per_s: int
    credit_based: bool
    samples: tuple[Sample, ...]

    def allowed(self, phase: int) -> float:
        """How many records a second the slower end can do in a phase."""
        return self.best_per_s * self.phases[phase][1] / 100

    def of_phase(self, phase: int) -> list[Sample]:
        return [sample for sample in self.samples if sample.phase == phase]

    def __repr__(self) -> str:
        lines = [f"records per virtual second, {'with' if self.credit_based else 'without'} credits"]
        for phase, (held, percent) in enumerate(self.phases):
            lines.append(f"  {held or 'nobody'} held at {percent} %: {self.allowed(phase):.0f} a second can pass")
            for second, sample in enumerate(self.samples, 1):
                if sample.phase != phase:
                    continue
                bar = "▇" * round(20 * sample.producer / self.best_per_s)
                lines.append(f"    s {second:>3}   in {sample.producer:>4}   out {sample.consumer:>4}   {bar}")
        return "\n".join(lines)


class PhasedJob:
    """A source on one TaskManager and a sink on another; in each phase one of them may be held, for virtual time."""

    def __init__(self, phases: Sequence[Phase], seconds: int, credit_based: bool) -> None:
        self._phases = phases
        self._ends_ms = list(accumulate(1000.0 * seconds for _ in phases))
        config = Config(
            segment_size_bytes=SEGMENT_BYTES, num_buffers=64, credit_based=credit_based, source_batch=1,
            buffer_timeout_ms=0,
        )  # fmt: skip
        self.environment = StreamEnvironment(config)
        source = self.environment.source(lambda *_: IterableReader(iter(lambda: FULL_RECORD, None)), "source", BYTES)
        source.slot_sharing_group("producers").sink(lambda _value: None, "sink").slot_sharing_group("consumers")
        self.costs = Costs({"source": self._of("producer"), "sink": self._of("consumer")})

    def phase_at(self, now_ms: float) -> int:
        return min(bisect_right(self._ends_ms, now_ms), len(self._phases) - 1)

    def _of(self, end: str) -> _TimeOf:
        return _TimeOf(self, end)

    def percent_of(self, end: str, now_ms: float) -> int:
        """At how many percent of its best an end is held."""
        held, percent = self._phases[self.phase_at(now_ms)]
        return percent if held == end else 100


@dataclass(frozen=True, slots=True)
class _TimeOf:
    """The service time of one end, in ms."""

    job: PhasedJob
    end: str

    def __call__(self, now_ms: float, number: int) -> float:
        return 1000 / _BEST_PER_S * 100 / self.job.percent_of(self.end, now_ms)


def in_phases(
    phases: Sequence[Phase] = PHASES, *, seconds: int = 10, credit_based: bool = True, seed: int = 0
) -> Sampled:
    """Run the job for `seconds` of virtual time in each phase, and look at it once a second."""
    job = PhasedJob(phases, seconds, credit_based)
    samples = list[Sample]()
    with Simulation(
        job.environment, seed, policy="timed", costs=job.costs, num_task_managers=2, check_every=0, step_ms=0.0
    ) as simulation:
        before = _counts(simulation.snapshot())
        for second in range(1, seconds * len(phases) + 1):
            queued = received = 0
            while simulation.time_ms < 1000 * second:
                for _ in range(_STEPS_A_LOOK):
                    simulation.step()
                snapshot = simulation.snapshot()
                queued = max(queued, len(snapshot.partitions[0].subpartitions[0].queue))
                received = max(received, snapshot.gates[0].channels[0].num_available)
            now = _counts(snapshot)
            phase = job.phase_at(1000 * second - 500)
            samples.append(Sample(phase, now[0] - before[0], now[1] - before[1], queued, received))
            before = now
    return Sampled(tuple(phases), _BEST_PER_S, credit_based, tuple(samples))


def _counts(snapshot: JobSnapshot) -> tuple[int, int]:
    """How many records the source and the sink have had."""
    counts = {task.name.rpartition("-")[0]: task.num_records_in for task in snapshot.tasks}
    return counts["source"], counts["sink"]


def _main() -> None:
    sampled = in_phases()
    if "--json" in sys.argv[1:]:
        names = Sample.__dataclass_fields__
        print(json.dumps([{name: getattr(sample, name) for name in names} for sample in sampled.samples]))
    else:
        print(sampled)


if __name__ == "__main__":
    _main()
