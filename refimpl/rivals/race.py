"""The same workload through all of them, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

from refimpl.rivals.atm import AtmCredit
from refimpl.rivals.bounded_queue import BoundedQueue
from refimpl.rivals.jstorm import JStorm
from refimpl.rivals.measures import SAMPLE_MS, Run, Sample
from refimpl.rivals.rival import FOREVER, Rival
from refimpl.rivals.sluice import run_engine
from refimpl.rivals.spark_rate import SparkStreaming
from refimpl.rivals.storm import Storm
from refimpl.rivals.workload import NUM_BRANCHES, RECORD_BYTES, SINK, SLOW, SOURCE, Workload

__all__ = ["DELAY_MS", "ENTRANTS", "Course", "run_rival"]

DELAY_MS = 10.0
"""From one worker to the next."""

_PEAK_PER_S = 600.0


class Course:
    """Drives one machine through a workload: three stages of two branches, each with one record in hand.

    Event by event; among those of one moment the order in which they were made.
    """

    def __init__(self, rival: Rival, workload: Workload, delay_ms: float = DELAY_MS) -> None:
        self.rival = rival
        self.now_ms = 0.0
        self.emitted = [0] * NUM_BRANCHES
        self.left = [0] * NUM_BRANCHES
        self.latencies_ms: list[float] = []
        self._workload = workload
        self._delay_ms = delay_ms
        self._events: list[tuple[float, int, int, int, float | None]] = []
        self._num_events = 0
        self._num_done = {(stage, branch): 0 for stage in range(SINK + 1) for branch in range(NUM_BRANCHES)}
        self._free = sorted(self._num_done, reverse=True)  # the sinks first: they make room

    def run_until(self, end_ms: float) -> None:
        """Let everything happen that comes before `end_ms`."""
        while True:
            self._start_all()
            at_ms = min(self._events[0][0] if self._events else FOREVER, self.rival.next_tick_ms)
            if at_ms >= end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, at_ms)
            if self.rival.next_tick_ms <= self.now_ms:
                self.rival.on_tick(self.now_ms)
            while self._events and self._events[0][0] <= self.now_ms:
                _, _, stage, branch, record = heappop(self._events)
                if record is None:
                    self._free.append((stage, branch))
                    self._free.sort(reverse=True)
                else:
                    self.rival.arrive(stage, branch, record, self.now_ms)

    def _start_all(self) -> None:
        """Let who is free take a record, until nobody can any more."""
        has_moved = True
        while has_moved:
            has_moved = False
            for stage, branch in list(self._free):
                begins, wait_ms = self._begin(stage, branch)
                if begins:
                    number = self._num_done[stage, branch]
                    self._num_done[stage, branch] += 1
                    wait_ms = self._workload.service_ms(stage, branch, self.now_ms, number)
                    has_moved = True
                if wait_ms != FOREVER:
                    self._free.remove((stage, branch))
                    self._at(self.now_ms + wait_ms, stage, branch, None)

    def _begin(self, stage: int, branch: int) -> tuple[bool, float]:
        """Whether a stage takes a record, and if not after how long it asks again."""
        rival, now = self.rival, self.now_ms
        if stage == SOURCE:
            wait_ms = rival.may_emit(branch, now)
            if wait_ms:
                return False, wait_ms
            self.emitted[branch] += 1
            self._send(stage, branch, now)
            return True, 0.0
        if stage != SINK and not rival.can_enqueue(stage, branch):
            return False, FOREVER
        record = rival.dequeue(stage, branch, now)
        if record is None:
            return False, FOREVER
        if stage == SINK:
            self.left[branch] += 1
            if branch == SLOW:
                self.latencies_ms.append(now - record)
        else:
            self._send(stage, branch, record)
        return True, 0.0

    def _send(self, stage: int, branch: int, record: float) -> None:
        self.rival.enqueue(stage, branch, record, self.now_ms)
        self._at(self.now_ms + self._delay_ms, stage + 1, branch, record)

    def _at(self, at_ms: float, stage: int, branch: int, record: float | None) -> None:
        self._num_events += 1
        heappush(self._events, (at_ms, self._num_events, stage, branch, record))


def run_rival(rival: Rival, workload: Workload, delay_ms: float = DELAY_MS) -> Run:
    """Run the workload through a machine."""
    course = Course(rival, workload, delay_ms)
    samples = list[Sample]()
    while len(samples) * SAMPLE_MS < workload.total_ms:
        course.run_until((len(samples) + 1) * SAMPLE_MS)
        held = rival.measure()
        sample = Sample(tuple(course.emitted), tuple(course.left), held.num_bytes)
        assert held.num_bytes == sample.num_inside * RECORD_BYTES, f"{rival.name} has lost count: {held}, {sample}"
        samples.append(sample)
    return Run(rival.name, workload.seed, tuple(workload.phases), tuple(samples), tuple(course.latencies_ms))


ENTRANTS: Mapping[str, Callable[[Workload], Run]] = {
    "storm": lambda workload: run_rival(Storm(), workload),
    "jstorm": lambda workload: run_rival(JStorm(), workload),
    "spark": lambda workload: run_rival(SparkStreaming(), workload),
    "atm-link": lambda workload: run_rival(AtmCredit(DELAY_MS, _PEAK_PER_S), workload),
    "atm-end": lambda workload: run_rival(AtmCredit(DELAY_MS, _PEAK_PER_S, end_to_end=True), workload),
    "bounded": lambda workload: run_rival(BoundedQueue(), workload),
    "sluice-none": lambda workload: run_engine(workload, DELAY_MS, credit_based=False),
    "sluice-credit": lambda workload: run_engine(workload, DELAY_MS, credit_based=True),
}
