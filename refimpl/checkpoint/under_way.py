"""The checkpoints of a job that are under way, in the order of their ids; and of the last that are over, what stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.pending import AttemptId, PendingCheckpoint, PendingState

__all__ = ["CheckpointsUnderWay"]

_NUM_REMEMBERED = 16


class CheckpointsUnderWay:
    """What has begun and is not over; ids rise from `next_id` on. One that waits for attempts does so for `timeout_ms`.

    Flink:   CheckpointCoordinator.pendingCheckpoints, recentPendingCheckpoints (runtime.checkpoint), 1.11.4
    """

    def __init__(self, next_id: int, timeout_ms: float) -> None:
        self.next_id = next_id
        self._timeout_ms = timeout_ms
        self._pending: dict[int, PendingCheckpoint] = {}
        self._over: dict[int, frozenset[str]] = {}  # the last ids, and which of their files must stay

    def __iter__(self) -> Iterator[PendingCheckpoint]:
        """Those of this moment: they may be ended on the way."""
        return iter(tuple(self._pending.values()))

    def __len__(self) -> int:
        return len(self._pending)

    def get(self, checkpoint_id: int) -> PendingCheckpoint | None:
        return self._pending.get(checkpoint_id)

    def begin(self, request: CheckpointRequest, awaited: Sequence[AttemptId], now_ms: float) -> PendingCheckpoint:
        """Another one, of which `awaited` have to do their parts."""
        pending = PendingCheckpoint(self.next_id, request, now_ms, awaited)
        self._pending[self.next_id] = pending
        self.next_id += 1
        return pending

    def end(self, pending: PendingCheckpoint, must_stay: frozenset[str] = frozenset()) -> None:
        """It is over; files that are named late are not wanted, but for those that `must_stay`."""
        del self._pending[pending.checkpoint_id]
        self._over[pending.checkpoint_id] = must_stay
        while len(self._over) > _NUM_REMEMBERED:
            del self._over[next(iter(self._over))]

    def must_stay(self, checkpoint_id: int) -> frozenset[str] | None:
        """Which files of one that is over must stay; `None` if it is not among the last ones."""
        return self._over.get(checkpoint_id)

    @property
    def writing(self) -> PendingCheckpoint | None:
        """The one whose manifest is being written."""
        return next((each for each in self if each.state is PendingState.WRITING), None)

    @property
    def ready(self) -> PendingCheckpoint | None:
        """The oldest whose manifest can be written."""
        return next((each for each in self if each.is_fully_acknowledged), None)

    @property
    def next_expiry(self) -> float | None:
        """When the first one has waited for too long, in ms."""
        return min((each.started_ms + self._timeout_ms for each in self if _waits_for_attempts(each)), default=None)

    def expired(self, now_ms: float) -> list[PendingCheckpoint]:
        """Those that have waited for too long."""
        return [each for each in self if _waits_for_attempts(each) and now_ms >= each.started_ms + self._timeout_ms]


def _waits_for_attempts(pending: PendingCheckpoint) -> bool:
    """And not for the manifest of another one."""
    return pending.state is PendingState.COLLECTING and not pending.is_fully_acknowledged
