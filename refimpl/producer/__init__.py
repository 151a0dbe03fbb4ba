"""Bytes wait: which channel, which queue, and when a buffer leaves."""

from refimpl.producer.broadcast_writer import BroadcastCopy, BroadcastRecordWriter
from refimpl.producer.channel_copy import ChannelCopy, RecordInHand, SerializedRecord
from refimpl.producer.dirty_channels import ChannelWatch, DirtyChannels
from refimpl.producer.key_groups import (
    default_max_parallelism,
    java_hash_code,
    key_group_of,
    key_group_range,
    murmur_hash,
    operator_index_of,
)
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import (
    PartitionSnapshot,
    ResultPartition,
    max_buffers,
    required_buffers,
)
from refimpl.producer.result_subpartition import (
    SUBPARTITION_TRANSITIONS,
    ResultSubpartition,
    SubpartitionEvent,
    SubpartitionState,
)
from refimpl.producer.selector import (
    BroadcastSelector,
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    KeyGroupSelector,
    RebalanceSelector,
    RescaleSelector,
    RoundRobinSelector,
    ShuffleSelector,
)
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_snapshot import (
    FIRST_BYTES,
    QueuedBufferSnapshot,
    QueueState,
    SubpartitionSnapshot,
)
from refimpl.producer.subpartition_view import (
    VIEW_TRANSITIONS,
    BufferAndBacklog,
    PipelinedSubpartitionView,
    ReadableSubpartition,
    ViewEvent,
    ViewState,
)

__all__ = [
    "FIRST_BYTES",
    "SUBPARTITION_TRANSITIONS",
    "VIEW_TRANSITIONS",
    "BroadcastCopy",
    "BroadcastRecordWriter",
    "BroadcastSelector",
    "BufferAndBacklog",
    "ChannelCopy",
    "ChannelSelector",
    "ChannelWatch",
    "DirtyChannels",
    "ForwardSelector",
    "GlobalSelector",
    "KeyGroupSelector",
    "PartitionSnapshot",
    "PipelinedSubpartition",
    "PipelinedSubpartitionView",
    "QueueState",
    "QueuedBufferSnapshot",
    "ReadableSubpartition",
    "RebalanceSelector",
    "RecordInHand",
    "RecordWriter",
    "RescaleSelector",
    "ResultPartition",
    "ResultSubpartition",
    "RoundRobinSelector",
    "SerializedRecord",
    "ShuffleSelector",
    "SubpartitionEvent",
    "SubpartitionQueue",
    "SubpartitionSnapshot",
    "SubpartitionState",
    "ViewEvent",
    "ViewState",
    "default_max_parallelism",
    "java_hash_code",
    "key_group_of",
    "key_group_range",
    "max_buffers",
    "murmur_hash",
    "operator_index_of",
    "required_buffers",
]
