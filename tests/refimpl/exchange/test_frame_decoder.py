"""Bytes in any chunking become messages; no length is believed; payloads are copied once."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange import (
    AddCredit,
    BufferReceived,
    BufferResponse,
    CloseRequest,
    ErrorResponse,
    FrameDecoder,
    ResumeConsumption,
    encode,
)
from refimpl.memory import Buffer, DataType, LocalBufferPool, NetworkBufferPool
from tests.support.consumer_rig import HeapBuffers, java_error
from tests.support.raw_frames import frame

RECEIVER = b"0123456789abcdef"
LIMIT = 4_096
V2 = FlinkVersion.V2_2


class NoBuffers:
    """No channel, or none that has room."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        self.asked.append(size)
        return None


def data(payload: bytes, sequence_number: int = 0) -> BufferResponse:
    return BufferResponse(RECEIVER, sequence_number, 0, DataType.DATA, payload)


def decoder(version: FlinkVersion = FlinkVersion.V1_11) -> FrameDecoder:
    return FrameDecoder(HeapBuffers(), LIMIT, version)


def read_all(reading: FrameDecoder, pieces: list[bytes]) -> list:
    return [message for piece in pieces for message in reading.receive(piece)]


# -- any chunking ----------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_where_the_stream_is_cut_means_nothing(payloads: list[bytes], draw: st.DataObject) -> None:
    version = draw.draw(st.sampled_from(FlinkVersion))
    messages = [item for number, payload in enumerate(payloads) for item in (data(payload, number), CloseRequest())]
    stream = b"".join(encode(message, version) for message in messages)
    places = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    reading = decoder(version)
    got = []
    for start, end in zip([0, *places], [*places, len(stream)], strict=True):
        got += list(reading.receive(stream[start:end]))
    assert reading.is_between_frames
    contents = [bytes(item.buffer.data) if item.buffer else b"" for item in got if isinstance(item, BufferReceived)]
    assert contents == payloads
    assert [item.response.sequence_number for item in got[::2]] == list(range(len(payloads)))
    assert got[1::2] == [CloseRequest()] * len(payloads)


def test_a_message_is_read_only_when_the_one_before_was_dealt_with() -> None:
    """The first frame may free or use up what the second one needs."""
    reading = decoder()
    messages = reading.receive(encode(data(b"ab")) + encode(data(b"cd", 1)))
    next(messages)
    assert len(reading._buffers.given) == 1
    next(messages)
    assert len(reading._buffers.given) == 2


def test_memoryviews_and_bytearrays_are_bytes_too() -> None:
    stream = encode(AddCredit(3, RECEIVER))
    for kind in (bytes, bytearray, memoryview):
        assert list(decoder().receive(kind(stream))) == [AddCredit(3, RECEIVER)]


def test_both_directions_and_both_versions_are_read() -> None:
    error = ErrorResponse(java_error("java.lang.Error", "no"), RECEIVER)
    for version in FlinkVersion:
        stream = encode(ResumeConsumption(RECEIVER), version) + encode(error, version)
        assert list(decoder(version).receive(stream)) == [ResumeConsumption(RECEIVER), error]


# -- payloads --------------------------------------------------------------------------------------


def test_a_payload_is_copied_into_the_buffer_it_is_for() -> None:
    """Straight into the channel's segment, nowhere else.

    Flink: `NettyMessageClientDecoderDelegateTest`.
    """
    home = NetworkBufferPool(1, 16)
    pool = LocalBufferPool(home, 1)

    class FromPool:
        def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
            return pool.request_buffer()

    reading = FrameDecoder(FromPool(), LIMIT)
    event = BufferResponse(RECEIVER, 0, 0, DataType.ALIGNED_BARRIER, b"payload")
    stream = encode(event)
    assert list(reading.receive(stream[:-3])) == []
    assert home.segments[0].get(0, 4) == b"payl"  # what has come is there already
    [received] = reading.receive(stream[-3:])
    assert received.buffer is not None
    assert received.buffer.segment is home.segments[0]
    assert (bytes(received.buffer.data), received.buffer.data_type) == (b"payload", DataType.ALIGNED_BARRIER)


def test_a_payload_nobody_has_room_for_is_skipped() -> None:
    """The response has no buffer, and the next frame is read.

    Flink: `NettyMessageClientDecoderDelegateTest`.
    """
    buffers = NoBuffers()
    reading = FrameDecoder(buffers, LIMIT)
    stream = encode(data(b"lost")) + encode(AddCredit(1, RECEIVER))
    received = [message for byte in stream for message in reading.receive(bytes((byte,)))]
    assert received == [BufferReceived(data(b""), 4, None), AddCredit(1, RECEIVER)]
    assert buffers.asked == [4]


def test_an_empty_data_buffer_needs_no_memory_and_an_empty_event_does() -> None:
    """Flink: `PartitionRequestClientHandlerTest#testReceiveEmptyBuffer`."""
    reading = decoder()
    event = BufferResponse(RECEIVER, 1, 0, DataType.EVENT, b"")
    empty, marked = reading.receive(encode(data(b"")) + encode(event))
    assert (empty.buffer, empty.size) == (None, 0)
    assert marked.buffer is not None


def test_the_sizes_of_pieces_are_read_and_belong_to_2x_only() -> None:
    """Flink: `NettyMessageClientSideSerializationTest`."""
    response = BufferResponse(RECEIVER, 5, 0, DataType.DATA, b"abcde", partial_sizes=(2, 0, 3))
    [received] = decoder(V2).receive(encode(response, V2))
    assert received.response.partial_sizes == (2, 0, 3)
    assert bytes(received.buffer.data) == b"abcde"


