"""Our consumer's end under test, and everything that somebody around it can do: the task, the transport, time.

Each method that is a step may be called at any time, in any order; what makes no sense then does nothing. `check` is
the law between two steps, `finish` ends everything and looks for what is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from refimpl.config import UNBOUNDED
from refimpl.consumer import BufferManager, BufferManagerSnapshot, ChannelState, ConnectedChannel, RemoteInputChannel
from refimpl.drivers.makers import makers_of
from refimpl.errors import LocalUsageError, PartitionNotFoundError, RemoteProtocolError, RemoteTransportError
from refimpl.exchange import AddCredit, ConnectionState
from refimpl.job import Makers
from refimpl.memory import Buffer, BufferSlice, LocalBufferPool, NetworkBufferPool
from tests.fuzz.inputs import NUM_CHANNELS, Setup
from tests.fuzz.oracles import (
    Frame,
    after,
    check_places,
    check_references,
    frames_in,
    held_bytes,
    numbered,
    pieces_of,
)
from tests.fuzz.producer_end import PARTITION, UNKNOWN

__all__ = ["ConsumerEnd", "receiver"]

FROM_THE_OTHER_END = (RemoteProtocolError, RemoteTransportError, PartitionNotFoundError)

_MAX_STRANGERS = 1_000
_COUNTED_FOR_AN_EVENT = 64

# What things weigh in Python, generously; how many there are is bounded by the configuration and by refimpl.
_CONNECTION_BYTES = 10_000
_CHANNEL_BYTES = 6_000
_STRANGER_BYTES = 500
_PIECE_BYTES = 200
_EVENT_BYTES = 750


def receiver(channel: int) -> bytes:
    """The id by which a channel is known; from `NUM_CHANNELS` on nobody has asked for it."""
    return (channel + 1).to_bytes(16, "big")


class ConsumerEnd:
    """Our consumer's end: channels that share a gate, the task that reads it, and the transport.

    `read` is the data that the task has got, by channel; `outgoing` are frames for the transport. `found` are the
    channels that have asked for what exists, `given_up` those the task wants no more. Without credits the connection
    may stop reading; then the transport keeps what comes.
    """

    def __init__(self, setup: Setup) -> None:
        config = setup.config
        self._version = config.flink_version
        self._setup = setup
        num_segments = NUM_CHANNELS * setup.num_exclusive + setup.num_floating + 1  # one belongs to nobody
        self.pool = NetworkBufferPool(num_segments, config.segment_size_bytes, self._version)
        num_required = 0 if config.credit_based else 1
        self.floating = LocalBufferPool(self.pool, num_required, setup.num_floating, "floating")
        makers = makers_of(config, default=False)
        self.connection = makers.consumer_connection(config, "to tm-1")
        self.channels = [self._make_channel(makers, index) for index in range(NUM_CHANNELS)]
        self.gate = makers.gate("sink-0", self.channels, config.flink_version)
        self.gate.open()
        self.read = [bytearray() for _ in range(NUM_CHANNELS)]
        self.outgoing: list[Frame] = []
        self.num_asked = 0
        self.found: set[int] = set()
        self.given_up: set[int] = set()
        self.is_cut = False
        self._unread: deque[bytes] = deque()
        self._held: list[BufferSlice] = []
        self._now_ms = 0.0

    def _make_channel(self, makers: Makers, index: int) -> ConnectedChannel:
        num_exclusive = self._setup.num_exclusive
        segments = self.pool.request_unpooled(num_exclusive, f"channel {index}") if num_exclusive else []
        assert segments is not None
        config = self._setup.config
        return makers.remote_channel(
            index, receiver(index), f"map-0[{index}]", segments, self.pool, self.floating, config, None, None
        )

    # -- the task ----------------------------------------------------------------------------------

    def ask(self, is_unknown: int = 0) -> None:
        """Ask for the next channel's partition, which may be one that nobody has."""
        if self.num_asked < NUM_CHANNELS and not self.connection.is_closed:
            channel = self.channels[self.num_asked]
            if channel.receiver in self.connection._cancelled:
                return  # the other end has guessed an id that is drawn from 2^128, and has lost it the channel
            self.connection.request(channel, UNKNOWN if is_unknown else PARTITION, self.num_asked)
            if not is_unknown:
                self.found.add(self.num_asked)
            self.num_asked += 1

    def poll(self) -> None:
        """The gate's next buffer, to be held for a while, or event."""
        try:
            arrived = self.gate.poll_next()
        except FROM_THE_OTHER_END:
            return
        if arrived is not None and arrived.buffer is not None:
            self._hold(arrived.channel_index, arrived.buffer)

    def take(self, index: int) -> None:
        """What a channel has next, past the gate, to be held even if it is an event."""
        try:
            taken = self.channels[index].poll()
        except FROM_THE_OTHER_END:
            return
        if taken is not None:
            self._hold(index, taken.buffer)

    def _hold(self, index: int, buffer: BufferSlice) -> None:
        if buffer.is_buffer:
            self.read[index] += buffer.data
        self._held.append(buffer)

    def recycle(self, number: int) -> None:
        if self._held:
            self._held.pop(number % len(self._held)).recycle()

    def recycle_all(self) -> None:
        while self._held:
            self.recycle(0)

    def resume(self, index: int) -> None:
        is_blocked = self.channels[index].state is ChannelState.BLOCKED
        try:
            self.channels[index].resume()
        except LocalUsageError:
            assert not is_blocked, f"{self.channels[index]} is blocked and cannot go on"

    def release(self, index: int) -> None:
        self.channels[index].release()
        self.given_up.add(index)

    # -- the transport -----------------------------------------------------------------------------

    def receive(self, data: bytes, piece_bytes: int = UNBOUNDED) -> None:
        """The transport gives what has come, `piece_bytes` at a time."""
        self._unread += pieces_of(data, piece_bytes)
        if self._unread and self.connection.pause is not None:
            # One piece may have been read before the transport was told to stop.
            room = self._setup.config.frame_limit_bytes - self.connection.decoder.num_staged
            if len(self._unread[0]) <= room:
                self._receive(self._unread.popleft())
        self.go_on()

    def go_on(self) -> bool:
        """Read on as far as possible, as a driver does after each call; false if nothing could be read."""
        has_read = False
        while True:
            pause = self.connection.pause
            if pause is not None and pause.is_over:
                self.connection.receive_data(b"")
            elif self._unread and (pause is None or self.connection.is_closed):
                self._receive(self._unread.popleft())
            else:
                return has_read
            has_read = True

    def _receive(self, data: bytes) -> None:
        error = self.connection.error
        was_closed = self.connection.is_closed
        self.connection.receive_data(data)
        assert not was_closed or self.connection.error is error, "a closed connection has read something"

    def flood(self, frame: bytes, position: int, count: int) -> None:
        """`frame` again and again, with a number that goes up in four bytes at `position`."""
        self._unread += numbered(frame, position, count)
        self.go_on()

    def answer(self) -> None:
        """The transport can take bytes: credit is announced once, and only for buffers that are there."""
        was_closed, may_have_some = self.connection.is_closed, self.connection.has_data_to_send
        by_receiver = {
            each.receiver: each.buffers.credit for each in self.channels if isinstance(each, RemoteInputChannel)
        }
        promised = {receiver: credit.num_promised for receiver, credit in by_receiver.items()}
        data = self.connection.data_to_send()
        assert not (was_closed and data), "something goes out after the end"
        assert may_have_some or not data, f"{self.connection} has something to say, and does not say so"
        for frame in frames_in(data, self._version):
            if isinstance(frame.message, AddCredit):
                promised[frame.message.receiver] += frame.message.credit
            self.outgoing.append(frame)
        for receiver, credit in by_receiver.items():
            found = credit.num_promised
            assert found == promised[receiver], f"{receiver!r} promised {found}, and announced something else"

    def wait(self, num_ms: int) -> None:
        """Time passes, and a driver does what is due."""
        self._now_ms = after(self.connection, self._now_ms, num_ms)

    def cut(self) -> None:
        """The transport is gone."""
        was_closed = self.connection.is_closed
        self.is_cut = True
        self.connection.receive_end()
        assert was_closed or isinstance(self.connection.error, RemoteTransportError)

    # -- oracles -----------------------------------------------------------------------------------

    def check(self) -> None:
        connection = self.connection
        assert repr(connection)
        has_failed = connection.state is ConnectionState.FAILED
        assert has_failed == isinstance(connection.error, RemoteProtocolError | RemoteTransportError)
        for channel in self.channels[: self.num_asked]:
            assert not has_failed or channel.is_released or channel.error is not None, f"{channel} was not told"
        for channel in self.channels:
            is_theirs = isinstance(channel.error, FROM_THE_OTHER_END)
            assert is_theirs or channel.error is None, f"{channel} failed with {channel.error!r}"
            if isinstance(channel.buffers, BufferManager) and not channel.is_released:
                self._check_credit(channel.snapshot().buffers)
        assert len(connection._cancelled) <= _MAX_STRANGERS + NUM_CHANNELS
        assert len(connection._line) <= NUM_CHANNELS, "a channel stands in line twice"
        self._check_segments()

    def _check_credit(self, shot: BufferManagerSnapshot) -> None:
        assert shot.num_unannounced >= 0, f"{shot}: less than nothing is to be announced"
        assert shot.num_promised >= 0, f"{shot}: less than nothing is promised"
        assert shot.num_available == shot.num_unannounced + shot.num_promised, f"{shot}: buffers are not credit"

    def _check_segments(self) -> None:
        exclusive = [buffer for channel in self.channels for buffer in channel.buffers.exclusive_buffers]
        check_places(
            self.pool,
            (segment.id for segment in self.pool.free_segments),
            (segment.id for segment in self.floating.idle_segments),
            self.floating.lent,
            (buffer.segment.id for buffer in exclusive),
        )
        check_references([*self.floating.lent.values(), *exclusive], self._holders())

    def _holders(self) -> Iterator[Buffer | BufferSlice]:
        yield from self._held
        for channel in self.channels:
            yield from channel.held_buffers
        if (buffer := self.connection.decoder.held_buffer) is not None:
            yield buffer

    def check_memory(self) -> None:
        """What the connection and its channels hold is an unfinished frame, pieces of buffers, and events."""
        config, connection = self._setup.config, self.connection
        found = held_bytes([connection, *self.channels], self, self.gate, *self.pool.segments)
        num_pieces = len(self.pool.segments) * config.segment_size_bytes
        num_frames = 1 if config.credit_based else 3  # one unfinished, one staged, and as much handed in all the same
        num_events = config.max_event_bytes // _COUNTED_FOR_AN_EVENT
        most = (
            _CONNECTION_BYTES
            + num_frames * config.frame_limit_bytes
            + len(connection._cancelled) * _STRANGER_BYTES
            + NUM_CHANNELS * (_CHANNEL_BYTES + config.max_event_bytes + num_events * _EVENT_BYTES)
            + num_pieces * _PIECE_BYTES
        )
        assert found <= most, f"{connection} holds {found} B, more than {most}"

    def finish(self) -> None:
        """Everybody gives back what they have: everything is back home."""
        for index in range(NUM_CHANNELS):
            self.release(index)
        self.recycle_all()
        if self.num_asked and not self.connection.is_closed:
            self.answer()
            assert self.connection.is_closed, f"{self.connection} has no channel left"
        self.cut()
        self._unread.clear()
        self.receive(b"\0" * 9)
        self.answer()
        self.check()
        assert self.floating.snapshot().num_in_use == 0, f"{self.floating} after the end"
        self.floating.destroy()
        assert self.pool.num_free == len(self.pool.segments), f"{self.pool} after the end"
