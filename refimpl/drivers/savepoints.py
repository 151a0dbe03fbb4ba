"""Savepoints by the same verb on every driver that keeps checkpoints."""

from __future__ import annotations

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.drivers.recovery import JobRecovery
from refimpl.errors import LocalUsageError

__all__ = ["TakesSavepoints"]


class TakesSavepoints:
    """A run whose `recovery` is there if it was given a store."""

    recovery: JobRecovery | None

    def savepoint(self, name: str) -> CheckpointRequest:
        """Ask for a savepoint; `recovery.checkpoints.history` tells of this request when it is there, or why it is not.

        Raises:
            LocalUsageError: there is no store, no task runs, or the name is taken.
        """
        if self.recovery is None:
            raise LocalUsageError(f"nothing can be saved without a store: {type(self).__name__}(job, store=...)")
        return self._savepoint(self.recovery, name)

    def _savepoint(self, recovery: JobRecovery, name: str) -> CheckpointRequest:
        """Ask `recovery` for it, in the turn of the driver's."""
        raise NotImplementedError
