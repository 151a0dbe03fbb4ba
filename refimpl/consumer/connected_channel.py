"""A channel that a connection feeds: its states, and what it does with what has come, or has failed to come.

The channel knows nothing of its connection: that one asks it what is to be announced, and is told only
that asking is worth while. Into which buffers a channel receives is decided by its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol

from refimpl.batch_options import Compression
from refimpl.config import Config
from refimpl.consumer.channel import ChannelSnapshot
from refimpl.consumer.channel_capture import ChannelCapture
from refimpl.consumer.received_queue import ReceivedQueue
from refimpl.errors import RemoteProtocolError, SluiceError
from refimpl.exchange.frame_decoder import BufferReceived
from refimpl.exchange.messages import BufferResponse
from refimpl.memory.buffer import Buffer, BufferSlice, heap_buffer
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.records.event_serializer import event_from_bytes
from refimpl.records.events import Alignment, CheckpointBarrier
from refimpl.trace import Note
from refimpl.transitions import next_state

__all__ = ["CHANNEL_TRANSITIONS", "ChannelBuffers", "ChannelEvent", "ChannelState", "ConnectedChannel"]


class ChannelState(Enum):
    """What may still come to a channel, and whether its producer stands still."""

    OPEN = "open"
    BLOCKED = "blocked"  # a blocking event has come: the producer waits to be told to go on
    RESUMED = "resumed"  # it may go on, and has not been told yet
    FAILED = "failed"
    RELEASED = "released"


class ChannelEvent(Enum):
    """What can happen to a channel."""

    BLOCK = "block"
    RESUME = "resume"
    TELL = "tell the producer"
    FAIL = "fail"
    RELEASE = "be released"


CHANNEL_TRANSITIONS: dict[ChannelState, dict[ChannelEvent, ChannelState]] = {
    ChannelState.OPEN: {
        ChannelEvent.BLOCK: ChannelState.BLOCKED,
        ChannelEvent.FAIL: ChannelState.FAILED,
        ChannelEvent.RELEASE: ChannelState.RELEASED,
    },
    ChannelState.BLOCKED: {
        ChannelEvent.BLOCK: ChannelState.BLOCKED,
        ChannelEvent.RESUME: ChannelState.RESUMED,
        ChannelEvent.FAIL: ChannelState.FAILED,
        ChannelEvent.RELEASE: ChannelState.RELEASED,
    },
    ChannelState.RESUMED: {
        ChannelEvent.BLOCK: ChannelState.BLOCKED,  # sent without having been told: it is told once
        ChannelEvent.TELL: ChannelState.OPEN,
        ChannelEvent.FAIL: ChannelState.FAILED,
        ChannelEvent.RELEASE: ChannelState.RELEASED,
    },
    ChannelState.FAILED: {
        ChannelEvent.BLOCK: ChannelState.FAILED,
        ChannelEvent.RESUME: ChannelState.FAILED,  # an alignment may end before the task has seen the error
        ChannelEvent.FAIL: ChannelState.FAILED,
        ChannelEvent.RELEASE: ChannelState.RELEASED,
    },
    ChannelState.RELEASED: {
        ChannelEvent.FAIL: ChannelState.RELEASED,
        ChannelEvent.RELEASE: ChannelState.RELEASED,
    },
}


class ChannelBuffers(Protocol):
    """The buffers that a channel receives into."""

    @property
    def empty_buffers(self) -> list[Buffer]:
        """The buffers that wait here for data, for the laws."""

    @property
    def exclusive_buffers(self) -> list[Buffer]:
        """The channel's own buffers, here or lent, as long as they have not gone home, for the laws."""

    def release(self, received: Iterable[Buffer]) -> None:
        """Give back every empty buffer and those in `received`."""


