"""Who wins at what: for each thing that is measured of a race the systems that nobody beats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf

from refimpl.rivals.measures import HELD, Measures

__all__ = ["Contest", "Win", "contests", "wins"]


@dataclass(frozen=True, slots=True)
class Contest:
    """One thing to win at: less is better. `words` says how much it is; `step` is the least difference that counts."""

    what: str
    of: Callable[[Measures], float]
    step: float
    words: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Win:
    """The systems that are best at something, the best of them first, and what that one has."""

    what: str
    names: tuple[str, ...]
    words: str


def contests() -> Sequence[Contest]:
    """What is contested, in the order in which a table has it."""
    return (
        Contest("reacts first", lambda each: each.phases[HELD].reaction_s, 1.0, _seconds),
        Contest("is back first", lambda each: each.recovery_s, 1.0, _seconds),
        Contest("swings least", lambda each: each.phases[HELD].oscillation, 0.01, _share),
        Contest("keeps closest to what can pass", lambda each: each.phases[HELD].deviation, 0.01, _share),
        Contest("has the least inside", lambda each: float(each.peak_records), 1.0, lambda n: f"{n:.0f} records"),
        Contest("is quickest for a record", lambda each: each.p99_latency_ms, 1.0, lambda ms: f"{ms:.0f} ms at p99"),
        Contest("spares the innocent", lambda each: 1 - each.innocent, 0.01, lambda lost: _share(1 - lost)),
    )


def wins(measures: Mapping[str, Measures]) -> list[Win]:
    """Of each contest who wins, by the names of the systems; several, if there is less than a step between them."""
    found = []
    for each in contests():
        order = sorted(measures.values(), key=each.of)
        best = each.of(order[0])
        names = () if isinf(best) else tuple(one.name for one in order if each.of(one) < best + each.step)
        found.append(Win(each.what, names, "never" if isinf(best) else each.words(best)))
    return found


def _seconds(number: float) -> str:
    return "never" if isinf(number) else f"{number:.0f} s"


def _share(number: float) -> str:
    return f"{number:.1%}"
