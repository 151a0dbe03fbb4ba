"""A gate of remote channels on one connection, with a producer that is nothing but frames."""

from __future__ import annotations

from dataclasses import replace

from refimpl.config import Config
from refimpl.consumer import ConnectedChannel
from refimpl.exchange import (
    BufferReceived,
    BufferResponse,
    ErrorResponse,
    FrameDecoder,
    Message,
    ProducerId,
    ResultPartitionId,
    encode,
)
from refimpl.job import Makers
from refimpl.memory import Buffer, BufferSlice, DataType, LocalBufferPool, NetworkBufferPool, heap_buffer
from refimpl.records import Event, event_to_buffer

SEGMENT_SIZE = 16


class HeapBuffers:
    """Gives a fresh buffer for every payload, and remembers them."""

    def __init__(self) -> None:
        self.given: list[Buffer] = []

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        buffer = heap_buffer(bytes(size), response.data_type)
        buffer.size = 0
        self.given.append(buffer)
        return buffer


class Bench:
    """`num_channels` channels with `exclusive` buffers each, which share `floating` ones.

    One segment of the pool belongs to nobody. `makers` make the parts.
    """

    makers = Makers()

    def __init__(self, num_channels: int = 1, exclusive: int = 2, floating: int = 4, **options: object) -> None:
        self.config = replace(Config(segment_size_bytes=SEGMENT_SIZE), **options)
        self.num_segments = num_channels * exclusive + floating + 1
        self.pool = NetworkBufferPool(self.num_segments, self.config.segment_size_bytes, self.config.flink_version)
        self.floating = LocalBufferPool(self.pool, 0, floating, "floating")
        self.connection = self.makers.consumer_connection(self.config, "to tm-1")
        self.channels = [self.make_channel(index, exclusive) for index in range(num_channels)]
        self.gate = self.makers.gate("sink-0", self.channels, self.config.flink_version)
        self.gate.open()
        self._decoder = FrameDecoder(HeapBuffers(), 2**20, self.config.flink_version)

    def make_channel(self, index: int, exclusive: int = 2) -> ConnectedChannel:
        segments = self.pool.request_unpooled(exclusive, f"channel {index}") if exclusive else []
        assert segments is not None
        return self.makers.remote_channel(
            index, receiver(index), f"map-{index}[0]", segments, self.pool, self.floating, self.config, None, None
        )

    def request(self) -> Bench:
        """Ask for every channel's partition, and let the requests go out."""
        for index, channel in enumerate(self.channels):
            self.connection.request(channel, partition(index), 0)
        self.sent()
        return self

    # -- what the producer says ------------------------------------------------------------------

    def data(self, sequence_number: int, backlog: int = 0, payload: bytes = b"data", channel: int = 0) -> None:
        self.say(BufferResponse(receiver(channel), sequence_number, backlog, DataType.DATA, payload))

    def event(self, sequence_number: int, event: Event, backlog: int = 0, channel: int = 0) -> None:
        buffer = event_to_buffer(event, self.config.flink_version)
        self.say(BufferResponse(receiver(channel), sequence_number, backlog, buffer.data_type, bytes(buffer.data)))

    def fail(self, class_name: str, message: str, receiver: bytes | None = None) -> None:
        self.say(ErrorResponse(java_error(class_name, message), receiver))

    def say(self, *messages: Message) -> None:
        self.connection.receive_data(b"".join(encode(message, self.config.flink_version) for message in messages))

    # -- what the consumer says and has ----------------------------------------------------------

    def sent(self) -> list[Message | BufferReceived]:
        return list(self._decoder.receive(self.connection.data_to_send()))

    def state(self, channel: int = 0) -> tuple[int, int, int]:
        """(exclusive, floating, required) of a channel."""
        shot = self.channels[channel].snapshot().buffers
        return shot.num_exclusive_available, shot.num_floating_available, shot.num_required

    def check(self, *polled: BufferSlice) -> None:
        """The laws: credit as the consumer counts it, and every segment in one place.

        `polled` are the buffers the task holds: with those of the channels they are the floating ones in use.
        """
        exclusive = 0
        held = [piece.parent for piece in polled]
        if (unfinished := self.connection.decoder.held_buffer) is not None:
            held.append(unfinished)
        for channel in self.channels:
            held += [each.parent if isinstance(each, BufferSlice) else each for each in channel.held_buffers]
            shot = channel.snapshot().buffers
            if not channel.is_released:
                assert shot.num_available == shot.num_unannounced + shot.num_promised
                exclusive += shot.num_exclusive_available
            exclusive += len(channel.buffers.lent)
        assert exclusive + self.floating.num_requested + self.pool.num_free == self.num_segments
        floating = {buffer.segment.id for buffer in held if buffer.recycler is self.floating}
        assert self.floating.snapshot().num_in_use == len(floating)


def receiver(channel: int) -> bytes:
    return (channel + 1).to_bytes(16, "big")


def partition(number: int) -> ResultPartitionId:
    return ResultPartitionId(bytes(16), number, ProducerId(b"producer of data"))


def java_error(class_name: str, message: str) -> bytes:
    """An exception with a message, as an ObjectOutputStream writes it."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode()

    string_type = b"\x74" + text("Ljava/lang/String;")
    kind = b"\x72" + text(class_name) + bytes(8) + b"\x02\x00\x01L" + text("detailMessage") + string_type
    return b"\xac\xed\x00\x05\x73" + kind + b"\x78\x70" + b"\x74" + text(message)
