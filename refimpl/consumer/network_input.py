"""Bytes become elements again: one deserializer for each channel, one valve and one cut for all.

Taking buffers from the gate and giving them back are short and need the driver's exclusion;
deserialising is long and needs none. So they are separate calls: `take`, `next_element` until it
says `None`, `recycle`.

Records that stand next to each other in a buffer are read as a run, see `records.packing`; for a
head that takes batches, as one batch, see `records.batch`. Who has a loop of its own takes the run with
`next_records`, or with `next_values` and no record around each value; to all others `next_element` hands
out the same records one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import length_hint

from refimpl.config import CheckpointingMode
from refimpl.consumer.alignment import barrier_handler
from refimpl.consumer.barrier_handler import act_on
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.errors import RemoteProtocolError
from refimpl.memory.buffer import Buffer, BufferSlice, heap_buffer
from refimpl.memory.data_type import DataType
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import StreamElement, StreamRecord, StreamStatus, Watermark
from refimpl.records.events import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Event
from refimpl.records.spanning import RecordDeserializer, SpillingAdaptiveSpanningRecordDeserializer
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.fixed_width import RecordUnpacker, Unpacker, records_of

__all__ = ["NetworkInput"]

_MOST_BETWEEN_LOOKS = 1023
_MOST_BYTES_AT_ONCE = 512 * 1024  # columns of much more are pages that the system has to clear, each time anew
_MIN_RECORDS_AT_ONCE = 8  # below this many numpy costs more than it saves


class NetworkInput:
    """The input of a task: buffers from `gate`, elements out, watermarks merged, barriers aligned.

    Ownership: taken buffers stay here until `recycle`, at most the ones of one `take`.

    Raises:
        RemoteProtocolError: the bytes of a channel are no elements, or a barrier comes twice; names the channel.

    Flink:   StreamTaskNetworkInput (streaming.runtime.io), 1.11.4
    Differs: `emitNext` there takes the next buffer by itself, here the task does, see above.
    """

    is_flowing = False  # what comes is put here by others

    def __init__(
        self,
        gate: InputGate,
        element_serializer: StreamElementSerializer,
        make_deserializer: Callable[[], RecordDeserializer],
        takes_batches: bool = False,
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    ) -> None:
        self.gate = gate
        self.valve = StatusWatermarkValve(len(gate.channels))
        self.alignment = barrier_handler(mode, len(gate.channels), element_serializer.version)
        self._elements = element_serializer
        self._deserializers: list[RecordDeserializer | None] = [make_deserializer() for _ in gate.channels]
        self._others: list[RecordDeserializer | None] = [None for _ in gate.channels]  # to read from the next buffer on
        self._taken: deque[tuple[int, BufferSlice | Event]] = deque()
        self._active: int | None = None
        self._active_buffer: BufferSlice | None = None
        self._decoded: deque[StreamElement | Event] = deque()
        self._consumed: list[Buffer | BufferSlice] = []
        value_type = element_serializer.value_type
        self._codec = BatchCodec.of(value_type) if takes_batches else None
        self._num_between_looks = self._num_until_look = 0
        self._unpacker = RecordUnpacker.of(value_type) if self._codec is None else None
        self._times: Iterator[int | None] = iter(())  # of the records of the run that nobody has taken
        self._run: Iterator[tuple[object, int | None]] = iter(())  # comes before what is decoded

    @property
    def is_ready(self) -> bool:
        """Whether elements are at hand or a `take` would bring some."""
        return not self.is_drained or self.gate.is_ready

    @property
    def is_drained(self) -> bool:
        """Whether every element taken so far has been handed out."""
        return not self._taken and not self._is_any_at_hand and self._active is None

    @property
    def is_finished(self) -> bool:
        """Whether everything has been handed out and nothing will come."""
        return self.gate.is_finished and self.is_drained

    @property
    def held_buffers(self) -> list[Buffer | BufferSlice]:
        """Buffers taken and not yet recycled, for the laws."""
        waiting = [item for _, item in self._taken if isinstance(item, BufferSlice)]
        active = [] if self._active_buffer is None else [self._active_buffer]
        return [*self._consumed, *active, *waiting]

    def take(self, limit: int = 1) -> int:
        """Take up to `limit` buffers or events from the gate, none behind a cut; return how many. Under exclusion."""
        for num_taken in range(limit):
            arrived = self.gate.poll_next()
            if arrived is None:
                return num_taken
            index, buffer, event, _ = arrived
            if buffer is not None:
                self._taken.append((index, buffer))
            elif event is not None and self._take_event(index, event):
                return num_taken + 1
        return limit

    def next_element(self) -> StreamElement | Event | None:
        """The next element or event of what was taken, or `None` when a `take` is needed.

        Watermarks, statuses and barriers are those of the whole input. `EndOfPartition` is not handed
        out; ask `is_finished`.
        """
        self._find()
        for value, time in self._run:
            return StreamRecord(value, time)
        return self._decoded.popleft() if self._decoded else None

    def next_records(self) -> Iterator[StreamRecord]:
        """The records that come next and have nothing between them, maybe none: then ask `next_element`.

        What is not taken from the iterator stays here.
        """
        return records_of(self.next_values())

    def next_values(self) -> Iterator[tuple[object, int | None]]:
        """The same records as values with their times, for who needs no more: making a record costs as much."""
        self._find()
        return self._run

    def recycle(self) -> None:
        """Give back the buffers that were read to their end. Under exclusion."""
        for buffer in self._consumed:
            buffer.recycle()
        self._consumed.clear()

    def close(self) -> None:
        """Give back every buffer and forget records begun, after a failure."""
        for _, item in self._taken:
            if isinstance(item, BufferSlice):
                item.recycle()
        self._taken.clear()
        self._decoded.clear()
        self._times, self._run = iter(()), iter(())
        self._active = self._active_buffer = None
        self.recycle()
        for deserializer in self._deserializers:
            if deserializer is not None:
                deserializer.clear()

    def swap_deserializers(self, others: Sequence[RecordDeserializer]) -> None:
        """Let other parts read, one for each channel, from its next buffer on; a record begun is handed over."""
        self._others = list(others)

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _is_any_at_hand(self) -> bool:
        return bool(self._decoded) or length_hint(self._times) > 0

    def _take_event(self, channel: int, event: Event) -> bool:
        """A barrier of one channel stays here, the one of all is handed on; true if this was it."""
        try:
            cuts = list(act_on(self.alignment.on_event(channel, event), self.gate.channels))
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{self.gate.name}, {error}") from error
        is_of_one = isinstance(event, CheckpointBarrier | CancelCheckpointMarker)
        self._taken.extend((channel, each) for each in (cuts if is_of_one else [event, *cuts]))
        return bool(cuts)

    def _find(self) -> None:
        """Read on until something is at hand or nothing is left to read."""
        while not self._decoded and not length_hint(self._times) and (self._active is not None or self._next_buffer()):
            if self._active is not None:
                self._read()

    def _next_buffer(self) -> bool:
        """Give the next taken buffer to its channel's deserializer; false if there is none."""
        if not self._taken:
            return False
        channel, item = self._taken.popleft()
        deserializer = self._deserializers[channel]
        if isinstance(item, BufferSlice):
            assert deserializer is not None, f"{self.gate}: data on ended channel {channel}"
            if (other := self._others[channel]) is not None:
                deserializer = self._deserializers[channel] = _handed_over(deserializer, other)
                self._others[channel] = None
            self._active = channel
            self._active_buffer = item
            deserializer.set_next_buffer(item)
        elif isinstance(item, EndOfPartition):
            if deserializer is not None:
                deserializer.clear()
            self._deserializers[channel] = None
        else:
            self._decoded.append(item)
        return True

    def _read(self) -> None:
        """Read one record, or a run of plain ones, from the active channel's buffer."""
        channel = self._active
        assert channel is not None
        deserializer = self._deserializers[channel]
        assert deserializer is not None
        if type(deserializer) is SpillingAdaptiveSpanningRecordDeserializer:
            if self._codec is not None:
                self._read_batch(self._codec, channel, deserializer)
            elif self._unpacker is not None and self._read_run(self._unpacker, deserializer):
                return
        try:
            result, payload = deserializer.get_next_record()
            if payload is not None:
                self._arrived(self._elements.deserialize(payload), channel)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{self.gate.name}, channel {channel}: {error}") from error
        if result.is_buffer_consumed:
            del payload  # a record in place looks into the buffer that goes home now
            self._leave(deserializer.get_current_buffer())

    def _leave(self, read: Buffer | BufferSlice | None) -> None:
        """Nothing is left to read in the active channel's buffer."""
        if read is not None:
            self._consumed.append(read)
        self._active = self._active_buffer = None

    def _read_run(self, unpacker: Unpacker, deserializer: SpillingAdaptiveSpanningRecordDeserializer) -> bool:
        """Read the plain records that come next; false if there are none. What is wrong behind them can wait."""
        source = deserializer.peek()
        num_bytes, values, times = unpacker.unpack(source)
        self._times = iter(times)
        self._run = zip(values, self._times, strict=True)
        if 0 < num_bytes == len(source):
            self._leave(deserializer.leave_buffer())
        else:
            deserializer.skip(num_bytes)
        return num_bytes > 0

    def _read_batch(
        self, codec: BatchCodec, channel: int, deserializer: SpillingAdaptiveSpanningRecordDeserializer
    ) -> None:
        """Make one batch of the records at hand that are equally wide.

        Where they are not, a look is for nothing: then so many records are read one by one before the
        next, twice as many each time.
        """
        if self._num_until_look:
            self._num_until_look -= 1
            return
        pieces = deserializer.peek_pieces()
        num_here = sum(map(len, pieces))
        following = self._following(channel) if num_here else []
        pieces += [buffer.data for buffer in following]
        batch, end = codec.decode(codec.joined(pieces, num_here), _MIN_RECORDS_AT_ONCE)
        if batch is None:
            self._num_between_looks = self._num_until_look = min(2 * self._num_between_looks + 1, _MOST_BETWEEN_LOOKS)
            return
        self._num_between_looks = 0
        self._decoded.append(batch)
        self._skip(end, num_here, following, deserializer)

    def _skip(
        self,
        num_bytes: int,
        num_here: int,
        following: Sequence[BufferSlice],
        deserializer: SpillingAdaptiveSpanningRecordDeserializer,
    ) -> None:
        """Go on reading behind `num_bytes`, of which `num_here` are in the buffer at hand."""
        num_read = 0  # of the buffers that follow, all wholly read but the last
        while num_bytes > num_here:
            num_bytes -= num_here
            num_here = following[num_read].size
            num_read += 1
        if num_read:
            read = deserializer.leave_buffer()
            assert read is not None, f"{self.gate}: there is no buffer to read on from"
            self._consumed += [read, *following[: num_read - 1]]
            self._active_buffer = following[num_read - 1]
            if num_read == len(self._taken):
                self._taken.clear()
            else:
                gone = set(map(id, following[:num_read]))
                self._taken = deque(each for each in self._taken if id(each[1]) not in gone)
            deserializer.set_next_buffer(self._active_buffer)
        deserializer.skip(num_bytes)

    def _following(self, channel: int) -> list[BufferSlice]:
        """The buffers taken from a channel, up to its next event, but for what is too much to be read at once."""
        following, num_left = list[BufferSlice](), _MOST_BYTES_AT_ONCE
        for index, item in self._taken:
            if index == channel:
                if not isinstance(item, BufferSlice) or item.size > num_left:
                    break
                num_left -= item.size
                following.append(item)
        return following

    def _arrived(self, element: StreamElement, channel: int) -> None:
        if isinstance(element, Watermark):
            self._decoded.extend(self.valve.input_watermark(element, channel))
        elif isinstance(element, StreamStatus):
            self._decoded.extend(self.valve.input_status(element, channel))
        else:
            self._decoded.append(element)


def _handed_over(one: RecordDeserializer, other: RecordDeserializer) -> RecordDeserializer:
    """The other part, with what the one has of a record begun; it reads that as it would read a short buffer."""
    if begun := one.get_unconsumed():
        other.set_next_buffer(heap_buffer(begun, DataType.DATA))
        other.get_next_record()
        other.get_current_buffer()
    one.clear()
    return other
