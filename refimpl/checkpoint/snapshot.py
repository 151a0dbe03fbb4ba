"""What is said of the checkpoints of a job at one moment, to whoever looks on."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.checkpoint.completed import CompletedCheckpoint
from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.pending import PendingSnapshot

__all__ = ["CoordinatorSnapshot"]


@dataclass(frozen=True, slots=True)
class CoordinatorSnapshot:
    """A coordinator at one moment; `writing_id` is the checkpoint whose manifest is being written."""

    next_id: int
    pending: tuple[PendingSnapshot, ...]
    queued: tuple[CheckpointRequest, ...]
    kept: tuple[CompletedCheckpoint, ...]
    num_failed: int
    writing_id: int | None
