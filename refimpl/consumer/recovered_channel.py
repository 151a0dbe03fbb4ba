"""A channel that begins with what a checkpoint has of it, and only then with what its producer sends.

Rules of this file:
- The channel itself is read when the recovered bytes have been read and their end was said. Read before that, its bytes
  would come in front of older ones, and the second half of a record in front of the first.
- Its barriers that overtake are taken from the beginning. A checkpoint that waited until what was in flight is
  processed would take as long as an aligned one; and a job that fails before that would begin at the same place for
  ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from refimpl.config import FlinkVersion
from refimpl.consumer.channel import ChannelSnapshot, InputChannel
from refimpl.consumer.channel_capture import ChannelCapture
from refimpl.memory.buffer import BufferSlice, heap_buffer
from refimpl.memory.data_type import DataType
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfChannelState

__all__ = ["RecoveredInputChannel"]


class RecoveredInputChannel:
    """Gives the bytes of a checkpoint, and then the event that says so; whoever gets that opens `channel` instead.

    The bytes are in buffers of `most_bytes` outside all pools. A barrier that overtakes what waits in `channel`
    overtakes them too: what has not been polled is copied for its checkpoint as what comes first.

    Flink:   RecoveredInputChannel (runtime.io.network.partition.consumer), 1.11.4
    Differs: outside the pool; Flink reads the bytes into buffers of its own. There the partitions are asked for when
             all channels of the task are through, so a checkpoint waits for that (FLIP-547 is to change it).
    """

    def __init__(
        self, channel: InputChannel, data: bytes, most_bytes: int, version: FlinkVersion = FlinkVersion.V1_11
    ) -> None:
        self.index = channel.index
        self.channel = channel
        self.capture: ChannelCapture | None = channel.capture
        self._data = memoryview(data)  # what has not been polled
        self._most_bytes = most_bytes
        self._version = version
        self._is_released = False
        self._num_polled = 0

    def __repr__(self) -> str:
        return f"RecoveredInputChannel({len(self._data)} B, then {self.channel!r})"

    def open(self, on_data_available: Callable[[], None]) -> None:
        self.channel.open(on_data_available)
        on_data_available()

    def poll(self) -> BufferAndBacklog | None:
        if self._is_released:
            return None
        number, self._num_polled = self._num_polled, self._num_polled + 1
        if not self._data:
            buffer = event_to_buffer(EndOfChannelState(), self._version)
            return BufferAndBacklog(BufferSlice(buffer, 0, buffer.size), False, 0, False, number)
        data, self._data = bytes(self._data[: self._most_bytes]), self._data[self._most_bytes :]
        piece = BufferSlice(heap_buffer(data, DataType.DATA), 0, len(data))
        return BufferAndBacklog(piece, True, 0, not self._data, number)

    def poll_priority(self) -> BufferAndBacklog | None:
        return self.channel.poll_priority()

    def begin_capture(self, checkpoint_id: int) -> None:
        if self.capture is not None:
            self.capture.copy(self._data)
        self.channel.begin_capture(checkpoint_id)

    def resume(self) -> None:
        self.channel.resume()

    def release(self) -> None:
        self._is_released = True
        self._data = memoryview(b"")
        self.channel.release()

    def snapshot(self) -> ChannelSnapshot:
        below = self.channel.snapshot()
        return replace(below, num_available=below.num_available + -(-len(self._data) // self._most_bytes))
