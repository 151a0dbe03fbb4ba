"""Which completed checkpoints are kept: the newest ones, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from refimpl.checkpoint.pending import Ack, AttemptId
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind

__all__ = ["CompletedCheckpoint", "CompletedCheckpoints", "JobEnd", "Retention"]


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A checkpoint whose manifest is durable. `finished` are the attempts that had nothing left to say: FINAL only."""

    checkpoint_id: int
    kind: CheckpointKind
    acks: tuple[Ack, ...]
    started_ms: float
    completed_ms: float
    finished: tuple[AttemptId, ...] = ()
    name: str = ""

    @property
    def keys(self) -> list[str]:
        """The keys of the files its manifest names."""
        return [file.key for ack in self.acks for file in ack.files]


class JobEnd(Enum):
    """How a job has ended for ever."""

    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "canceled"


class Retention(Enum):
    """After which ends the kept checkpoints stay in the store.

    Flink:   CheckpointRetentionPolicy (runtime.checkpoint), 1.11.4
    """

    DELETE = frozenset[JobEnd]()
    ON_FAILURE = frozenset({JobEnd.FAILED})
    ON_CANCELLATION = frozenset({JobEnd.FAILED, JobEnd.CANCELED})


class CompletedCheckpoints:
    """The newest `num_retained` checkpoints, oldest first.

    A savepoint belongs to whoever asked for it: it is here only as what a job began with, and is never given out to be
    deleted.

    Flink:   CompletedCheckpointStore, StandaloneCompletedCheckpointStore (runtime.checkpoint), 1.11.4
    Differs: savepoints of 1.11 are in the list; from 1.15 on they are not.
    """

    def __init__(
        self,
        num_retained: int = 1,
        retention: Retention = Retention.DELETE,
        restored: Iterable[CompletedCheckpoint] = (),
    ) -> None:
        if num_retained < 1:
            raise LocalUsageError(f"checkpoints_retained is {num_retained}, it must be 1 or more")
        self._num_retained = num_retained
        self._retention = retention
        self._kept: list[CompletedCheckpoint] = sorted(restored, key=lambda each: each.checkpoint_id)

    @property
    def kept(self) -> tuple[CompletedCheckpoint, ...]:
        return tuple(self._kept)

    @property
    def latest(self) -> CompletedCheckpoint | None:
        return self._kept[-1] if self._kept else None

    def add(self, checkpoint: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """Keep one more; what is to be deleted for that, oldest first.

        Raises:
            LocalUsageError: it is not newer than the ones here.
        """
        if self._kept and checkpoint.checkpoint_id <= self._kept[-1].checkpoint_id:
            raise LocalUsageError(
                f"checkpoint {checkpoint.checkpoint_id} completes after checkpoint {self._kept[-1].checkpoint_id}"
            )
        self._kept.append(checkpoint)
        dropped, self._kept = self._kept[: -self._num_retained], self._kept[-self._num_retained :]
        return _ours(dropped)

    def dispose(self, end: JobEnd) -> list[CompletedCheckpoint]:
        """The job has ended; what is to be deleted for that, oldest first."""
        if end in self._retention.value:
            return []
        dropped, self._kept = self._kept, []
        return _ours(dropped)


def _ours(dropped: list[CompletedCheckpoint]) -> list[CompletedCheckpoint]:
    return [each for each in dropped if each.kind is not CheckpointKind.SAVEPOINT]
