"""Elements go in, buffers come out: serialise once, choose a channel, copy, hand over.

A buffer leaves because it is full, the buffer timeout has passed, an event must follow it, or every
record is to be flushed. Each channel has at most one open buffer.

Rules of this file:
- Writing never waits. When the pool is empty the writer keeps the record it has in hand, and what
  the same piece of user code still emits, and says it is blocked. `resume` goes on where it stopped.
- Appending takes no lock: a builder has a single writer. `exclusion` is held only while a buffer is
  opened, closed or handed over, which is when another thread may look.
- A record of fixed width that fits the open buffer is packed in place, see `lanes`; any other that fits
  is serialised, then copied there. What is to be cut, or waits behind a record in hand, `_write` sees to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from refimpl.errors import LocalUsageError, SluiceError
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector, is_constant, turns_of
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import RecordBatch, StreamElement, StreamRecord
from refimpl.records.events import Event
from refimpl.records.spanning import LENGTH_BYTES, RecordSerializer, SpanningRecordSerializer
from refimpl.shortcuts.batch_routing import by_channel, channels_of_batch, full_buffers
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.encoded_batch import EncodedBatch, copy_on
from refimpl.shortcuts.lanes import Lanes, Put, Refuse

__all__ = ["RecordWriter"]


class RecordWriter:
    """Writes the elements of one output into the subpartitions of `partition`.

    Records go where the selector says, watermarks and statuses to all, events to all behind the open buffers.

    Flink:   RecordWriter, ChannelSelectorRecordWriter (runtime.io.network.api.writer), 1.11.4
    Differs: never blocks, see above. Flink waits for a buffer in the middle of user code.
    """

    emit: Put  # writes one record to the channel that the selector chooses
    _is_constant = False  # all records go to channel 0, and the selector need not be asked

    def __init__(
        self,
        partition: ResultPartition,
        selector: ChannelSelector,
        element_serializer: StreamElementSerializer,
        serializer: RecordSerializer | None = None,
        exclusion: AbstractContextManager[object] | None = None,
    ) -> None:
        self.partition, self.selector = partition, selector
        self.is_blocked = self._is_cut = False  # what is in hand waits for a buffer; it has been copied in part
        self._next_serializer: RecordSerializer | None = None
        self._elements, self._exclusion = element_serializer, exclusion or nullcontext()
        self._all_channels = tuple(range(len(partition.subpartitions)))
        self._builders: list[BufferBuilder | None] = [None] * len(self._all_channels)
        self._is_flushed_always = partition.config.buffer_timeout_ms == 0
        self._is_constant |= is_constant(selector, len(self._all_channels))
        self._remaining: deque[int] = deque()  # channels that what is in hand must still reach
        self._waiting = deque[tuple[bytearray | EncodedBatch, Sequence[int]] | Event]()
        flush = self._flush if self._is_flushed_always else None
        self._lanes = Lanes(element_serializer.value_type, len(self._all_channels), self._emit_otherwise, flush)
        self._codec_of_type = BatchCodec.of(element_serializer.value_type)
        self._use(serializer or SpanningRecordSerializer())
        selector.setup(len(self._all_channels))
        self.emit = self._lanes.put[0] if self._is_constant else self._emit_selected
        if not self._is_constant and (turns := turns_of(selector)) is not None:
            self.emit = self._lanes.put_in_turn(turns)

    def __repr__(self) -> str:
        return f"RecordWriter({self.partition.name}, {self.selector.name})"

    @property
    def is_available(self) -> bool:
        """Whether the task should go on producing."""
        return not self.is_blocked and self.partition.is_available

    @property
    def open_builders(self) -> tuple[BufferBuilder, ...]:
        return tuple(builder for builder in self._builders if builder is not None)

    @property
    def num_records(self) -> int:
        return self._lanes.num_records

    # -- one element at a time ---------------------------------------------------------------------

    def emit_many(self, records: Iterable[StreamRecord]) -> None:
        """Write several records, in order: the same as `emit` for each, in less time."""
        self.emit_from(left := iter(records))
        for record in left:
            self.emit(record)  # it waits behind the one in hand

    def emit_from(self, records: Iterator[StreamRecord], refuse: Refuse | None = None) -> None:
        """Write records until there are no more, or one must wait for a buffer; several at once, where all go one way.

        `refuse` is told of a record that cannot leave, and why; it may raise what says more.
        """
        lanes, emit = self._lanes, self.emit
        select = self.selector.select_channel if emit == self._emit_selected else None
        while not self.is_blocked:
            if self._is_constant and (builder := self._builders[0]) is not None:
                taken = iter(lanes.put_many(records, builder))
                while lanes.put_each(taken, emit, None, refuse):
                    pass  # it waits behind the one in hand
            if not lanes.put_each(records, emit, select, refuse):
                return

    def broadcast(self, element: StreamElement) -> None:
        """Write one element to every channel."""
        self._write(self._elements.serialize_with_length(element), self._all_channels)

    def emit_to(self, element: StreamElement, channel: int) -> None:
        """Write one element to a channel the caller chose, as latency markers are."""
        self._write(self._elements.serialize_with_length(element), (channel,))

    def broadcast_event(self, event: Event) -> None:
        """Close the open buffers, so that the event follows them, and queue it everywhere."""
        if self.is_blocked:
            self._waiting.append(event)
        else:
            self._send_event(event)

    def write_batch(self, batch: RecordBatch) -> None:
        """Write each record of a batch to the channel its value selects: the bytes of `emit` one by one."""
        if (codec := self._codec) is not None and self.is_blocked:
            codec.let_go()  # what waits for buffers looks into the rows of the last batch
        if codec is None or (rows := codec.encode(batch)) is None:
            self.emit_many(batch.records())
            return
        channels = 0 if self._is_constant else channels_of_batch(self.selector, batch)
        parts = list(by_channel(rows, channels, len(self._all_channels)))
        self._lanes.num_counted += len(rows)
        with self._exclusion:  # what is left is copying; whoever is told of the first buffer finds them all
            for channel, part in parts:
                if self._lanes.put_whole(part, channel, self._builders):
                    self._after_record(channel)
                else:
                    self._write(EncodedBatch(part, rows.itemsize), (channel,))

    def write_encoded(self, data: EncodedBatch, num_records: int, channel: int) -> None:
        """Write so many records to one channel that the caller has serialised, with their lengths, as `emit` would."""
        self._lanes.num_counted += num_records
        if num_records:
            self._write(data, (channel,))

    # -- going on, flushing, ending ----------------------------------------------------------------

    def resume(self) -> bool:
        """Go on with what waits for buffers; true when nothing waits any more."""
        while True:
            if self._remaining and not self._copy():
                return False
            if not self._waiting:
                self._block(False)
                return True
            if isinstance(item := self._waiting.popleft(), tuple):
                self._start(*item)
            else:
                self._send_event(item)

    def flush_all(self) -> None:
        """Make everything written so far available to the consumers."""
        with self._exclusion:
            self.partition.flush_all()

    def finish(self) -> None:
        """Close the open buffers and end the partition.

        Raises:
            LocalUsageError: records still wait for buffers; `resume` first.
        """
        if self.is_blocked:
            raise LocalUsageError(f"{self} cannot finish: records still wait for buffers, resume first")
        self._close_all()
        with self._exclusion:
            self.partition.finish()

    def close(self) -> None:
        """Give up the open buffers and what waits, after a failure."""
        self._remaining.clear()
        self._waiting.clear()
        self._block(False)
        self._close_all()

    def swap_serializer(self, serializer: RecordSerializer) -> None:
        """Put another part in, between two buffers, now or when the record in hand is out: no part cuts another's."""
        self._next_serializer = serializer
        if self.is_blocked:
            self._block(True)
        else:
            self._use(serializer)

    def _use(self, serializer: RecordSerializer) -> None:
        self._close_all()
        self._in_hand: RecordSerializer | EncodedBatch = serializer
        self.serializer, self._next_serializer = serializer, None
        self._block(self.is_blocked)

    def _block(self, is_blocked: bool) -> None:
        """Note whether a record is in hand; then nothing is packed past it, nor for a part that is to go."""
        self.is_blocked = is_blocked
        self._is_reference = type(self.serializer) is SpanningRecordSerializer and self._next_serializer is None
        self._codec = self._codec_of_type if self._is_reference else None
        self._lanes.is_open = self._is_reference and not is_blocked

    # -- helpers -----------------------------------------------------------------------------------

    def _emit_selected(self, record: StreamRecord) -> bool:
        return self._lanes.put[self.selector.select_channel(record.value)](record)

    def _emit_otherwise(self, record: StreamRecord, channel: int) -> None:
        """Write a record no lane takes: one that is to be cut in two, or that may have any length."""
        if (row := self._lanes.to_bytes(record)) is not None:
            self._write(EncodedBatch(row, len(row)), (channel,))
        elif self._lanes.put_whole(data := self._elements.serialize_with_length(record), channel, self._builders):
            self._after_record(channel)
        else:
            self._write(data, (channel,))

    def _write(self, data: bytearray | EncodedBatch, channels: Sequence[int]) -> None:
        if self.is_blocked:
            self._waiting.append((data, channels))
        else:
            self._start(data, channels)

    def _start(self, data: bytearray | EncodedBatch, channels: Sequence[int]) -> None:
        if self._next_serializer is not None:
            self._use(self._next_serializer)
        if isinstance(data, EncodedBatch):
            self._in_hand = data
        elif self._is_reference and len(data) > self.partition.config.segment_size_bytes:
            self._in_hand = EncodedBatch(memoryview(data), len(data))  # it fills whole buffers: those need no builder
        else:
            self.serializer.serialize_record(bytes(data[LENGTH_BYTES:]))
            self.serializer.reset()
            self._in_hand = self.serializer
        self._remaining.extend(channels)
        self._copy()

    def _copy(self) -> bool:
        """`copy_to_channels`, with these lanes closed: they count by what lies in their buffers."""
        self._lanes.close(*(channels := tuple(self._remaining)))
        is_out = self.copy_to_channels()
        self._lanes.reopen(channels, self._builders)
        return is_out

    def copy_to_channels(self) -> bool:
        """Copy what is in hand to the channels it must still reach; false if a buffer is missing.

        A record that ends exactly with its buffer asks for no next one: there is nothing to put
        into it, and every idle channel would hold a segment for nothing.
        """
        is_prune_needed = False
        while self._remaining:
            channel = self._remaining[0]
            if (builder := self._builders[channel] or self._open(channel)) is None:
                self._block(True)
                return False
            result = copy_on(self._in_hand, builder, self._is_cut)
            self._is_cut = not result.is_full_record
            if result.is_full_buffer:
                is_prune_needed = True
                self._close(channel)
                if isinstance(self._in_hand, EncodedBatch):
                    with self._exclusion:
                        self._queue_full(full_buffers(self._in_hand, self.partition, channel), channel)
            if result.is_full_record:
                self._remaining.popleft()
                self._after_record(channel)
                if self._remaining:
                    self._in_hand.reset()
            elif not builder.written_bytes:
                name = type(self._in_hand).__name__
                what = f"copied nothing into an empty buffer of {builder.capacity} B and asks for another"
                raise SluiceError(f"{name} {what}: it would go on for ever")
        if is_prune_needed:
            self._in_hand.prune()
        return True

    def _queue(self, consumer: BufferConsumer, channel: int) -> None:
        self.partition.add(consumer, channel)

    def _queue_full(self, consumers: Sequence[BufferConsumer], channel: int) -> None:
        self.partition.add_full(consumers, channel)

    def _send_event(self, event: Event) -> None:
        self._close_all()
        with self._exclusion:
            self.partition.broadcast_event(event)

    def _after_record(self, channel: int) -> None:
        if self._is_flushed_always:
            self._flush(channel)

    def _flush(self, channel: int) -> None:
        with self._exclusion:
            self.partition.flush(channel)

    def _open(self, channel: int) -> BufferBuilder | None:
        """Open a buffer for `channel`, queue it empty, and return it; or `None`."""
        with self._exclusion:
            if (builder := self.partition.request_builder(channel)) is not None:
                self._builders[channel] = builder
                self._queue(builder.create_consumer(), channel)
            return builder

    def _close(self, channel: int) -> None:
        """Finish the open buffer of `channel`, if there is one; nothing more goes into it."""
        if (builder := self._builders[channel]) is not None:
            self._builders[channel] = None
            with self._exclusion:
                builder.finish()

    def _close_all(self) -> None:
        self._lanes.close(*self._all_channels)
        for channel in self._all_channels:
            self._close(channel)
