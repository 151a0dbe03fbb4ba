"""Elements go in, buffers come out: choose a channel, serialise once, copy, hand over.

A buffer leaves because it is full, the buffer timeout has passed, an event must follow it, or every
record is to be flushed.

Rules of this file:
- Writing never waits. When the pool is empty the writer keeps the record it has in hand, and what
  the same piece of user code still emits, and says it is blocked. `resume` goes on where it stopped.
- An element is serialised when it is emitted, also if it must wait: user code may change it afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.channel_copy import ChannelCopy, SerializedRecord
from refimpl.producer.selector import ChannelSelector
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import StreamElement, StreamRecord
from refimpl.records.events import Event
from refimpl.records.spanning import RecordSerializer, SpanningRecordSerializer

__all__ = ["RecordWriter"]


class RecordWriter:
    """Writes the elements of one output into the subpartitions of `partition`.

    Records go where the selector says, watermarks and statuses to all, events to all behind the open buffers.
    `copy` has the record in hand and the open buffers.

    Flink:   RecordWriter, ChannelSelectorRecordWriter (runtime.io.network.api.writer), 1.11.4
    Differs: never blocks, see above. Flink waits for a buffer in the middle of user code.
    """

    copies_with: type[ChannelCopy] = ChannelCopy

    def __init__(
        self,
        partition: BufferWritingResultPartition,
        selector: ChannelSelector,
        element_serializer: StreamElementSerializer,
        serializer: RecordSerializer | None = None,
        exclusion: AbstractContextManager[object] | None = None,
    ) -> None:
        self.partition = partition
        self.serializer: RecordSerializer = serializer or SpanningRecordSerializer()
        self._next_serializer: RecordSerializer | None = None
        self._elements = element_serializer
        self._all_channels = tuple(range(len(partition.subpartitions)))
        self._num_records = 0
        self._waiting = deque[tuple[Any, Sequence[int]] | Event]()  # behind the record in hand: bytes and channels
        selector.setup(len(self._all_channels))
        self.selector = selector
        self.copy = self.copies_with(partition, exclusion or nullcontext())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.partition.name}, {self.selector.name})"

    @property
    def is_blocked(self) -> bool:
        """Whether a record waits for a buffer."""
        return self.copy.is_blocked

    @property
    def is_available(self) -> bool:
        """Whether the task should go on producing."""
        return not self.is_blocked and self.partition.is_available

    @property
    def num_records(self) -> int:
        return self._num_records

    # -- one element at a time ---------------------------------------------------------------------

    def emit(self, record: StreamRecord) -> None:
        """Write one record to the channel that the selector chooses."""
        channel = self.selector.select_channel(record.value)
        self._num_records += 1
        self._write(record, (channel,))

    def broadcast(self, element: StreamElement) -> None:
        """Write one element to every channel."""
        self._write(element, self._all_channels)

    def emit_to(self, element: StreamElement, channel: int) -> None:
        """Write one element to a channel the caller chose, as latency markers are."""
        self._write(element, (channel,))

    def broadcast_event(self, event: Event) -> None:
        """Close the open buffers, so that the event follows them, and queue it everywhere."""
        if self.is_blocked:
            self._waiting.append(event)
        else:
            self._send_event(event)

    def overtake(self, event: Event) -> list[bytes]:
        """Queue an event everywhere before all that waits there; what waits, as bytes for each channel.

        Raises:
            LocalUsageError: a record waits for buffers: part of it would be passed, and part would not.
        """
        if self.is_blocked:
            raise LocalUsageError(f"{self}: nothing can overtake half a record, resume first")
        with self.copy.exclusion:
            return self.partition.overtake(event)

    # -- going on, flushing, ending ----------------------------------------------------------------

    def resume(self) -> bool:
        """Go on with what waits for buffers; true when nothing waits any more."""
        while True:
            if self.copy.remaining and not self.copy.copy_to_channels():
                return False
            if not self._waiting:
                self.copy.is_blocked = False
                return True
            if isinstance(item := self._waiting.popleft(), tuple):
                self._start(*item)
            else:
                self._send_event(item)

    def flush_all(self) -> None:
        """Make everything written so far available to the consumers."""
        with self.copy.exclusion:
            self.partition.flush_all()

    def finish(self) -> None:
        """Close the open buffers and end the partition.

        Raises:
            LocalUsageError: records still wait for buffers; `resume` first.
        """
        if self.is_blocked:
            raise LocalUsageError(f"{self} cannot finish: records still wait for buffers, resume first")
        self.copy.close_all()
        with self.copy.exclusion:
            self.partition.finish()

    def close(self) -> None:
        """Give up the open buffers and what waits, after a failure."""
        self._waiting.clear()
        self.copy.release()

    def swap_serializer(self, serializer: RecordSerializer) -> None:
        """Put another part in, between two buffers, now or when the record in hand is out: no part cuts another's."""
        self._next_serializer = serializer
        if not self.is_blocked:
            self._use_next_serializer()

    def swap_copy(self, part: type[ChannelCopy]) -> None:
        """Let a copy of this class go on in the place of the one so far, between two steps of the task."""
        self.copy = part.in_place_of(self.copy)

    def swap_selector(self, selector: ChannelSelector) -> None:
        """Ask another selector, which is set up, from the next record on."""
        self.selector = selector

    # -- helpers -----------------------------------------------------------------------------------

    def _write(self, element: StreamElement, channels: Sequence[int]) -> None:
        self._send(self._elements.serialize(element), channels)

    def _send(self, data: bytes, channels: Sequence[int]) -> None:
        if self.is_blocked:
            self._waiting.append((data, channels))
        else:
            self._start(data, channels)

    def _start(self, data: bytes, channels: Sequence[int]) -> None:
        if self._next_serializer is not None:
            self._use_next_serializer()
        self.serializer.serialize_record(data)
        self.serializer.reset()
        self.copy.start(SerializedRecord(self.serializer), channels)

    def _use_next_serializer(self) -> None:
        assert self._next_serializer is not None, "there is no serializer to go on with"
        self.copy.close_all()
        self.serializer, self._next_serializer = self._next_serializer, None

    def _send_event(self, event: Event) -> None:
        self.copy.close_all()
        with self.copy.exclusion:
            self.partition.broadcast_event(event)
