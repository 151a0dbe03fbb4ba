"""What travels in a stream besides the user's values: the elements.

A record carries a value and maybe the time it happened. A watermark says "no record older than
this will follow". The others keep latency statistics and say whether a channel is idle. A batch stands for
the records in it: where it goes they go, and nobody can tell but by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

__all__ = [
    "MAX_WATERMARK",
    "MIN_TIMESTAMP",
    "Column",
    "InternalWatermark",
    "LatencyMarker",
    "RecordAttributes",
    "RecordBatch",
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
        return isinstance(other, StreamRecord) and self.timestamp == other.timestamp and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value, self.timestamp))

    def __repr__(self) -> str:
        return f"StreamRecord({self.value!r}, {self.timestamp})"


Column: TypeAlias = Any
"""The values of one field, one for each record of a batch: an array of numpy's, without a need for numpy here."""


class RecordBatch:
    """Many records at once, as columns: one array for each field of their values, all of one length.

    `timestamps` are event times in ms, or `None` if the records have none. A value is a tuple of its
    fields; with `names` a dict; without `is_tuple` it is what the one column holds. Text is a column of
    numpy's `U`, a missing value a masked entry. Nobody changes the columns of a batch: a new batch may
    share them.

    Flink:   none; PyFlink hands Arrow batches to Python functions (ArrowSerializer, 1.11)

    Raises:
        ValueError: the columns are not of one length, or do not fit their names.
    """

    __slots__ = ("columns", "timestamps", "names", "is_tuple")

    def __init__(
        self,
        columns: Sequence[Column],
        timestamps: Column | None = None,
        names: Sequence[str] | None = None,
        is_tuple: bool = True,
    ) -> None:
        self.columns = tuple(columns)
        self.timestamps = timestamps
        self.names = None if names is None else tuple(names)
        self.is_tuple = is_tuple
        lengths = [len(column) for column in self.columns]
        if not lengths or set(lengths) != {lengths[0] if timestamps is None else len(timestamps)}:
            times = "" if timestamps is None else f" and {len(timestamps)} times"
            raise ValueError(f"a batch has columns of one length, not of {lengths or 'none'}{times}")
        if self.names is not None and len(self.names) != len(lengths):
            raise ValueError(f"{len(self.names)} names for {len(lengths)} columns")
        if not is_tuple and len(lengths) != 1:
            raise ValueError(f"bare values have one column, not {len(lengths)}")

    def __len__(self) -> int:
        return len(self.columns[0])

    def __repr__(self) -> str:
        return f"RecordBatch({len(self)} records)"

    def __getitem__(self, field: int | str) -> Column:
        """The column of a field, by its number or its name."""
        if isinstance(field, str):
            if self.names is None or field not in self.names:
                raise KeyError(f"there is no field {field!r}; there are {self.names or len(self.columns)}")
            field = self.names.index(field)
        return self.columns[field]

    def __getstate__(self) -> tuple[Any, ...]:
        return self.columns, self.timestamps, self.names, self.is_tuple

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.columns, self.timestamps, self.names, self.is_tuple = state

    def with_columns(self, columns: Sequence[Column], is_tuple: bool = True) -> RecordBatch:
        """Other values at the same times."""
        return RecordBatch(columns, self.timestamps, None, is_tuple)

    def with_timestamps(self, timestamps: Column) -> RecordBatch:
        """The same values at other times."""
        return RecordBatch(self.columns, timestamps, self.names, self.is_tuple)

    def take(self, where: Column | slice) -> RecordBatch:
        """Some of the records: a mask, their numbers, or a slice."""
        times = None if self.timestamps is None else self.timestamps[where]
        return RecordBatch([column[where] for column in self.columns], times, self.names, self.is_tuple)

    def copy(self) -> RecordBatch:
        """A batch that shares no memory with this one."""
        times = None if self.timestamps is None else self.timestamps.copy()
        return RecordBatch([column.copy() for column in self.columns], times, self.names, self.is_tuple)

    def values(self) -> Iterator[object]:
        """The values of the records, in order, as Python's own kinds."""
        columns = [column.tolist() for column in self.columns]
        if not self.is_tuple:
            return iter(columns[0])
        rows: Iterator[tuple[object, ...]] = zip(*columns, strict=True)
        if self.names is None:
            return rows
        names = self.names
        return (dict(zip(names, row, strict=True)) for row in rows)

    def records(self) -> Iterator[StreamRecord]:
        """The records one by one."""
        if self.timestamps is None:
            return map(StreamRecord, self.values())
        return map(StreamRecord, self.values(), self.timestamps.tolist())


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


StreamElement = StreamRecord | Watermark | LatencyMarker | StreamStatus | RecordAttributes | InternalWatermark
