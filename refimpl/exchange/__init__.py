"""Bytes travel: frames, credit, and the two ends of a connection."""

from refimpl.exchange.consumer_connection import ConnectionState, ConsumerConnection
from refimpl.exchange.credit import ConsumerCredit
from refimpl.exchange.decoder import (
    FRAME_TRANSITIONS,
    BufferProvider,
    BufferReceived,
    Found,
    FrameDecoder,
    FramePart,
    ReadPause,
)
from refimpl.exchange.fair_turns import PartitionRequestQueue
from refimpl.exchange.frames import decode, encode
from refimpl.exchange.framing import FRAME_HEADER, HEADER_BYTES, MAGIC, to_frame
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
from refimpl.exchange.lent_buffers import LentBuffers
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
from refimpl.exchange.partition_reader import PartitionReader, PartitionRetries, ReceivingChannel
from refimpl.exchange.producer_connection import ProducerConnection, ProducerConnectionSnapshot
from refimpl.exchange.producer_credit import (
    PartitionProvider,
    ReaderSnapshot,
    SubpartitionReader,
    SubpartitionView,
)
from refimpl.exchange.request_decoder import RequestDecoder
from refimpl.exchange.wire_snapshot import FrameSnapshot, WireSnapshot

__all__ = [
    "DECODER_EXCEPTION",
    "FRAME_HEADER",
    "FRAME_TRANSITIONS",
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
    "BufferProvider",
    "BufferReceived",
    "BufferResponse",
    "CancelPartitionRequest",
    "CloseRequest",
    "ConnectionState",
    "ConsumerConnection",
    "ConsumerCredit",
    "ErrorResponse",
    "Found",
    "FrameDecoder",
    "FramePart",
    "FrameSnapshot",
    "JavaError",
    "LentBuffers",
    "Message",
    "NewBufferSize",
    "PartitionProvider",
    "PartitionReader",
    "PartitionRequest",
    "PartitionRequestQueue",
    "PartitionRetries",
    "ProducerConnection",
    "ProducerConnectionSnapshot",
    "ProducerId",
    "ReadPause",
    "ReaderSnapshot",
    "ReceivingChannel",
    "RequestDecoder",
    "ResultPartitionId",
    "ResumeConsumption",
    "SegmentId",
    "SubpartitionReader",
    "SubpartitionView",
    "TaskEventRequest",
    "WireSnapshot",
    "decode",
    "encode",
    "partition_not_found",
    "read_java_error",
    "throwable_length",
    "to_frame",
    "write_java_error",
]
