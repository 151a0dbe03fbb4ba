"""Messages to bytes and back: one frame for each.

    length of the whole frame (int), magic 0xBADC0FFE (int), message id (byte), body

All numbers are big-endian. The bodies of the two eras differ in two messages: 2.x says more about
who produces a partition, and about what a buffer is made of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.framing import to_frame as to_frame
from refimpl.exchange.java_errors import throwable_length
from refimpl.exchange.messages import (
    AckAllUserRecordsProcessed,
    AddCredit,
    BacklogAnnouncement,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    NewBufferSize,
    PartitionRequest,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    SegmentId,
    TaskEventRequest,
)
from refimpl.exchange.wire_format import WIRE_FORMAT, WireFormat
from refimpl.memory.data_type import DataType

__all__ = ["decode", "encode"]

_INT = struct.Struct(">i")
_RESPONSE_1 = struct.Struct(">16siiBBi")
_RESPONSE_2 = struct.Struct(">16siiiiBBi")
_PARTITION = struct.Struct(">16si")
_PRODUCER_2 = struct.Struct(">16s16sii")
_ID = struct.Struct(">16s")
_NUMBER_ID = struct.Struct(">i16s")
_NUMBERS_ID = struct.Struct(">ii16s")

_IDS: dict[type, int] = {
    BufferResponse: 0, ErrorResponse: 1, PartitionRequest: 2, TaskEventRequest: 3,
    CancelPartitionRequest: 4, CloseRequest: 5, AddCredit: 6, ResumeConsumption: 7,
    AckAllUserRecordsProcessed: 8, BacklogAnnouncement: 9, NewBufferSize: 10, SegmentId: 11,
}  # fmt: skip
_LAST_ID = {FlinkVersion.V1_11: 7, FlinkVersion.V2_2: 11}


# -- writing ---------------------------------------------------------------------------------------


def encode(message: Message, version: FlinkVersion = FlinkVersion.V1_11, wire: WireFormat = WIRE_FORMAT) -> bytes:
    """The whole frame of `message`; `wire` writes what a channel of 1.11 says.

    Raises:
        LocalUsageError: this version has no such message or no such kind of buffer, or a number
            that must be above 0 is not.

    Flink:   NettyMessageEncoder (runtime.io.network.netty.NettyMessage), 1.11.4 and 2.2.1
    """
    frame_id = _IDS[type(message)]
    if frame_id > _LAST_ID[version]:
        raise LocalUsageError(f"Flink {version.value} has no {type(message).__name__}")
    match message:
        case PartitionRequest() if version is FlinkVersion.V1_11:
            if message.first != message.last:
                ends = message.first, message.last
                raise LocalUsageError(f"Flink {version.value} reads one subpartition, not {ends}")
            of, producer = message.partition, message.partition.producer
            return wire.request(of.data_set_id, of.number, producer.id, message.first, message.receiver, message.credit)
        case AddCredit():
            return wire.add_credit(_above_zero(message, message.credit), message.receiver)
        case ResumeConsumption():
            return wire.resume(message.receiver)
    return to_frame(frame_id, _body(message, version))


def _body(message: Message, version: FlinkVersion) -> bytes:
    match message:
        case BufferResponse():
            return response_header(message, len(message.payload), version) + message.payload
        case ErrorResponse():
            has_receiver = message.receiver is not None
            return message.error + bytes((has_receiver,)) + (message.receiver or b"")
        case PartitionRequest():
            numbers = _INT.pack(message.first) + _INT.pack(message.last)
            return _partition(message.partition, version) + numbers + message.receiver + _INT.pack(message.credit)
        case TaskEventRequest():
            event = _INT.pack(len(message.event)) + message.event
            return event + _partition(message.partition, version) + message.receiver
        case BacklogAnnouncement():
            return _NUMBER_ID.pack(_above_zero(message, message.backlog), message.receiver)
        case NewBufferSize():
            return _NUMBER_ID.pack(_above_zero(message, message.size), message.receiver)
        case SegmentId():
            number = _above_zero(message, message.segment_id)
            return _NUMBERS_ID.pack(message.subpartition, number, message.receiver)
        case CloseRequest():
            return b""
    return message.receiver


def response_header(message: BufferResponse, size: int, version: FlinkVersion) -> bytes:
    """The body of a `BufferResponse` up to its payload of `size` bytes."""
    code = message.data_type.code(version)
    if code is None:
        raise LocalUsageError(f"Flink {version.value} has no {message.data_type}")
    if version is FlinkVersion.V1_11:
        return _RESPONSE_1.pack(
            message.receiver,
            message.sequence_number,
            message.backlog,
            code,
            message.is_compressed,
            size,
        )
    header = _RESPONSE_2.pack(
        message.receiver,
        message.subpartition,
        len(message.partial_sizes),
        message.sequence_number,
        message.backlog,
        code,
        message.is_compressed,
        size,
    )
    return header + b"".join(map(_INT.pack, message.partial_sizes))


def _partition(partition: ResultPartitionId, version: FlinkVersion) -> bytes:
    producer = partition.producer
    head = _PARTITION.pack(partition.data_set_id, partition.number)
    if version is FlinkVersion.V1_11:
        return head + producer.id
    return head + _PRODUCER_2.pack(producer.id, producer.vertex_id, producer.subtask, producer.attempt)


def _above_zero(message: Message, number: int) -> int:
    if number <= 0:
        raise LocalUsageError(f"{message} needs a number above 0")
    return number


# -- reading ---------------------------------------------------------------------------------------


class BodyReader:
    """Takes fields off the front of a frame's body.

    Raises:
        RemoteProtocolError: the body ends too early, or too late.
    """

    def __init__(self, body: memoryview, name: str) -> None:
        self._body = body
        self._name = name
        self._position = 0

    @property
    def num_left(self) -> int:
        return len(self._body) - self._position

    def fields(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The fields of `layout`."""
        end = self._position + layout.size
        if end > len(self._body):
            raise RemoteProtocolError(f"the body of a {self._name} ends at byte {len(self._body)}, {end} are needed")
        found = layout.unpack_from(self._body, self._position)
        self._position = end
        return found

    def number(self, least: int = 0) -> int:
        """An int that is at least `least`."""
        number: int = self.fields(_INT)[0]
        if number < least:
            raise RemoteProtocolError(f"a {self._name} has {number} where at least {least} must be")
        return number

    def id(self) -> bytes:
        found: bytes = self.fields(_ID)[0]
        return found

    def raw(self, length: int) -> bytes:
        """The next `length` bytes, copied."""
        if length > self.num_left:
            raise RemoteProtocolError(f"a {self._name} promises {length} bytes, its body has {self.num_left}")
        self._position += length
        return bytes(self._body[self._position - length : self._position])

    def end(self) -> None:
        """Nothing may be left."""
        if self.num_left:
            raise RemoteProtocolError(f"a {self._name} has {self.num_left} bytes too many")


