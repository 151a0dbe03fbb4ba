"""What every rival has to carry: two branches of three stages, and five phases of one of them.

    source → work → sink        the branch whose sink becomes slow, and whose source bursts
    source → work → sink        the innocent one

Each stage has a worker of its own, which both branches share, and so have the connections between the workers. A source
reads as fast as it may: what is not let in stays outside. Work takes its time after its effect, as in the timed
simulation.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

__all__ = ["INNOCENT", "NUM_BRANCHES", "PHASES", "RECORD_BYTES", "SINK", "SLOW", "SOURCE", "WORK", "Phase", "Workload"]

SLOW, INNOCENT = range(2)
NUM_BRANCHES = 2
SOURCE, WORK, SINK = range(3)
RECORD_BYTES = 100

_NUM_FACTORS = 997


@dataclass(frozen=True, slots=True)
class Phase:
    """So many virtual seconds in which the slow branch is offered, and can take, so many records a second."""

    name: str
    seconds: int
    offered_per_s: float
    capacity_per_s: float

    @property
    def sustainable_per_s(self) -> float:
        return min(self.offered_per_s, self.capacity_per_s)


PHASES = (
    Phase("full", 60, 200.0, 250.0),
    Phase("consumer at 30 %", 60, 200.0, 75.0),
    Phase("full again", 60, 200.0, 250.0),
    Phase("burst of three times", 10, 600.0, 250.0),
    Phase("full at last", 60, 200.0, 250.0),
)


class Workload:
    """How long each record takes at each stage, in ms; the innocent branch is always in the first phase.

    Record n of a stage takes the mean of that moment times factor n of one list, drawn from `seed`, from 0.5 to 1.5.
    """

    def __init__(self, seed: int, phases: Sequence[Phase] = PHASES, work_per_s: float = 2_000.0) -> None:
        self.seed = seed
        self.phases = phases
        self._work_ms = 1000 / work_per_s
        self.ends_ms = list(accumulate(1000.0 * phase.seconds for phase in phases))
        draws = random.Random(f"workload {seed}")
        factors = [draws.uniform(0.5, 1.5) for _ in range(_NUM_FACTORS)]
        self._factors = [each * _NUM_FACTORS / sum(factors) for each in factors]

    @property
    def total_ms(self) -> float:
        return self.ends_ms[-1]

    def phase_at(self, now_ms: float) -> Phase:
        return self.phases[min(bisect_right(self.ends_ms, now_ms), len(self.phases) - 1)]

    def service_ms(self, stage: int, branch: int, now_ms: float, number: int) -> float:
        """How long the stage's record with this number takes, if it begins now."""
        factor = self._factors[(number + 331 * stage + 17 * branch) % _NUM_FACTORS]
        if stage == WORK:
            return self._work_ms * factor
        phase = self.phase_at(now_ms) if branch == SLOW else self.phases[0]
        return 1000 / (phase.offered_per_s if stage == SOURCE else phase.capacity_per_s) * factor
