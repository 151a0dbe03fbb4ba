"""How others push back: one workload through all of them, as a table, as curves, and who wins at what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refimpl.rivals import ENTRANTS, HELD, PHASES, Measures, Phase, Run, Workload, measure, signs, wins
from widgets import Curve, Panel, PaperFigure

__all__ = ["Race", "race"]


@dataclass(frozen=True, slots=True)
class Race:
    """A run of each system, and what was measured of it, by its name in `ENTRANTS`."""

    seed: int
    runs: dict[str, Run]
    measures: dict[str, Measures]

    def __repr__(self) -> str:
        lines = [self.table()]
        if len(self.measures) > 1:
            lines += ["", "who wins at what"]
            lines += [f"{win.what:<32}{' · '.join(win.names) or 'nobody'} ({win.words})" for win in wins(self.measures)]
        if set(self.measures) == set(ENTRANTS):
            lines += ["", *(f"{'yes' if holds else 'NO':<4}{sign}" for sign, holds in signs(self.measures))]
        return "\n".join(lines)

    def table(self) -> str:
        """What was measured, a line for each system."""
        heads = ("s to react", "to recover", "off by", "stops", "records", "kB", "p99 ms", "innocent")
        lines = [f"seed {self.seed}; virtual time; the consumer held in phase {HELD + 1}"]
        lines.append(f"{'':<24}" + "".join(f"{head:>12}" for head in heads))
        for each in self.measures.values():
            held = each.phases[HELD]
            cells = (
                f"{held.reaction_s:.0f}", f"{each.recovery_s:.0f}", f"{held.deviation:.0%}", str(held.num_stops),
                str(each.peak_records), f"{each.peak_memory_bytes / 1000:.0f}", f"{each.p99_latency_ms:.0f}",
                f"{each.innocent:.0%}",
            )  # fmt: skip
            lines.append(f"{each.name:<24}" + "".join(f"{cell:>12}" for cell in cells))
        lines += ["", "records a second through the slow branch, by phase"]
        phases = next(iter(self.measures.values())).phases
        lines.append(f"{'can pass':<24}" + "".join(f"{phase.sustainable_per_s:>12.0f}" for phase in phases))
        for each in self.measures.values():
            lines.append(f"{each.name:<24}" + "".join(f"{phase.throughput_per_s:>12.1f}" for phase in each.phases))
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """All that was measured, and who wins at what; what never happened is `None`."""
        systems = {name: _finite(asdict(each)) for name, each in self.measures.items()}
        found = wins(self.measures) if len(self.measures) > 1 else []
        return {"seed": self.seed, "systems": systems, "wins": [asdict(win) for win in found]}

    def figure(self) -> PaperFigure:
        """The source's rate of each system, second by second, over what could pass."""
        panels = []
        for run in self.runs.values():
            seconds = list(range(1, len(run.rates()) + 1))
            allowed = [phase.sustainable_per_s for phase in run.phases for _ in range(phase.seconds)]
            panels.append(
                Panel(
                    "virtual seconds",
                    "records per second",
                    [Curve("can pass", seconds, allowed, look=0), Curve("the source", seconds, run.rates(), look=1)],
                    run.name,
                )
            )
        return PaperFigure("One workload, and how each system pushes back", panels, columns=2, is_y_shared=True)


def race(
    names: Iterable[str] = tuple(ENTRANTS),
    seed: int = 0,
    phases: Sequence[Phase] = PHASES,
    on_begin: Callable[[str], object] = lambda _name: None,
) -> Race:
    """Run these systems; `on_begin` is told of each before it runs."""
    workload = Workload(seed, phases)
    runs = {}
    for name in names:
        on_begin(name)
        runs[name] = ENTRANTS[name](workload)
    return Race(seed, runs, {name: measure(run) for name, run in runs.items()})


def _finite(value: Any) -> Any:
    """The same without infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if value == float("inf") else value
