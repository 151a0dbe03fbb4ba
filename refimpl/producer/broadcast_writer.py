"""When every record goes to every channel, one buffer serves them all.

The channels share the segment and its count of references; each has its own position in it. Eight
records for four channels then cost the buffers of eight records, not of thirty-two.
"""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import StreamElement
from refimpl.shortcuts.encoded_batch import EncodedBatch

__all__ = ["BroadcastRecordWriter"]

_SHARED = 0  # the one slot of the one open builder


class BroadcastRecordWriter(RecordWriter):
    """Writes every record once, into a buffer that all channels read.

    An element for one channel only (a latency marker) gets a buffer of its own at that channel;
    when it is written, the others join that buffer behind it.

    Flink:   BroadcastRecordWriter (runtime.io.network.api.writer), 1.11.4
    """

    _is_constant = True
    _private_channel: int | None = None
    private_consumer: BufferConsumer | None = None

    def broadcast(self, element: StreamElement) -> None:
        self._write(self._elements.serialize_with_length(element), (_SHARED,))

    def emit_to(self, element: StreamElement, channel: int) -> None:
        # A channel c > 0 or 0 is told apart from the shared slot by its sign.
        self._write(self._elements.serialize_with_length(element), (-1 - channel,))

    def close(self) -> None:
        if self.private_consumer is not None:
            self.private_consumer.close()
            self.private_consumer = None
        super().close()

    def _start(self, data: bytearray | EncodedBatch, channels: Sequence[int]) -> None:
        (slot,) = channels
        if slot < 0:
            self._lanes.close(_SHARED)
            self._close(_SHARED)
            self._private_channel = -1 - slot
        super()._start(data, (_SHARED,))

    def _after_record(self, channel: int) -> None:
        if self._private_channel is not None:
            self._share_private_buffer(self._private_channel)
            self._private_channel = None
        super()._after_record(channel)

    def _flush(self, channel: int) -> None:
        self.flush_all()

    def _share_private_buffer(self, channel: int) -> None:
        """Let the other channels read on in this buffer, behind the private element."""
        consumer, self.private_consumer = self.private_consumer, None
        builder = self._builders[_SHARED]
        with self._exclusion:
            if builder is not None and consumer is not None:
                for other in self._all_channels:
                    if other != channel:
                        twin = consumer.copy_with_reader_position(builder.committed_bytes)
                        self.partition.add(twin, other)
            if consumer is not None:
                consumer.close()

    def _queue(self, consumer: BufferConsumer, channel: int) -> None:
        for target in self._all_channels if self._private_channel is None else (self._private_channel,):
            self.partition.add(consumer.copy(), target)
        consumer.close()

    def _queue_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        for consumer in consumers:
            self._queue(consumer, channel)

    def _open(self, channel: int) -> BufferBuilder | None:
        with self._exclusion:
            builder = self.partition.request_builder(self._private_channel or _SHARED)
            if builder is None:
                return None
            self._builders[_SHARED] = builder
            consumer = builder.create_consumer()
            if self._private_channel is not None:
                if self.private_consumer is not None:
                    self.private_consumer.close()
                self.private_consumer = consumer.copy()
            self._queue(consumer, channel)
            return builder
