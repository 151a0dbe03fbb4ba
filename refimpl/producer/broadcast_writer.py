"""When every record goes to every channel, one buffer serves them all.

The channels share the segment and its count of references; each has its own position in it. Eight
records for four channels then cost the buffers of eight records, not of thirty-two.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.channel_copy import ChannelCopy, RecordInHand
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import StreamElement, StreamRecord

__all__ = ["BroadcastCopy", "BroadcastRecordWriter"]

_SHARED = 0  # the one slot of the one open builder


class BroadcastCopy(ChannelCopy):
    """Copies the record in hand into the one open buffer, which all channels read.

    The channel `-1 - n` stands for a private element of channel n: it gets a buffer of its own there, which only n
    reads. When the element is in, the others join that buffer behind it.

    Flink:   BroadcastRecordWriter (runtime.io.network.api.writer), 1.11.4
    """

    def __init__(self, partition: BufferWritingResultPartition, exclusion: AbstractContextManager[object]) -> None:
        super().__init__(partition, exclusion)
        self.private_channel: int | None = None
        self.private_consumer: BufferConsumer | None = None

    def start(self, record: RecordInHand, channels: Sequence[int]) -> None:
        (slot,) = channels
        if slot < 0:
            self.close(_SHARED)
            self.private_channel = -1 - slot
        super().start(record, (_SHARED,))

    def open(self, channel: int) -> BufferBuilder | None:
        with self.exclusion:
            builder = self.partition.request_builder(self.private_channel or _SHARED)
            if builder is None:
                return None
            self.builders[_SHARED] = builder
            consumer = builder.create_consumer()
            if self.private_channel is not None:
                if self.private_consumer is not None:
                    self.private_consumer.close()
                self.private_consumer = consumer.copy()
            self._queue(consumer, channel)
            return builder

    def after_record(self, channel: int) -> None:
        if self.private_channel is not None:
            self._share_private_buffer(self.private_channel)
            self.private_channel = None
        if self.is_flushed_always:
            with self.exclusion:
                self.partition.flush_all()

    def release(self) -> None:
        if self.private_consumer is not None:
            self.private_consumer.close()
            self.private_consumer = None
        super().release()

    def _share_private_buffer(self, channel: int) -> None:
        """Let the other channels read on in this buffer, behind the private element."""
        consumer, self.private_consumer = self.private_consumer, None
        builder = self.builders[_SHARED]
        with self.exclusion:
            if builder is not None and consumer is not None:
                for other in range(len(self.builders)):
                    if other != channel:
                        twin = consumer.copy_with_reader_position(builder.committed_bytes)
                        self.partition.add(twin, other)
            if consumer is not None:
                consumer.close()

    def _queue(self, consumer: BufferConsumer, channel: int) -> None:
        targets = range(len(self.builders)) if self.private_channel is None else (self.private_channel,)
        for target in targets:
            self.partition.add(consumer.copy(), target)
        consumer.close()


class BroadcastRecordWriter(RecordWriter):
    """Writes every record once, into a buffer that all channels read.

    An element for one channel only (a latency marker) gets a buffer of its own at that channel.

    Flink:   BroadcastRecordWriter (runtime.io.network.api.writer), 1.11.4
    """

    copies_with = BroadcastCopy

    def emit(self, record: StreamRecord) -> None:
        self._num_records += 1
        self._write(record, (_SHARED,))

    def broadcast(self, element: StreamElement) -> None:
        self._write(element, (_SHARED,))

    def emit_to(self, element: StreamElement, channel: int) -> None:
        self._write(element, (-1 - channel,))
