"""Bytes have a home: segments, the buffers that lend them, and the pools they come back to."""

from refimpl.memory.buffer import Buffer, BufferSlice, Recycler, heap_buffer
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.memory.channel_quota import ChannelQuota
from refimpl.memory.data_type import DataType, DataTypeCodes
from refimpl.memory.local_pool import BufferListener, LocalBufferPool, NotificationResult
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.pages import SAFE_SHIFT, allocate_pages
from refimpl.memory.pool_snapshots import LocalPoolSnapshot, NetworkPoolSnapshot
from refimpl.memory.promises import PoolMember, SegmentPromises, share_out
from refimpl.memory.segment import ByteOrder, MemorySegment

__all__ = [
    "SAFE_SHIFT",
    "Buffer",
    "BufferBuilder",
    "BufferConsumer",
    "BufferListener",
    "BufferSlice",
    "ByteOrder",
    "ChannelQuota",
    "DataType",
    "DataTypeCodes",
    "LocalBufferPool",
    "LocalPoolSnapshot",
    "MemorySegment",
    "NetworkBufferPool",
    "NetworkPoolSnapshot",
    "NotificationResult",
    "PoolMember",
    "Recycler",
    "SegmentPromises",
    "allocate_pages",
    "heap_buffer",
    "share_out",
]
