"""What has to begin again when one subtask has failed: the smallest part of a job that is whole without it.

Subtasks that exchange records while both run, in one *region*, live and die together: what one has sent and the other
has lost is nowhere else. A blocking result stands by itself: whoever reads it can read it again. So three rules, until
nothing is added any more:

    the region of what has failed begins again
    so does the region that has produced a blocking result which is gone and which one of these reads
    so does every region that reads what one of these produces, since nobody knows that it will come out the same
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from refimpl.job.regions import Exchange, regions

__all__ = ["Exchange", "regions", "to_restart"]

P = TypeVar("P", bound=Hashable)


def to_restart(
    failed: Iterable[P],
    places: Sequence[P],
    exchanges: Sequence[Exchange[P]],
    is_available: Callable[[P], bool] = lambda producer: True,
) -> frozenset[P]:
    """The subtasks that begin again when those in `failed` have failed.

    `is_available` says whether what a producer has left in blocking results can still be read.

    Flink:   RestartPipelinedRegionFailoverStrategy.getTasksNeedingRestart (runtime.executiongraph.failover.flip1),
             1.11.4
    """
    region_of: Mapping[P, frozenset[P]] = {place: each for each in regions(places, exchanges) for place in each}
    blocking = [each for each in exchanges if each.is_blocking]
    restarted: set[frozenset[P]] = set()
    waiting = [region_of[place] for place in failed]
    while waiting:
        region = waiting.pop()
        if region in restarted:
            continue
        restarted.add(region)
        waiting += [region_of[each.consumer] for each in blocking if each.producer in region]
        lost = [each.producer for each in blocking if each.consumer in region and not is_available(each.producer)]
        waiting += [region_of[producer] for producer in lost]
    return frozenset(place for region in restarted for place in region)
