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
from refimpl.cluster.job_plan import Place

__all__ = ["Bottleneck", "BottleneckKind", "Load", "find_bottleneck", "who_holds_back"]

_BUSY = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """What a subtask does with its time, in shares from 0 to 1: it works, waits for input, or for a buffer.

    `is_aligning` says that it leaves an input unread until a barrier has come at its other inputs. `num_queued` buffers
    wait unread at its inputs, as they were seen last. Nothing follows from that number alone: before a slow subtask
    queues are full, and before each that it holds back too.
    """

    busy: float
    idle: float
    held_back: float
    is_aligning: bool = False
    num_queued: int = 0

    @property
    def is_held_back(self) -> bool:
        """Whether it waits for a buffer for more than a tenth of its time."""
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


def who_holds_back(loads: Mapping[Place, Load], exchanges: Sequence[Exchange[Place]]) -> Place | Exchange[Place] | None:
    """The culprit: a subtask, what lies between two of them, or `None` if nobody is held back.

    Look at the exchanges whose producer is held back and whose consumer is not. Of their consumers the
    busiest holds the job back, if it is busy for at least half of its time; of two alike the lesser place.
    If none is that busy it is one of these exchanges: the one whose producer is held back most, and of
    several alike the one whose consumer is idle most.
    """
    pairs = [each for each in exchanges if loads[each.producer].is_held_back and not loads[each.consumer].is_held_back]
    if not pairs:
        return None
    busiest = max(sorted({each.consumer for each in pairs}), key=lambda place: loads[place].busy)
    if loads[busiest].busy >= _BUSY:
        return busiest
    return max(pairs, key=lambda each: (loads[each.producer].held_back, loads[each.consumer].idle))


def find_bottleneck(
    loads: Mapping[Place, Load],
    exchanges: Sequence[Exchange[Place]],
    waiting: Mapping[tuple[Place, Place], int] | None = None,
) -> Bottleneck:
    """Who holds the job back, and in which way.

    Where it is an exchange, and one of those who read from somebody held back aligns, the first that aligns is said
    instead. Without any back pressure a job is as fast as its sources, or has nothing to do.

    `waiting` is how many buffers wait to be sent from one subtask to another, where that is known. An exchange in which
    few wait holds nobody back: another output of its producer does, in which at least twice as many do.
    """
    full = _full(exchanges, waiting) if waiting else exchanges
    seen = exchanges if who_holds_back(loads, full) is None else full
    found = who_holds_back(loads, seen)
    if found is None:
        return _without_pressure(loads, exchanges)
    if not isinstance(found, Exchange):
        return Bottleneck(_busy_kind(found, loads), found)
    readers = {each.consumer for each in seen if loads[each.producer].is_held_back}
    aligning = [place for place in sorted(readers) if loads[place].is_aligning and not loads[place].is_held_back]
    if aligning:
        return Bottleneck(BottleneckKind.ALIGNING, _first_to_align(aligning[0], loads, exchanges))
    return Bottleneck(BottleneckKind.EXCHANGE, found.consumer, found.producer)


def _full(exchanges: Sequence[Exchange[Place]], waiting: Mapping[tuple[Place, Place], int]) -> list[Exchange[Place]]:
    """Those exchanges in which more than half as many buffers wait as in the fullest of the same producer."""
    most: dict[Place, int] = {}
    for (producer, _), num in waiting.items():
        most[producer] = max(num, most.get(producer, 0))
    return [
        each for each in exchanges if 2 * waiting.get((each.producer, each.consumer), 0) > most.get(each.producer, 0)
    ]


def _first_to_align(place: Place, loads: Mapping[Place, Load], exchanges: Sequence[Exchange[Place]]) -> Place:
    """Of those that align above `place`, for whose barrier it may wait, the topmost; itself, if there is none."""
    above: dict[Place, None] = {}
    to_see = [place]
    while to_see:
        reader = to_see.pop()
        for each in exchanges:
            if each.consumer == reader and each.producer not in above:
                above[each.producer] = None
                to_see.append(each.producer)
    aligning = [each for each in above if loads[each].is_aligning and not loads[each].is_held_back]
    return _first_to_align(min(aligning), loads, exchanges) if aligning else place


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
