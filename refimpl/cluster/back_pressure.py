"""How much each subtask of a vertex is held back, sampled on demand: is any output of it without a buffer right now?

A question is answered with what is known, and what is known is at most a minute old when somebody asks again: an older
answer is still given, and new samples are taken for the next one. Who asks nothing for ten minutes is forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from refimpl.errors import LocalUsageError

__all__ = [
    "DELAY_BETWEEN_SAMPLES_MS",
    "FORGET_AFTER_MS",
    "NUM_SAMPLES",
    "REFRESH_AFTER_MS",
    "BackPressureLevel",
    "BackPressureMonitor",
    "BackPressureStats",
    "SampleTasks",
    "TaskSampler",
]

NUM_SAMPLES = 100
DELAY_BETWEEN_SAMPLES_MS = 50.0
REFRESH_AFTER_MS = 60_000.0
FORGET_AFTER_MS = 600_000.0
_GRACE_MS = 10_000.0
_NUM_REMEMBERED = 10


class BackPressureLevel(Enum):
    """What a ratio of samples means.

    Flink:   JobVertexBackPressureHandler.getBackPressureLevel (runtime.rest.handler.job), 1.11.4
    """

    OK = "ok"
    LOW = "low"
    HIGH = "high"

    @classmethod
    def of(cls, ratio: float) -> BackPressureLevel:
        """The level of a ratio from 0 to 1: up to 0.1 is fine, up to 0.5 is low."""
        if ratio <= 0.10:
            return cls.OK
        return cls.LOW if ratio <= 0.5 else cls.HIGH


@dataclass(frozen=True, slots=True)
class BackPressureStats:
    """The ratios of one vertex's subtasks, in their order, as they were at `end_ms`.

    Flink:   BackPressureStats, OperatorBackPressureStats (runtime.rest.handler.legacy.backpressure), 1.11.4
    """

    ratios: tuple[float, ...]
    end_ms: float

    @property
    def level(self) -> BackPressureLevel:
        """That of the subtask which is held back most."""
        return BackPressureLevel.of(max(self.ratios))


@dataclass(frozen=True, slots=True)
class SampleTasks:
    """Ask the TaskManagers of these subtasks for `num_samples` samples, `delay_ms` apart, under `request`."""

    request: int
    tasks: tuple[Hashable, ...]
    num_samples: int
    delay_ms: float


@dataclass(slots=True)
class _Request:
    vertex: Hashable
    tasks: tuple[Hashable, ...]
    deadline_ms: float
    ratios: dict[Hashable, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Known:
    stats: BackPressureStats | None = None
    asked_ms: float = 0.0


class BackPressureMonitor:
    """What is known of the vertices that somebody asks about; times are the driver's, in ms.

    Flink:   BackPressureStatsTrackerImpl, BackPressureRequestCoordinator (runtime.rest.handler.legacy.backpressure),
             1.11.4
    """

    def __init__(self, num_samples: int = NUM_SAMPLES, delay_ms: float = DELAY_BETWEEN_SAMPLES_MS) -> None:
        if num_samples < 1 or delay_ms < 0:
            raise LocalUsageError(f"back pressure needs samples, 0 ms apart or more; got {num_samples} and {delay_ms}")
        self._num_samples = num_samples
        self._delay_ms = delay_ms
        self._known: dict[Hashable, _Known] = {}
        self._requests: dict[int, _Request] = {}
        self._over: deque[int] = deque(maxlen=_NUM_REMEMBERED)
        self._next_request = 1

    def ask(
        self, vertex: Hashable, running: Mapping[Hashable, bool], now_ms: float
    ) -> tuple[BackPressureStats | None, list[SampleTasks]]:
        """What is known of a vertex, and the samples that are to be taken for whoever asks next.

        `running` are its subtasks, in order, and whether each runs: where one does not nothing can be said.
        """
        self._forget(now_ms)
        known = self._known.setdefault(vertex, _Known())
        known.asked_ms = now_ms
        is_fresh = known.stats is not None and now_ms - known.stats.end_ms < REFRESH_AFTER_MS
        is_under_way = any(each.vertex == vertex for each in self._requests.values())
        if is_fresh or is_under_way or not running or not all(running.values()):
            return known.stats, []
        request, self._next_request = self._next_request, self._next_request + 1
        takes_ms = self._num_samples * self._delay_ms + _GRACE_MS
        self._requests[request] = _Request(vertex, tuple(running), now_ms + takes_ms)
        return known.stats, [SampleTasks(request, tuple(running), self._num_samples, self._delay_ms)]

    def answered(self, request: int, task: Hashable, ratio: float, now_ms: float) -> None:
        """A subtask's samples are there. Those of a request that is over are late; the last ten are known as such.

        Raises:
            LocalUsageError: nobody asked for it, or the subtask is not one of those that were asked.
        """
        pending = self._requests.get(request)
        if pending is None:
            if request in self._over:
                return
            raise LocalUsageError(f"samples came for request {request}, which is none of ours")
        if task not in pending.tasks:
            raise LocalUsageError(f"samples of {task} came for request {request}, which asks {list(pending.tasks)}")
        pending.ratios[task] = ratio
        if len(pending.ratios) < len(pending.tasks):
            return
        self._end(request)
        ratios = tuple(pending.ratios[each] for each in pending.tasks)
        self._known.setdefault(pending.vertex, _Known(asked_ms=now_ms)).stats = BackPressureStats(ratios, now_ms)

    def task_gone(self, task: Hashable) -> None:
        """A subtask has failed or ended: what was asked of it will not be answered, and is of no use."""
        for request in [number for number, each in self._requests.items() if task in each.tasks]:
            self._end(request)

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return min((each.deadline_ms for each in self._requests.values()), default=None)

    def on_timeout(self, now_ms: float) -> None:
        """Give up what was not answered in time."""
        for request in [number for number, each in self._requests.items() if now_ms >= each.deadline_ms]:
            self._end(request)

    def _end(self, request: int) -> None:
        del self._requests[request]
        self._over.append(request)

    def _forget(self, now_ms: float) -> None:
        for vertex in [v for v, each in self._known.items() if now_ms - each.asked_ms > FORGET_AFTER_MS]:
            del self._known[vertex]


@dataclass(slots=True)
class _Sampling:
    order: SampleTasks
    next_ms: float
    num_taken: int = 0
    num_held_back: dict[Hashable, int] = field(default_factory=dict)


class TaskSampler:
    """Takes the samples of one TaskManager: one timer for all of its tasks, whoever asks.

    `is_held_back` says of a task whether any of its outputs is without a buffer; `None` if there is no such task.

    Flink:   BackPressureSampleService (runtime.taskexecutor), 1.11.4
    Differs: one timer for a request, there one for each task of it.
    """

    def __init__(self, is_held_back: Callable[[Hashable], bool | None]) -> None:
        self._is_held_back = is_held_back
        self._under_way: list[_Sampling] = []

    def begin(self, order: SampleTasks, now_ms: float) -> None:
        """Take samples, the first one at once."""
        self._under_way.append(_Sampling(order, now_ms, num_held_back=dict.fromkeys(order.tasks, 0)))

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return min((each.next_ms for each in self._under_way), default=None)

    def on_timeout(self, now_ms: float) -> list[tuple[int, Hashable, float]]:
        """Take the samples that are due; the ratios of what is complete, by request and task.

        One that comes late is one sample, and not as many as were missed. A task that is no more has no ratio.
        """
        complete: list[tuple[int, Hashable, float]] = []
        for each in [sampling for sampling in self._under_way if now_ms >= sampling.next_ms]:
            for task in list(each.num_held_back):
                is_held_back = self._is_held_back(task)
                if is_held_back is None:
                    del each.num_held_back[task]
                else:
                    each.num_held_back[task] += is_held_back
            each.num_taken += 1
            each.next_ms = now_ms + each.order.delay_ms
            if each.num_taken == each.order.num_samples:
                self._under_way.remove(each)
                complete += _ratios(each)
        return complete


def _ratios(sampling: _Sampling) -> Sequence[tuple[int, Hashable, float]]:
    order = sampling.order
    return [(order.request, task, held / order.num_samples) for task, held in sampling.num_held_back.items()]
