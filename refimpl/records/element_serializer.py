"""Elements to bytes: one tag byte, then what the element holds.

    tag  element                     rest
    0    record with a time          long time, value
    1    record without              value
    2    watermark                   long
    3    latency marker              long time, long id lower, long id upper, int subtask
    4    stream status               int: 0 active, -1 idle
    5    record attributes (2.x)     byte
    6    internal watermark (2.x)    int subpartition, long

On the stream the length of the whole stands in front of it, see `spanning`.
"""

from __future__ import annotations

import struct

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError, shown
from refimpl.records.elements import (
    InternalWatermark,
    LatencyMarker,
    RecordAttributes,
    StreamElement,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.types import TypeSerializer

__all__ = ["MAX_ELEMENT_BYTES", "StreamElementSerializer"]

TAG_RECORD_WITH_TIMESTAMP = 0
TAG_RECORD = 1
TAG_WATERMARK = 2
TAG_LATENCY_MARKER = 3
TAG_STREAM_STATUS = 4
TAG_RECORD_ATTRIBUTES = 5
TAG_INTERNAL_WATERMARK = 6

MAX_ELEMENT_BYTES = 2**31 - 1
"""What a length of four bytes can say."""

_TIMED = struct.Struct(">Bq")
_MARKER = struct.Struct(">Bqqqi")
_STATUS = struct.Struct(">Bi")
_ATTRIBUTES = struct.Struct(">B?")
_INTERNAL = struct.Struct(">Biq")


class StreamElementSerializer:
    """Writes and reads the elements of a stream of `value_type`.

    Flink:   StreamElementSerializer (streaming.runtime.streamrecord), 1.11.4 and 2.2.1
    """

    def __init__(self, value_type: TypeSerializer, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        self.value_type = value_type
        self.version = version

    def serialize(self, element: StreamElement) -> bytes:
        """The element's bytes, without a length.

        Raises:
            LocalUsageError: the value is not of the stream's type, the element does not exist in this
                version of Flink, or its bytes are more than a length of four can say.
        """
        target = bytearray()
        self.serialize_into(element, target)
        if len(target) > MAX_ELEMENT_BYTES:
            raise LocalUsageError(f"{len(target)} B do not fit a length of four bytes")
        return bytes(target)

    def serialize_into(self, element: StreamElement, target: bytearray) -> None:
        """Append the element's bytes to `target`, however many they are."""
        if not isinstance(element, StreamRecord):
            target += self._serialize_other(element)
            return
        if element.timestamp is None:
            target.append(TAG_RECORD)
        else:
            target += _timed(TAG_RECORD_WITH_TIMESTAMP, element.timestamp)
        self.value_type.serialize(element.value, target)

    def deserialize(self, data: bytes | memoryview) -> StreamElement:
        """The element whose bytes are exactly `data`.

        Raises:
            RemoteProtocolError: `data` is no element, or has bytes left over.
        """
        source = memoryview(data)
        if not source:
            raise RemoteProtocolError("an empty record has no element tag")
        tag = source[0]
        if tag == TAG_RECORD_WITH_TIMESTAMP:
            timestamp = _field(_TIMED, source)[1]
            value, end = self.value_type.deserialize(source, _TIMED.size)
            self._check_end(source, end)
            return StreamRecord(value, timestamp)
        if tag == TAG_RECORD:
            value, end = self.value_type.deserialize(source, 1)
            self._check_end(source, end)
            return StreamRecord(value)
        return self._deserialize_other(tag, source)

    def _serialize_other(self, element: StreamElement) -> bytes:
        match element:
            case Watermark():
                return _timed(TAG_WATERMARK, element.timestamp)
            case LatencyMarker():
                return _MARKER.pack(
                    TAG_LATENCY_MARKER,
                    element.marked_time,
                    element.operator_id_lower,
                    element.operator_id_upper,
                    element.subtask_index,
                )
            case StreamStatus():
                return _STATUS.pack(TAG_STREAM_STATUS, element.value)
        if self.version is not FlinkVersion.V1_11:
            match element:
                case RecordAttributes():
                    return _ATTRIBUTES.pack(TAG_RECORD_ATTRIBUTES, element.is_backlog)
                case InternalWatermark():
                    return _INTERNAL.pack(TAG_INTERNAL_WATERMARK, element.subpartition_index, element.timestamp)
        raise LocalUsageError(f"Flink {self.version.value} has no element {element!r}")

    def _deserialize_other(self, tag: int, source: memoryview) -> StreamElement:
        is_2 = self.version is not FlinkVersion.V1_11
        element: StreamElement
        if tag == TAG_WATERMARK:
            element, layout = Watermark(_field(_TIMED, source)[1]), _TIMED
        elif tag == TAG_LATENCY_MARKER:
            element, layout = LatencyMarker(*_field(_MARKER, source)[1:]), _MARKER
        elif tag == TAG_STREAM_STATUS:
            code = _field(_STATUS, source)[1]
            if code not in (0, -1):
                raise RemoteProtocolError(f"{code} is no stream status; 0 is active, -1 idle")
            element, layout = StreamStatus(code), _STATUS
        elif tag == TAG_RECORD_ATTRIBUTES and is_2:
            element, layout = RecordAttributes(bool(_field(_ATTRIBUTES, source)[1])), _ATTRIBUTES
        elif tag == TAG_INTERNAL_WATERMARK and is_2:
            element, layout = InternalWatermark(*_field(_INTERNAL, source)[1:]), _INTERNAL
        else:
            raise RemoteProtocolError(f"{tag} is no element tag of Flink {self.version.value}")
        self._check_end(source, layout.size)
        return element

    @staticmethod
    def _check_end(source: memoryview, end: int) -> None:
        if end != len(source):
            raise RemoteProtocolError(f"the element ends at byte {end}, its record at {len(source)}")


def _timed(tag: int, timestamp: int) -> bytes:
    try:
        return _TIMED.pack(tag, timestamp)
    except struct.error:
        raise LocalUsageError(f"an event time is a long, in ms; {shown(timestamp)} is none") from None


def _field(layout: struct.Struct, source: memoryview) -> tuple[int, ...]:
    if len(source) < layout.size:
        raise RemoteProtocolError(f"element tag {source[0]} needs {layout.size} bytes, the record has {len(source)}")
    return layout.unpack_from(source)
