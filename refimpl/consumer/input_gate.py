"""All channels of one exchange into a task, and a fair turn for each that has something.

A channel that has data stands in a line once. The gate serves the head, one buffer, and sends the
channel to the end of the line if it has more. So no channel waits longer than one round, and a
channel without data costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refimpl.config import FlinkVersion
from refimpl.consumer.channel import BufferOrEvent, ChannelSnapshot, InputChannel
from refimpl.consumer.recovered_channel import RecoveredInputChannel
from refimpl.memory.buffer import BufferSlice, heap_buffer
from refimpl.records.compression import BlockCodec, raw_of_block
from refimpl.records.event_serializer import event_from_bytes
from refimpl.records.events import EndOfChannelState, EndOfPartition, Event

__all__ = ["GateSnapshot", "InputGate"]


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """One gate of task `name` at one moment; `ready` lists the channels in line, the next to be served first."""

    name: str
    channels: tuple[ChannelSnapshot, ...]
    ready: tuple[int, ...]
    num_ended: int


class InputGate:
    """The channels through which a task reads one exchange.

    `on_ready` is called when a gate that had nothing gets something. A buffer has `most_bytes` at most: of so many
    `codec` has made what comes compressed, and in pieces of so many comes what is recovered.

    Flink:   SingleInputGate (runtime.io.network.partition.consumer), 1.11.4
    Differs: there are no unknown channels: who produces is known before the gate is made.
    """

    def __init__(
        self,
        name: str,
        channels: Sequence[InputChannel],
        version: FlinkVersion = FlinkVersion.V1_11,
        on_ready: Callable[[], None] | None = None,
        codec: BlockCodec | None = None,
        most_bytes: int = 32_768,
    ) -> None:
        self.name = name
        self.channels = list(channels)
        self.on_ready = on_ready
        self._version = version
        self._codec = codec
        self._most_bytes = most_bytes
        self._line: deque[int] = deque()
        self._is_in_line = [False] * len(channels)
        self._is_ended = [False] * len(channels)
        self._num_ended = 0

    def __repr__(self) -> str:
        return f"InputGate({self.name}, {len(self._line)} of {len(self.channels)} channels ready)"

    def open(self) -> None:
        """Start reading all channels."""
        for channel in self.channels:
            channel.open(lambda index=channel.index: self._enter_line(index))  # type: ignore[misc]

    @property
    def is_ready(self) -> bool:
        """Whether a poll is worth while."""
        return bool(self._line)

    @property
    def is_finished(self) -> bool:
        """Whether every channel has ended."""
        return self._num_ended == len(self.channels)

    def poll_next(self) -> BufferOrEvent | None:
        """One buffer or event of the channel whose turn it is, or `None` if no channel has any."""
        while self._line:
            index = self._line.popleft()
            self._is_in_line[index] = False
            taken = self.channels[index].poll()
            if taken is None:
                continue
            buffer, is_more, _, is_event_next, _ = taken
            if is_more or is_event_next:
                self._is_in_line[index] = True
                self._line.append(index)
            if buffer.is_buffer:
                if buffer.parent.is_compressed:
                    buffer = self._decompressed(buffer)
                return BufferOrEvent(index, buffer, None, bool(self._line))
            event = event_from_bytes(buffer.data, self._version)
            buffer.recycle()
            if isinstance(event, EndOfPartition):
                self._end(index)
            elif isinstance(event, EndOfChannelState):
                self._begin(index)
            return BufferOrEvent(index, None, event, bool(self._line))
        return None

    def poll_priority(self, index: int) -> Event | None:
        """The event that has overtaken what waits in a channel, or `None` if there is none now."""
        taken = None if self._is_ended[index] else self.channels[index].poll_priority()
        if taken is None:
            return None
        event = event_from_bytes(taken.buffer.data, self._version)
        taken.buffer.recycle()
        if taken.is_more_available or taken.is_event_next:
            self._enter_line(index)
        return event

    def recover(self, index: int, data: bytes) -> None:
        """Let a channel begin with what a checkpoint has of it, before it reads anything; ask before `open`."""
        self.channels[index] = RecoveredInputChannel(self.channels[index], data, self._most_bytes, self._version)

    def release(self) -> None:
        """Stop reading all channels."""
        for channel in self.channels:
            channel.release()
        self._line.clear()

    def snapshot(self) -> GateSnapshot:
        return GateSnapshot(
            self.name,
            tuple(channel.snapshot() for channel in self.channels),
            tuple(self._line),
            self._num_ended,
        )

    def _enter_line(self, index: int) -> None:
        if self._is_in_line[index] or self._is_ended[index]:
            return
        self._is_in_line[index] = True
        self._line.append(index)
        if len(self._line) == 1 and self.on_ready is not None:
            self.on_ready()

    def _decompressed(self, buffer: BufferSlice) -> BufferSlice:
        """The same bytes as they were, outside all pools; the compressed ones go home."""
        assert self._codec is not None, f"{self} takes in what it has no code for"
        try:
            raw = raw_of_block(self._codec, buffer.data, self._most_bytes)
        finally:
            buffer.recycle()
        return heap_buffer(raw, buffer.parent.data_type).read_only_slice()

    def _begin(self, index: int) -> None:
        """All that was recovered of a channel has been read: read the channel itself, which may have something.

        A peer may send the same event, at any time; of a channel that is read already nothing follows.
        """
        recovered = self.channels[index]
        if not isinstance(recovered, RecoveredInputChannel):
            return
        self.channels[index] = recovered.channel
        self._enter_line(index)

    def _end(self, index: int) -> None:
        if not self._is_ended[index]:
            self._is_ended[index] = True
            self._num_ended += 1
            self.channels[index].release()
