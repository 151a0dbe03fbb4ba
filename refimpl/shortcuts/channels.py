"""Several buffers of a channel in one step: from the connection into its queue, and out of it to the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refimpl.consumer.buffer_manager import BufferManager
from refimpl.consumer.connected_channel import ChannelState, ConnectedChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.errors import PoolDestroyedError
from refimpl.exchange.before_credit.pool_buffers import PoolBuffers
from refimpl.exchange.before_credit.pooled_channel import PooledInputChannel
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.subpartition_view import BufferAndBacklog

__all__ = [
    "FastBufferManager",
    "FastConnectedChannel",
    "FastInputGate",
    "FastPooledInputChannel",
    "FastRemoteInputChannel",
    "FastUnionInputGate",
]


_RELEASED = ChannelState.RELEASED


class FastBufferManager(BufferManager):
    """The book's own manager: it need not hear of a backlog that another one has replaced already."""


_OUR_BUFFERS = (FastBufferManager, PoolBuffers)


class FastConnectedChannel(ConnectedChannel):
    """Takes in and gives out several buffers in one step.

    `take_in` and `on_taken_in` stand for `request_buffer` and `on_buffer`, `poll_run` for `poll`, which is
    the book's with its questions asked at once.
    """

    buffers: Any  # `_OUR_BUFFERS`, or a learner's
    num_untold = 0
    """Of the buffers taken in, those that the gate was not told of."""

    @property
    def takes_runs(self) -> bool:
        """Whether `take_in` may be asked: a learner's manager is told of each buffer by itself."""
        return isinstance(self.buffers, _OUR_BUFFERS)

    def take_in(self, number: int, payload: memoryview) -> bool:
        """Copy a whole data buffer and queue it, if it is what must come next and there is room: `on_taken_in` follows.

        If not, `request_buffer` and `on_buffer` know what is to be done.
        """
        size, received = len(payload), self.received
        if self.state is _RELEASED or size > self._segment_size_bytes or not received.sequence.is_next(number):
            return False
        buffer = self.buffers.request_buffer()
        if not isinstance(buffer, Buffer):
            return False
        buffer.memory[:size] = payload
        buffer.size = size
        received.pieces.append((BufferSlice(buffer, 0, size), received.sequence.advance()))
        if received.note_receive is not None:
            received.note_receive(buffer.segment.id, number, size)
        if self.capture is not None and self.capture.is_copying:
            self.capture.copy(payload)
        self.num_untold += 1
        return True

    def on_taken_in(self, backlog: int) -> None:
        """All is taken in that came together: make room for what waits behind it, and tell the gate."""
        was_empty, self.num_untold = len(self.received.pieces) == self.num_untold, 0
        self.on_backlog(backlog)
        if was_empty:
            self._tell_gate()

    def poll(self) -> BufferAndBacklog | None:
        received, pieces = self.received, self.received.pieces
        if not pieces or not pieces[0][0].is_buffer or self.error is not None or received.note_take is not None:
            return super().poll()  # there is more to be minded than the next data buffer
        piece, number = pieces.popleft()
        is_more = is_event_next = False
        if pieces:
            is_more, is_event_next = True, not pieces[0][0].is_buffer
        return BufferAndBacklog(piece, is_more, self._num_waiting(), is_event_next, number)

    def poll_run(self, most: int) -> list[BufferSlice]:
        """At most `most` of the data buffers that `poll` would give next; maybe none, and never the last one."""
        received, pieces = self.received, self.received.pieces
        run: list[BufferSlice] = []
        if self.error is not None or self.state is _RELEASED:
            return run
        for _ in range(min(most, len(pieces) - 1)):
            if not pieces[0][0].is_buffer or pieces[0][0].parent.is_compressed:
                break
            piece, number = pieces.popleft()
            run.append(piece)
            if received.note_take is not None:
                received.note_take(piece.parent.segment.id, number, piece.size)
        return run


class FastRemoteInputChannel(FastConnectedChannel, RemoteInputChannel):
    """Does so as far as it has given credit."""


class FastPooledInputChannel(FastConnectedChannel, PooledInputChannel):
    """Does so in the way before credits, as long as the gate's pool has buffers."""

    def take_in(self, number: int, payload: memoryview) -> bool:
        try:
            return super().take_in(number, payload)
        except PoolDestroyedError:
            return False


class FastInputGate(InputGate):
    """Gives several buffers of the one channel that has any; stands for `InputGate.poll_next`."""

    def poll_run(self, most: int) -> tuple[int, list[BufferSlice]]:
        """The one channel in line and at most `most` of its buffers, never the last: the next are for `poll_next`.

        None while several stand in line, since each has its turn.
        """
        if len(self._line) != 1:
            return 0, []
        index = self._line[0]
        poll_run: Callable[[int], list[BufferSlice]] | None = getattr(self.channels[index], "poll_run", None)
        return index, [] if poll_run is None else poll_run(most)


class FastUnionInputGate(UnionInputGate):
    """Gives several buffers of the one gate that has any; stands for `UnionInputGate.poll_next`."""

    def poll_run(self, most: int) -> tuple[int, list[BufferSlice]]:
        """The one channel in line in the one gate in line, and at most `most` of its buffers, never the last."""
        if len(self._line) != 1:
            return 0, []
        number = self._line[0]
        gate = self.gates[number]
        if not isinstance(gate, FastInputGate):
            return 0, []
        index, run = gate.poll_run(most)
        return self._first_channels[number] + index, run
