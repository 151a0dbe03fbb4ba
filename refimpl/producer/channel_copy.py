"""A record on its way to its channels: for each a buffer, a copy, and what the copy's answer asks for.

Rules of this file:
- Each channel has at most one open buffer. It is opened when there is something to put into it, not before.
- Copying never waits. When the pool is empty the record stays in hand, and copying goes on there later.
- Appending takes no lock: a builder has a single writer. `exclusion` is held only while a buffer is
  opened, closed or flushed, which is when another thread may look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Self

from refimpl.errors import SluiceError
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.records.serialization_result import SerializationResult
from refimpl.records.spanning import RecordSerializer, SpanningRecordSerializer

__all__ = ["ChannelCopy", "RecordInHand", "SerializedRecord"]


class RecordInHand(Protocol):
    """The bytes of a record, with its length, on their way into one channel after the other."""

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy on from where the last copy stopped, as far as `builder` has room."""

    def reset(self) -> None:
        """Go back to the first byte, for the next channel."""

    def prune(self) -> None:
        """Let go of the record."""


class SerializedRecord:
    """The record that a serializer has been given. Each buffer notes where a record ends that began in another.

    Flink:   BufferWritingResultPartition.appendUnicastDataForRecordContinuation, 1.12 and later, notes that
    """

    def __init__(self, serializer: RecordSerializer) -> None:
        self._serializer = serializer
        self._is_cut = False

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy on with the serializer.

        Raises:
            SluiceError: the serializer copied nothing and asks for another buffer.
        """
        was_cut = self._is_cut
        result = self._serializer.copy_to_buffer_builder(builder)
        self._is_cut = not result.is_full_record
        if self._is_cut and not builder.written_bytes:
            name = type(self._serializer).__name__
            what = f"copied nothing into an empty buffer of {builder.capacity} B and asks for another"
            raise SluiceError(f"{name} {what}: it would go on for ever")
        if was_cut:
            builder.begin_inside_a_record(-1 if self._is_cut else builder.written_bytes)
        return result

    def reset(self) -> None:
        self._serializer.reset()

    def prune(self) -> None:
        self._serializer.prune()


class ChannelCopy:
    """Copies the record in hand to each channel it must still reach.

    `record` is in hand; `remaining` are the channels it must still reach, in order. `builders[channel]` is the open
    buffer of a channel, or `None`. While `is_blocked`, the record waits for a buffer.

    Flink:   RecordWriter.copyFromSerializerToTargetChannel (runtime.io.network.api.writer), 1.11.4
    Differs: keeps the record in hand where there is no buffer. Flink waits for one in the middle of user code.
    """

    def __init__(self, partition: BufferWritingResultPartition, exclusion: AbstractContextManager[object]) -> None:
        num_channels = len(partition.subpartitions)
        self.partition, self.exclusion = partition, exclusion
        self.record: RecordInHand = SerializedRecord(SpanningRecordSerializer())
        self.remaining: deque[int] = deque()
        self.builders: list[BufferBuilder | None] = [None] * num_channels
        self.is_blocked = False
        self.is_flushed_always = partition.flusher.is_after_each_record()

    @classmethod
    def in_place_of(cls, other: ChannelCopy) -> Self:
        """A copy that goes on where `other` stopped, between two steps of the task: with its record and buffers."""
        copy = cls(other.partition, other.exclusion)
        copy.record, copy.remaining, copy.builders = other.record, other.remaining, other.builders
        copy.is_blocked = other.is_blocked
        return copy

    @property
    def open_builders(self) -> tuple[BufferBuilder, ...]:
        return tuple(builder for builder in self.builders if builder is not None)

    def start(self, record: RecordInHand, channels: Sequence[int]) -> None:
        """Take the next record in hand, and copy it as far as there are buffers."""
        self.record = record
        self.remaining.extend(channels)
        self.copy_to_channels()

    def copy_to_channels(self) -> bool:
        """Copy what is in hand to the channels it must still reach; false if a buffer is missing.

        A record that ends exactly with its buffer asks for no next one: there is nothing to put
        into it, and every idle channel would hold a segment for nothing.
        """
        is_prune_needed = False
        while self.remaining:
            channel = self.remaining[0]
            builder = self.builders[channel] or self.open(channel)
            if builder is None:
                self.block()
                return False
            result = self.record.copy_to_buffer_builder(builder)
            if result.is_full_buffer:
                is_prune_needed = True
                self.close(channel)
            if result.is_full_record:
                self.remaining.popleft()
                self.after_record(channel)
                if self.remaining:
                    self.record.reset()
        if is_prune_needed:
            self.record.prune()
        return True

    def open(self, channel: int) -> BufferBuilder | None:
        """Open a buffer for `channel`, queue it empty, and return it; or `None` if the pool is empty."""
        with self.exclusion:
            if (builder := self.partition.request_builder(channel)) is not None:
                self.builders[channel] = builder
                self._queue(builder.create_consumer(), channel)
            return builder

    def close(self, channel: int) -> None:
        """Finish the open buffer of `channel`, if there is one; nothing more goes into it."""
        if (builder := self.builders[channel]) is not None:
            self.builders[channel] = None
            with self.exclusion:
                builder.finish()

    def close_all(self) -> None:
        """Finish the open buffer of each channel."""
        for channel in range(len(self.builders)):
            self.close(channel)

    def after_record(self, channel: int) -> None:
        """Flush, if each record is to be flushed: one is in the buffers of `channel` now."""
        if self.is_flushed_always:
            with self.exclusion:
                self.partition.flush(channel)

    def block(self) -> None:
        """Say that the record in hand must wait for a buffer: copying goes on later."""
        self.is_blocked = True

    def release(self) -> None:
        """Give up the record in hand and the open buffers, after a failure."""
        self.remaining.clear()
        self.is_blocked = False
        self.close_all()

    def _queue(self, consumer: BufferConsumer, channel: int) -> None:
        self.partition.add(consumer, channel)
