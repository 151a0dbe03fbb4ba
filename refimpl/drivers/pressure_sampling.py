"""Back pressure of a job that runs: samples that TaskManagers take on their timers, and the monitor that asks for them.

Rules of this file:
- A TaskManager has one timer for whoever asks, and no thread for it: what else waits for a time waits for this too.
- The monitor is asked on any thread; a TaskManager is asked to begin, and answers later.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from refimpl.cluster.back_pressure import BackPressureMonitor, BackPressureStats, SampleTasks, TaskSampler
from refimpl.errors import LocalUsageError
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.task.task import Task

__all__ = ["Answer", "PressureQuestions", "SampleTimer", "TakesSamples", "subtasks_of"]

Answer = Callable[[int, Hashable, float], None]
"""Told of a request's number, a task, and the ratio of samples in which it was held back."""


class TakesSamples(Protocol):
    """A TaskManager, as who asks for samples sees it."""

    def standing(self) -> Mapping[str, bool]:
        """Its tasks, and whether each runs."""

    def sample(self, order: SampleTasks, answer: Answer) -> None:
        """Begin to take samples of these tasks of its own."""


class SampleTimer:
    """Takes the samples of one TaskManager's tasks when they are due, under `monitor`, if it has one.

    `on_order` is called under it when there are samples to be taken, so that whoever waits for time looks again.

    Flink:   BackPressureSampleService (runtime.taskexecutor), 1.11.4
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        monitor: AbstractContextManager[object] | None = None,
        on_order: Callable[[], None] = lambda: None,
    ) -> None:
        self._monitor = monitor or nullcontext()
        self._on_order = on_order
        self._tasks = {task.name: task for task in tasks}
        self._sampler = TaskSampler(self._is_held_back)
        self._answers: dict[int, Answer] = {}

    @property
    def due_s(self) -> float:
        """When the next sample is due, on `time.monotonic`; infinity if none is wanted."""
        deadline_ms = self._sampler.next_deadline
        return math.inf if deadline_ms is None else deadline_ms / 1000

    def standing(self) -> Mapping[str, bool]:
        """The tasks, and whether each runs."""
        return {name: not task.is_done for name, task in self._tasks.items()}

    def sample(self, order: SampleTasks, answer: Answer) -> None:
        """Take samples, the first one as soon as the timer comes; the answer is given under the monitor."""
        with self._monitor:
            self._answers[order.request] = answer
            self._sampler.begin(order, time.monotonic() * 1000)
            self._on_order()

    def take_if_due(self) -> None:
        """Take the samples whose time has come, and answer where they are complete. Under the monitor."""
        for request, task, ratio in self._sampler.on_timeout(time.monotonic() * 1000):
            self._answers[request](request, task, ratio)

    def _is_held_back(self, name: Hashable) -> bool | None:
        task = self._tasks.get(str(name))
        return None if task is None or task.is_done else task.is_held_back


class PressureQuestions:
    """What is known of the back pressure of a job's vertices, asked and answered on any thread.

    Flink:   BackPressureStatsTrackerImpl, BackPressureRequestCoordinator (runtime.rest.handler.legacy.backpressure),
             1.11.4
    """

    def __init__(self, vertices: Mapping[str, Sequence[str]], monitor: BackPressureMonitor | None = None) -> None:
        self._vertices = vertices
        self._monitor = monitor or BackPressureMonitor()
        self._lock = threading.Lock()

    def ask(self, vertex: str, task_managers: Sequence[TakesSamples]) -> BackPressureStats | None:
        """What is known of a vertex, `None` if nothing yet; where that is a minute old new samples are begun.

        Raises:
            LocalUsageError: there is no such vertex.
        """
        if vertex not in self._vertices:
            raise LocalUsageError(f"no vertex {vertex!r}; there are {', '.join(self._vertices)}")
        homes = {name: (each, runs) for each in task_managers for name, runs in each.standing().items()}
        tasks = self._vertices[vertex]
        running: dict[Hashable, bool] = {name: name in homes and homes[name][1] for name in tasks}
        with self._lock:
            self._monitor.on_timeout(_now_ms())
            for name, runs in running.items():
                if not runs:
                    self._monitor.task_gone(name)
            stats, orders = self._monitor.ask(vertex, running, _now_ms())
        for order in orders:
            for each in task_managers:
                mine = tuple(name for name in tasks if homes[name][0] is each)
                if mine:
                    each.sample(replace(order, tasks=mine), self.answered)
        return stats

    def answered(self, request: int, task: Hashable, ratio: float) -> None:
        """The samples of a task are there."""
        with self._lock:
            self._monitor.answered(request, task, ratio, _now_ms())


def subtasks_of(graph: ExecutionGraph) -> dict[str, list[str]]:
    """The subtasks of each vertex of a job, in order, by their names."""
    found: dict[str, list[str]] = {}
    for each in graph.vertices:
        found.setdefault(each.vertex.name, []).append(each.name)
    return found


def _now_ms() -> float:
    return time.monotonic() * 1000
