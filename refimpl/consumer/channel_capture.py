"""What is in flight towards a task when it takes an unaligned snapshot: copies, channel by channel.

What of a channel belongs to the checkpoint, in this order:

    decoded ahead     values that have been read from the channel's bytes and not been processed, as bytes again
    half a record     what its deserializer has begun
    taken, queued     buffers that have come before the channel's barrier
    what still comes  until the barrier: copied on arrival in a channel that a connection feeds, when it is polled in a
                      local one, since what a local one has not polled is copied at its producer

Events are never copied. Copies, and no references: a buffer that was kept would keep the producer waiting for credit,
just when the checkpoint is to end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from refimpl.memory.buffer import BufferSlice
from refimpl.records.events import CheckpointBarrier

__all__ = ["ChannelCapture", "InputCapture"]


class ChannelCapture:
    """The copies of one channel, from the snapshot on and up to the channel's own barrier.

    `copies` are its bytes. `on_arrival` is told of the channel when a barrier waits there, ahead of all data;
    `announce` is called with a barrier that waits its turn.

    Flink:   ChannelStateWriter.addInputData (runtime.checkpoint.channel), ThreadSafeUnaligner, 1.11.4
    Differs: copies; Flink keeps references to the buffers until they are written.
    """

    def __init__(
        self,
        index: int,
        on_arrival: Callable[[int], None],
        on_announcement: Callable[[CheckpointBarrier], None] = lambda _: None,
    ) -> None:
        self.copies: list[bytes] = []
        self.is_copying = False
        self._index = index
        self._on_arrival = on_arrival
        self.announce = on_announcement
        self._checkpoint_id = -1
        self._barriers: dict[int, int] = {}  # those that have come, by checkpoint, and their sequence numbers

    def __repr__(self) -> str:
        return f"ChannelCapture({self._index}, {self.num_bytes} B, {'open' if self.is_copying else 'closed'})"

    @property
    def num_bytes(self) -> int:
        return sum(map(len, self.copies))

    def begin(self, checkpoint_id: int, queued: Iterable[tuple[BufferSlice, int]] = ()) -> None:
        """Copy what is `queued` here, with its sequence numbers, before the barrier; and go on if that is to come."""
        self._checkpoint_id = checkpoint_id
        come = [each for each in self._barriers if each >= checkpoint_id]
        self.is_copying = not come
        for piece, number in queued:
            if piece.is_buffer and (not come or _is_before(number, self._barriers[min(come)])):
                self.copies.append(bytes(piece.data))

    def copy(self, data: bytes | memoryview) -> None:
        """Data has come, or was polled; ask `is_copying` first."""
        self.copies.append(bytes(data))

    def note_arrival(self) -> None:
        """A barrier is at the head of the channel: somebody should take it."""
        self._on_arrival(self._index)

    def wants(self, checkpoint_id: int) -> bool:
        """Whether what comes is copied up to the barrier of that checkpoint."""
        return self.is_copying and checkpoint_id == self._checkpoint_id

    def note_barrier(self, checkpoint_id: int, number: int = 0) -> None:
        """The barrier of a checkpoint has come, with this sequence number; nothing behind it is copied for that one."""
        self._barriers.setdefault(checkpoint_id, number)
        if checkpoint_id >= self._checkpoint_id:
            self.is_copying = False

    def note_polled(self, checkpoint_id: int) -> None:
        """The barrier of a checkpoint is out of the channel: those of older ones do not matter any more."""
        self.note_barrier(checkpoint_id)
        self._barriers = {each: number for each, number in self._barriers.items() if each >= checkpoint_id}

    def stop(self) -> None:
        """Copy no more, and forget what was copied."""
        self.is_copying = False
        self.copies = []


class InputCapture:
    """The copies of all channels of one input, for one checkpoint at a time.

    `arrived` are the channels where a barrier waits to be taken; `on_arrival` is called when there is one more.
    `begun_id` is the checkpoint that is in hand, below 0 if none is.

    Flink:   ChannelStateWriterImpl (runtime.checkpoint.channel), 1.11.4
    """

    def __init__(
        self,
        num_channels: int,
        on_arrival: Callable[[], None],
        on_announcement: Callable[[CheckpointBarrier], None] = lambda _: None,
    ) -> None:
        self.arrived: deque[int] = deque()
        self.channels = [ChannelCapture(index, self._note_arrival, on_announcement) for index in range(num_channels)]
        self._on_arrival = on_arrival
        self.begun_id = -1
        self._delivered_id = -1

    def begin(self, checkpoint_id: int) -> None:
        """Take a new checkpoint in hand; what was copied for another is forgotten."""
        self._forget()
        self.begun_id = checkpoint_id

    def note_delivered(self, checkpoint_id: int) -> None:
        """The last channel has delivered its barrier."""
        self._delivered_id = checkpoint_id

    def is_complete(self, checkpoint_id: int) -> bool:
        """Whether all that belongs to this checkpoint is here."""
        return self.begun_id == self._delivered_id == checkpoint_id

    def take(self, checkpoint_id: int) -> list[bytes]:
        """The bytes of each channel, which are the caller's now."""
        assert self.is_complete(checkpoint_id), f"checkpoint {checkpoint_id} is not captured yet"
        taken = [b"".join(channel.copies) for channel in self.channels]
        self._forget()
        return taken

    def drop(self, checkpoint_id: int) -> None:
        """Nobody wants what is copied for this checkpoint."""
        if checkpoint_id == self.begun_id:
            self._forget()

    def _forget(self) -> None:
        self.begun_id = -1
        for channel in self.channels:
            channel.stop()

    def _note_arrival(self, index: int) -> None:
        self.arrived.append(index)
        self._on_arrival()


def _is_before(number: int, barrier_number: int) -> bool:
    """Whether a sequence number comes before another; both are of 32 bits and begin again."""
    return (number - barrier_number) & 0xFFFFFFFF >= 2**31
