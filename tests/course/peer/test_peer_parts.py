"""The parts of `sluice peer` that can be wrong without a conversation: what is sent, and how frames are found."""

from __future__ import annotations

import io
import json
import zlib

import pytest

from course.peer.records import BareElements, SummedType, TargetSelector, Values, index_of, rows_at, rows_written
from course.peer.tap import FrameScanner, Tap
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import AddCredit, BufferResponse, CloseRequest, PartitionRequest, ProducerId, ResultPartitionId
from refimpl.exchange.frames import encode
from refimpl.memory import DataType
from refimpl.records import LONG, STRING, StreamElementSerializer, StreamRecord, Watermark

KINDS = [("raw", False), ("stream", True), ("stream", False)]


def records(elements, is_timed, indexes, first=0):
    """The bytes of records as the engine serialises them, one by one."""
    serializer = {"raw": BareElements, "stream": StreamElementSerializer}[elements](LONG)
    payloads = [serializer.serialize(StreamRecord(first + i, i if is_timed else None)) for i in indexes]
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


# -- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("elements", "is_timed"), KINDS)
@pytest.mark.parametrize("count", [1, 2, 100])
def test_rows_are_the_bytes_of_records_written_one_by_one(elements, is_timed, count):
    rows = rows_written(elements, is_timed)
    wire, values = rows.encode(2_000_000_007, 7, count)
    assert bytes(wire) == records(elements, is_timed, range(7, 7 + count), 2_000_000_000)
    assert values == b"".join((2_000_000_007 + n).to_bytes(8, "big") for n in range(count))


@pytest.mark.parametrize(("elements", "is_timed"), KINDS)
def test_rows_are_read_up_to_what_is_cut_off(elements, is_timed):
    data = records(elements, is_timed, range(5))
    width = len(data) // 5
    for end in range(5, len(data) + 1):
        source = memoryview(data)[:end]
        rows = rows_at(elements, source)
        assert rows.width == width
        assert rows.decode(source).tolist() == list(range(end // width))


@pytest.mark.parametrize("is_timed", [True, False])
def test_rows_are_read_up_to_what_is_no_record(is_timed):
    watermark = StreamElementSerializer(LONG).serialize(Watermark(1))
    other = len(watermark).to_bytes(4, "big") + watermark
    data = records("stream", is_timed, range(3)) + other + records("stream", is_timed, range(3, 9))
    rows = rows_at("stream", memoryview(data))
    assert rows.decode(memoryview(data)).tolist() == [0, 1, 2]
    assert rows_at("stream", memoryview(other)) is None
    assert rows_at("stream", memoryview(data)[:4]) is None
    mixed = records("stream", is_timed, range(3)) + records("stream", not is_timed, range(3, 6))
    assert rows.decode(memoryview(mixed)).tolist() == [0, 1, 2]


def test_values_are_those_of_flinks_end():
    strings = Values(partition=1, num_subpartitions=3, string_pad=64)
    assert strings.value(2, 3) == "p1-s2-r3-" + "defghijklmnopqrstuvwxyzabcdefghijklmnopqrstu"
    assert Values(1, 3, 0).value(2, 3) == "p1-s2-r3-"
    assert Values(1, 3).value(2, 3) == 5_000_000_003
    assert [index_of(value) for value in (strings.value(2, 3), 5_000_000_003)] == [3, 3]
    for value in ("", "p1-s2", "p1-s2-rx-", None):
        with pytest.raises(RemoteProtocolError, match="no record of a peer"):
            index_of(value)


@pytest.mark.parametrize(("value_type", "value"), [(LONG, 5), (STRING, "äb" * 90), (STRING, "")], ids=repr)
def test_a_sum_is_of_the_values_bytes_alone_and_of_one_channel(value_type, value):
    plain = bytearray()
    value_type.serialize(value, plain)
    selector = TargetSelector()
    summed = SummedType(value_type, selector, 2)
    elements = StreamElementSerializer(summed)
    selector.target = 1
    data = elements.serialize(StreamRecord(value, 7))
    assert summed.sums == [0, zlib.crc32(plain)]
    selector.target = 0
    assert elements.deserialize(data) == StreamRecord(value, 7)
    assert summed.sums == 2 * [zlib.crc32(plain)]


# -- frames --------------------------------------------------------------------------------------------------------

RECEIVER = bytes(range(16))
PARTITION = ResultPartitionId(b"d" * 16, 3, ProducerId(b"p" * 16))
MESSAGES = [
    PartitionRequest(PARTITION, 1, 1, RECEIVER, 2),
    BufferResponse(RECEIVER, 0, 4, DataType.DATA, bytes(300)),
    CloseRequest(),
    AddCredit(3, RECEIVER),
    BufferResponse(RECEIVER, 1, 0, DataType.EVENT, bytes(4)),
]
FRAMES = [encode(message) for message in MESSAGES]


@pytest.mark.parametrize("num_bytes", [1, 2, 3, 5, 64, 160, 161, 10_000])
def test_frames_are_found_however_they_are_cut(num_bytes):
    found = []
    scanner = FrameScanner(lambda head, length: found.append((head, length)))
    data = b"".join(FRAMES)
    for start in range(0, len(data), num_bytes):
        scanner.feed(memoryview(data)[start : start + num_bytes])
    assert found == [(frame[:160], len(frame)) for frame in FRAMES]


def test_every_place_to_cut_once_is_the_same():
    data = b"".join(FRAMES)
    for cut in range(len(data) + 1):
        lengths = []
        scanner = FrameScanner(lambda _head, length, found=lengths: found.append(length))
        scanner.feed(data[:cut])
        scanner.feed(data[cut:])
        assert lengths == list(map(len, FRAMES)), cut


def test_a_tap_keeps_account_of_each_receiver():
    out = io.StringIO()
    out.close = lambda: None
    tap = Tap(out)
    requests, responses = tap.scanner(1, "recv"), tap.scanner(1, "send")
    for frame, scanner in zip(FRAMES, (requests, responses, requests, requests, responses), strict=True):
        scanner.feed(frame)
    assert tap.summary() == {
        "connections": 0,
        "counts": {"recv:AddCredit": 1, "recv:CloseRequest": 1, "recv:PartitionRequest": 1, "send:BufferResponse": 2},
        "receivers": {
            RECEIVER.hex(): {
                "credit_granted": 5,
                "data_buffers": 1,
                "lowest_balance": 0,
                "max_backlog": 4,
                "event_buffers": 1,
                "payload_bytes": 304,
            }
        },
    }
    tap.close()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["head_hex"] for line in lines] == [frame[:160].hex() for frame in FRAMES]
    assert [line["len"] for line in lines] == list(map(len, FRAMES))


def test_a_producer_that_breaks_the_rules_has_a_balance_below_0():
    tap = Tap()
    scanner = tap.scanner(1, "recv")
    for sequence in range(3):
        scanner.feed(encode(BufferResponse(RECEIVER, sequence, 0, DataType.DATA, b"x")))
    tap.scanner(1, "send").feed(encode(AddCredit(9, RECEIVER)))
    assert tap.summary()["receivers"][RECEIVER.hex()]["lowest_balance"] == -3


def test_bytes_that_are_no_frame_of_flinks_are_counted_all_the_same():
    tap = Tap()
    for frame in (b"\0\0\0\x04", b"\0\0\0\x09badc\x63", b"\0\0\0\x0abadc\x06x"):
        tap.scanner(1, "recv").feed(frame)
    assert tap.summary()["counts"] == {"recv:AddCredit": 1, "recv:unknown--1": 1, "recv:unknown-99": 1}
    assert tap.summary()["receivers"] == {}
