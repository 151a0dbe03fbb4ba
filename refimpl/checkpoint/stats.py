"""What is said of the checkpoints of a job to whoever looks on: how many, and what became of each of the last ones.

These are values, and know nothing of a coordinator; a `CheckpointStatsTracker` makes them. Times are the driver's, in
ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.state.manifest import CheckpointKind

__all__ = [
    "CheckpointCounts",
    "CheckpointStats",
    "CheckpointStatsSnapshot",
    "CheckpointStatus",
    "RestoredCheckpoint",
    "SubtaskStats",
]


class CheckpointStatus(Enum):
    """How a checkpoint stands.

    Flink:   CheckpointStatsStatus (runtime.checkpoint), 1.11.4
    """

    IN_PROGRESS = "in progress"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SubtaskStats:
    """What one subtask has done for a checkpoint: `acked_ms` is when that was heard, `None` while it is missing.

    `alignment_ms` lies between its first barrier and its last. `buffered_bytes` are those in flight that it has kept
    with its state. Both are `None` where nobody told. `is_unaligned`: its barriers have overtaken what waited.

    Flink:   SubtaskStateStats (runtime.checkpoint), 1.11.4
    """

    task: str
    acked_ms: float | None = None
    state_bytes: int = 0
    alignment_ms: float | None = None
    buffered_bytes: int | None = None
    is_unaligned: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """A checkpoint from its trigger on; `subtasks` are those it waits, or waited, for.

    `is_writing`: all have acknowledged, and its manifest is on its way. `name` is that of a savepoint. `reason` and
    `detail` say why it failed. `is_discarded`: it was completed, and its files are deleted, since a newer one is kept.
    `num_restores` says how often the job went on from it.

    Flink:   AbstractCheckpointStats and its subclasses (runtime.checkpoint), 1.11.4
    """

    checkpoint_id: int
    kind: CheckpointKind
    triggered_ms: float
    subtasks: tuple[SubtaskStats, ...]
    name: str = ""
    status: CheckpointStatus = CheckpointStatus.IN_PROGRESS
    is_writing: bool = False
    ended_ms: float | None = None
    reason: CheckpointFailureReason | None = None
    detail: str = ""
    is_discarded: bool = False
    num_restores: int = 0

    @property
    def state_bytes(self) -> int:
        return sum(each.state_bytes for each in self.subtasks)

    @property
    def is_unaligned(self) -> bool:
        """Whether a barrier has overtaken what waited, at once or when it had waited too long."""
        return any(each.is_unaligned for each in self.subtasks)

    @property
    def acknowledged(self) -> tuple[SubtaskStats, ...]:
        """Those that have acknowledged, the last one last."""
        found = [(each.acked_ms, number) for number, each in enumerate(self.subtasks) if each.acked_ms is not None]
        return tuple(self.subtasks[number] for _, number in sorted(found))

    def duration_ms(self, now_ms: float) -> float:
        """From the trigger to its end, or to `now_ms` while it is in progress."""
        return (now_ms if self.ended_ms is None else self.ended_ms) - self.triggered_ms


@dataclass(frozen=True, slots=True)
class RestoredCheckpoint:
    """What a job went on from, and when; `name` is that of a savepoint.

    Flink:   RestoredCheckpointStats (runtime.checkpoint), 1.11.4
    """

    checkpoint_id: int
    kind: CheckpointKind
    restored_ms: float


@dataclass(frozen=True, slots=True)
class CheckpointCounts:
    """How many there were since the run began; each that was triggered is in progress, completed or failed.

    `num_refused` are requests for which none was begun, `num_restored` the times that the job went on from one.

    Flink:   CheckpointStatsCounts (runtime.checkpoint), 1.11.4
    Differs: a refused request is counted too; there it is only logged.
    """

    num_triggered: int = 0
    num_in_progress: int = 0
    num_completed: int = 0
    num_failed: int = 0
    num_restored: int = 0
    num_refused: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointStatsSnapshot:
    """The checkpoints of a run at one moment: `history` has the last ones, the oldest first.

    `refusal` is why the last request was refused. The `latest_` ones may be older than all of `history`.

    Flink:   CheckpointStatsSnapshot, CheckpointStatsHistory (runtime.checkpoint), 1.11.4
    """

    counts: CheckpointCounts = CheckpointCounts()
    history: tuple[CheckpointStats, ...] = ()
    latest_completed: CheckpointStats | None = None
    latest_savepoint: CheckpointStats | None = None
    latest_failed: CheckpointStats | None = None
    latest_restored: RestoredCheckpoint | None = None
    refusal: CheckpointFailureReason | None = None
