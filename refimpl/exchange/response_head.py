"""The commonest frame in one step: all of a `BufferResponse` that stands before its payload.

What `frames` writes and reads field by field has one width as long as a payload is one piece. So it
is packed, or unpacked and checked, with one call. What is any other frame, or wrong, is left to
`frames`, which finds the words for it; both give the same bytes.
"""

from __future__ import annotations

import struct

from refimpl.config import FlinkVersion
from refimpl.exchange.frames import response_header
from refimpl.exchange.framing import HEADER_BYTES, MAGIC
from refimpl.exchange.messages import BufferResponse
from refimpl.memory.data_type import DataType

__all__ = ["BufferFrame", "ResponseHead"]

_HEADER = struct.Struct(">iIB")
_ID = 0
_MAGIC_AND_ID = _HEADER.pack(0, MAGIC, _ID)[4:]

BufferFrame = tuple[bytes, int, int, int, int, int]
"""Data in one piece: receiver, subpartition, sequence number, backlog, and where the payload starts and ends."""


class ResponseHead:
    """Writes and reads the bytes before a payload, `num_bytes` of them, header of the frame included.

    Flink:   NettyMessage.BufferResponse (runtime.io.network.netty), 1.11.4 and 2.2.1
    """

    def __init__(self, version: FlinkVersion) -> None:
        self._version = version
        self._has_subpartition = version is not FlinkVersion.V1_11
        self._layout = struct.Struct(">i5s16siiii2si" if self._has_subpartition else ">i5s16sii2si")
        code = DataType.DATA.code(version)
        assert code is not None, f"{version} has no data"
        self._plain_data = bytes([code, False])  # what it is, and whether it is compressed
        self.num_bytes = self._layout.size

    def pack(
        self, receiver: bytes, subpartition: int, sequence_number: int, backlog: int, data_type: DataType, size: int
    ) -> bytes:
        """The frame of a payload of `size` bytes, without the payload."""
        if data_type is not DataType.DATA:
            message = BufferResponse(receiver, sequence_number, backlog, data_type, b"", subpartition=subpartition)
            body = response_header(message, size, self._version)
            return _HEADER.pack(HEADER_BYTES + len(body) + size, MAGIC, _ID) + body
        if self._has_subpartition:
            return self._layout.pack(
                self.num_bytes + size,
                _MAGIC_AND_ID,
                receiver,
                subpartition,
                0,
                sequence_number,
                backlog,
                self._plain_data,
                size,
            )
        return self._layout.pack(
            self.num_bytes + size, _MAGIC_AND_ID, receiver, sequence_number, backlog, self._plain_data, size
        )

    def unpack_run(self, data: memoryview, max_frame_bytes: int, start: int = 0) -> list[BufferFrame]:
        """The frames from `start` on that carry data in one piece and are right; the last one's payload may be cut."""
        run: list[BufferFrame] = []
        num_bytes, num_all = self.num_bytes, len(data)
        unpack_from, plain_data = self._layout.unpack_from, self._plain_data
        subpartition = num_pieces = 0
        while start + num_bytes <= num_all:
            if self._has_subpartition:
                (length, magic_and_id, receiver, subpartition, num_pieces, sequence_number, backlog, kind, size) = (
                    unpack_from(data, start)
                )
            else:
                length, magic_and_id, receiver, sequence_number, backlog, kind, size = unpack_from(data, start)
            if magic_and_id != _MAGIC_AND_ID or kind != plain_data or num_pieces:
                break
            if size <= 0 or length != num_bytes + size or length > max_frame_bytes:
                break
            run.append((receiver, subpartition, sequence_number, backlog, start + num_bytes, start + length))
            start += length
        return run
