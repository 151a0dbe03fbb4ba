"""Bytes travel: frames, credit, and the consumer's end of a connection."""

from refimpl.exchange.consumer_connection import ConnectionState, ConsumerConnection
from refimpl.exchange.credit import ConsumerCredit
from refimpl.exchange.decoder import BufferProvider, BufferReceived, FrameDecoder
from refimpl.exchange.frames import HEADER_BYTES, MAGIC, decode, encode
from refimpl.exchange.java_errors import JavaError, read_java_error, throwable_length
from refimpl.exchange.messages import (
    ID_BYTES,
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
from refimpl.exchange.partition_reader import PartitionReader, ReceivingChannel

__all__ = [
    "HEADER_BYTES",
    "ID_BYTES",
    "MAGIC",
    "AckAllUserRecordsProcessed",
    "AddCredit",
    "BacklogAnnouncement",
    "BufferProvider",
    "BufferReceived",
    "BufferResponse",
    "CancelPartitionRequest",
    "CloseRequest",
    "ConnectionState",
    "ConsumerConnection",
    "ConsumerCredit",
    "ErrorResponse",
    "FrameDecoder",
    "JavaError",
    "Message",
    "NewBufferSize",
    "PartitionReader",
    "PartitionRequest",
    "ProducerId",
    "ReceivingChannel",
    "ResultPartitionId",
    "ResumeConsumption",
    "SegmentId",
    "TaskEventRequest",
    "decode",
    "encode",
    "read_java_error",
    "throwable_length",
]
