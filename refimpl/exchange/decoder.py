"""Bytes from a connection become messages, however the connection cuts them.

Rules of this file:
- A connection may deliver half a number, or a hundred frames at once. Where it cuts means nothing.
- No length is believed before it is checked, and nothing is allocated for bytes that have not come.
- A payload is copied once: from the bytes that came into a buffer of the channel it is for. That is
  why the header of a BufferResponse is read before its payload is there. If the channel is gone or
  has no buffer, the payload is skipped, and the frames behind it are read as if nothing had happened.
- Data frames that are all here go to their channels in one step. What is left there, such as an event or
  a frame that was cut, is read part by part, and so is whatever is wrong: here are the words for it.
- Without credits a payload may have to wait for its buffer (see `connection_flow`). Then it is staged,
  with everything behind it, and nothing is read before it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.connection_flow import BufferWait
from refimpl.exchange.frames import BodyReader, decode, read_response_header, response_header
from refimpl.exchange.framing import HEADER_BYTES, MAGIC
from refimpl.exchange.messages import BufferResponse, Message
from refimpl.exchange.response_head import BufferFrame, ResponseHead
from refimpl.memory.buffer import Buffer
from refimpl.memory.data_type import DataType

__all__ = ["BufferProvider", "BufferReceived", "FrameDecoder"]

_HEADER = struct.Struct(">iIB")
_INT = struct.Struct(">i")
_BUFFER_RESPONSE = 0
_OF_ANY_LENGTH = {1, 3}  # an ErrorResponse holds a Java object, a TaskEventRequest an event
_LONGEST_FIXED_BODY = 128  # no message but those above and BufferResponse has a longer one
_MOST_EMPTY_PIECES = 1_024  # a payload has hardly more pieces than bytes


class BufferProvider(Protocol):
    """Finds the buffer that a payload is to be copied into."""

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | BufferWait | None:
        """A buffer of at least `size` bytes, `None` to skip the payload, or what it has to wait for."""

    def receive_run(self, run: Sequence[BufferFrame], data: memoryview) -> int:
        """Copy payloads from `data` to where they go, in order; how many, which may be none."""


class BufferReceived(NamedTuple):
    """A BufferResponse whose payload of `size` bytes lies in `buffer`, if there was one for it.

    Ownership: the buffer is the caller's to recycle. `response` has no payload of its own.
    """

    response: BufferResponse
    size: int
    buffer: Buffer | None


class _Part(Enum):
    """What the bytes that come next belong to."""

    HEADER = "header"
    RESPONSE_HEADER = "response header"
    STAGED = "payload without a buffer"
    PAYLOAD = "payload"
    BODY = "body"


class FrameDecoder:
    """Reads the frames of one direction of one connection.

    `buffers` takes whole data frames, as many as it can. It is asked once for each other payload that is
    not empty, and again each time its wait is over. An empty data buffer needs none.
    Memory: at most one unfinished frame of `max_frame_bytes`, and only as much of it as has come;
    while a payload waits, what came along with it, and `max_frame_bytes` handed in all the same.

    Raises (`receive`):
        RemoteProtocolError: the bytes are no frames. The decoder reads nothing more after that.
        LocalUsageError: it is closed, or a payload waits and too much was handed in meanwhile.

    Flink:   NettyMessageClientDecoderDelegate, BufferResponseDecoder
             (runtime.io.network.netty), 1.11.4; PartitionRequestClientHandler.stagedMessages, to 1.9
    Differs: a length is bounded; Flink takes any up to 2^31 - 1. Client and server frames are read
             by one class.
    """

    def __init__(
        self, buffers: BufferProvider, max_frame_bytes: int, version: FlinkVersion = FlinkVersion.V1_11
    ) -> None:
        self._buffers = buffers
        self._max_frame_bytes = max_frame_bytes
        self._version = version
        self._head = ResponseHead(version)
        empty = BufferResponse(bytes(16), 0, 0, DataType.DATA, b"")
        self._response_header_bytes = len(response_header(empty, 0, version))
        self._part = _Part.HEADER
        self._gathered = bytearray()
        self._num_wanted = HEADER_BYTES
        self._frame_id = 0
        self._body_bytes = 0
        self._payload_bytes = 0
        self._response: BufferResponse | None = None
        self._buffer: Buffer | None = None
        self._wait: BufferWait | None = None
        self._staged = b""
        self._is_closed = False

    def __repr__(self) -> str:
        return f"FrameDecoder({self._part.value}, {self._num_wanted} B wanted)"

    @property
    def is_between_frames(self) -> bool:
        """Whether the connection may end here without cutting a frame."""
        return self._part is _Part.HEADER and not self._gathered

    @property
    def is_waiting(self) -> bool:
        """Whether a payload waits for a buffer: hand in nothing more until its wait is over."""
        return self._wait is not None

    @property
    def is_wait_over(self) -> bool:
        """Whether a call of `receive`, with no bytes, would read on what is staged."""
        return self._wait is not None and self._wait.is_over

    def call_when_wait_over(self, on_over: Callable[[], None]) -> None:
        """Call it once, when `is_wait_over` may have become true; at once if nothing waits."""
        if self._wait is None:
            on_over()
        else:
            self._wait.call_when_over(on_over)

    @property
    def held_buffer(self) -> Buffer | None:
        """The buffer a payload is being copied into, for the laws."""
        return self._buffer

    def receive(self, data: bytes | bytearray | memoryview) -> Iterator[Message | BufferReceived]:
        """The messages that `data` completes, one after the other.

        Take them all before the next call: a message is read only when the one before it has been
        dealt with, since that one may have freed or used up what this one needs.
        """
        if self._is_closed:
            raise LocalUsageError("the decoder has been closed")
        rest = self._unstage(memoryview(data).cast("B"))
        start = single_end = 0  # where in it the next bytes are, and up to where frames are read one by one
        try:
            if self._wait is not None:
                self._request_buffer()
            while not self._is_closed:
                if start >= single_end and self.is_between_frames:
                    start, single_end = self._receive_run(rest, start)
                if self._wait is not None:
                    self._staged = bytes(rest[start:])
                    return
                start += self._take_in(rest[start:])
                if self._num_wanted:
                    return
                if (message := self._finish_part()) is not None:
                    yield message
        except RemoteProtocolError:
            self.close()
            raise

    def close(self) -> None:
        """Read nothing more and give back the buffer of an unfinished payload."""
        self._is_closed = True
        self._gathered.clear()
        self._staged = b""
        if self._wait is not None:
            self._wait.give_up()
            self._wait = None
        if self._buffer is not None:
            self._buffer.recycle()
            self._buffer = None

    # -- bytes in --------------------------------------------------------------------------------

    def _unstage(self, data: memoryview) -> memoryview:
        """What was staged, and `data` behind it."""
        if self._wait is None:
            return data
        if data and len(self._staged) + len(data) > self._max_frame_bytes:
            raise LocalUsageError(
                f"{len(data)} B were handed in while {len(self._staged)} B wait for a buffer; "
                f"read nothing from the transport while the connection is not reading"
            )
        staged, self._staged = self._staged, b""
        return memoryview(staged + data)

    def _take_in(self, data: memoryview) -> int:
        """Put what belongs to the current part where it goes; return how many bytes that is."""
        piece = data[: self._num_wanted]
        num_bytes = len(piece)
        if self._part is not _Part.PAYLOAD:
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
            case _Part.PAYLOAD:
                return self._hand_over()
            case _Part.HEADER:
                self._read_header()
            case _Part.BODY:
                return self._read_body()
            case _Part.RESPONSE_HEADER:
                self._read_response_header()
        return None

    def _expect(self, part: _Part, num_bytes: int) -> None:
        self._part = part
        self._num_wanted = num_bytes

    def _gathered_bytes(self) -> bytes:
        gathered = bytes(self._gathered)
        self._gathered.clear()
        return gathered

    # -- parts -----------------------------------------------------------------------------------

    def _receive_run(self, data: memoryview, start: int) -> tuple[int, int]:
        """Read the data frames that are here in one step, and the head of one whose payload is cut: where the rest
        begins, and how far that was tried.
        """
        run = self._head.unpack_run(data, self._max_frame_bytes, start)
        cut = run.pop() if run and run[-1][-1] > len(data) else None
        num_taken = self._buffers.receive_run(run, data) if run else 0
        if num_taken:
            start = run[num_taken - 1][-1]
        if cut is None or num_taken < len(run):
            return start, run[-1][-1] if run else start
        receiver, subpartition, number, backlog, start, end = cut
        self._response = BufferResponse(receiver, number, backlog, DataType.DATA, b"", subpartition=subpartition)
        self._payload_bytes = end - start
        self._request_buffer()
        return start, end

    def _read_header(self) -> None:
        length, magic, self._frame_id = _HEADER.unpack(self._gathered_bytes())
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
            self._expect(_Part.RESPONSE_HEADER, self._response_header_bytes)
            return
        if self._frame_id not in _OF_ANY_LENGTH and self._body_bytes > _LONGEST_FIXED_BODY:
            raise RemoteProtocolError(f"message id {self._frame_id} has no frame of {length} B")
        self._expect(_Part.BODY, self._body_bytes)

    def _read_body(self) -> Message:
        self._expect(_Part.HEADER, HEADER_BYTES)
        return decode(self._frame_id, memoryview(self._gathered_bytes()), self._version)

    def _read_response_header(self) -> None:
        """Its last number is the payload's size; a 2.x header goes on with the sizes of pieces."""
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
            self._num_wanted = header_bytes - len(self._gathered)
            return
        reader = BodyReader(memoryview(self._gathered_bytes()), "BufferResponse")
        response, self._payload_bytes = read_response_header(reader, self._version)
        reader.end()
        self._response = response
        if size or not response.data_type.is_buffer:
            self._request_buffer()
        else:
            self._expect(_Part.PAYLOAD, size)

    def _request_buffer(self) -> None:
        """Find out where the payload goes, or that it has to wait."""
        response, size = self._response, self._payload_bytes
        assert response is not None, f"{self} has a payload without a header"
        self._expect_payload(self._buffers.request_buffer(response, size))

    def _expect_payload(self, answer: Buffer | BufferWait | None) -> None:
        if isinstance(answer, BufferWait):
            self._wait = answer
            self._expect(_Part.STAGED, 0)
        else:
            self._wait = None
            self._buffer = answer
            self._expect(_Part.PAYLOAD, self._payload_bytes)

    def _hand_over(self) -> BufferReceived:
        response, buffer = self._response, self._buffer
        assert response is not None, f"{self} has a payload without a header"
        if buffer is not None:
            buffer.data_type = response.data_type
        self._response = self._buffer = None
        self._expect(_Part.HEADER, HEADER_BYTES)
        return BufferReceived(response, self._payload_bytes, buffer)
