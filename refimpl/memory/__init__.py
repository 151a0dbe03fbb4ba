"""Bytes have a home: segments, the buffers that lend them, and the pools they come back to."""

from refimpl.memory.buffer import Buffer, BufferSlice, DataType, Recycler, heap_buffer
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.memory.local_pool import (
    BufferListener,
    LocalBufferPool,
    LocalPoolSnapshot,
    NotificationResult,
)
from refimpl.memory.network_pool import NetworkBufferPool, NetworkPoolSnapshot, PoolMember, share_out
from refimpl.memory.segment import ByteOrder, MemorySegment

__all__ = [
    "Buffer",
    "BufferBuilder",
    "BufferConsumer",
    "BufferListener",
    "BufferSlice",
    "ByteOrder",
    "DataType",
    "LocalBufferPool",
    "LocalPoolSnapshot",
    "MemorySegment",
    "NetworkBufferPool",
    "NetworkPoolSnapshot",
    "NotificationResult",
    "PoolMember",
    "Recycler",
    "heap_buffer",
    "share_out",
]
