"""What a task does for a checkpoint: values, carried out one by one in the order in which `snapshotting` gives them."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.consumer.barrier_handler import AbortReason
from refimpl.records.events import CheckpointBarrier

__all__ = [
    "BroadcastBarrier",
    "BroadcastCancelMarker",
    "CancelWrite",
    "CaptureInputs",
    "DropCapture",
    "DropWritten",
    "FailTask",
    "FinishTask",
    "OperatorAborted",
    "OperatorComplete",
    "PrepareBarrier",
    "SendAck",
    "SendDecline",
    "SendEnded",
    "SnapshotDecision",
    "TakeState",
    "WriteState",
]


@dataclass(frozen=True, slots=True)
class PrepareBarrier:
    """Let an operator emit what it must before the barrier."""

    checkpoint_id: int
    operator: str


@dataclass(frozen=True, slots=True)
class BroadcastBarrier:
    """Send the barrier to all outputs; an unaligned one at the head, copying what it passes."""

    barrier: CheckpointBarrier


@dataclass(frozen=True, slots=True)
class CaptureInputs:
    """Begin to copy what is in flight towards this task."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class TakeState:
    """Make the state of an operator bytes, as it is now."""

    checkpoint_id: int
    operator: str


@dataclass(frozen=True, slots=True)
class WriteState:
    """Hand the bytes to the writer, who answers with `written` or `write_failed`, once."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class SendAck:
    """The bytes are durable: tell the coordinator, with keys, sizes, checksums and times."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class SendDecline:
    """Tell the coordinator that this checkpoint will not be."""

    checkpoint_id: int
    reason: AbortReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SendEnded:
    """The final snapshot is durable: tell the coordinator, and again until the task is told that it counts."""


@dataclass(frozen=True, slots=True)
class BroadcastCancelMarker:
    """Tell whoever reads from here not to wait for this barrier."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CancelWrite:
    """Nobody wants this any more: the writer may stop, and still answers."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DropWritten:
    """Delete whatever has been put into the store for this snapshot."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DropCapture:
    """Forget what has been copied of what is in flight for this checkpoint, and what has been taken of the state."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class OperatorComplete:
    """Tell an operator that this checkpoint counts. What its code raises fails the task; the checkpoint stays."""

    checkpoint_id: int
    operator: str


@dataclass(frozen=True, slots=True)
class OperatorAborted:
    """Tell an operator that this checkpoint will never count."""

    checkpoint_id: int
    operator: str


@dataclass(frozen=True, slots=True)
class FailTask:
    """The task cannot go on."""

    detail: str


@dataclass(frozen=True, slots=True)
class FinishTask:
    """The final snapshot counts, and all operators know: nothing is left to do."""


SnapshotDecision = (
    PrepareBarrier
    | BroadcastBarrier
    | CaptureInputs
    | TakeState
    | WriteState
    | SendAck
    | SendDecline
    | SendEnded
    | BroadcastCancelMarker
    | CancelWrite
    | DropWritten
    | DropCapture
    | OperatorComplete
    | OperatorAborted
    | FailTask
    | FinishTask
)
