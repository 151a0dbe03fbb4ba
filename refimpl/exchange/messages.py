"""What two TaskManagers say to each other.

A receiver is an id of 16 bytes that the reading end has made up for one channel; it tells apart the
channels that share a connection.

    id  message                     who sends it    era
    0   BufferResponse              producer
    1   ErrorResponse               producer
    2   PartitionRequest            consumer
    3   TaskEventRequest            consumer
    4   CancelPartitionRequest      consumer
    5   CloseRequest                consumer
    6   AddCredit                   consumer
    7   ResumeConsumption           consumer
    8   AckAllUserRecordsProcessed  consumer        2.x
    9   BacklogAnnouncement         producer        2.x
    10  NewBufferSize               consumer        2.x
    11  SegmentId                   consumer        2.x

Flink:   NettyMessage (runtime.io.network.netty), 1.11.4 and 2.2.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from refimpl.memory.data_type import DataType

__all__ = [
    "ID_BYTES",
    "AckAllUserRecordsProcessed",
    "AddCredit",
    "BacklogAnnouncement",
    "BufferResponse",
    "CancelPartitionRequest",
    "CloseRequest",
    "ErrorResponse",
    "Message",
    "NewBufferSize",
    "PartitionRequest",
    "ProducerId",
    "ResultPartitionId",
    "ResumeConsumption",
    "SegmentId",
    "TaskEventRequest",
]

ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class ProducerId:
    """The attempt that produces a partition.

    1.11 has `id` alone; 2.x has the execution graph as `id`, then vertex, subtask and attempt.

    Flink:   ExecutionAttemptID (runtime.executiongraph), 1.11.4 and 2.2.1
    """

    id: bytes
    vertex_id: bytes = bytes(ID_BYTES)
    subtask: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ResultPartitionId:
    """A partition: which data set, which part of it, and who produces it.

    Flink:   ResultPartitionID, IntermediateResultPartitionID, 1.11.4 and 2.2.1
    """

    data_set_id: bytes
    number: int
    producer: ProducerId

    def __str__(self) -> str:
        return f"{self.data_set_id.hex()}#{self.number}@{self.producer.id.hex()}"


class BufferResponse(NamedTuple):  # a tuple is made in a fifth of the time, and this is made for each buffer
    """A buffer or an event for `receiver`.

    `backlog` is how many data buffers still wait behind it. `subpartition` and `partial_sizes`, the
    lengths of the pieces the payload is made of, exist in 2.x only.
    """

    receiver: bytes
    sequence_number: int
    backlog: int
    data_type: DataType
    payload: bytes | memoryview
    is_compressed: bool = False
    subpartition: int = 0
    partial_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """Something failed at the producer's end: for one receiver, or, without one, for the connection.

    `error` is a Java exception as an ObjectOutputStream writes it (see `java_errors`).
    """

    error: bytes
    receiver: bytes | None = None


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """Open a channel: send me subpartitions `first` to `last` of `partition`, I have room for `credit`.

    1.11 has one subpartition: there `last` is `first`.
    """

    partition: ResultPartitionId
    first: int
    last: int
    receiver: bytes
    credit: int


@dataclass(frozen=True, slots=True)
class TaskEventRequest:
    """An event against the stream's direction, for the task that produces `partition`."""

    event: bytes
    partition: ResultPartitionId
    receiver: bytes


@dataclass(frozen=True, slots=True)
class CancelPartitionRequest:
    """This channel wants no more."""

    receiver: bytes


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """No channel wants any more: close the connection."""


@dataclass(frozen=True, slots=True)
class AddCredit:
    """Room for so many more buffers; more than 0."""

    credit: int
    receiver: bytes


@dataclass(frozen=True, slots=True)
class ResumeConsumption:
    """Go on after the barrier that stopped you."""

    receiver: bytes


@dataclass(frozen=True, slots=True)
class AckAllUserRecordsProcessed:
    """Every record has been processed; 2.x."""

    receiver: bytes


@dataclass(frozen=True, slots=True)
class BacklogAnnouncement:
    """So many buffers wait, and you have given no credit; more than 0; 2.x."""

    backlog: int
    receiver: bytes


@dataclass(frozen=True, slots=True)
class NewBufferSize:
    """Make new buffers no larger than this, in bytes; more than 0; 2.x."""

    size: int
    receiver: bytes


@dataclass(frozen=True, slots=True)
class SegmentId:
    """The next segment wanted from tiered storage; more than 0; 2.x."""

    subpartition: int
    segment_id: int
    receiver: bytes


Message = (
    BufferResponse
    | ErrorResponse
    | PartitionRequest
    | TaskEventRequest
    | CancelPartitionRequest
    | CloseRequest
    | AddCredit
    | ResumeConsumption
    | AckAllUserRecordsProcessed
    | BacklogAnnouncement
    | NewBufferSize
    | SegmentId
)
