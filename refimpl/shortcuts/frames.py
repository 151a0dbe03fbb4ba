"""Data frames in one step: all that stands before a payload with one call, and all frames that are here at once.

What `frames` writes and reads field by field has one width as long as a payload is one piece. So it
is packed, or unpacked and checked, with one call. What is any other frame, or wrong, is left to
`frames` and `FrameDecoder`, which find the words for it; both give the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from refimpl.config import FlinkVersion
from refimpl.exchange.before_credit.staging import StagingDecoder
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.frame_decoder import BufferReceived, Found, FrameDecoder, FramePart
from refimpl.exchange.frames import response_header
from refimpl.exchange.framing import FRAME_HEADER, HEADER_BYTES, MAGIC
from refimpl.exchange.messages import BufferResponse, Message
from refimpl.exchange.partition_reader import PartitionReader
from refimpl.exchange.wire_format import WIRE_FORMAT
from refimpl.memory.data_type import DataType
from refimpl.shortcuts.channels import FastConnectedChannel

__all__ = ["BufferFrame", "FastFrameDecoder", "FastStagingDecoder", "ResponseHead"]

_ID = 0
_MAGIC_AND_ID = FRAME_HEADER.pack(0, MAGIC, _ID)[4:]

BufferFrame = tuple[bytes, int, int, int, int, int]
"""Data in one piece: receiver, subpartition, sequence number, backlog, and where the payload starts and ends."""


class ResponseHead:
    """Writes and reads the bytes before a payload, `num_bytes` of them, header of the frame included.

    Stands for `to_frame` of a `response_header`.

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
        self,
        receiver: bytes,
        subpartition: int,
        sequence_number: int,
        backlog: int,
        data_type: DataType,
        size: int,
        is_compressed: bool = False,
    ) -> bytes:
        """The frame of a payload of `size` bytes, without the payload."""
        if data_type is not DataType.DATA or is_compressed:
            message = BufferResponse(receiver, sequence_number, backlog, data_type, b"", is_compressed, subpartition)
            body = response_header(message, size, self._version)
            return FRAME_HEADER.pack(HEADER_BYTES + len(body) + size, MAGIC, _ID) + body
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


def _hand_on(run: Sequence[BufferFrame], data: memoryview, readers: Mapping[bytes, PartitionReader]) -> int:
    """Give each frame to its channel; how many were taken. Of several backlogs of one channel only the last counts."""
    num_taken = 0
    channels: dict[bytes, FastConnectedChannel] = {}
    backlogs: dict[bytes, int] = {}
    for receiver, _, number, backlog, start, end in run:
        channel = channels.get(receiver)
        if channel is None:
            reader = readers.get(receiver)
            found = None if reader is None else reader.channel
            if not isinstance(found, FastConnectedChannel) or not found.takes_runs:
                break
            channel = channels[receiver] = found
        if not channel.take_in(number, data[start:end]):
            break
        backlogs[receiver] = backlog
        num_taken += 1
    for receiver, backlog in backlogs.items():
        readers[receiver].has_answer = True
        channels[receiver].on_taken_in(backlog)
    return num_taken


class FastFrameDecoder(FrameDecoder):
    """Hands whole data frames to their channels, in order, up to the first that is not simply taken.

    Stands for `FrameDecoder.receive` part by part.
    """

    def __init__(self, buffers: ConsumerConnection, max_frame_bytes: int, version: FlinkVersion) -> None:
        super().__init__(buffers, max_frame_bytes, version)
        self._connection = buffers
        self._unpack_run = ResponseHead(version).unpack_run
        self._num_single = 0  # bytes that were tried and are to be read part by part

    def receive(self, data: bytes | bytearray | memoryview) -> Iterable[Message | BufferReceived]:
        if self._part is not FramePart.HEADER or self._gathered:
            return super().receive(data)
        rest = memoryview(data).cast("B")
        num_bytes = self._take_run(rest)
        return () if num_bytes == len(rest) else FrameDecoder.receive(self, rest[num_bytes:])

    def _take_in(self, data: memoryview) -> int:
        if self._num_single <= 0 and self._part is FramePart.HEADER and not self._gathered:
            num_bytes = self._take_run(data)
            return num_bytes if num_bytes == len(data) else num_bytes + super()._take_in(data[num_bytes:])
        num_single = super()._take_in(data)
        self._num_single -= num_single
        return num_single

    def _take_run(self, data: memoryview) -> int:
        """Hand on what there is; return how many bytes of `data` that is, the head of a frame that is cut included."""
        if self.wire is not WIRE_FORMAT:  # somebody else reads the headers
            return 0
        run = self._unpack_run(data, self._max_frame_bytes)
        cut = run.pop() if run and run[-1][-1] > len(data) else None
        num_taken = _hand_on(run, data, self._connection.readers) if run else 0
        start = run[num_taken - 1][-1] if num_taken else 0
        if num_taken < len(run):
            self._num_single = run[-1][-1] - start
        elif cut is not None:
            receiver, subpartition, number, backlog, start, end = cut
            self._go_on(Found.BUFFER_RESPONSE, 0)
            response = BufferResponse(receiver, number, backlog, DataType.DATA, b"", subpartition=subpartition)
            self._expect_payload(response, end - start)
        return start


class FastStagingDecoder(FastFrameDecoder, StagingDecoder):
    """Does the same in the way before credits, as far as there are buffers."""
