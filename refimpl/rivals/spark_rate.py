"""Spark Streaming: after each batch a controller estimates how many records a second the receivers may take in.

Source:  PIDRateEstimator, RateEstimator, RateController (org.apache.spark.streaming.scheduler) and RateLimiter
         (org.apache.spark.streaming.receiver), Spark 2.4; Guava's SmoothBursty for the bucket
Differs: the receivers' blocks are single records; a job of a batch has one task for each branch, all at once, and what
         its sink begins has left
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from refimpl.rivals.rival import FOREVER, Levels
from refimpl.rivals.workload import NUM_BRANCHES, SINK, SOURCE

__all__ = ["INTEGRAL", "INTERVAL_MS", "MIN_RATE", "PROPORTIONAL", "PIDRateEstimator", "SparkStreaming", "TokenBucket"]

PROPORTIONAL = 1.0  # spark.streaming.backpressure.pid.proportional
INTEGRAL = 0.2  # spark.streaming.backpressure.pid.integral
DERIVED = 0.0  # spark.streaming.backpressure.pid.derived
MIN_RATE = 100.0  # spark.streaming.backpressure.pid.minRate, records a second
INTERVAL_MS = 1_000.0


class PIDRateEstimator:
    """How many records a second a receiver should take in, from how long its last batch took and waited."""

    def __init__(
        self,
        interval_ms: float = INTERVAL_MS,
        proportional: float = PROPORTIONAL,
        integral: float = INTEGRAL,
        derived: float = DERIVED,
        min_rate: float = MIN_RATE,
    ) -> None:
        self._interval_ms = interval_ms
        self._factors = proportional, integral, derived
        self._min_rate = min_rate
        self._is_first = True
        self._time_ms = self._rate = self._error = -1.0

    def compute(self, end_ms: float, num_records: int, processing_ms: float, scheduling_ms: float) -> float | None:
        """The new rate after a batch that ended at `end_ms`; `None` for the first, and if nothing is to be learned."""
        if not (end_ms > self._time_ms and num_records > 0 and processing_ms > 0):
            return None
        since_s = (end_ms - self._time_ms) / 1000
        processed = num_records / processing_ms * 1000
        error = self._rate - processed
        missed = scheduling_ms * processed / self._interval_ms
        proportional, integral, derived = self._factors
        change = proportional * error + integral * missed + derived * (error - self._error) / since_s
        rate = max(self._rate - change, self._min_rate)
        self._time_ms = end_ms
        if self._is_first:
            self._is_first, self._rate, self._error = False, processed, 0.0
            return None
        self._rate, self._error = rate, error
        return rate


class TokenBucket:
    """Lets records pass at a rate, and after a pause those of one second at once; no rate is no limit.

    A record may always go into debt for the next: who comes after it waits.
    """

    def __init__(self, max_rate: float = FOREVER) -> None:
        self.rate = max_rate
        self._max_rate = max_rate
        self._stored = 0.0
        self._free_ms = 0.0

    def update(self, rate: int, now_ms: float) -> None:
        """Set another rate, up to the maximum; 0 or less changes nothing."""
        if rate > 0:
            self._fill(now_ms)
            old, self.rate = self.rate, min(float(rate), self._max_rate)
            self._stored = 0.0 if old == FOREVER else self._stored * self.rate / old

    def wait_ms(self, now_ms: float) -> float:
        """How long the next record has to wait."""
        return max(0.0, self._free_ms - now_ms) if self.rate != FOREVER else 0.0

    def take(self, now_ms: float) -> None:
        """Let a record pass."""
        if self.rate == FOREVER:
            return
        self._fill(now_ms)
        if self._stored >= 1:
            self._stored -= 1
        else:
            self._free_ms += (1 - self._stored) * 1000 / self.rate
            self._stored = 0.0

    def _fill(self, now_ms: float) -> None:
        if now_ms > self._free_ms:
            if self.rate != FOREVER:
                self._stored = min(self.rate, self._stored + (now_ms - self._free_ms) * self.rate / 1000)
            self._free_ms = now_ms


@dataclass(slots=True)
class _Batch:
    """What the receivers took in during one interval, by branch; it waits until the batch before it has ended."""

    made_ms: float
    records: list[deque[float]]
    num_records: list[int]
    begun_ms: float = 0.0


class SparkStreaming:
    """Batches of one second, one at a time; those that wait have no bound."""

    name = "Spark Streaming"

    def __init__(self) -> None:
        self.waiting: deque[_Batch] = deque()
        self.limits = [TokenBucket() for _ in range(NUM_BRANCHES)]
        self.num_batches = 0
        self._estimators = [PIDRateEstimator() for _ in self.limits]
        self._received = [deque[float]() for _ in self.limits]
        self._on_the_wire = [0 for _ in self.limits]
        self._running: _Batch | None = None
        self._between = [deque[float]() for _ in self.limits]
        self._left = [0 for _ in self.limits]
        self._ended = [False for _ in self.limits]
        self._next_batch_ms = INTERVAL_MS

    @property
    def next_tick_ms(self) -> float:
        return self._next_batch_ms

    def on_tick(self, now_ms: float) -> None:
        if now_ms >= self._next_batch_ms:
            self._next_batch_ms += INTERVAL_MS
            self.waiting.append(_Batch(now_ms, self._received, [len(each) for each in self._received]))
            self._received = [deque[float]() for _ in self.limits]
            self._begin(now_ms)

    def may_emit(self, branch: int, now_ms: float) -> float:
        wait_ms = self.limits[branch].wait_ms(now_ms)
        if not wait_ms:
            self.limits[branch].take(now_ms)
        return wait_ms

    def can_enqueue(self, stage: int, branch: int) -> bool:
        return True

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self._on_the_wire[branch] += 1

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self._on_the_wire[branch] -= 1
        (self._received if stage == SOURCE + 1 else self._between)[branch].append(record)

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        if stage != SINK:
            records = self._running.records[branch] if self._running is not None else None
            return records.popleft() if records else None
        if self._between[branch]:
            self._left[branch] += 1
            return self._between[branch].popleft()
        self._end_if_done(branch, now_ms)
        return None

    def measure(self) -> Levels:
        waiting = sum(sum(map(len, batch.records)) for batch in self.waiting)
        running = 0 if self._running is None else sum(map(len, self._running.records))
        held = running + sum(map(len, self._between)) + sum(map(len, self._received)) + sum(self._on_the_wire)
        return Levels(held, waiting)

    def _begin(self, now_ms: float) -> None:
        if self._running is None and self.waiting:
            self._running = self.waiting.popleft()
            self._running.begun_ms = now_ms
            self._left = [0 for _ in self.limits]
            self._ended = [False for _ in self.limits]

    def _end_if_done(self, branch: int, now_ms: float) -> None:
        """A sink that asks and gets nothing has ended its part, if that was all of it."""
        batch = self._running
        if batch is None or self._left[branch] < batch.num_records[branch]:
            return
        self._ended[branch] = True
        if not all(self._ended):
            return
        self.num_batches += 1
        for each, number in enumerate(batch.num_records):
            took_ms, waited_ms = now_ms - batch.begun_ms, batch.begun_ms - batch.made_ms
            rate = self._estimators[each].compute(now_ms, number, took_ms, waited_ms)
            if rate is not None:
                self.limits[each].update(int(rate), now_ms)
        self._running = None
        self._begin(now_ms)
