"""What the engine says to itself through the same channels: the events.

An event travels in a buffer of its own, outside all pools, and costs no credit. It keeps its place
between the records, which is why a barrier can cut a stream in two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.memory.data_type import DataType

__all__ = [
    "ALL_WORKERS_DONE",
    "NO_ALIGNMENT_TIMEOUT",
    "TERMINATION",
    "Alignment",
    "CancelCheckpointMarker",
    "CheckpointBarrier",
    "CheckpointType",
    "EndOfChannelState",
    "EndOfData",
    "EndOfInputChannelState",
    "EndOfPartition",
    "EndOfSegment",
    "EndOfSuperstep",
    "Event",
    "EventAnnouncement",
    "GenericEvent",
    "RecoveryMetadata",
    "SavepointFormat",
    "StopMode",
    "SubtaskConnectionDescriptor",
    "WatermarkEvent",
    "alignment_of",
    "alignment_timeout_of",
    "data_type_of",
]

NO_ALIGNMENT_TIMEOUT = 2**63 - 1


class CheckpointType(Enum):
    """Why a barrier was sent; the value is its code on the wire."""

    CHECKPOINT = 0
    SAVEPOINT = 1
    SAVEPOINT_SUSPEND = 2
    SAVEPOINT_TERMINATE = 3
    FULL_CHECKPOINT = 4  # 2.x only


class SavepointFormat(Enum):
    """2.x only: how a savepoint is written."""

    CANONICAL = 0
    NATIVE = 1


class Alignment(Enum):
    """How consumers treat a barrier; the value is its code on the wire."""

    AT_LEAST_ONCE = 0
    ALIGNED = 1
    UNALIGNED = 2
    FORCED_ALIGNED = 3


class StopMode(Enum):
    """2.x only: whether the end of data should fire what is left."""

    DRAIN = 0
    NO_DRAIN = 1


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The producer is done; nothing follows on this subpartition."""


@dataclass(frozen=True, slots=True)
class EndOfSuperstep:
    """The end of one round of an iteration."""


@dataclass(frozen=True, slots=True)
class EndOfChannelState:
    """All recovered data of this channel has been read."""


@dataclass(frozen=True, slots=True)
class EndOfInputChannelState:
    """2.x only: all recovered data of the input side has been read."""


@dataclass(frozen=True, slots=True)
class EndOfSegment:
    """2.x only: the end of one segment of a tiered partition."""


@dataclass(frozen=True, slots=True)
class EndOfData:
    """2.x only: the user's data has ended; the partition ends later."""

    stop_mode: StopMode


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Cuts the stream: what came before belongs to checkpoint `checkpoint_id`.

    `timestamp` and `alignment_timeout_ms` are in ms; sources stamp one with a timeout with their processing time, from
    which the timeout counts. `location` is `None` for the default place.
    `savepoint_format` and `alignment_timeout_ms` travel in 2.x only.
    """

    checkpoint_id: int
    timestamp: int
    type: CheckpointType = CheckpointType.CHECKPOINT
    location: bytes | None = None
    alignment: Alignment = Alignment.ALIGNED
    savepoint_format: SavepointFormat | None = None
    alignment_timeout_ms: int = NO_ALIGNMENT_TIMEOUT

    @property
    def needs_alignment(self) -> bool:
        return self.alignment in (Alignment.ALIGNED, Alignment.FORCED_ALIGNED)

    @property
    def has_timeout(self) -> bool:
        """Whether it overtakes when it has waited for `alignment_timeout_ms`.

        Flink:   CheckpointOptions.isTimeoutable (runtime.checkpoint), 2.2.1
        """
        return self.alignment is Alignment.ALIGNED and self.alignment_timeout_ms != NO_ALIGNMENT_TIMEOUT

    def timeout_at_ms(self, seen_ms: float) -> float:
        """Until when one with a timeout waits, in ms, where the first barrier of its checkpoint was seen at `seen_ms`.

        Flink:   BarrierAlignmentUtil.getTimerDelay (streaming.runtime.io.checkpointing), 2.2.1
        Differs: who sees it before its time, by a clock that goes behind, begins with that.
        """
        return min(seen_ms, self.timestamp) + self.alignment_timeout_ms

    def as_unaligned(self) -> CheckpointBarrier:
        """The barrier of the same checkpoint, as one that overtakes.

        Flink:   CheckpointBarrier.asUnaligned, CheckpointOptions.toUnaligned, 2.2.1
        """
        return replace(self, alignment=Alignment.UNALIGNED, alignment_timeout_ms=NO_ALIGNMENT_TIMEOUT)


@dataclass(frozen=True, slots=True)
class CancelCheckpointMarker:
    """Checkpoint `checkpoint_id` will not complete; stop aligning for it."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class GenericEvent:
    """An event known by its Java class name, followed by `payload` as the class writes it."""

    class_name: str
    payload: bytes = b""