def decode(frame_id: int, body: memoryview, version: FlinkVersion = FlinkVersion.V1_11) -> Message:
    """The message of a frame whose length, magic and id have been taken off.

    Raises:
        RemoteProtocolError: no message of this version has these bytes.

    Flink:   NettyMessageDecoder (runtime.io.network.netty.NettyMessage), 1.11.4 and 2.2.1
    """
    kind = _KINDS.get(frame_id)
    if kind is None or frame_id > _LAST_ID[version]:
        raise RemoteProtocolError(f"{frame_id} is no message id of Flink {version.value}")
    reader = BodyReader(body, kind.__name__)
    message = _READERS[frame_id](reader, version)
    reader.end()
    return message


def read_response_header(
    reader: BodyReader, version: FlinkVersion, wire: WireFormat = WIRE_FORMAT
) -> tuple[BufferResponse, int]:
    """A `BufferResponse` without its payload, and the payload's length in bytes; `wire` reads that of 1.11."""
    subpartition, num_partial = 0, 0
    if version is FlinkVersion.V1_11:
        header = reader.raw(wire.RESPONSE_BYTES)
        receiver, sequence_number, backlog, code, is_compressed, size = wire.read_response(header)
    else:
        (receiver, subpartition, num_partial, sequence_number, backlog, code, is_compressed, size) = reader.fields(
            _RESPONSE_2
        )
    if size < 0 or num_partial < 0:
        raise RemoteProtocolError(f"a BufferResponse has {size} bytes in {num_partial} pieces")
    if is_compressed > 1:
        raise RemoteProtocolError(f"a BufferResponse is compressed or not, it says {is_compressed}")
    if num_partial * _INT.size > reader.num_left:
        raise RemoteProtocolError(f"{num_partial} pieces do not fit the frame")
    sizes = tuple(reader.number() for _ in range(num_partial))
    if sizes and sum(sizes) != size:
        raise RemoteProtocolError(f"{num_partial} pieces have {sum(sizes)} bytes, the buffer {size}")
    data_type = _DATA_TYPES[version].get(code)
    if data_type is None:
        raise RemoteProtocolError(f"{code} is no kind of buffer of Flink {version.value}")
    response = BufferResponse(
        receiver, sequence_number, backlog, data_type, b"", bool(is_compressed), subpartition, sizes
    )
    return response, size


