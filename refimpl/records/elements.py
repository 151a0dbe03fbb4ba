"""What travels in a stream besides the user's values: the elements.

A record carries a value and maybe the time it happened. A watermark says "no record older than
this will follow". The others keep latency statistics and say whether a channel is idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "MAX_WATERMARK",
    "MIN_TIMESTAMP",
    "InternalWatermark",
    "LatencyMarker",
    "RecordAttributes",
    "StreamElement",
    "StreamRecord",
    "StreamStatus",
    "Watermark",
]

MIN_TIMESTAMP = -(2**63)
"""`Long.MIN_VALUE`: the time before any watermark."""


class StreamRecord:
    """A value of the user's, with its event time in milliseconds or `None`.

    Flink:   StreamRecord (streaming.runtime.streamrecord), 1.11.4
    """

    __slots__ = ("value", "timestamp")

    def __init__(self, value: object, timestamp: int | None = None) -> None:
        self.value = value
        self.timestamp = timestamp

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StreamRecord)
            and self.timestamp == other.timestamp
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((self.value, self.timestamp))

    def __repr__(self) -> str:
        return f"StreamRecord({self.value!r}, {self.timestamp})"


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with an event time at or below `timestamp` (ms) is expected any more.

    Flink:   Watermark (streaming.api.watermark), 1.11.4
    """

    timestamp: int


MAX_WATERMARK = Watermark(2**63 - 1)
"""The end of event time: every window fires."""


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Travels like a record, past user code, to measure how long queues are.

    `marked_time` is in ms; the operator id is two 64-bit halves, the lower first.

    Flink:   LatencyMarker (streaming.runtime.streamrecord), 1.11.4
    """

    marked_time: int
    operator_id_lower: int
    operator_id_upper: int
    subtask_index: int


class StreamStatus(Enum):
    """Whether a channel may still bring records; the value is its code on the wire.

    Flink:   StreamStatus, 1.11.4 (WatermarkStatus in 2.x)
    """

    ACTIVE = 0
    IDLE = -1


@dataclass(frozen=True, slots=True)
class RecordAttributes:
    """2.x only: whether the records that follow are a backlog to be caught up with."""

    is_backlog: bool


@dataclass(frozen=True, slots=True)
class InternalWatermark:
    """2.x only: a watermark that names the subpartition it came through."""

    subpartition_index: int
    timestamp: int


StreamElement = (
    StreamRecord | Watermark | LatencyMarker | StreamStatus | RecordAttributes | InternalWatermark
)
