"""A race that takes a moment: two machines under a workload of a few seconds."""

from __future__ import annotations

from functools import cache

from refimpl.rivals import AtmCredit, Phase, Run, Storm, Workload, run_rival

__all__ = ["small_race"]

_PHASES = (Phase("full", 2, 200.0, 250.0), Phase("held", 10, 200.0, 50.0), Phase("full again", 4, 200.0, 250.0))


@cache
def small_race() -> tuple[Run, ...]:
    """A system that stops and goes, and one that keeps to what can pass."""
    workload = Workload(1, _PHASES)
    return run_rival(Storm(), workload), run_rival(AtmCredit(10.0, 600.0), workload)
