"""Events to bytes: an int that names the kind, then what the event holds.

A producer that broadcasts an event sends the whole array the event was written into, which for
some kinds is longer than what was written. So a reader takes what it needs and ignores the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.memory.buffer import Buffer, heap_buffer
from refimpl.records.events import (
    ALL_WORKERS_DONE,
    NO_ALIGNMENT_TIMEOUT,
    Alignment,
    CancelCheckpointMarker,
    CheckpointBarrier,
    CheckpointType,
    EndOfChannelState,
    EndOfData,
    EndOfInputChannelState,
    EndOfPartition,
    EndOfSegment,
    EndOfSuperstep,
    Event,
    EventAnnouncement,
    GenericEvent,
    RecoveryMetadata,
    SavepointFormat,
    StopMode,
    SubtaskConnectionDescriptor,
    WatermarkEvent,
    data_type_of,
)

__all__ = ["event_from_bytes", "event_to_buffer", "event_to_bytes"]

_E = TypeVar("_E", bound=Enum)
_GENERIC_SCRATCH_BYTES = 128  # Flink writes these into a DataOutputSerializer of this size


def event_to_bytes(event: Event, version: FlinkVersion = FlinkVersion.V1_11) -> bytes:
    """The event's bytes, without what may trail them on the wire.

    Raises:
        LocalUsageError: this version of Flink has no such event.

    Flink:   EventSerializer.toSerializedEvent (runtime.io.network.api.serialization)
    """
    _check_version(event, version)
    match event:
        case EndOfPartition():
            return _ints(0)
        case CheckpointBarrier():
            return _barrier_to_bytes(event, version)
        case EndOfSuperstep():
            return _ints(2)
        case GenericEvent():
            return _ints(3) + _utf(event.class_name) + event.payload
        case CancelCheckpointMarker():
            return struct.pack(">iq", 4, event.checkpoint_id)
        case EndOfChannelState():
            return _ints(5)
        case EventAnnouncement():
            return _ints(6, event.sequence_number) + event_to_bytes(event.event, version)
        case SubtaskConnectionDescriptor():
            return _ints(7, event.input_subtask_index, event.output_subtask_index)
        case EndOfData():
            return struct.pack(">ib", 8, event.stop_mode.value)
        case EndOfSegment():
            return _ints(9)
        case RecoveryMetadata():
            return _ints(10, event.final_buffer_subpartition_id)
        case WatermarkEvent():
            return _watermark_to_bytes(event)
        case EndOfInputChannelState():
            return _ints(12)


def event_to_buffer(event: Event, version: FlinkVersion = FlinkVersion.V1_11) -> Buffer:
    """The event in a buffer of its own, outside all pools, with the bytes that really travel.

    Flink:   EventSerializer.toBufferConsumer
    """
    data = event_to_bytes(event, version)
    return heap_buffer(data + bytes(_trailing_bytes(event, len(data), version)), data_type_of(event, version))


def event_from_bytes(data: bytes | memoryview, version: FlinkVersion = FlinkVersion.V1_11) -> Event:
    """The event at the start of `data`; bytes after it are ignored.

    Raises:
        RemoteProtocolError: incomplete, or no event of this version.

    Flink:   EventSerializer.fromSerializedEvent
    """
    reader = _Reader(memoryview(data))
    kind = reader.number(">i")
    read = _READERS.get(kind)
    if read is None or (kind > 5 and version is FlinkVersion.V1_11):
        raise RemoteProtocolError(f"{kind} is no event of Flink {version.value}")
    return read(reader, version)


# -- writing ---------------------------------------------------------------------------------------


def _ints(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def _utf(text: str) -> bytes:
    """A 2-byte length and modified UTF-8, as Java's `writeUTF`: zero and surrogates are special."""
    raw = bytearray()
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        unit = units[index] << 8 | units[index + 1]
        if 0 < unit < 0x80:
            raw.append(unit)
        elif unit < 0x800:
            raw += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            raw += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    if len(raw) > 0xFFFF:
        raise LocalUsageError(f"a name of {len(raw)} bytes does not fit its 2-byte length")
    return len(raw).to_bytes(2, "big") + bytes(raw)


def _barrier_to_bytes(barrier: CheckpointBarrier, version: FlinkVersion) -> bytes:
    data = struct.pack(">iqq", 1, barrier.checkpoint_id, barrier.timestamp)
    if version is FlinkVersion.V1_11:
        data += _ints(barrier.type.value)
    else:
        data += bytes((barrier.type.value,))
        if barrier.savepoint_format is not None:
            data += bytes((barrier.savepoint_format.value,))
    location = barrier.location
    data += _ints(-1) if location is None else _ints(len(location)) + location
    data += bytes((barrier.alignment.value,))
    if version is not FlinkVersion.V1_11:
        data += struct.pack(">q", barrier.alignment_timeout_ms)
    return data


def _watermark_to_bytes(event: WatermarkEvent) -> bytes:
    data = _ints(11) + _utf(event.identifier) + bytes((event.is_aligned,))
    if isinstance(event.value, bool):
        return data + _ints(1) + bytes((event.value,))
    return data + struct.pack(">iq", 0, event.value)


def _trailing_bytes(event: Event, num_written: int, version: FlinkVersion) -> int:
    """Zero bytes after the event on the wire: the rest of the array Flink wrote it into."""
    match event:
        case CheckpointBarrier():
            location = 0 if event.location is None else len(event.location)
            allocated = 30 if version is FlinkVersion.V1_11 else 38
            return allocated + location - num_written
        case EventAnnouncement():
            inner = event_to_bytes(event.event, version)
            return _trailing_bytes(event.event, len(inner), version)
        case GenericEvent() | WatermarkEvent():
            size = _GENERIC_SCRATCH_BYTES
            while size < num_written:
                size *= 2
            return size - num_written
    return 0


