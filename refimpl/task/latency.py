"""How long records queue: markers from the sources, and for each operator how old they were when they came.

A marker passes beside the user's code and waits in no window. So it measures what lies in buffers on the way, and not
how long operators work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from refimpl.records.elements import LatencyMarker
from refimpl.task.time_service import ProcessingTimeService

__all__ = ["LatencyMarksEmitter", "LatencySnapshot", "LatencyStats"]

_HISTORY_SIZE = 128
"""Flink: metrics.latency.history-size, 1.11.4"""


@dataclass(frozen=True, slots=True)
class LatencySnapshot:
    """How old the markers of source operator `source` were when they came to one subtask of an operator, in ms.

    `count` is how many came; the others are of the last 128. A percentile is the least age that so many had at most.
    """

    source: str
    operator: str
    subtask: int
    count: int
    min_ms: int
    max_ms: int
    mean_ms: float
    p50_ms: int
    p95_ms: int
    p99_ms: int


class _Histogram:
    def __init__(self) -> None:
        self.count = 0
        self.last: deque[int] = deque(maxlen=_HISTORY_SIZE)

    def add(self, age_ms: int) -> None:
        self.count += 1
        self.last.append(age_ms)


class LatencyStats:
    """The ages of the markers that came to one subtask of an operator, by the source operator they came from.

    Flink:   LatencyStats with granularity OPERATOR (streaming.util), 1.11.4
    """

    def __init__(self) -> None:
        self._histograms: dict[int, _Histogram] = {}

    def report(self, marker: LatencyMarker, now_ms: int) -> None:
        """Note how old `marker` is; clocks of two machines may differ, so its age may be below 0."""
        source = marker.operator_id_lower
        histogram = self._histograms.get(source) or _Histogram()
        histogram.add(now_ms - marker.marked_time)
        self._histograms[source] = histogram  # not before it has an age: somebody may look meanwhile

    def snapshots(self, operator: str, subtask: int, sources: Mapping[int, str]) -> list[LatencySnapshot]:
        """What there is now; `sources` has the names of source operators by their ids."""
        found = list[LatencySnapshot]()
        for source, each in list(self._histograms.items()):
            ages = sorted(each.last)  # at one moment: the operator may be at work meanwhile
            whence = sources.get(source, str(source)), operator, subtask
            percentiles = [ages[(len(ages) * percent - 1) // 100] for percent in (50, 95, 99)]
            found.append(LatencySnapshot(*whence, each.count, ages[0], ages[-1], sum(ages) / len(ages), *percentiles))
        return found


class LatencyMarksEmitter:
    """Sends a marker of one source subtask every `interval_ms` of processing time, the first in its first step.

    Flink:   StreamSource.LatencyMarksEmitter (streaming.api.operators), 1.11.4
    Differs: markers that were missed are not made up for.
    """

    def __init__(
        self,
        time: ProcessingTimeService,
        emit: Callable[[LatencyMarker], None],
        interval_ms: int,
        source_id: int,
        subtask: int,
    ) -> None:
        self._time = time
        self._emit_marker = emit
        self._interval_ms = interval_ms
        self._source_id = source_id
        self._subtask = subtask
        time.register(time.now_ms, self._emit)

    def _emit(self, due_ms: int) -> None:
        now_ms = self._time.now_ms
        self._emit_marker(LatencyMarker(now_ms, self._source_id, 0, self._subtask))
        self._time.register(due_ms + self._interval_ms * (1 + (now_ms - due_ms) // self._interval_ms), self._emit)
