"""What the coordinator wants done: values, carried out in the order in which they are handed out."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.checkpoint.completed import CompletedCheckpoint
from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.pending import Ack, AttemptId
from refimpl.checkpoint.reasons import CheckpointFailureReason

__all__ = [
    "CheckpointAborted",
    "CheckpointCompleted",
    "CoordinatorDecision",
    "Delete",
    "DeleteManifest",
    "FailJob",
    "NotifyAborted",
    "NotifyComplete",
    "RequestRefused",
    "TriggerCheckpoint",
    "WriteManifest",
]


@dataclass(frozen=True, slots=True)
class TriggerCheckpoint:
    """Tell `attempts`, the sources, to cut their streams; the barrier carries `timestamp_ms`."""

    checkpoint_id: int
    request: CheckpointRequest
    timestamp_ms: int
    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """Make the manifest durable, then say `manifest_written` or `manifest_not_written`.

    An answer that was lost is neither: who carries this out asks the store until it knows.
    `finished` are attempts without an ack that need no state any more, in a FINAL checkpoint only.
    """

    checkpoint_id: int
    request: CheckpointRequest
    started_ms: float
    acks: tuple[Ack, ...]
    finished: tuple[AttemptId, ...] = ()


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """Tell `attempts` that a checkpoint counts; such a message may get lost, the next one covers it."""

    checkpoint_id: int
    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Tell `attempts` that a checkpoint will never count."""

    checkpoint_id: int
    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class DeleteManifest:
    """Delete the manifest of a checkpoint; one that is not there is fine. Its files follow, never before."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete files that no checkpoint names; what is not there is fine."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """News for whoever looks on, and for who asked: it is complete."""

    checkpoint: CompletedCheckpoint
    request: CheckpointRequest


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """News for whoever looks on, and for who asked: it will not be. `missing` had not acknowledged it."""

    checkpoint_id: int
    request: CheckpointRequest
    reason: CheckpointFailureReason
    detail: str
    missing: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """News for who asked: no checkpoint was begun."""

    request: CheckpointRequest
    reason: CheckpointFailureReason


@dataclass(frozen=True, slots=True)
class FailJob:
    """The job fails, because of what `cause` says."""

    cause: str


CoordinatorDecision = (
    TriggerCheckpoint
    | WriteManifest
    | NotifyComplete
    | NotifyAborted
    | DeleteManifest
    | Delete
    | CheckpointCompleted
    | CheckpointAborted
    | RequestRefused
    | FailJob
)
