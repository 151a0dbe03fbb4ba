"""The writers, with the short way for what nearly every record is.

A record of fixed width that fits the open buffer is packed in place, see `lanes`; any other that fits is serialised
and copied there. What is to be cut, or comes as a batch, is an `EncodedBatch`: its bytes, cut in the same places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from refimpl.errors import LocalUsageError
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.broadcast_writer import BroadcastCopy, BroadcastRecordWriter
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.channel_copy import ChannelCopy
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.selector import ChannelSelector
from refimpl.records.element_serializer import MAX_ELEMENT_BYTES, StreamElementSerializer
from refimpl.records.elements import RecordBatch, StreamElement, StreamRecord
from refimpl.records.spanning import LENGTH_BYTES, RecordSerializer, SpanningRecordSerializer
from refimpl.shortcuts.columns import BatchCodec, by_channel
from refimpl.shortcuts.encoded_batch import EncodedBatch
from refimpl.shortcuts.fixed_width import RecordPacker
from refimpl.shortcuts.lanes import Lanes, Put, Refuse
from refimpl.shortcuts.partition import add_full, request_buffers
from refimpl.shortcuts.selectors import Select, channels_of_batch, is_constant, select_of, takes_turns

__all__ = [
    "FastBroadcastCopy",
    "FastBroadcastRecordWriter",
    "FastChannelCopy",
    "FastRecordWriter",
    "serialize_with_length",
]


def serialize_with_length(elements: StreamElementSerializer, element: StreamElement) -> bytearray:
    """The element as it stands on the stream: its length, then what `elements.serialize` gives. Errors are the same.

    Room for the length is there from the start: to put it before a long record later would be to copy that.
    """
    target = bytearray(LENGTH_BYTES)
    elements.serialize_into(element, target)
    if (num_bytes := len(target) - LENGTH_BYTES) > MAX_ELEMENT_BYTES:
        raise LocalUsageError(f"{num_bytes} B do not fit a length of four bytes")
    target[:LENGTH_BYTES] = num_bytes.to_bytes(LENGTH_BYTES, "big")
    return target


class FastChannelCopy(ChannelCopy):
    """Stands for `ChannelCopy`: behind a full buffer an `EncodedBatch` fills as many whole ones as it can.

    `lanes` are those of the writer. They are closed for a channel while something else is written there, because
    they count by what lies in its buffer.
    """

    lanes: Lanes

    def copy_to_channels(self) -> bool:
        channels = tuple(self.remaining)
        self.lanes.close(*channels)
        is_out = super().copy_to_channels()
        self.lanes.reopen(channels, self.builders)
        return is_out

    def close(self, channel: int) -> None:
        if not self.remaining:  # else it is closed already, until all is copied
            self.lanes.close(channel)
        super().close(channel)
        batch = self.record if self.remaining else None
        if isinstance(batch, EncodedBatch) and (most := batch.num_whole(self.partition.config.segment_size_bytes)):
            with self.exclusion:
                self._queue_full(batch.fill(request_buffers(self.partition, channel, most)), channel)

    def block(self) -> None:
        super().block()
        self.lanes.is_open = False

    def _queue_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        add_full(self.partition, consumers, channel)


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
        partition: BufferWritingResultPartition,
        selector: ChannelSelector,
        element_serializer: StreamElementSerializer,
        serializer: RecordSerializer | None = None,
        exclusion: AbstractContextManager[object] | None = None,
    ) -> None:
        is_plain = type(element_serializer) is StreamElementSerializer
        value_type, num_channels = element_serializer.value_type, len(partition.subpartitions)
        flush = self._after_record if partition.flusher.is_after_each_record() else None
        packer = RecordPacker.of(value_type) if is_plain else None
        self._lanes = Lanes(packer, num_channels, self._write_otherwise, flush)
        self._codec = BatchCodec.of(value_type) if is_plain else None
        put = self._lanes.put
        self._put_selected: Put = lambda record: put[self.select(record.value)](record)
        super().__init__(partition, selector, element_serializer, serializer, exclusion)
        self.swap_selector(selector)
        self._use_copy()

    @property
    def num_records(self) -> int:
        return self._lanes.num_records

    def swap_selector(self, selector: ChannelSelector) -> None:
        super().swap_selector(selector)
        self.select = select_of(selector)
        self._is_constant = is_constant(selector, len(self._all_channels))
        if self._is_constant:
            self.put = self._lanes.put[0]
        elif takes_turns(selector):
            put, turns = self._lanes.put, selector.turns
            self.put = lambda record: put[next(turns)](record)
        else:
            self.put = self._put_selected

    def swap_copy(self, part: type[ChannelCopy]) -> None:
        self._lanes.close(*self._all_channels)
        super().swap_copy(part)
        self._use_copy()

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
        while not self.copy.is_blocked:
            if self._is_constant and (builder := self.copy.builders[0]) is not None:
                taken = iter(lanes.put_many(records, builder))
                while lanes.put_each(taken, put, None, refuse):
                    pass  # it waits behind the one in hand
            if not lanes.put_each(records, put, select, refuse):
                return

    def write_batch(self, batch: RecordBatch) -> None:
        """Write each record of a batch to the channel its value selects: the bytes of `emit` one by one."""
        codec = self._codec if self._is_fast else None
        if codec is not None and self.copy.is_blocked:
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

    def _use_copy(self) -> None:
        """Let the lanes go on where the copy has open buffers, if it is one that can do with lanes."""
        if isinstance(self.copy, FastChannelCopy):
            self.copy.lanes = self._lanes
            self._lanes.reopen(self._all_channels, self.copy.builders)
        self._note_way()

    def _note_way(self) -> None:
        """Decide whether records go the short way: not where another's part is, or is to come after the one in hand."""
        is_ours = type(self.serializer) is SpanningRecordSerializer and self._next_serializer is None
        self._is_fast = is_ours and isinstance(self.copy, FastChannelCopy)
        self._lanes.is_open = self._is_fast and not self.is_blocked
        if not self._is_fast and self.copy.remaining and isinstance(self.copy.record, EncodedBatch):
            self._put_back(self.copy.record.keep_first(), tuple(self.copy.remaining))

    def _put_back(self, payloads: Sequence[bytes], channels: Sequence[int]) -> None:
        """Let another's part, which has come meanwhile, get one record at a time, before all else that waits."""
        self._waiting.extendleft((payload, channels) for payload in reversed(payloads))

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
        if self._lanes.put_whole(data, channel, self.copy.builders[channel]):
            self.copy.after_record(channel)
        else:
            self._send(EncodedBatch(data, record_bytes), (channel,))

    def _write(self, element: StreamElement, channels: Sequence[int]) -> None:
        if self._is_fast:
            data = serialize_with_length(self._elements, element)
            self._send(EncodedBatch(data, len(data)), channels)
        else:
            super()._write(element, channels)

    def _send(self, data: bytes | EncodedBatch, channels: Sequence[int]) -> None:
        if self.copy.is_blocked:
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
            self.copy.start(data, channels)
        else:
            self._put_back(data.payloads(), channels)

    def _use_next_serializer(self) -> None:
        super()._use_next_serializer()
        self._note_way()

    def _after_record(self, channel: int) -> None:
        self.copy.after_record(channel)


class FastBroadcastRecordWriter(FastRecordWriter, BroadcastRecordWriter):
    """The same for `BroadcastRecordWriter`: all records go one way, into the buffers that all channels read."""

    copies_with = FastBroadcastCopy