TERMINATION = GenericEvent("org.apache.flink.runtime.iterative.event.TerminationEvent")
ALL_WORKERS_DONE = GenericEvent("org.apache.flink.runtime.iterative.event.AllWorkersDoneEvent", bytes(4))


@dataclass(frozen=True, slots=True)
class EventAnnouncement:
    """2.x only: `event` is on its way with this sequence number."""

    sequence_number: int
    event: Event


@dataclass(frozen=True, slots=True)
class SubtaskConnectionDescriptor:
    """2.x only: which old subtasks the recovered data that follows belonged to."""

    input_subtask_index: int
    output_subtask_index: int


@dataclass(frozen=True, slots=True)
class RecoveryMetadata:
    """2.x only: how far a recovered hybrid partition reaches."""

    final_buffer_subpartition_id: int


@dataclass(frozen=True, slots=True)
class WatermarkEvent:
    """2.x only: a watermark with an identifier and a value that is a long or a boolean."""

    identifier: str
    is_aligned: bool
    value: int | bool


Event = (
    EndOfPartition
    | EndOfSuperstep
    | EndOfChannelState
    | EndOfInputChannelState
    | EndOfSegment
    | EndOfData
    | CheckpointBarrier
    | CancelCheckpointMarker
    | GenericEvent
    | EventAnnouncement
    | SubtaskConnectionDescriptor
    | RecoveryMetadata
    | WatermarkEvent
)


def alignment_of(config: Config) -> Alignment:
    """How the barriers of a job's periodic checkpoints are treated; a savepoint's are always aligned.

    Flink:   CheckpointOptions.forConfig (runtime.checkpoint), 2.2.1; CheckpointOptions, 1.11.4
    """
    if config.checkpointing_mode is CheckpointingMode.AT_LEAST_ONCE:
        return Alignment.AT_LEAST_ONCE
    return Alignment.UNALIGNED if config.unaligned and not config.aligned_checkpoint_timeout_ms else Alignment.ALIGNED


def alignment_timeout_of(config: Config) -> int:
    """For how many ms the barriers of a job's periodic checkpoints wait at most, before they overtake."""
    return config.aligned_checkpoint_timeout_ms or NO_ALIGNMENT_TIMEOUT


def data_type_of(event: Event, version: FlinkVersion) -> DataType:
    """What kind of buffer an event travels in.

    Flink:   EventSerializer.toBuffer, 1.11.4; Buffer.DataType.getDataType, 2.2.1
    """
    if isinstance(event, CheckpointBarrier):
        return _barrier_data_type(event, version)
    if version is FlinkVersion.V1_11:
        return DataType.EVENT
    match event:
        case EventAnnouncement():
            return DataType.PRIORITY_EVENT
        case EndOfChannelState():
            return DataType.RECOVERY_COMPLETION
        case EndOfData():
            return DataType.END_OF_DATA
        case EndOfPartition():
            return DataType.END_OF_PARTITION
        case WatermarkEvent():
            return DataType.ALIGNED_WATERMARK if event.is_aligned else DataType.UNALIGNED_WATERMARK
    return DataType.EVENT


def _barrier_data_type(barrier: CheckpointBarrier, version: FlinkVersion) -> DataType:
    if version is not FlinkVersion.V1_11:
        if barrier.alignment is Alignment.UNALIGNED:
            return DataType.PRIORITY_EVENT
        if barrier.has_timeout:
            return DataType.TIMEOUTABLE_BARRIER
    return DataType.ALIGNED_BARRIER if barrier.needs_alignment else DataType.EVENT