class ConnectedChannel(ABC):
    """Receives one subpartition over a connection.

    `receiver` is the id (16 bytes) by which the producer names this channel. `producer` says in words what is
    read. `error` is why nothing more comes. `initial_credit` is how many data buffers may come before anything
    is announced. `on_message` is called when there are news for the producer, or the channel was released.

    Ownership: a polled buffer belongs to the caller of `poll`; the queued ones belong to the channel.

    Raises (`poll`):
        RemoteProtocolError, RemoteTransportError, PartitionNotFoundError: why nothing more comes.

    Flink:   RemoteInputChannel (runtime.io.network.partition.consumer), 1.11.4
    Differs: a compressed buffer is refused where the job compresses nothing. An unaligned barrier goes to the head of
             what waits, in 1.11 too, if somebody looks for it; else it waits its turn. No event is announced before it
             comes; one that waits here is seen without that.
    """

    buffers: ChannelBuffers
    initial_credit: int

    def __init__(
        self,
        index: int,
        receiver: bytes,
        producer: str,
        config: Config,
        note_receive: Note | None = None,
        note_take: Note | None = None,
    ) -> None:
        self.index = index
        self.receiver = receiver
        self.producer = producer
        self.error: SluiceError | None = None
        self.capture: ChannelCapture | None = None
        self.received = ReceivedQueue(config.max_event_bytes, note_receive, note_take)
        self.state = ChannelState.OPEN
        self._segment_size_bytes = config.segment_size_bytes
        self._version = config.flink_version
        self._takes_compressed = config.compression is not Compression.NONE
        self._why_refused = ""
        self._on_data_available: Callable[[], None] | None = None
        self.on_message: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index} reads {self.producer}, {len(self.received.pieces)} queued)"

    @property
    def is_released(self) -> bool:
        return self.state is ChannelState.RELEASED

    @property
    def held_buffers(self) -> list[Buffer | BufferSlice]:
        """Every buffer that is here, empty or full, for the laws."""
        return [*self.buffers.empty_buffers, *(piece for piece, _ in self.received.pieces)]

    def snapshot(self) -> ChannelSnapshot:
        queue = self.received.snapshot()
        num_received = self.received.sequence.expected
        return ChannelSnapshot(
            self.index, self.producer, len(queue), self.is_released, self.receiver, queue, None, num_received
        )

    # -- for the gate ----------------------------------------------------------------------------

    def open(self, on_data_available: Callable[[], None]) -> None:
        self._on_data_available = on_data_available
        if self.received.pieces or self.error is not None:
            on_data_available()

    def poll(self) -> BufferAndBacklog | None:
        if self.is_released:
            return None
        if self.error is not None:
            raise self.error
        return self.received.take(self._num_waiting())

    def poll_priority(self) -> BufferAndBacklog | None:
        return self.poll() if self.received.num_priority and self.error is None else None

    def begin_capture(self, checkpoint_id: int) -> None:
        if (capture := self.capture) is None:
            return
        capture.begin(checkpoint_id, self.received.pieces)
        for position, (piece, _) in enumerate(self.received.pieces):
            if position < self.received.num_priority or piece.is_buffer:
                continue
            if (barrier := self._barrier_in(piece)) is not None and barrier.checkpoint_id == checkpoint_id:
                self.received.move_first(position)
                capture.note_arrival()
                return

    def resume(self) -> None:
        """Let the producer go on that stopped behind a blocking event.

        Raises:
            LocalUsageError: no such event has come, or the channel is released.
        """
        self._go_on(ChannelEvent.RESUME)
        self.on_message()

    def release(self) -> None:
        if not self.is_released:
            self._go_on(ChannelEvent.RELEASE)
            self.on_message()
            self.buffers.release(self.received.clear())

    # -- for the connection ----------------------------------------------------------------------

    def take_news(self) -> tuple[int, bool]:
        """How many empty buffers the producer is to be told of, and whether it is to go on; it counts as told now."""
        if self.state is not ChannelState.RESUMED:
            return 0, False
        self._go_on(ChannelEvent.TELL)
        return 0, True

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        """A buffer for a payload of `size` bytes, or `None` to skip it."""
        if self.is_released:
            return None
        if not response.data_type.is_buffer:
            if not self.received.has_room_for_event(size, max(1, len(response.partial_sizes))):
                self._why_refused = (
                    f"an event of {size} B came while {self.received.event_bytes} B of events wait to be "
                    f"read, max_event_bytes is {self.received.max_event_bytes}"
                )
                return None
            buffer = heap_buffer(bytes(size), response.data_type)
            buffer.size = 0
            return buffer
        if size > self._segment_size_bytes:
            self._why_refused = f"{size} B do not fit a buffer of {self._segment_size_bytes} B"
            return None
        return self._request_for_data(response)

    def on_buffer(self, received: BufferReceived) -> None:
        """Queue what has come, and make room for what waits behind it.

        Ownership: takes over the buffer.
        """
        was_empty = not self.received.pieces
        if self._accept(received):
            self.on_backlog(received.response.backlog)
        if was_empty and self.received.pieces:
            self._tell_gate()

    @abstractmethod
    def on_backlog(self, backlog: int) -> None:
        """`backlog` data buffers wait at the producer; below 0 it does not say."""

    def on_error(self, error: SluiceError) -> None:
        """Nothing more comes; the next `poll` raises `error`. Only the first one counts."""
        was_over = self.state in (ChannelState.FAILED, ChannelState.RELEASED)
        self._go_on(ChannelEvent.FAIL)
        if not was_over:
            self.error = error
            self._tell_gate()

    # -- helpers ---------------------------------------------------------------------------------

    @abstractmethod
    def _request_for_data(self, response: BufferResponse) -> Buffer | None:
        """An empty buffer for data that has come, or `None`."""

    def _num_waiting(self) -> int:
        """Data buffers that wait at the producer, as far as is known."""
        return 0

    def _accept(self, received: BufferReceived) -> bool:
        """Queue it if it is what must come next and there was room for it."""
        response, size, buffer = received
        is_missing = buffer is None and not (size == 0 and response.data_type.is_buffer)
        if self.is_released or is_missing:
            refused: str | None = f"{self}: {self._why_refused}"
        elif response.is_compressed and not self._takes_compressed:
            refused = f"{self}: a compressed buffer has come, and this job compresses nothing"
        elif not self.received.sequence.is_next(response.sequence_number):
            refused = (
                f"Buffer re-ordering: expected buffer with sequence number "
                f"{self.received.sequence.expected}, but received {response.sequence_number}"
            )
        else:
            if buffer is not None:
                buffer.is_compressed = response.is_compressed
            self._queue(buffer, response.partial_sizes or (size,))  # before 2.x there is one piece, always
            if response.data_type.blocks_upstream:
                self._go_on(ChannelEvent.BLOCK)
            return True
        self.on_error(RemoteProtocolError(refused))
        if buffer is not None:
            buffer.recycle()
        return False

    def _queue(self, buffer: Buffer | None, sizes: tuple[int, ...]) -> None:
        """Put what has come where it belongs; of what is to be captured there is a copy then."""
        if (capture := self.capture) is None or buffer is None:
            self.received.put(buffer, sizes)
        elif buffer.is_buffer:
            if capture.is_copying:
                capture.copy(buffer.data)
            self.received.put(buffer, sizes)
        elif len(sizes) == 1 and (barrier := self._barrier_in(buffer)) is not None:
            self._queue_barrier(buffer, barrier, capture)
        else:
            self.received.put(buffer, sizes)

    def _queue_barrier(self, buffer: Buffer, barrier: CheckpointBarrier, capture: ChannelCapture) -> None:
        """One that overtakes goes to the head, and so does one that waits while its checkpoint does not any more."""
        checkpoint_id, number = barrier.checkpoint_id, self.received.sequence.expected
        is_first = barrier.alignment is Alignment.UNALIGNED or capture.wants(checkpoint_id)
        if is_first:
            self.received.put_first(buffer)
        else:
            self.received.put(buffer, (buffer.size,))
        capture.note_barrier(checkpoint_id, number)
        if is_first:
            capture.note_arrival()
        else:
            capture.announce(barrier)

    def _barrier_in(self, event: Buffer | BufferSlice) -> CheckpointBarrier | None:
        try:
            found = event_from_bytes(event.data, self._version)
        except RemoteProtocolError:
            return None  # whoever polls it will say what is wrong
        return found if isinstance(found, CheckpointBarrier) else None

    def _go_on(self, event: ChannelEvent) -> None:
        self.state = next_state(CHANNEL_TRANSITIONS, self.state, event, self)

    def _tell_gate(self) -> None:
        if self._on_data_available is not None:
            self._on_data_available()
