"""Bytes become elements again: one deserializer for each channel, one valve for all.

Taking buffers from the gate and giving them back are short and need the driver's exclusion;
deserialising is long and needs none. So they are separate calls: `take`, `next_element` until it
says `None`, `recycle`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.errors import RemoteProtocolError
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.records.batch import BatchCodec
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import StreamElement, StreamStatus, Watermark
from refimpl.records.events import EndOfPartition, Event
from refimpl.records.spanning import (
    RecordDeserializer,
    SpillingAdaptiveSpanningRecordDeserializer,
)

__all__ = ["NetworkInput"]

_MOST_BETWEEN_LOOKS = 1023
_MIN_RECORDS_AT_ONCE = 8  # below this many numpy costs more than it saves


class NetworkInput:
    """The input of a task: buffers from `gate`, elements out, watermarks merged.

    Ownership: taken buffers stay here until `recycle`, at most the ones of one `take`.

    Raises:
        RemoteProtocolError: the bytes of a channel are no elements; names the channel.

    Flink:   StreamTaskNetworkInput (streaming.runtime.io), 1.11.4
    Differs: `emitNext` there takes the next buffer by itself, here the task does, see above.
    """

    def __init__(
        self,
        gate: InputGate,
        element_serializer: StreamElementSerializer,
        make_deserializer: Callable[[], RecordDeserializer],
        takes_batches: bool = False,
    ) -> None:
        self.gate = gate
        self.valve = StatusWatermarkValve(len(gate.channels))
        self._elements = element_serializer
        self._deserializers: list[RecordDeserializer | None] = [
            make_deserializer() for _ in gate.channels
        ]
        self._taken: deque[tuple[int, BufferSlice | Event]] = deque()
        self._active: int | None = None
        self._active_buffer: BufferSlice | None = None
        self._decoded: deque[StreamElement | Event] = deque()
        self._consumed: list[Buffer | BufferSlice] = []
        self._codec = BatchCodec.of(element_serializer.value_type)
        self._takes_batches = takes_batches
        self._num_between_looks = 0
        self._num_until_look = 0

    @property
    def is_ready(self) -> bool:
        """Whether elements are at hand or a `take` would bring some."""
        return bool(self._taken or self._decoded) or self._active is not None or self.gate.is_ready

    @property
    def is_drained(self) -> bool:
        """Whether every element taken so far has been handed out."""
        return not self._taken and not self._decoded and self._active is None

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
        """Take up to `limit` buffers or events from the gate; return how many. Under exclusion."""
        num_taken = 0
        while num_taken < limit:
            arrived = self.gate.poll_next()
            if arrived is None:
                break
            item = arrived.buffer if arrived.buffer is not None else arrived.event
            assert item is not None, f"{self.gate} delivered neither buffer nor event"
            self._taken.append((arrived.channel_index, item))
            num_taken += 1
        return num_taken

    def next_element(self) -> StreamElement | Event | None:
        """The next element or event of what was taken, or `None` when a `take` is needed.

        Watermarks and statuses are those of the whole input. `EndOfPartition` is not handed out;
        ask `is_finished`.
        """
        while True:
            if self._decoded:
                return self._decoded.popleft()
            if self._active is None and not self._next_buffer():
                return None
            if self._active is not None:
                self._read()

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
        self._active = None
        self._active_buffer = None
        self.recycle()
        for deserializer in self._deserializers:
            if deserializer is not None:
                deserializer.clear()

    # -- helpers -----------------------------------------------------------------------------------

    def _next_buffer(self) -> bool:
        """Give the next taken buffer to its channel's deserializer; false if there is none."""
        if not self._taken:
            return False
        channel, item = self._taken.popleft()
        deserializer = self._deserializers[channel]
        if isinstance(item, BufferSlice):
            assert deserializer is not None, f"{self.gate}: data on ended channel {channel}"
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
        if self._codec is not None and isinstance(
            deserializer, SpillingAdaptiveSpanningRecordDeserializer
        ):
            self._read_many(self._codec, channel, deserializer)
        try:
            result, payload = deserializer.get_next_record()
            if payload is not None:
                self._arrived(self._elements.deserialize(payload), channel)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{self.gate.name}, channel {channel}: {error}") from error
        if result.is_buffer_consumed:
            del payload  # a record in place looks into the buffer that goes home now
            buffer = deserializer.get_current_buffer()
            if buffer is not None:
                self._consumed.append(buffer)
            self._active = None
            self._active_buffer = None

    def _read_many(
        self, codec: BatchCodec, channel: int, deserializer: SpillingAdaptiveSpanningRecordDeserializer
    ) -> None:
        """Read the records at hand that are equally wide, all at once.

        Where they are not, a look is for nothing: then so many records are read one by one before the
        next, twice as many each time.
        """
        if self._num_until_look:
            self._num_until_look -= 1
            return
        source = deserializer.peek()
        following = self._following(channel) if source and self._takes_batches else []
        # For numpy one large array is less work than small ones, and a record cut in two between them.
        data = memoryview(b"".join((source, *(each.data for each in following)))) if following else source
        batch, end = codec.decode(data, _MIN_RECORDS_AT_ONCE)
        if batch is None:
            self._num_between_looks = min(2 * self._num_between_looks + 1, _MOST_BETWEEN_LOOKS)
            self._num_until_look = self._num_between_looks
            return
        self._num_between_looks = 0
        if self._takes_batches:
            self._decoded.append(batch)
        else:
            self._decoded.extend(batch.records())
        self._skip(end, len(source), following, deserializer)

    def _skip(
        self, num_bytes: int, num_here: int, following: Sequence[BufferSlice],
        deserializer: SpillingAdaptiveSpanningRecordDeserializer,
    ) -> None:  # fmt: skip
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
            gone = set(map(id, following[:num_read]))
            self._taken = deque(each for each in self._taken if id(each[1]) not in gone)
            deserializer.set_next_buffer(self._active_buffer)
        deserializer.skip(num_bytes)

    def _following(self, channel: int) -> list[BufferSlice]:
        """The buffers taken from a channel, up to its next event."""
        following: list[BufferSlice] = []
        for index, item in self._taken:
            if index == channel:
                if not isinstance(item, BufferSlice):
                    break
                following.append(item)
        return following

    def _arrived(self, element: StreamElement, channel: int) -> None:
        if isinstance(element, Watermark):
            self._decoded.extend(self.valve.input_watermark(element, channel))
        elif isinstance(element, StreamStatus):
            self._decoded.extend(self.valve.input_status(element, channel))
        else:
            self._decoded.append(element)
