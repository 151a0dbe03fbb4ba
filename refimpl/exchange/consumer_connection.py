"""The consumer's end of one connection: every channel that reads from one other TaskManager.

Bytes come in and are handed to the channel they name; bytes go out when the transport can take them.
What goes out is decided at that moment and not before: credit that has gathered since the last time
goes out as one number.

    receive_data(bytes)   BufferResponse  ->  the channel named by `receiver`
                          ErrorResponse   ->  that channel fails, or is asked for again, or all fail
    data_to_send()        PartitionRequest, AddCredit, ResumeConsumption, CancelPartitionRequest,
                          and CloseRequest after the last channel
    next_deadline(now), on_timeout(now)     when to ask again for a partition that was not there

One channel's trouble stays its own: only bytes that are no frames, and errors that name no channel,
end the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial

from refimpl.config import Config
from refimpl.errors import LocalUsageError, RemoteProtocolError, RemoteTransportError, SluiceError
from refimpl.exchange.frame_decoder import BufferReceived, FrameDecoder, ReadPause
from refimpl.exchange.frames import encode
from refimpl.exchange.java_errors import read_java_error
from refimpl.exchange.messages import (
    BacklogAnnouncement,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    PartitionRequest,
    ResultPartitionId,
)
from refimpl.exchange.partition_reader import PartitionReader, PartitionRetries, ReceivingChannel
from refimpl.memory.buffer import Buffer

__all__ = ["ConnectionState", "ConsumerConnection"]

_MAX_STRANGERS = 1_000  # receivers nobody asked for; an honest producer knows none


class ConnectionState(Enum):
    """Whether anything more will come or go."""

    OPEN = "open"
    CLOSED = "closed"  # CloseRequest was sent; what still comes is not read
    FAILED = "failed"


class ConsumerConnection:
    """The consumer's end of one connection, without the connection: bytes in, bytes out.

    After a failure `error` says why, every channel has been told, and nothing more goes out: the
    driver closes the transport. The same when `is_closed` without an error. `on_data_to_send` is called
    whenever there is something to send, or a deadline, that there was not before. `decoder` is the class that
    reads its frames.

    Flink:   CreditBasedPartitionRequestClientHandler, NettyPartitionRequestClient
             (runtime.io.network.netty), 1.11.4
    Differs: data for more than 1000 receivers nobody asked for ends the connection; Flink cancels
             any number.
    """

    def __init__(self, config: Config, name: str = "connection", decoder: type[FrameDecoder] = FrameDecoder) -> None:
        self.name = name
        self.state = ConnectionState.OPEN
        self.error: SluiceError | None = None
        self.decoder = decoder(self, config.frame_limit_bytes, config.flink_version)
        self.on_data_to_send: Callable[[], None] = lambda: None
        self.readers: dict[bytes, PartitionReader] = {}
        self.retries = PartitionRetries()
        self._config = config
        self._line: deque[PartitionReader] = deque()
        self._outbox: list[Message] = []
        self._cancelled: set[bytes] = set()
        self._num_strangers = 0

    def __repr__(self) -> str:
        return f"ConsumerConnection({self.name}, {self.state.value}, {len(self.readers)} channels)"

    @property
    def is_closed(self) -> bool:
        """Whether the transport has nothing more to do."""
        return self.state is not ConnectionState.OPEN

    @property
    def has_data_to_send(self) -> bool:
        """Whether asking for bytes is worth while; there may be none all the same."""
        return not self.is_closed and bool(self._line or self._outbox)

    @property
    def unsent_messages(self) -> tuple[Message, ...]:
        """What stands in the way out already, for the laws."""
        return tuple(self._outbox)

    # -- channels --------------------------------------------------------------------------------

    def request(self, channel: ReceivingChannel, partition: ResultPartitionId, subpartition: int) -> None:
        """Ask the producer to send `subpartition` of `partition` to `channel`.

        Ask for every channel before the first is released: after the last one the connection ends.

        Raises:
            LocalUsageError: the connection has ended, or has a channel with this id.
        """
        receiver = channel.receiver
        if self.is_closed:
            raise LocalUsageError(f"{self} has ended; a new channel needs a new connection")
        if receiver in self.readers or receiver in self._cancelled:
            raise LocalUsageError(f"{self} has had a channel {receiver.hex()} already")
        message = PartitionRequest(partition, subpartition, subpartition, receiver, channel.initial_credit)
        self._outbox.append(message)
        self.replace(PartitionReader(channel, message, self._config, self.name))
        if channel.is_released:
            self._enter_line(self.readers[receiver])

    def replace(self, reader: PartitionReader) -> None:
        """From here on `reader` talks for its channel, with all that the one before had noted."""
        receiver = reader.channel.receiver
        before = self.readers.get(receiver)
        self.readers[receiver] = reader
        self._line = deque(reader if each is before else each for each in self._line)
        self.retries.note(reader)
        reader.channel.on_message = partial(self._enter_line, reader)

    # -- bytes in --------------------------------------------------------------------------------

    @property
    def pause(self) -> ReadPause | None:
        """What the driver waits for before it reads from the transport again; `None` to read."""
        return self.decoder.pause

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Hand on what `data` completes. For what the other end does, see `error` and `poll`."""
        if self.is_closed:
            return
        try:
            for message in self.decoder.receive(data):
                if isinstance(message, BufferReceived):
                    self._hand_over(message)
                else:
                    self._dispatch(message)
        except RemoteProtocolError as error:
            self._fail(error)

    def receive_end(self, cause: str = "") -> None:
        """The transport was closed by the other end, or by an accident that `cause` tells of."""
        if self.is_closed:
            return
        where = "" if self.decoder.is_between_frames else ", in the middle of a frame"
        why = f" ({cause})" if cause else ""
        what = f"{self.name}: Connection unexpectedly closed by remote task manager{where}{why}. "
        self._fail(RemoteTransportError(what + "This might indicate that the remote task manager was lost"))

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        """For the decoder: the buffer that the channel gives, if there is a channel."""
        reader = self.readers.get(response.receiver)
        return None if reader is None else reader.channel.request_buffer(response, size)

    # -- bytes out -------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Everything there is to say now; empty if nothing. Call it when the transport can take it."""
        if self.is_closed:
            return b""
        while self._line:
            reader = self._line.popleft()
            reader.is_in_line = False
            self._outbox += self._news_of(reader)
        frames = [encode(message, self._config.flink_version, self.decoder.wire) for message in self._outbox]
        self._outbox.clear()
        return b"".join(frames)

    # -- time ------------------------------------------------------------------------------------

    @property
    def has_deadline(self) -> bool:
        """Whether a partition that was not found is to be asked for again."""
        return bool(self.retries.waiting())

    def next_deadline(self, now_ms: float) -> float | None:
        """When to call `on_timeout`, or `None` if there is nothing to wait for."""
        return min((reader.deadline(now_ms) for reader in self.retries.waiting()), default=None)

    def on_timeout(self, now_ms: float) -> None:
        """Ask again for each partition whose wait is over."""
        for reader in self.retries.waiting():
            if reader.deadline(now_ms) <= now_ms:
                self._outbox.append(reader.next_request())

    # -- messages in -----------------------------------------------------------------------------

    def _dispatch(self, message: Message) -> None:
        match message:
            case ErrorResponse():
                self._on_error(message)
            case BacklogAnnouncement():
                if (reader := self.readers.get(message.receiver)) is not None:
                    reader.channel.on_backlog(message.backlog)
            case _:
                raise RemoteProtocolError(f"a producer sent {type(message).__name__}")

    def _hand_over(self, received: BufferReceived) -> None:
        response, _, buffer = received
        reader = self.readers.get(response.receiver)
        if reader is not None and not reader.channel.is_released:
            reader.has_answer = True
            reader.channel.on_buffer(received)
        elif buffer is not None:
            buffer.recycle()
        if reader is None:  # a released channel is cancelled when its turn in the line comes
            self._cancel(response.receiver)

    def _cancel(self, receiver: bytes) -> None:
        """Tell the producer, once, that nobody wants what it sends to `receiver`."""
        if receiver in self._cancelled:
            return
        self._num_strangers += 1
        if self._num_strangers > _MAX_STRANGERS:
            raise RemoteProtocolError(f"data came for {self._num_strangers} receivers nobody asked for")
        self._cancelled.add(receiver)
        self._outbox.append(CancelPartitionRequest(receiver))
        self.on_data_to_send()

    def _on_error(self, message: ErrorResponse) -> None:
        error = read_java_error(message.error)
        if message.receiver is None:
            self._fail(RemoteTransportError(f"{self.name}: Fatal error at remote task manager: {error}"))
            return
        if (reader := self.readers.get(message.receiver)) is not None:
            self.retries.on_error(reader, error)
            self._enter_line(reader)  # it may have nothing to say, but whoever sends learns of the deadline

    # -- messages out ----------------------------------------------------------------------------

    def _enter_line(self, reader: PartitionReader) -> None:
        if not reader.is_in_line:
            reader.is_in_line = True
            self._line.append(reader)
            self.on_data_to_send()

    def _news_of(self, reader: PartitionReader) -> list[Message]:
        """What a channel in line has to say: that it goes, or how much room it has."""
        channel = reader.channel
        receiver = channel.receiver
        if channel.is_released:
            del self.readers[receiver]
            self._cancelled.add(receiver)
            if self.readers:
                return [CancelPartitionRequest(receiver)]
            self._end(ConnectionState.CLOSED)
            return [CloseRequest()]
        return reader.news()

    # -- helpers ---------------------------------------------------------------------------------

    def _end(self, state: ConnectionState) -> None:
        self.state = state
        self.decoder.close()
        self.retries.clear()

    def _fail(self, error: SluiceError) -> None:
        """End the connection, and every channel of it with the same error."""
        self.error = error
        self._end(ConnectionState.FAILED)
        self._outbox.clear()
        for reader in self.readers.values():
            reader.channel.on_error(error)
