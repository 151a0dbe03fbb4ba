"""The writers, with the short way for what nearly every record is.

A record of fixed width that fits the open buffer is packed in place, see `lanes`; any other that fits is serialised
and copied there. What is to be cut, or comes as a batch, is an `EncodedBatch`: its bytes, cut in the same places.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from refimpl.memory.builder import BufferConsumer
from refimpl.producer.broadcast_writer import BroadcastCopy, BroadcastRecordWriter
from refimpl.producer.channel_copy import ChannelCopy
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP, StreamElementSerializer
from refimpl.records.elements import RecordBatch, StreamElement, StreamRecord
from refimpl.records.spanning import LENGTH_BYTES, RecordSerializer, SerializationResult, SpanningRecordSerializer
from refimpl.shortcuts.columns import BatchCodec, by_channel
from refimpl.shortcuts.encoded_batch import EncodedBatch
from refimpl.shortcuts.fixed_width import RecordPacker
from refimpl.shortcuts.lanes import Lanes, Put, Refuse
from refimpl.shortcuts.selectors import Select, channels_of_batch, is_constant, select_of, takes_turns

__all__ = [
    "FastBroadcastCopy",
    "FastBroadcastRecordWriter",
    "FastChannelCopy",
    "FastRecordWriter",
    "serialize_with_length",
]

_ROOM = bytes(LENGTH_BYTES)
_ROOM_AND_TAG = _ROOM + bytes([TAG_RECORD])
_ROOM_AND_TIMED = struct.Struct(f">{LENGTH_BYTES}xBq")
_FULL_RECORD = SerializationResult.FULL_RECORD
_PARTIAL_RECORD = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
_LENGTH = struct.Struct(">i")


def serialize_with_length(elements: StreamElementSerializer, element: StreamElement) -> bytearray:
    """The element as it stands on the stream: its length, then what `elements.serialize` gives. Errors are the same.

    Room for the length is there from the start: to put it before a long record later would be to copy that.
    """
    try:
        if not isinstance(element, StreamRecord) or type(elements) is not StreamElementSerializer:
            target = bytearray(_ROOM + elements.serialize(element))
        elif element.timestamp is None:
            target = bytearray(_ROOM_AND_TAG)
            elements.value_type.serialize(element.value, target)
        else:
            target = bytearray(_ROOM_AND_TIMED.pack(TAG_RECORD_WITH_TIMESTAMP, element.timestamp))
            elements.value_type.serialize(element.value, target)
        _LENGTH.pack_into(target, 0, len(target) - LENGTH_BYTES)
    except struct.error:  # a time that is no long, or more bytes than a length can say: the serializer's words for it
        elements.serialize(element)
        raise
    return target


class FastChannelCopy(ChannelCopy):
    """Stands for `ChannelCopy.copy_to_channels`: an `EncodedBatch` fills several buffers at once.

    `lanes` are those of the writer. They are closed for a channel while something else is written there, because
    they count by what lies in its buffer.
    """

    lanes: Lanes

    def copy_to_channels(self) -> bool:
        channels = tuple(self.remaining)
        self.lanes.close(*channels)
        batch = self.record
        is_out = self._copy_batch(batch) if isinstance(batch, EncodedBatch) else super().copy_to_channels()
        self.lanes.reopen(channels, self.builders)
        return is_out

    def _copy_batch(self, batch: EncodedBatch) -> bool:
        is_prune_needed = False
        while self.remaining:
            channel = self.remaining[0]
            if (builder := self.builders[channel] or self.open(channel)) is None:
                self.block()
                return False
            result = batch.copy_to_buffer_builder(builder)
            if result is not _FULL_RECORD:
                is_prune_needed = True
                self.close(channel)
                if most := batch.num_whole(self.partition.config.segment_size_bytes):
                    with self.exclusion:
                        self._queue_full(batch.fill(self.partition.request_buffers(channel, most)), channel)
            if result is not _PARTIAL_RECORD:
                self.remaining.popleft()
                self.after_record(channel)
                if self.remaining:
                    batch.reset()
        if is_prune_needed:
            batch.prune()
        return True

    def close(self, channel: int) -> None:
        self.lanes.close(channel)
        super().close(channel)

    def block(self) -> None:
        super().block()
        self.lanes.is_open = False

    def _queue_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        self.partition.add_full(consumers, channel)


class FastBroadcastCopy(FastChannelCopy, BroadcastCopy):
    """The same for the buffers that all channels read."""

    def _queue_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        targets = range(len(self.builders)) if self.private_channel is None else (self.private_channel,)
        for consumer in consumers:
            for target in targets:
                super()._queue_full([consumer.copy()], target)
            consumer.close()


class FastRecordWriter(RecordWriter):
    """Stands for `RecordWriter.emit` and `_write`, for one record or for many at once.

    `put` writes one record as `emit` does, and says whether it was packed in place; `select` answers the channel of a
    value. Where `serializer` or `copy` is another's part, each record goes the way of the book.
    """

    copies_with: type[ChannelCopy] = FastChannelCopy
    put: Put
    select: Select

    def __init__(
        self,
        partition: ResultPartition,
        selector: ChannelSelector,
        element_serializer: StreamElementSerializer,
        serializer: RecordSerializer | None = None,
        exclusion: AbstractContextManager[object] | None = None,
    ) -> None:
        is_plain = type(element_serializer) is StreamElementSerializer
        value_type, num_channels = element_serializer.value_type, len(partition.subpartitions)
        flush = self._flush if partition.config.buffer_timeout_ms == 0 else None
        packer = RecordPacker.of(value_type) if is_plain else None
        self._lanes = Lanes(packer, num_channels, self._write_otherwise, flush)
        self._codec = BatchCodec.of(value_type) if is_plain else None
        put = self._lanes.put
        self._put_selected: Put = lambda record: put[self.select(record.value)](record)
        super().__init__(partition, selector, element_serializer, serializer, exclusion)

    @property
    def num_records(self) -> int:
        return self._lanes.num_records

    @property
    def selector(self) -> ChannelSelector:
        return self._selector

    @selector.setter
    def selector(self, selector: ChannelSelector) -> None:
        """Another selector is asked from the next record on."""
        self._selector, self.select = selector, select_of(selector)
        self._is_constant = is_constant(selector, len(self._all_channels))
        if self._is_constant:
            self.put = self._lanes.put[0]
        elif takes_turns(selector):
            self.put = self._lanes.put_in_turn(selector.turns)
        else:
            self.put = self._put_selected

    @property
    def copy(self) -> ChannelCopy:
        return self._copy

    @copy.setter
    def copy(self, copy: ChannelCopy) -> None:
        """Another copy goes on from the next record on; in lanes, if it is one that can."""
        self._lanes.close(*self._all_channels)
        self._copy = copy
        if isinstance(copy, FastChannelCopy):
            copy.lanes = self._lanes
            self._lanes.reopen(self._all_channels, copy.builders)
        self._note_way()

    # -- several elements at a time ----------------------------------------------------------------

    def emit(self, record: StreamRecord) -> None:
        self.put(record)

    def emit_many(self, records: Iterable[StreamRecord]) -> None:
        """Write several records, in order: the same as `emit` for each, in less time."""
        self.emit_from(left := iter(records))
        for record in left:
            self.put(record)  # it waits behind the one in hand

    def emit_from(self, records: Iterator[StreamRecord], refuse: Refuse | None = None) -> None:
        """Write records until there are no more, or one must wait for a buffer; several at once, where all go one way.

        `refuse` is told of a record that cannot leave, and why; it may raise what says more.
        """
        lanes, put = self._lanes, self.put
        select = self.select if put is self._put_selected else None
        while not self._copy.is_blocked:
            if self._is_constant and (builder := self._copy.builders[0]) is not None:
                taken = iter(lanes.put_many(records, builder))
                while lanes.put_each(taken, put, None, refuse):
                    pass  # it waits behind the one in hand
            if not lanes.put_each(records, put, select, refuse):
                return

    def write_batch(self, batch: RecordBatch) -> None:
        """Write each record of a batch to the channel its value selects: the bytes of `emit` one by one."""
        codec = self._codec if self._is_fast else None
        if codec is not None and self.is_blocked:
            codec.let_go()  # what waits for buffers looks into the rows of the last batch
        if codec is None or (rows := codec.encode(batch)) is None:
            self.emit_many(batch.records())
            return
        channels = 0 if self._is_constant else channels_of_batch(self.selector, self.select, batch)
        parts = list(by_channel(rows, channels, len(self._all_channels)))
        self._lanes.num_counted += len(rows)
        with self.copy.exclusion:  # what is left is copying; whoever is told of the first buffer finds them all
            for channel, part in parts:
                self._write_encoded(part, rows.itemsize, channel)

    def write_encoded(self, data: memoryview, num_records: int, channel: int) -> None:
        """Write so many records to one channel that the caller has serialised, with their lengths, as `emit` would."""
        self._lanes.num_counted += num_records
        if self._is_fast and num_records:
            self._send(EncodedBatch(data), (channel,))
        else:
            for payload in EncodedBatch(data).payloads():
                self._send(payload, (channel,))

    # -- going on, ending --------------------------------------------------------------------------

    def resume(self) -> bool:
        is_out = super().resume()
        self._note_way()
        return is_out

    def swap_serializer(self, serializer: RecordSerializer) -> None:
        super().swap_serializer(serializer)
        self._note_way()

    # -- helpers -----------------------------------------------------------------------------------

    def _note_way(self) -> None:
        """Decide whether records go the short way: not where another's part is, or is to come after the one in hand."""
        is_ours = type(self.serializer) is SpanningRecordSerializer and self._next_serializer is None
        self._is_fast = is_ours and isinstance(self.copy, FastChannelCopy)
        self._lanes.is_open = self._is_fast and not self.is_blocked

    def _write_otherwise(self, record: StreamRecord, channel: int) -> None:
        """Write a record that no lane takes: one that is to be cut in two, or that may have any length."""
        if not self._is_fast:
            super()._write(record, (channel,))
            return
        packer = self._lanes.packer
        row = None if packer is None else packer.to_bytes(record)
        if row is not None:
            self._send(EncodedBatch(row, len(row)), (channel,))
        else:
            data = serialize_with_length(self._elements, record)
            self._write_encoded(data, len(data), channel)

    def _write_encoded(self, data: bytes | bytearray | memoryview, record_bytes: int, channel: int) -> None:
        if self._lanes.put_whole(data, channel, self._copy.builders[channel]):
            self._copy.after_record(channel)
        else:
            self._send(EncodedBatch(data, record_bytes), (channel,))

    def _write(self, element: StreamElement, channels: Sequence[int]) -> None:
        if self._is_fast:
            data = serialize_with_length(self._elements, element)
            self._send(EncodedBatch(data, len(data)), channels)
        else:
            super()._write(element, channels)

    def _send(self, data: bytes | EncodedBatch, channels: Sequence[int]) -> None:
        if self._copy.is_blocked:
            self._waiting.append((data, channels))
        else:
            self._start(data, channels)

    def _start(self, data: bytes | EncodedBatch, channels: Sequence[int]) -> None:
        if not isinstance(data, EncodedBatch):
            super()._start(data, channels)
            return
        if self._next_serializer is not None:
            self._use_next_serializer()
        if self._is_fast:
            self._copy.start(data, channels)
        else:  # another's part has come while this waited: it gets one record at a time
            self._waiting.extendleft((payload, channels) for payload in reversed(list(data.payloads())))

    def _use_next_serializer(self) -> None:
        super()._use_next_serializer()
        self._note_way()

    def _flush(self, channel: int) -> None:
        with self._copy.exclusion:
            self.partition.flush(channel)


class FastBroadcastRecordWriter(FastRecordWriter, BroadcastRecordWriter):
    """The same for `BroadcastRecordWriter`: all records go one way, into the buffers that all channels read."""

    copies_with = FastBroadcastCopy

    def _flush(self, channel: int) -> None:
        self.flush_all()
