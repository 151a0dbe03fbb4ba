"""When so many checkpoints have failed that the job must: the count of those that failed in a row."""

from __future__ import annotations

from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.errors import LocalUsageError

__all__ = ["CheckpointFailureManager"]


class CheckpointFailureManager:
    """Counts the checkpoints that failed since the last one that completed; more than `tolerable` fail the job.

    A checkpoint counts once, however many tasks decline it. What is nobody's fault never counts, see
    `CheckpointFailureReason.is_counted`. After it has failed the job the count begins at 0.

    Flink:   CheckpointFailureManager (runtime.checkpoint), 1.11.4
    """

    def __init__(self, tolerable: int = 0) -> None:
        if tolerable < 0:
            raise LocalUsageError(f"tolerable_failed_checkpoints is {tolerable}, it must be 0 or more")
        self.tolerable = tolerable
        self._counted: set[int] = set()

    @property
    def num_failed(self) -> int:
        """How many in a row have failed."""
        return len(self._counted)

    def failed(self, checkpoint_id: int, reason: CheckpointFailureReason) -> bool:
        """A checkpoint has ended for `reason`; true if the job is to fail for it."""
        if reason.is_counted:
            self._counted.add(checkpoint_id)
        if len(self._counted) <= self.tolerable:
            return False
        self._counted.clear()
        return True

    def completed(self) -> None:
        """A checkpoint is complete: count from 0."""
        self._counted.clear()
