"""Real writers with real pools, and readers that note what arrives."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import BroadcastRecordWriter, ChannelSelector, RecordWriter, ResultPartition, RoundRobinSelector
from refimpl.records import (
    LONG,
    SpanningRecordSerializer,
    StreamElementSerializer,
    StreamRecord,
    TypeSerializer,
    event_from_bytes,
)


def emit_all(writer: RecordWriter, records: Iterable[StreamRecord]) -> None:
    """Emit each record."""
    for record in records:
        writer.emit(record)


def noted(partition: ResultPartition) -> list[list[tuple[int, int]]]:
    """What a view sees of each queued buffer: how many bytes it has, and where a record ends in it."""
    return [
        [(entry.written_bytes, entry.partial_record_bytes) for entry in subpartition.queue]
        for subpartition in partition.snapshot().subpartitions
    ]


class Payload:
    """Values that are their own bytes, so that a test says how long a record is."""

    name = "payload"
    struct_format = None

    def serialize(self, value: bytes, target: bytearray) -> None:
        target += value[1:]  # the element's tag plays the first byte


class Bench:
    """A writer with real pools, and readers that note what arrives at each channel."""

    pool_class: type[LocalBufferPool] = LocalBufferPool
    partition_class: type[ResultPartition] = ResultPartition
    writers: tuple[type[RecordWriter], type[RecordWriter]] = (RecordWriter, BroadcastRecordWriter)

    def __init__(
        self,
        channels: int = 1,
        segment: int = 32,
        buffers: int = 64,
        timeout: int = -1,
        kind: TypeSerializer = LONG,
        selector: ChannelSelector | None = None,
    ) -> None:
        self.config = Config(segment_size_bytes=segment, num_buffers=buffers, buffer_timeout_ms=timeout)
        self.global_pool = NetworkBufferPool(buffers, segment)
        self.pool = self.pool_class(self.global_pool, 1, buffers, num_channels=channels)
        self.partition = self.partition_class("map-0", channels, self.pool, self.config)
        self.selector = selector or RoundRobinSelector()
        self.writer = self.writers[self.selector.is_broadcast](
            self.partition, self.selector, StreamElementSerializer(kind)
        )
        self.num_told = [0] * channels
        self.arrived: list[bytearray] = [bytearray() for _ in range(channels)]
        self.events: list[list[object]] = [[] for _ in range(channels)]
        for channel, subpartition in enumerate(self.partition.subpartitions):
            subpartition.view.open(lambda channel=channel: self.tell(channel))

    def tell(self, channel: int) -> None:
        self.num_told[channel] += 1

    def queued(self) -> list[int]:
        return [subpartition.num_queued for subpartition in self.partition.subpartitions]

    def read(self, channel: int, limit: int = 1_000_000) -> None:
        while limit and (taken := self.partition.subpartitions[channel].poll()) is not None:
            if taken.buffer.is_buffer:
                self.arrived[channel] += taken.buffer.data
            else:
                self.events[channel].append(event_from_bytes(taken.buffer.data))
            taken.buffer.recycle()
            limit -= 1

    def read_all(self) -> list[bytes]:
        for channel in range(len(self.arrived)):
            self.read(channel)
        return [bytes(data) for data in self.arrived]

    def finish(self) -> list[bytes]:
        """Read and resume until everything is out, end the partition, read the end."""
        for _ in range(10_000):
            self.read_all()
            if self.writer.resume():
                break
        self.writer.finish()
        return self.read_all()


def element(value: object, timestamp: int | None = None, kind: TypeSerializer = LONG) -> bytes:
    data = StreamElementSerializer(kind).serialize(StreamRecord(value, timestamp))
    return struct.pack(">i", len(data)) + data


class Door:
    """An exclusion that counts how often it is taken, and not how often again by who has it."""

    def __init__(self) -> None:
        self.num_taken = self.depth = 0

    def __enter__(self) -> None:
        self.num_taken += not self.depth
        self.depth += 1

    def __exit__(self, *_exc: object) -> None:
        self.depth -= 1


class Counting(SpanningRecordSerializer):
    """Somebody else's part: counts the records it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.num_records = 0

    def serialize_record(self, record: bytes) -> None:
        self.num_records += 1
        super().serialize_record(record)
