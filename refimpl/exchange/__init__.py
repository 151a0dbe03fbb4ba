"""Bytes travel: frames, credit, and the two ends of a connection."""

from refimpl.exchange.connection_flow import BufferWait, NoCredit, PoolBuffers, WaterMarks, nobody
from refimpl.exchange.consumer_connection import ConnectionState, ConsumerConnection
from refimpl.exchange.credit import ConsumerCredit
from refimpl.exchange.decoder import BufferProvider, BufferReceived, FrameDecoder
from refimpl.exchange.frames import decode, encode
from refimpl.exchange.framing import HEADER_BYTES, MAGIC, to_frame
from refimpl.exchange.java_errors import JavaError, read_java_error, throwable_length
from refimpl.exchange.java_writer import (
    DECODER_EXCEPTION,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INDEX_OUT_OF_BOUNDS,
    PRODUCER_FAILED,
    partition_not_found,
    write_java_error,
)
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
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_reader import (
    PartitionProvider,
    ProducerConnectionSnapshot,
    ReaderSnapshot,
    SubpartitionReader,
    SubpartitionView,
)
from refimpl.exchange.request_decoder import RequestDecoder
from refimpl.exchange.response_head import BufferFrame, ResponseHead
from refimpl.exchange.wire_snapshot import FrameSnapshot, WireSnapshot

__all__ = [
    "DECODER_EXCEPTION",
    "HEADER_BYTES",
    "ID_BYTES",
    "ILLEGAL_ARGUMENT",
    "ILLEGAL_STATE",
    "INDEX_OUT_OF_BOUNDS",
    "MAGIC",
    "PRODUCER_FAILED",
    "AckAllUserRecordsProcessed",
    "AddCredit",
    "BacklogAnnouncement",
    "BufferFrame",
    "BufferProvider",
    "BufferReceived",
    "BufferResponse",
    "BufferWait",
    "CancelPartitionRequest",
    "CloseRequest",
    "ConnectionState",
    "ConsumerConnection",
    "ConsumerCredit",
    "ErrorResponse",
    "FrameDecoder",
    "FrameSnapshot",
    "JavaError",
    "Message",
    "NewBufferSize",
    "NoCredit",
    "PartitionProvider",
    "PartitionReader",
    "PartitionRequest",
    "PoolBuffers",
    "ProducerConnection",
    "ProducerConnectionSnapshot",
    "ProducerId",
    "ReaderSnapshot",
    "ReceivingChannel",
    "RequestDecoder",
    "ResponseHead",
    "ResultPartitionId",
    "ResumeConsumption",
    "SegmentId",
    "SubpartitionReader",
    "SubpartitionView",
    "TaskEventRequest",
    "WaterMarks",
    "WireSnapshot",
    "decode",
    "encode",
    "nobody",
    "partition_not_found",
    "read_java_error",
    "throwable_length",
    "to_frame",
    "write_java_error",
]
