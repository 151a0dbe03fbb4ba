"""Whether a job that has failed begins again, and after how long.

A strategy hears of every failure, and is asked after it. Two rules that are easily wrong by one:

    fixed delay    of n restarts allowed, failure number n + 1 is the last
    failure rate   of n failures allowed in an interval, number n + 1 within it is the last
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from refimpl.errors import LocalUsageError

__all__ = [
    "FailureRateRestart",
    "FixedDelayRestart",
    "GiveUp",
    "NoRestart",
    "RestartAt",
    "RestartStrategy",
    "Restarts",
]


class RestartStrategy(Protocol):
    """Hears of failures, with the time in ms; `backoff_ms` is how long to wait before a restart.

    Flink:   RestartBackoffTimeStrategy (runtime.executiongraph.failover.flip1), 1.11.4
    """

    @property
    def backoff_ms(self) -> float: ...

    def notify_failure(self, now_ms: float) -> None: ...

    def can_restart(self, now_ms: float) -> bool:
        """Whether the job may begin again after the failures so far; asking changes nothing."""


class NoRestart:
    """The first failure is the last.

    Flink:   NoRestartBackoffTimeStrategy (runtime.executiongraph.failover.flip1), 1.11.4
    """

    backoff_ms = 0.0

    def notify_failure(self, now_ms: float) -> None:
        """Nothing is remembered."""

    def can_restart(self, now_ms: float) -> bool:
        return False


class FixedDelayRestart:
    """As many as `max_restarts`, each `backoff_ms` after its failure.

    Flink:   FixedDelayRestartBackoffTimeStrategy (runtime.executiongraph.failover.flip1), 1.11.4
    """

    def __init__(self, max_restarts: int, backoff_ms: float) -> None:
        if max_restarts < 0 or backoff_ms < 0:
            raise LocalUsageError(f"fixed delay needs numbers of 0 or more, got {max_restarts} and {backoff_ms} ms")
        self.backoff_ms = backoff_ms
        self._max_restarts = max_restarts
        self._num_failures = 0

    def notify_failure(self, now_ms: float) -> None:
        self._num_failures += 1

    def can_restart(self, now_ms: float) -> bool:
        return self._num_failures <= self._max_restarts


class FailureRateRestart:
    """As long as no more than `max_failures` lie within `interval_ms` back from now; `backoff_ms` after its failure.

    Both ends of the interval belong to it. In older releases of Flink the last of `max_failures` was final already.

    Flink:   FailureRateRestartBackoffTimeStrategy (runtime.executiongraph.failover.flip1), 1.11.4
    """

    def __init__(self, max_failures: int, interval_ms: float, backoff_ms: float) -> None:
        if max_failures < 1 or interval_ms <= 0 or backoff_ms < 0:
            raise LocalUsageError(
                f"a failure rate needs max_failures > 0, interval_ms > 0, backoff_ms >= 0; "
                f"got {max_failures}, {interval_ms}, {backoff_ms}"
            )
        self.backoff_ms = backoff_ms
        self._max_failures = max_failures
        self._interval_ms = interval_ms
        self._last_failures_ms: deque[float] = deque(maxlen=max_failures + 1)

    def notify_failure(self, now_ms: float) -> None:
        self._last_failures_ms.append(now_ms)

    def can_restart(self, now_ms: float) -> bool:
        if len(self._last_failures_ms) <= self._max_failures:
            return True
        return now_ms - self._last_failures_ms[0] > self._interval_ms


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Begin again at `at_ms`, if `version` is still the newest then."""

    at_ms: float
    version: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job has failed for ever; `why` in words."""

    why: str


class Restarts:
    """What becomes of a job at each failure; of the timers that are armed only the newest one counts.

    Flink:   ExecutionFailureHandler, ExecutionVertexVersioner (runtime.executiongraph.failover.flip1,
             runtime.scheduler), 1.11.4
    Differs: one version for the whole job, Flink has one for each vertex.
    """

    def __init__(self, strategy: RestartStrategy) -> None:
        self._strategy = strategy
        self._version = 0
        self._is_armed = False

    def failed(self, now_ms: float, is_recoverable: bool = True) -> RestartAt | GiveUp:
        """The job has failed, or has again before it began anew.

        What cannot be recovered from, such as a state that is refused, is not told to the strategy.
        """
        self.disarm()
        if not is_recoverable:
            return GiveUp("the failure is not recoverable")
        self._strategy.notify_failure(now_ms)
        if not self._strategy.can_restart(now_ms):
            return GiveUp(f"{type(self._strategy).__name__} allows no more restarts")
        self._is_armed = True
        return RestartAt(now_ms + self._strategy.backoff_ms, self._version)

    def fires(self, version: int) -> bool:
        """A timer has come to its end; true once, for the newest."""
        if not self._is_armed or version != self._version:
            return False
        self._is_armed = False
        return True

    def disarm(self) -> None:
        """No timer armed so far counts any more."""
        self._version += 1
        self._is_armed = False
