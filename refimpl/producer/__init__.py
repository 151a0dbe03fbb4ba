"""Bytes wait: which channel, which queue, and when a buffer leaves."""

from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.producer.key_groups import (
    default_max_parallelism,
    java_hash_code,
    key_group_of,
    key_group_range,
    key_groups_of,
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
    is_constant,
    turns_of,
)
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_views import (
    FIRST_BYTES,
    BufferAndBacklog,
    QueuedBufferSnapshot,
    SubpartitionSnapshot,
)

__all__ = [
    "FIRST_BYTES",
    "BroadcastRecordWriter",
    "BroadcastSelector",
    "BufferAndBacklog",
    "ChannelSelector",
    "ForwardSelector",
    "GlobalSelector",
    "KeyGroupSelector",
    "PartitionSnapshot",
    "PipelinedSubpartition",
    "QueuedBufferSnapshot",
    "RebalanceSelector",
    "RecordWriter",
    "RescaleSelector",
    "ResultPartition",
    "RoundRobinSelector",
    "ShuffleSelector",
    "SubpartitionQueue",
    "SubpartitionSnapshot",
    "default_max_parallelism",
    "is_constant",
    "java_hash_code",
    "key_group_of",
    "key_group_range",
    "key_groups_of",
    "max_buffers",
    "murmur_hash",
    "operator_index_of",
    "required_buffers",
    "turns_of",
]
