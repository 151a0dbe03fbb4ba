"""Which checkpoint may start now: the queue of requests, and the rules by which one is taken out of it.

The queue is in the order of what is most wanted: savepoints, then what is forced, then what somebody asked for,
then what the timer asked for; among equals the oldest. Only the first one is ever looked at:

    too many are under way             it goes if it is forced, else it waits
    the pause has not passed           it goes, unless it is the timer's: that one is dropped, and the timer
                                       fires again when the pause ends
    else                               it goes
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind

__all__ = [
    "MAX_QUEUED_REQUESTS",
    "CheckpointRequest",
    "CheckpointRequestDecider",
    "DeciderDecision",
    "DropRequest",
    "MoveTimer",
    "StartCheckpoint",
]

MAX_QUEUED_REQUESTS = 1_000


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """Somebody wants a checkpoint: the timer, if `is_periodic`, or a user.

    `number` is the asker's name for it, 0 that of the timer. `submitted_ms` is the driver's time. What `is_forced` goes
    whatever else is under way. `name` is that of a savepoint.
    """

    number: int
    submitted_ms: float
    kind: CheckpointKind = CheckpointKind.CHECKPOINT
    is_forced: bool = False
    is_periodic: bool = False
    name: str = ""

    @classmethod
    def for_savepoint(cls, number: int, submitted_ms: float, name: str) -> CheckpointRequest:
        """The request for a savepoint of that name; it is forced."""
        return cls(number, submitted_ms, CheckpointKind.SAVEPOINT, is_forced=True, name=name)


@dataclass(frozen=True, slots=True)
class StartCheckpoint:
    """Begin what was asked for, if the job is ready."""

    request: CheckpointRequest


@dataclass(frozen=True, slots=True)
class DropRequest:
    """There will be no checkpoint for this request."""

    request: CheckpointRequest
    reason: CheckpointFailureReason


@dataclass(frozen=True, slots=True)
class MoveTimer:
    """The timer is to fire at `at_ms` next, and from then on at its interval."""

    at_ms: float


DeciderDecision = StartCheckpoint | DropRequest | MoveTimer


class CheckpointRequestDecider:
    """Decides what starts; at most `max_concurrent` are under way, `min_pause_ms` lie between two.

    Flink:   CheckpointRequestDecider (runtime.checkpoint), 1.11.4
    Differs: of two requests of the same kind and the same ms the older goes first; Flink takes either.
    """

    def __init__(self, max_concurrent: int = 1, min_pause_ms: float = 0, max_queued: int = MAX_QUEUED_REQUESTS) -> None:
        if max_concurrent < 1 or max_queued < 1 or min_pause_ms < 0:
            raise LocalUsageError(
                f"a decider needs max_concurrent >= 1, max_queued >= 1, min_pause_ms >= 0; "
                f"got {max_concurrent}, {max_queued}, {min_pause_ms}"
            )
        self._max_concurrent = max_concurrent
        self._min_pause_ms = min_pause_ms
        self._max_queued = max_queued
        self._queue: list[CheckpointRequest] = []

    @property
    def queued(self) -> tuple[CheckpointRequest, ...]:
        """What waits, the most wanted first."""
        return tuple(self._queue)

    def submit(
        self,
        request: CheckpointRequest,
        now_ms: float,
        num_pending: int,
        last_completion_ms: float | None = None,
        is_triggering: bool = False,
    ) -> list[DeciderDecision]:
        """Queue a request, and decide as `choose` does.

        In a full queue the last one is dropped; if even that is no periodic one, the new one is.
        """
        if len(self._queue) >= self._max_queued and not self._queue[-1].is_periodic:
            return [DropRequest(request, CheckpointFailureReason.TOO_MANY_REQUESTS)]
        insort(self._queue, request, key=_rank)
        decisions: list[DeciderDecision] = []
        if len(self._queue) > self._max_queued:
            decisions.append(DropRequest(self._queue.pop(), CheckpointFailureReason.TOO_MANY_REQUESTS))
        return decisions + self.choose(now_ms, num_pending, last_completion_ms, is_triggering)

    def choose(
        self, now_ms: float, num_pending: int, last_completion_ms: float | None = None, is_triggering: bool = False
    ) -> list[DeciderDecision]:
        """What becomes of the first in the queue, if anything, while `num_pending` are under way.

        It is asked after every event that may change the answer; at most one starts. `last_completion_ms` is `None`
        when none has completed. Nothing starts while another `is_triggering`.
        """
        if is_triggering or not self._queue:
            return []
        first = self._queue[0]
        if num_pending >= self._max_concurrent:
            return self._start() if first.is_forced else []
        if first.is_periodic and not first.is_forced and last_completion_ms is not None:
            pause_ends_ms = last_completion_ms + self._min_pause_ms
            if now_ms < pause_ends_ms:
                self._queue.pop(0)
                return [DropRequest(first, CheckpointFailureReason.MIN_PAUSE), MoveTimer(pause_ends_ms)]
        return self._start()

    def drop_all(self, reason: CheckpointFailureReason) -> list[DeciderDecision]:
        """Empty the queue."""
        dropped, self._queue = self._queue, []
        return [DropRequest(each, reason) for each in dropped]

    def _start(self) -> list[DeciderDecision]:
        return [StartCheckpoint(self._queue.pop(0))]


def _rank(request: CheckpointRequest) -> tuple[bool, bool, bool, float]:
    """The place in the queue; `insort` puts equals behind each other."""
    is_savepoint = request.kind is CheckpointKind.SAVEPOINT
    return not is_savepoint, not request.is_forced, request.is_periodic, request.submitted_ms
