"""Bytes from a connection become messages, however the connection cuts them.

Rules of this file:
- A connection may deliver half a number, or a hundred frames at once. Where it cuts means nothing.
- No length is believed before it is checked, and nothing is allocated for bytes that have not come.
- A payload is copied once: from the bytes that came into a buffer of the channel it is for. That is
  why the header of a BufferResponse is read before its payload is there. If the channel is gone or
  has no buffer, the payload is skipped, and the frames behind it are read as if nothing had happened.
- A frame is read part by part. `FRAME_TRANSITIONS` says which part follows which.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple, Protocol

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.frames import BodyReader, decode, read_response_header, response_header
from refimpl.exchange.framing import FRAME_HEADER, HEADER_BYTES, MAGIC
from refimpl.exchange.messages import BufferResponse, Message
from refimpl.exchange.wire_format import WIRE_FORMAT
from refimpl.memory.buffer import Buffer
from refimpl.memory.data_type import DataType
from refimpl.transitions import next_state

__all__ = ["FRAME_TRANSITIONS", "BufferProvider", "BufferReceived", "Found", "FrameDecoder", "FramePart", "ReadPause"]

_INT = struct.Struct(">i")
_BUFFER_RESPONSE = 0
_OF_ANY_LENGTH = {1, 3}  # an ErrorResponse holds a Java object, a TaskEventRequest an event
_LONGEST_FIXED_BODY = 128  # no message but those above and BufferResponse has a longer one
_MOST_EMPTY_PIECES = 1_024  # a payload has hardly more pieces than bytes


class BufferProvider(Protocol):
    """Finds the buffer that a payload is to be copied into."""

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        """A buffer of at least `size` bytes, or `None` to skip the payload."""


class ReadPause(Protocol):
    """A time in which nothing is to be read from the transport."""

    @property
    def is_over(self) -> bool:
        """Whether to go on: hand in what the transport has next, or no bytes at all."""

    def call_when_over(self, on_over: Callable[[], None]) -> None:
        """Call it when `is_over` may have become true."""


class BufferReceived(NamedTuple):
    """A BufferResponse whose payload of `size` bytes lies in `buffer`, if there was one for it.

    Ownership: the buffer is the caller's to recycle. `response` has no payload of its own.
    """

    response: BufferResponse
    size: int
    buffer: Buffer | None


class FramePart(Enum):
    """What the bytes that come next belong to."""

    HEADER = "header"
    BODY = "body"
    RESPONSE_HEADER = "response header"
    PIECE_SIZES = "sizes of pieces"
    PAYLOAD = "payload"
    CLOSED = "nothing"


class Found(Enum):
    """What a part does when it is complete, and the end of all reading."""

    MESSAGE = "begin a message"
    BUFFER_RESPONSE = "begin a BufferResponse"
    PIECES = "go on with the sizes of pieces"
    SIZE = "tell the payload's size"
    END = "end the frame"
    CLOSE = "close"


FRAME_TRANSITIONS: dict[FramePart, dict[Found, FramePart]] = {
    FramePart.HEADER: {
        Found.MESSAGE: FramePart.BODY,
        Found.BUFFER_RESPONSE: FramePart.RESPONSE_HEADER,
        Found.CLOSE: FramePart.CLOSED,
    },
    FramePart.BODY: {Found.END: FramePart.HEADER, Found.CLOSE: FramePart.CLOSED},
    FramePart.RESPONSE_HEADER: {
        Found.PIECES: FramePart.PIECE_SIZES,
        Found.SIZE: FramePart.PAYLOAD,
        Found.CLOSE: FramePart.CLOSED,
    },
    FramePart.PIECE_SIZES: {Found.SIZE: FramePart.PAYLOAD, Found.CLOSE: FramePart.CLOSED},
    FramePart.PAYLOAD: {Found.END: FramePart.HEADER, Found.CLOSE: FramePart.CLOSED},
    FramePart.CLOSED: {Found.CLOSE: FramePart.CLOSED},
}


class FrameDecoder:
    """Reads the frames of one direction of one connection.

    `buffers` is asked once for each payload that is not empty. An empty data buffer needs none. `wire` reads the
    header of a BufferResponse of 1.11.
    Memory: at most one unfinished frame of `max_frame_bytes`, and only as much of it as has come.

    Raises (`receive`):
        RemoteProtocolError: the bytes are no frames. The decoder reads nothing more after that.
        LocalUsageError: it is closed.

    Flink:   NettyMessageClientDecoderDelegate, BufferResponseDecoder
             (runtime.io.network.netty), 1.11.4
    Differs: a length is bounded; Flink takes any up to 2^31 - 1. Client and server frames are read
             by one class.
    """

    def __init__(
        self, buffers: BufferProvider, max_frame_bytes: int, version: FlinkVersion = FlinkVersion.V1_11
    ) -> None:
        self.wire = WIRE_FORMAT
        self._buffers = buffers
        self._max_frame_bytes = max_frame_bytes
        self._version = version
        empty = BufferResponse(bytes(16), 0, 0, DataType.DATA, b"")
        self._response_header_bytes = len(response_header(empty, 0, version))
        self._part = FramePart.HEADER
        self._gathered = bytearray()
        self._num_wanted = HEADER_BYTES
        self._frame_id = 0
        self._body_bytes = 0
        self._payload: tuple[BufferResponse, int] | None = None  # what it is, and its size
        self._buffer: Buffer | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._part.value}, {self._num_wanted} B wanted)"

    @property
    def is_between_frames(self) -> bool:
        """Whether the connection may end here without cutting a frame."""
        return self._part is FramePart.HEADER and not self._gathered

    @property
    def is_closed(self) -> bool:
        return self._part is FramePart.CLOSED

    @property
    def pause(self) -> ReadPause | None:
        """What keeps it from reading: nothing, since a payload finds its buffer or is skipped."""
        return None

    @property
    def held_buffer(self) -> Buffer | None:
        """The buffer a payload is being copied into, for the laws."""
        return self._buffer

    def receive(self, data: bytes | bytearray | memoryview) -> Iterable[Message | BufferReceived]:
        """The messages that `data` completes, one after the other.

        Take them all before the next call: a message is read only when the one before it has been
        dealt with, since that one may have freed or used up what this one needs.
        """
        if self.is_closed:
            raise LocalUsageError("the decoder has been closed")
        rest = memoryview(data).cast("B")
        try:
            while not self.is_closed:
                rest = rest[self._take_in(rest) :]
                if self._num_wanted:
                    return
                if (message := self._finish_part()) is not None:
                    yield message
        except RemoteProtocolError:
            self.close()
            raise

    def close(self) -> None:
        """Read nothing more and give back the buffer of an unfinished payload."""
        self._go_on(Found.CLOSE, 0)
        self._gathered.clear()
        if self._buffer is not None:
            self._buffer.recycle()
            self._buffer = None

    # -- bytes in --------------------------------------------------------------------------------

    def _take_in(self, data: memoryview) -> int:
        """Put what belongs to the current part where it goes; return how many bytes that is."""
        piece = data[: self._num_wanted]
        num_bytes = len(piece)
        if self._part is not FramePart.PAYLOAD:
            self._gathered += piece
        elif (buffer := self._buffer) is not None:
            start = buffer.size
            buffer.size = end = start + num_bytes
            buffer.memory[start:end] = piece
        self._num_wanted -= num_bytes
        return num_bytes

    def _finish_part(self) -> Message | BufferReceived | None:
        """The current part is complete: say what comes next, and the message if it is complete."""
        match self._part:
            case FramePart.PAYLOAD:
                return self._hand_over()
            case FramePart.HEADER:
                self._read_header()
            case FramePart.BODY:
                return self._read_body()
            case FramePart.RESPONSE_HEADER:
                self._read_size()
            case FramePart.PIECE_SIZES:
                self._read_response_header()
        return None

    def _go_on(self, found: Found, num_bytes: int) -> None:
        """Expect the part that follows, of `num_bytes` bytes."""
        self._part = next_state(FRAME_TRANSITIONS, self._part, found, self)
        self._num_wanted = num_bytes

    def _gathered_bytes(self) -> bytes:
        gathered = bytes(self._gathered)
        self._gathered.clear()
        return gathered

    # -- parts -----------------------------------------------------------------------------------

    def _read_header(self) -> None:
        length, magic, self._frame_id = FRAME_HEADER.unpack(self._gathered_bytes())
        if magic != MAGIC:
            raise RemoteProtocolError(f"a frame has magic {magic:08x}, not {MAGIC:08x}")
        if not HEADER_BYTES <= length <= self._max_frame_bytes:
            raise RemoteProtocolError(
                f"a frame of {length} B is not between {HEADER_BYTES} and {self._max_frame_bytes}; "
                f"raise max_frame_bytes if it is right"
            )
        self._body_bytes = length - HEADER_BYTES
        if self._frame_id == _BUFFER_RESPONSE:
            if self._body_bytes < self._response_header_bytes:
                raise RemoteProtocolError(f"a BufferResponse of {length} B is too short")
            self._go_on(Found.BUFFER_RESPONSE, self._response_header_bytes)
            return
        if self._frame_id not in _OF_ANY_LENGTH and self._body_bytes > _LONGEST_FIXED_BODY:
            raise RemoteProtocolError(f"message id {self._frame_id} has no frame of {length} B")
        self._go_on(Found.MESSAGE, self._body_bytes)

    def _read_body(self) -> Message:
        self._go_on(Found.END, HEADER_BYTES)
        return decode(self._frame_id, memoryview(self._gathered_bytes()), self._version)

    def _read_size(self) -> None:
        """Check the payload's size, the last number; a 2.x header goes on with the sizes of pieces."""
        (size,) = _INT.unpack_from(self._gathered, self._response_header_bytes - _INT.size)
        header_bytes = self._body_bytes - size
        longest = self._response_header_bytes
        if self._version is not FlinkVersion.V1_11:
            longest += _INT.size * max(size, _MOST_EMPTY_PIECES)
        if size < 0 or not self._response_header_bytes <= header_bytes <= longest:
            raise RemoteProtocolError(
                f"a BufferResponse with a payload of {size} B cannot have a body of {self._body_bytes} B"
            )
        if len(self._gathered) < header_bytes:
            self._go_on(Found.PIECES, header_bytes - len(self._gathered))
        else:
            self._read_response_header()

    def _read_response_header(self) -> None:
        reader = BodyReader(memoryview(self._gathered_bytes()), "BufferResponse")
        response, size = read_response_header(reader, self._version, self.wire)
        reader.end()
        self._expect_payload(response, size)

    def _expect_payload(self, response: BufferResponse, size: int) -> None:
        """Find out where the payload goes."""
        self._payload = response, size
        self._go_on(Found.SIZE, size)
        if size or not response.data_type.is_buffer:
            self._buffer = self._buffers.request_buffer(response, size)

    def _hand_over(self) -> BufferReceived:
        assert self._payload is not None, f"{self} has a payload without a header"
        (response, size), buffer = self._payload, self._buffer
        if buffer is not None:
            buffer.data_type = response.data_type
        self._payload = self._buffer = None
        self._go_on(Found.END, HEADER_BYTES)
        return BufferReceived(response, size, buffer)