def _read_response(reader: BodyReader, version: FlinkVersion) -> BufferResponse:
    response, size = read_response_header(reader, version)
    return response._replace(payload=reader.raw(size))


def _read_error(reader: BodyReader, _version: FlinkVersion) -> ErrorResponse:
    rest = memoryview(reader.raw(reader.num_left))
    length = throwable_length(rest)
    tail = BodyReader(rest[length:], "ErrorResponse")
    (has_receiver,) = tail.fields(_BYTE)
    receiver = tail.id() if has_receiver else None
    tail.end()
    return ErrorResponse(bytes(rest[:length]), receiver)


def _read_partition(reader: BodyReader, version: FlinkVersion) -> ResultPartitionId:
    data_set_id, number = reader.fields(_PARTITION)
    if version is FlinkVersion.V1_11:
        return ResultPartitionId(data_set_id, number, ProducerId(reader.id()))
    return ResultPartitionId(data_set_id, number, ProducerId(*reader.fields(_PRODUCER_2)))


def _read_request(reader: BodyReader, version: FlinkVersion) -> PartitionRequest:
    partition = _read_partition(reader, version)
    first = reader.number()
    last = first if version is FlinkVersion.V1_11 else reader.number(first)
    return PartitionRequest(partition, first, last, reader.id(), reader.number())


def _read_task_event(reader: BodyReader, version: FlinkVersion) -> TaskEventRequest:
    event = reader.raw(reader.number())
    return TaskEventRequest(event, _read_partition(reader, version), reader.id())


def _number_and_id(
    make: Callable[[int, bytes], Message],
) -> Callable[[BodyReader, FlinkVersion], Message]:
    return lambda reader, _version: make(reader.number(1), reader.id())


def _id_only(make: Callable[[bytes], Message]) -> Callable[[BodyReader, FlinkVersion], Message]:
    return lambda reader, _version: make(reader.id())


_BYTE = struct.Struct(">?")
_KINDS = {frame_id: kind for kind, frame_id in _IDS.items()}
_READERS: dict[int, Callable[[BodyReader, FlinkVersion], Message]] = {
    0: _read_response,
    1: _read_error,
    2: _read_request,
    3: _read_task_event,
    4: _id_only(CancelPartitionRequest),
    5: lambda _reader, _version: CloseRequest(),
    6: _number_and_id(AddCredit),
    7: _id_only(ResumeConsumption),
    8: _id_only(AckAllUserRecordsProcessed),
    9: _number_and_id(BacklogAnnouncement),
    10: _number_and_id(NewBufferSize),
    11: lambda reader, _version: SegmentId(reader.number(), reader.number(1), reader.id()),
}
_DATA_TYPES = {
    version: {kind.code(version): kind for kind in DataType if kind.code(version) is not None}
    for version in FlinkVersion
}