def test_closing_gives_back_the_buffer_of_an_unfinished_payload() -> None:
    reading = decoder()
    list(reading.receive(encode(data(b"half"))[:-2]))
    [buffer] = reading._buffers.given
    assert reading.held_buffer is buffer
    reading.close()
    reading.close()
    assert buffer.is_recycled
    with pytest.raises(LocalUsageError, match="closed"):
        list(reading.receive(b""))


def test_closing_between_two_messages_ends_the_reading() -> None:
    reading = decoder()
    messages = reading.receive(encode(CloseRequest()) * 2)
    assert next(messages) == CloseRequest()
    reading.close()
    assert list(messages) == []


# -- what is refused -------------------------------------------------------------------------------

RESPONSE = struct.Struct(">16siiBBi")
BAD = {
    "wrong magic": (frame(b"", 5, magic=0xBADC0FFF), "magic badc0fff, not badc0ffe"),
    "unknown id": (frame(b"", 42), "42 is no message id"),
    "an id of 2.x": (frame(RECEIVER, 8), "8 is no message id"),
    "length 8": (frame(b"", 5, length=8), "a frame of 8 B"),
    "length 0": (frame(b"", 5, length=0), "a frame of 0 B"),
    "negative length": (frame(b"", 5, length=-1), "a frame of -1 B"),
    "above the limit": (frame(b"", 1, length=LIMIT + 1), "max_frame_bytes"),
    "longest length": (frame(b"", 0, length=2**31 - 1), "max_frame_bytes"),
    "a long AddCredit": (frame(b"", 6, length=2_000), "message id 6 has no frame of 2000 B"),
    "a short AddCredit": (frame(b"\0\0\0\1" + RECEIVER[:15]), "AddCredit ends at byte 19"),
    "a byte too many": (frame(b"\0\0\0\1" + RECEIVER + b"!"), "1 bytes too many"),
    "credit 0": (frame(b"\0\0\0\0" + RECEIVER), "at least 1"),
    "negative size": (frame(RESPONSE.pack(RECEIVER, 0, 0, 0, 0, -1), 0), "payload of -1 B"),
    "size beyond the frame": (frame(RESPONSE.pack(RECEIVER, 0, 0, 0, 0, 5) + b"1234", 0), "payload of 5 B"),
    "frame beyond the size": (frame(RESPONSE.pack(RECEIVER, 0, 0, 0, 0, 3) + b"1234", 0), "payload of 3 B"),
    "a short BufferResponse": (frame(RECEIVER, 0), "too short"),
    "unknown kind": (frame(RESPONSE.pack(RECEIVER, 0, 0, 9, 0, 0), 0), "9 is no kind of buffer"),
    "neither compressed nor not": (frame(RESPONSE.pack(RECEIVER, 0, 0, 0, 2, 0), 0), "compressed or not"),
    "no Java object": (frame(b"nothing of the kind", 1), "Java object stream"),
}


@pytest.mark.parametrize(("stream", "message"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("is_cut", [False, True])
def test_what_is_no_frame_is_the_other_ends_fault(stream: bytes, message: str, is_cut: bool) -> None:
    reading = decoder()
    pieces = [bytes((byte,)) for byte in stream] if is_cut else [stream]
    with pytest.raises(RemoteProtocolError, match=message):
        read_all(reading, pieces)
    with pytest.raises(LocalUsageError):
        list(reading.receive(b"more"))


RESPONSE_2 = struct.Struct(">16siiiiBBi")


@pytest.mark.parametrize(
    ("pieces", "size", "message"),
    [
        ((2, 2), 3, "2 pieces have 4 bytes, the buffer 3"),
        ((-1, 4), 3, "-1 where at least 0"),
        ((), -1, "payload of -1 B cannot have a body"),
        ((0,) * 1_025, 0, "payload of 0 B cannot have a body"),
    ],
)
def test_pieces_that_make_no_payload_are_refused(pieces: tuple[int, ...], size: int, message: str) -> None:
    body = RESPONSE_2.pack(RECEIVER, 0, len(pieces), 0, 0, 1, 0, size) + struct.pack(f">{len(pieces)}i", *pieces)
    with pytest.raises(RemoteProtocolError, match=message):
        list(FrameDecoder(HeapBuffers(), 2**20, V2).receive(frame(body + bytes(max(0, size)), 0)))


def test_a_count_of_pieces_that_are_not_there_is_refused() -> None:
    body = RESPONSE_2.pack(RECEIVER, 0, 2**31 - 1, 0, 0, 1, 0, 0)
    with pytest.raises(RemoteProtocolError, match="2147483647 pieces do not fit"):
        list(decoder(V2).receive(frame(body, 0)))


def test_a_good_frame_before_a_bad_one_is_delivered() -> None:
    messages = decoder().receive(encode(CloseRequest()) + b"this is not a frame")
    assert next(messages) == CloseRequest()
    with pytest.raises(RemoteProtocolError, match="magic"):
        next(messages)


def test_nothing_is_allocated_for_bytes_that_have_not_come() -> None:
    """A frame of a gigabyte is announced; its first ten bytes cost ten bytes."""
    reading = FrameDecoder(HeapBuffers(), 2**30)
    list(reading.receive(frame(b"0123456789", 1, length=2**30)))
    assert sys.getsizeof(reading._gathered) < 1_000