_ONLY_IN_2 = (
    EventAnnouncement, SubtaskConnectionDescriptor, EndOfData, EndOfSegment, RecoveryMetadata,
    WatermarkEvent, EndOfInputChannelState,
)  # fmt: skip


def _check_version(event: Event, version: FlinkVersion) -> None:
    if version is not FlinkVersion.V1_11:
        if isinstance(event, CheckpointBarrier):
            is_savepoint = event.type not in (
                CheckpointType.CHECKPOINT,
                CheckpointType.FULL_CHECKPOINT,
            )
            if is_savepoint != (event.savepoint_format is not None):
                raise LocalUsageError("in 2.x a savepoint, and only a savepoint, has a format")
        return
    is_full = isinstance(event, CheckpointBarrier) and event.type is CheckpointType.FULL_CHECKPOINT
    if isinstance(event, _ONLY_IN_2) or is_full:
        raise LocalUsageError(f"Flink {version.value} has no event {event!r}")


# -- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Takes fields off the front of an event's bytes."""

    def __init__(self, source: memoryview) -> None:
        self._source = source
        self._position = 0

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.raw(struct.calcsize(layout)))[0])

    def raw(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._source):
            raise RemoteProtocolError(
                f"incomplete event: {length} bytes wanted at byte {self._position} of {len(self._source)}"
            )
        data = bytes(self._source[self._position : end])
        self._position = end
        return data

    def utf(self) -> str:
        raw = iter(self.raw(self.number(">H")))
        units = bytearray()
        for first in raw:
            if first < 0x80:
                unit, num_more = first, 0
            elif first >> 5 == 0b110:
                unit, num_more = first & 0x1F, 1
            elif first >> 4 == 0b1110:
                unit, num_more = first & 0x0F, 2
            else:
                raise RemoteProtocolError(f"{first:#x} begins no character of a name")
            for _ in range(num_more):
                more = next(raw, None)
                if more is None or more >> 6 != 0b10:
                    raise RemoteProtocolError("a name has half a character")
                unit = unit << 6 | more & 0x3F
            units += unit.to_bytes(2, "big")
        return units.decode("utf-16-be", "surrogatepass")

    def choice(self, kinds: type[_E], code: int) -> _E:
        try:
            return kinds(code)
        except ValueError:
            raise RemoteProtocolError(f"{code} is no {kinds.__name__}") from None


def _read_barrier(reader: _Reader, version: FlinkVersion) -> CheckpointBarrier:
    checkpoint_id = reader.number(">q")
    timestamp = reader.number(">q")
    savepoint_format = None
    if version is FlinkVersion.V1_11:
        kind = reader.choice(CheckpointType, reader.number(">i"))
        if kind is CheckpointType.FULL_CHECKPOINT:
            raise RemoteProtocolError("4 is no checkpoint type of Flink 1.11")
    else:
        kind = reader.choice(CheckpointType, reader.number(">b"))
        if kind not in (CheckpointType.CHECKPOINT, CheckpointType.FULL_CHECKPOINT):
            savepoint_format = reader.choice(SavepointFormat, reader.number(">b"))
    length = reader.number(">i")
    location = None if length == -1 else reader.raw(length)
    alignment = reader.choice(Alignment, reader.number(">b"))
    timeout = NO_ALIGNMENT_TIMEOUT if version is FlinkVersion.V1_11 else reader.number(">q")
    return CheckpointBarrier(checkpoint_id, timestamp, kind, location, alignment, savepoint_format, timeout)


def _read_generic(reader: _Reader, _version: FlinkVersion) -> GenericEvent:
    name = reader.utf()
    payload = reader.raw(4) if name == ALL_WORKERS_DONE.class_name else b""
    return GenericEvent(name, payload)


def _read_announcement(reader: _Reader, version: FlinkVersion) -> EventAnnouncement:
    sequence_number = reader.number(">i")
    kind = reader.number(">i")
    read = _READERS.get(kind)
    if read is None or kind == 6:
        raise RemoteProtocolError(f"an announcement cannot announce event {kind}")
    return EventAnnouncement(sequence_number, read(reader, version))


def _read_watermark(reader: _Reader, _version: FlinkVersion) -> WatermarkEvent:
    identifier = reader.utf()
    is_aligned = reader.number(">b") != 0
    kind = reader.number(">i")
    if kind not in (0, 1):
        raise RemoteProtocolError(f"{kind} is no kind of watermark value; 0 is long, 1 boolean")
    value: int | bool = reader.number(">q") if kind == 0 else reader.number(">b") != 0
    return WatermarkEvent(identifier, is_aligned, value)


_READERS: dict[int, Callable[[_Reader, FlinkVersion], Event]] = {
    0: lambda _reader, _version: EndOfPartition(),
    1: _read_barrier,
    2: lambda _reader, _version: EndOfSuperstep(),
    3: _read_generic,
    4: lambda reader, _version: CancelCheckpointMarker(reader.number(">q")),
    5: lambda _reader, _version: EndOfChannelState(),
    6: _read_announcement,
    7: lambda reader, _version: SubtaskConnectionDescriptor(reader.number(">i"), reader.number(">i")),
    8: lambda reader, _version: EndOfData(reader.choice(StopMode, reader.number(">b"))),
    9: lambda _reader, _version: EndOfSegment(),
    10: lambda reader, _version: RecoveryMetadata(reader.number(">i")),
    11: _read_watermark,
    12: lambda _reader, _version: EndOfInputChannelState(),
}
