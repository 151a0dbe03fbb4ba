"""A channel whose producer lives elsewhere: what comes over a connection waits here for its task.

The channel has buffers and a queue. It knows nothing of its connection: that one asks it what is to
be announced, and is told only that asking is worth while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from refimpl.config import Config
from refimpl.consumer.buffer_manager import BufferManager
from refimpl.consumer.channel import ChannelSnapshot
from refimpl.consumer.sequence import SequenceNumbers
from refimpl.errors import LocalUsageError, PoolDestroyedError, RemoteProtocolError, SluiceError
from refimpl.exchange.connection_flow import BufferWait, PoolBuffers
from refimpl.exchange.decoder import BufferReceived
from refimpl.exchange.messages import BufferResponse
from refimpl.memory.buffer import Buffer, BufferSlice, heap_buffer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.subpartition_snapshot import FIRST_BYTES, QueuedBufferSnapshot
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.trace import Note

__all__ = ["RemoteInputChannel"]

_EVENT_OVERHEAD_BYTES = 64  # what an event costs besides its bytes, so that tiny ones count too


class RemoteInputChannel:
    """Receives one subpartition over a connection.

    `receiver` is the id (16 bytes) by which the producer names this channel; `exclusive` are its own
    segments, taken from `global_pool` with `request_unpooled`; none without credits. `producer` says
    in words what is read. `note_receive` and `note_take` are for a trace.

    Ownership: a polled buffer belongs to whoever polled; the queued ones belong to the channel.
    Memory: data waits in the channel's buffers, so there is never more than they hold. Events need
    no buffer: they may use `max_event_bytes` while they wait.

    Raises (`poll`):
        RemoteProtocolError, RemoteTransportError, PartitionNotFoundError: why nothing more comes.
        PoolDestroyedError: the same; only without credits.

    Flink:   RemoteInputChannel (runtime.io.network.partition.consumer), 1.11.4
    Differs: events that wait are bounded. A compressed buffer is refused, and a priority event of
             2.x waits its turn, and is not announced before it.
    """

    def __init__(
        self,
        index: int,
        receiver: bytes,
        producer: str,
        exclusive: Sequence[MemorySegment],
        global_pool: NetworkBufferPool,
        floating_pool: LocalBufferPool,
        config: Config,
        note_receive: Note | None = None,
        note_take: Note | None = None,
    ) -> None:
        self.index = index
        self.receiver = receiver
        self.producer = producer
        self.initial_credit = len(exclusive)
        self.is_released = False
        self.error: SluiceError | None = None
        self.buffers: BufferManager | PoolBuffers
        if config.credit_based:
            self.buffers = BufferManager(exclusive, global_pool, floating_pool, self._call_for_attention)
        elif exclusive:
            raise LocalUsageError("without credits a channel has no segments of its own")
        else:
            self.buffers = PoolBuffers(floating_pool)
        self._segment_size_bytes = global_pool.segment_size_bytes
        self._max_event_bytes = config.max_event_bytes
        self._received: deque[tuple[BufferSlice, int]] = deque()
        self._num_untold = 0  # of those received
        self._event_bytes = 0
        self.sequence = SequenceNumbers()
        self._is_blocked = False
        self._has_resumed = False
        self._why_refused = ""
        self._note_receive, self._note_take = note_receive, note_take
        self._on_data_available: Callable[[], None] | None = None
        self._on_message: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"RemoteInputChannel({self.index} reads {self.producer}, {len(self._received)} queued)"

    # -- for the gate ----------------------------------------------------------------------------

    def open(self, on_data_available: Callable[[], None]) -> None:
        self._on_data_available = on_data_available
        if self._received or self.error is not None:
            on_data_available()

    def poll(self) -> BufferAndBacklog | None:
        if self.is_released:
            return None
        if self.error is not None:
            raise self.error
        if not self._received:
            return None
        received = self._received
        buffer, sequence_number = received.popleft()
        if not buffer.is_buffer:
            self._event_bytes -= _event_cost(buffer)
        if self._note_take is not None:
            self._note_take(buffer.parent.segment.id, sequence_number, buffer.end - buffer.start)
        is_more = is_event_next = False
        if received:
            is_more, is_event_next = True, not received[0][0].is_buffer
        backlog = self.buffers.credit.num_required - self.initial_credit
        return BufferAndBacklog(buffer, is_more, max(0, backlog), is_event_next, sequence_number)

    def poll_run(self, most: int) -> list[BufferSlice]:
        received = self._received
        run: list[BufferSlice] = []
        if self.is_released or self.error is not None:
            return run
        while len(run) < most and len(received) > 1 and received[0][0].is_buffer:
            buffer, sequence_number = received.popleft()
            run.append(buffer)
            if self._note_take is not None:
                self._note_take(buffer.parent.segment.id, sequence_number, buffer.end - buffer.start)
        return run

    def resume(self) -> None:
        """Let the producer go on that stopped behind a blocking event.

        Raises:
            LocalUsageError: no such event has come, or the channel is released.
        """
        if self.is_released or not self._is_blocked:
            raise LocalUsageError(f"{self} is not blocked")
        self._is_blocked = False
        self._has_resumed = True
        self._call_for_attention()

    def release(self) -> None:
        if self.is_released:
            return
        self.is_released = True
        self._call_for_attention()
        received = [piece.parent for piece, _ in self._received]
        self._received.clear()
        self._event_bytes = 0
        self.buffers.release(received)

    def snapshot(self) -> ChannelSnapshot:
        queue = tuple(
            QueuedBufferSnapshot(
                piece.segment.id,
                piece.data_type,
                piece.size,
                piece.size,
                piece.segment.size,
                True,
                bytes(piece.data[:FIRST_BYTES]),
                -1,
            )
            for piece, _ in tuple(self._received)
        )
        return ChannelSnapshot(
            self.index,
            self.producer,
            len(queue),
            self.is_released,
            self.receiver,
            queue,
            self.buffers.snapshot() if isinstance(self.buffers, BufferManager) else None,
            self.sequence.expected,
        )

    @property
    def held_buffers(self) -> list[Buffer | BufferSlice]:
        """Every buffer that is here, empty or full, for the laws."""
        return [*self.buffers.empty_buffers, *(piece for piece, _ in self._received)]

    # -- for the connection ----------------------------------------------------------------------

    def connect(self, on_message: Callable[[], None]) -> None:
        """`on_message` is called when there is something to take, or the channel was released."""
        self._on_message = on_message

    def take_unannounced_credit(self) -> int:
        """How much credit to announce now; it counts as announced from here on."""
        return self.buffers.credit.announce()

    def take_resume(self) -> bool:
        """Whether to tell the producer to go on; true once for each `resume`."""
        has_resumed = self._has_resumed
        self._has_resumed = False
        return has_resumed

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | BufferWait | None:
        """A buffer for a payload of `size` bytes, `None` to skip it, or what it has to wait for."""
        if self.is_released:
            return None
        if not response.data_type.is_buffer:
            num_pieces = max(1, len(response.partial_sizes))
            if self._event_bytes + num_pieces * (size + _EVENT_OVERHEAD_BYTES) > self._max_event_bytes:
                self._why_refused = (
                    f"an event of {size} B came while {self._event_bytes} B of events wait to be "
                    f"read, max_event_bytes is {self._max_event_bytes}"
                )
                return None
            buffer = heap_buffer(bytes(size), response.data_type)
            buffer.size = 0
            return buffer
        if size > self._segment_size_bytes:
            self._why_refused = f"{size} B do not fit a buffer of {self._segment_size_bytes} B"
            return None
        try:
            answer = self.buffers.request_buffer()
        except PoolDestroyedError as error:
            self.on_error(error)
            return None
        if answer is None:
            self._why_refused = (
                f"The read buffer is null in credit-based input channel: the producer sent sequence "
                f"number {response.sequence_number} with credit {self.buffers.credit.num_promised}"
            )
        return answer

    def take_in(self, sequence_number: int, payload: memoryview) -> bool:
        """Copy a whole data buffer and queue it, if it is what must come next and there is room: `on_taken_in` follows.

        If not, `request_buffer` and `on_buffer` know what is to be done.
        """
        size = len(payload)
        if self.is_released or size > self._segment_size_bytes or not self.sequence.is_next(sequence_number):
            return False
        buffer = self.buffers.request_buffer()
        if buffer is None or isinstance(buffer, BufferWait):
            return False
        buffer.memory[:size] = payload
        buffer.size = size
        self._received.append((BufferSlice(buffer, 0, size), self.sequence.advance()))
        self._num_untold += 1
        if self._note_receive is not None:
            self._note_receive(buffer.segment.id, sequence_number, size)
        return True

    def on_taken_in(self, backlog: int) -> None:
        """All is taken in that came together: make room for what waits behind it, and tell the gate."""
        was_empty, self._num_untold = len(self._received) == self._num_untold, 0
        self.on_backlog(backlog)
        if was_empty and self._on_data_available is not None:
            self._on_data_available()

    def on_buffer(self, received: BufferReceived) -> None:
        """Queue what has come, and make room for what waits behind it.

        Ownership: takes over the buffer.
        """
        was_empty = not self._received
        self.on_backlog(received.response.backlog if self._accept(received) else -1)
        if was_empty and self._received and self._on_data_available is not None:
            self._on_data_available()

    def on_backlog(self, backlog: int) -> None:
        """So many data buffers wait at the producer; below 0 it does not say."""
        if backlog >= 0:
            self.buffers.set_backlog(backlog)

    def on_error(self, error: SluiceError) -> None:
        """Nothing more comes; the next `poll` raises `error`. Only the first one counts."""
        if self.error is None and not self.is_released:
            self.error = error
            if self._on_data_available is not None:
                self._on_data_available()

    # -- helpers ---------------------------------------------------------------------------------

    def _accept(self, received: BufferReceived) -> bool:
        """Queue it if it is what must come next and there was room for it."""
        response, size, buffer = received
        data_type = response.data_type
        if self.is_released or (buffer is None and not (size == 0 and data_type.is_buffer)):
            if buffer is not None:
                buffer.recycle()
            self.on_error(RemoteProtocolError(f"{self}: {self._why_refused}"))
        elif response.is_compressed:
            if buffer is not None:
                buffer.recycle()
            self.on_error(RemoteProtocolError(f"{self}: compressed buffers are not supported"))
        elif not self.sequence.is_next(response.sequence_number):
            self.on_error(
                RemoteProtocolError(
                    f"Buffer re-ordering: expected buffer with sequence number "
                    f"{self.sequence.expected}, but received {response.sequence_number}"
                )
            )
            if buffer is not None:
                buffer.recycle()
        else:
            self._queue(buffer, response.partial_sizes or (size,))  # before 2.x there is one piece, always
            self._is_blocked = self._is_blocked or data_type.blocks_upstream
            return True
        return False

    def _queue(self, buffer: Buffer | None, sizes: tuple[int, ...]) -> None:
        """Append the pieces of `buffer`, one sequence number each; an empty one is only counted."""
        start = 0
        is_first = True
        for piece_size in sizes:
            sequence_number = self.sequence.advance()
            if buffer is None or (piece_size == 0 and buffer.is_buffer):
                continue
            if not is_first:  # the first piece has the reference that came with the buffer
                buffer.retain()
            is_first = False
            piece = BufferSlice(buffer, start, start + piece_size)
            self._received.append((piece, sequence_number))
            if self._note_receive is not None:
                self._note_receive(buffer.segment.id, sequence_number, piece_size)
            if not piece.is_buffer:
                self._event_bytes += _event_cost(piece)
            start += piece_size

    def _call_for_attention(self) -> None:
        if self._on_message is not None:
            self._on_message()


def _event_cost(piece: BufferSlice) -> int:
    return piece.parent.segment.size + _EVENT_OVERHEAD_BYTES
