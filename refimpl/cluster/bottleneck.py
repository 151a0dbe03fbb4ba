"""Who holds a job back: never one that is held back itself.

Back pressure begins at a subtask that cannot keep up, and shows at all those above it. So the one to look at is the
first that is *not* held back and has somebody above it who is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.back_pressure import BackPressureLevel
from refimpl.cluster.failover import Exchange
from refimpl.cluster.scheduler import Place

__all__ = ["Bottleneck", "BottleneckKind", "Load", "find_bottleneck"]

_BUSY = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """What a subtask does with its time, in shares from 0 to 1: it works, waits for input, or for a buffer.

    `is_aligning` says that it leaves an input unread until a barrier has come at its other inputs.
    """

    busy: float
    idle: float
    held_back: float
    is_aligning: bool = False

    @property
    def is_held_back(self) -> bool:
        return BackPressureLevel.of(self.held_back) is not BackPressureLevel.OK


class BottleneckKind(Enum):
    """What holds a job back."""

    NOTHING = "nothing"
    SOURCE = "its sources bring no more"
    SUBTASK = "a subtask has too much to do"
    SKEW = "a subtask has more to do than its siblings"
    EXCHANGE = "what lies between two subtasks: credit, buffers, a slow link"
    ALIGNING = "a subtask waits for a barrier"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What holds the job back, and where: the subtask, and for an exchange who sends to it."""

    kind: BottleneckKind
    place: Place | None = None
    producer: Place | None = None


def find_bottleneck(loads: Mapping[Place, Load], exchanges: Sequence[Exchange[Place]]) -> Bottleneck:
    """The culprit, of several the busiest.

    Of the subtasks that read from one that is held back, and are not held back themselves: one that aligns is said to;
    else the busiest is it, if it is busy at all. Where none is, it is what lies between: the exchange whose reader is
    the idlest. Without any back pressure a job is as fast as its sources, or has nothing to do.
    """
    pairs = [each for each in exchanges if loads[each.producer].is_held_back and not loads[each.consumer].is_held_back]
    if not pairs:
        return _without_pressure(loads, exchanges)
    readers = {each.consumer for each in pairs}
    busiest = max(sorted(readers), key=lambda place: loads[place].busy)
    if loads[busiest].busy >= _BUSY:
        return Bottleneck(_busy_kind(busiest, loads), busiest)
    aligning = [place for place in sorted(readers) if loads[place].is_aligning]
    if aligning:
        return Bottleneck(BottleneckKind.ALIGNING, aligning[0])
    worst = max(pairs, key=lambda each: (loads[each.producer].held_back, loads[each.consumer].idle))
    return Bottleneck(BottleneckKind.EXCHANGE, worst.consumer, worst.producer)


def _busy_kind(place: Place, loads: Mapping[Place, Load]) -> BottleneckKind:
    siblings = [load for other, load in loads.items() if other[0] == place[0] and other != place]
    if siblings and all(load.busy < _BUSY for load in siblings):
        return BottleneckKind.SKEW
    return BottleneckKind.SUBTASK


def _without_pressure(loads: Mapping[Place, Load], exchanges: Sequence[Exchange[Place]]) -> Bottleneck:
    """Nobody waits for a buffer: whoever has no input itself and works all the time is the fastest part there is."""
    readers = {each.consumer for each in exchanges}
    sources = [place for place in sorted(loads) if place not in readers]
    busy = [place for place in sources if loads[place].busy >= _BUSY and not loads[place].is_held_back]
    if busy:
        return Bottleneck(BottleneckKind.SOURCE, max(busy, key=lambda place: loads[place].busy))
    return Bottleneck(BottleneckKind.NOTHING)
