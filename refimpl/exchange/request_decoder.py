"""What a consumer sends becomes messages, however the transport cuts it.

All of a consumer's messages are short, so a frame is read when the whole of it is there. A length is
believed only up to the longest request there can be, and memory is taken only for what has come.
"""

from __future__ import annotations

import struct

from refimpl.config import Config, FlinkVersion
from refimpl.errors import RemoteProtocolError
from refimpl.exchange.frames import decode
from refimpl.exchange.framing import HEADER_BYTES, MAGIC
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.java_writer import ILLEGAL_STATE
from refimpl.exchange.messages import Message

__all__ = ["RequestDecoder"]

_INT = struct.Struct(">i")
_MAGIC_AND_ID = struct.Struct(">IB")
_LONGEST_WITHOUT_EVENT = 128  # a PartitionRequest of 2.x has 97 bytes
_FROM_CONSUMER = {
    FlinkVersion.V1_11: frozenset(range(2, 8)),
    FlinkVersion.V2_2: frozenset({*range(2, 9), 10, 11}),
}


class RequestDecoder:
    """Reads the frames of a consumer; call `feed`, then `next_message` until it says `None`.

    `failure` is what Flink would have thrown where Flink has words of its own for it.
    `has_read_frame` says whether the other end has shown yet that it speaks our language.
    Memory: what was fed and not yet read, so one call's bytes and at most one unfinished frame. The
    longest frame is a TaskEventRequest whose event fills a segment.

    Flink:   NettyMessageDecoder (runtime.io.network.netty.NettyMessage), 1.11.4
    Differs: a length is bounded; Flink takes any up to 2^31 - 1.
    """

    def __init__(self, config: Config) -> None:
        self.failure: JavaError | None = None
        self.has_read_frame = False
        self._version = config.flink_version
        self._ids = _FROM_CONSUMER[config.flink_version]
        self.max_frame_bytes = config.segment_size_bytes + _LONGEST_WITHOUT_EVENT
        self.gathered = bytearray()
        self.position = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take in what the transport gave: a piece of the stream, cut anywhere."""
        del self.gathered[: self.position]
        self.position = 0
        self.gathered += data

    def next_frame(self) -> bytes | None:
        """The next frame, whole, from its length to its end; `None` until all of it is there.

        A length is believed from HEADER_BYTES up to `max_frame_bytes`.

        Raises:
            RemoteProtocolError: there is another length.
        """
        num_here = len(self.gathered) - self.position
        if num_here < _INT.size:
            return None
        (length,) = _INT.unpack_from(self.gathered, self.position)
        if not HEADER_BYTES <= length <= self.max_frame_bytes:
            raise RemoteProtocolError(f"a frame of {length} B is not between {HEADER_BYTES} and {self.max_frame_bytes}")
        if num_here < length:
            return None
        start = self.position
        self.position += length
        return bytes(self.gathered[start : self.position])

    def next_message(self) -> Message | None:
        """The next message, or `None` until more bytes come.

        Raises:
            RemoteProtocolError: no consumer sends this.
        """
        frame = self.next_frame()
        if frame is None:
            return None
        magic, frame_id = _MAGIC_AND_ID.unpack_from(frame, _INT.size)
        if magic != MAGIC:
            self.failure = JavaError(ILLEGAL_STATE, "Network stream corrupted: received incorrect magic number.")
            raise RemoteProtocolError(f"a frame has magic {magic:08x}, not {MAGIC:08x}")
        if frame_id not in self._ids:
            self.failure = JavaError(
                "java.net.ProtocolException",
                f"Received unknown message from producer: id {frame_id}, {len(frame)} bytes",
            )
            raise RemoteProtocolError(f"{frame_id} is no message id of a consumer")
        message = decode(frame_id, memoryview(frame)[HEADER_BYTES:], self._version)
        self.has_read_frame = True
        return message

    def close(self) -> None:
        """Forget what has not been read."""
        self.gathered = bytearray()
        self.position = 0
