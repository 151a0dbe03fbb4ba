"""Bytes become elements again: one deserializer for each channel, one valve and one cut for all.

Taking buffers from the gate and giving them back are short and need the driver's exclusion;
deserialising is long and needs none. So they are separate calls: `take`, `next_element` until it
says `None`, `recycle`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from refimpl.config import CheckpointingMode
from refimpl.consumer.alignment import barrier_handler
from refimpl.consumer.barrier_handler import Abort, BarrierHandler, Captured, Decision, act_on
from refimpl.consumer.channel_capture import InputCapture
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.two_input_valve import TwoInputValve
from refimpl.consumer.unaligned import AlternatingBarrierHandler
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.errors import RemoteProtocolError
from refimpl.memory.buffer import Buffer, BufferSlice, heap_buffer
from refimpl.memory.data_type import DataType
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import StreamElement, StreamRecord, StreamStatus, Watermark
from refimpl.records.events import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Event
from refimpl.records.spanning import LENGTH_BYTES, RecordDeserializer

__all__ = ["EndOfInput", "InputElement", "NetworkInput"]


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """Input `side` of two has ended: what comes from now on is of the other.

    Flink:   BoundedMultiInput.endInput (streaming.api.operators), 1.11.4
    """

    side: int


InputElement = StreamElement | Event | EndOfInput | Abort
"""What an input hands out."""


class NetworkInput:
    """The input of a task: buffers from `gate`, elements out, watermarks merged, barriers aligned.

    Ownership: taken buffers stay here until `recycle`, at most the ones of one `take`.

    Raises:
        RemoteProtocolError: the bytes of a channel are no elements, or a barrier comes twice; names the channel.

    Flink:   StreamTaskNetworkInput (streaming.runtime.io), 1.11.4
    Differs: `emitNext` there takes the next buffer by itself, here the task does, see above.
    """

    def __init__(
        self,
        gate: InputGate | UnionInputGate,
        element_serializer: StreamElementSerializer,
        make_deserializer: Callable[[], RecordDeserializer],
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    ) -> None:
        self.gate = gate
        self.pause_ms = 0.0  # a gate tells when it has something
        self.valve: StatusWatermarkValve | TwoInputValve = StatusWatermarkValve(len(gate.channels))
        self.alignment: BarrierHandler = barrier_handler(mode, len(gate.channels), element_serializer.version)
        self.capture: InputCapture | None = None
        self.num_bytes_recovered = 0
        self._exclusion: AbstractContextManager[object] = nullcontext()
        self._elements = element_serializer
        self._deserializers: list[RecordDeserializer | None] = [make_deserializer() for _ in gate.channels]
        self._others: list[RecordDeserializer | None] = [None for _ in gate.channels]  # to read from the next buffer on
        self._taken: deque[tuple[int, BufferSlice | Event | Abort]] = deque()
        self._active: int | None = None  # the channel whose buffer is being read
        self._last_channel = 0  # whose elements are decoded
        self._active_buffer: BufferSlice | None = None
        self._decoded: deque[InputElement] = deque()
        self._consumed: list[Buffer | BufferSlice] = []

    @property
    def is_ready(self) -> bool:
        """Whether elements are at hand or a `take` would bring some."""
        return not self.is_drained or self.gate.is_ready

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

    def next_element(self) -> InputElement | None:
        """The next element or event of what was taken, or `None` when a `take` is needed.

        Watermarks, statuses and barriers are those of the whole input. `EndOfPartition` is not handed
        out; ask `is_finished`.
        """
        while not self._decoded and (self._active is not None or self._next_buffer()):
            if self._active is not None:
                self._read(self._active)
        return self._decoded.popleft() if self._decoded else None

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
        self._active = self._active_buffer = None
        self.recycle()
        for deserializer in self._deserializers:
            if deserializer is not None:
                deserializer.clear()

    def swap_deserializers(self, others: Sequence[RecordDeserializer]) -> None:
        """Let other parts read, one for each channel, from its next buffer on; a record begun is handed over."""
        self._others = list(others)

    # -- unaligned checkpoints -----------------------------------------------------------------------

    def allow_unaligned(self, exclusion: AbstractContextManager[object] | None = None) -> None:
        """Look for barriers that overtake, before the gate is opened; `exclusion` is what `take` is called under."""
        self.alignment = AlternatingBarrierHandler(len(self.gate.channels), self._elements.version)
        self.capture = InputCapture(len(self.gate.channels), self._on_arrival, self._on_announcement)
        self._exclusion = exclusion or nullcontext()
        for channel, capture in zip(self.gate.channels, self.capture.channels, strict=True):
            channel.capture = capture

    @property
    def has_barriers(self) -> bool:
        """Whether `take_barriers` would bring some."""
        return self.capture is not None and (bool(self.capture.arrived) or self._is_overdue)

    @property
    def _is_overdue(self) -> bool:
        """Whether an alignment takes too long."""
        now_ms, deadline_ms = self.alignment.now_ms, self.alignment.next_deadline
        return deadline_ms is not None and now_ms is not None and now_ms >= deadline_ms

    def take_barriers(self) -> list[CheckpointBarrier | Abort]:
        """Take the barriers that have overtaken what waits: cuts that are here now, before all that was taken.

        An alignment that takes too long ends in such a cut. Under exclusion, and before each `take`.
        """
        events: list[CheckpointBarrier | Abort] = []
        if self._is_overdue and self.alignment.now_ms is not None:
            events += self._acted_on(self.alignment.on_timeout(self.alignment.now_ms))
        while self.capture is not None and self.capture.arrived:
            index = self.capture.arrived.popleft()
            if isinstance(event := self.gate.poll_priority(index), CheckpointBarrier):
                events += self._decide(index, event)
        return events

    def begin_capture(self, checkpoint_id: int) -> None:
        """Copy what is in flight towards the task, now, between two elements; and what comes before other barriers."""
        if self.capture is None:
            return
        with self._exclusion:
            self.capture.begin(checkpoint_id)
            for channel, data in self._in_flight():
                self.capture.channels[channel].copy(data)
            for each in self.gate.channels:
                each.begin_capture(checkpoint_id)

    def drop_capture(self, checkpoint_id: int) -> None:
        """Nobody wants that checkpoint."""
        if self.capture is not None:
            with self._exclusion:
                self.alignment.on_aborted(checkpoint_id)
                self.capture.drop(checkpoint_id)

    @property
    def channel_names(self) -> list[str]:
        """What each channel reads, in words."""
        return [channel.snapshot().producer for channel in self.gate.channels]

    def recover(self, channels: Iterable[tuple[int, bytes]]) -> None:
        """Begin with what a checkpoint has of these channels, before the gate is opened."""
        for index, data in channels:
            self.num_bytes_recovered += len(data)
            self.gate.recover(index, data)

    def _in_flight(self) -> Iterator[tuple[int, bytes]]:
        """What was taken and not processed, with its channel; the bytes of one channel are in their order."""
        for element in self._decoded_ahead():
            if isinstance(element, StreamRecord):
                payload = self._elements.serialize(element)
                yield self._last_channel, len(payload).to_bytes(LENGTH_BYTES, "big") + payload
        for channel, deserializer in enumerate(self._deserializers):
            if deserializer is not None and (begun := deserializer.get_unconsumed()):
                yield channel, begun
        for channel, item in self._taken:
            if isinstance(item, BufferSlice):
                yield channel, bytes(item.data)

    def _decoded_ahead(self) -> Iterable[InputElement]:
        """What was read from the last channel and not handed out. A watermark among it comes again."""
        return self._decoded

    def _on_arrival(self) -> None:
        if self.gate.on_ready is not None:
            self.gate.on_ready()

    def _on_announcement(self, barrier: CheckpointBarrier) -> None:
        if isinstance(self.alignment, AlternatingBarrierHandler):
            self.alignment.announce(barrier)
        self._on_arrival()

    # -- helpers -----------------------------------------------------------------------------------

    def _decide(self, channel: int, event: Event) -> list[CheckpointBarrier | Abort]:
        """Let channels go on as is decided for an event; the cuts and the news of none that are for the task."""
        if self.capture is not None and isinstance(event, CheckpointBarrier):
            self.capture.channels[channel].note_polled(event.checkpoint_id)
        try:
            return self._acted_on(self.alignment.on_event(channel, event))
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{self.gate.name}, {error}") from error

    def _acted_on(self, decisions: list[Decision]) -> list[CheckpointBarrier | Abort]:
        """Do what was decided for the channels; what is for the task."""
        for decision in decisions:
            if isinstance(decision, Captured) and self.capture is not None:
                self.capture.note_delivered(decision.checkpoint_id)
        return list(act_on(decisions, self.gate.channels))

    def _take_event(self, channel: int, event: Event) -> bool:
        """A barrier of one channel stays here, the one of all is handed on; true if this was it."""
        cuts = self._decide(channel, event)
        is_of_one = isinstance(event, CheckpointBarrier | CancelCheckpointMarker)
        self._taken.extend((channel, each) for each in (cuts if is_of_one else [event, *cuts]))
        return bool(cuts)

    def _next_buffer(self) -> bool:
        """Give the next taken buffer to its channel's deserializer; false if there is none."""
        if not self._taken:
            return False
        channel, item = self._taken.popleft()
        self._last_channel = channel
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

    def _read(self, channel: int) -> None:
        """Read the next record from the buffer of the active channel."""
        deserializer = self._deserializers[channel]
        assert deserializer is not None, f"{self.gate}: ended channel {channel} is being read"
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
        """Nothing is left to read in the buffer of the active channel."""
        if read is not None:
            self._consumed.append(read)
        self._active = self._active_buffer = None

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
