"""What bytes are: of records in a queue, and of memory that somebody says something about."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from refimpl.memory import BufferBuilder, DataType, MemorySegment, heap_buffer
from widgets import Recording, SegmentView
from widgets.byte_parts import parts_of_record_bytes, parts_of_types


def words(parts):
    return [(part["kind"], part["start_byte"], part["num_bytes"], part["words"]) for part in parts]


def test_the_parts_of_records():
    data = b"\x07\x07" + b"\0\0\0\x0b\0" + (3000).to_bytes(8, "big") + b"ab" + b"\0\0\0\x04\x01xyz" + b"\0\0"
    assert words(parts_of_record_bytes(data, 2)) == [
        ("partial", 0, 2, "end of a record that began before"),
        ("length", 2, 4, "length 11"),
        ("tag", 6, 1, "record with a time"),
        ("time", 7, 8, "time 3000 ms"),
        ("value", 15, 2, "value of 2 B"),
        ("length", 17, 4, "length 4"),
        ("tag", 21, 1, "record"),
        ("other", 22, 3, "value of 3 B"),
        ("length", 25, 2, "length, cut"),
    ]
    assert words(parts_of_record_bytes(data, -1)) == [("partial", 0, 27, "goes on with a record that began before")]
    assert parts_of_record_bytes(b"", 0) == parts_of_record_bytes(b"", -1) == []


def test_the_parts_that_somebody_names():
    segment = MemorySegment.allocate(24)
    segment.put_int(0, -7)
    segment.put(4, (258).to_bytes(8, "big"))
    segment.put(12, b"hello")
    parts = parts_of_types({0: "int", 4: "long big", 12: "text 5"}, bytes(segment.view))
    assert [part["words"] for part in parts] == ["int -7", "long big 258", "text 'hello'"]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({0: "itn"}, "no type 'itn'; did you mean 'int'"),
        ({0: "int middle"}, "no type 'int middle'"),
        ({30: "int"}, "'int' at byte 30 does not fit: there are 32 bytes"),
        ({-1: "byte"}, "does not fit"),
        ("record", "no type 'record'; did you mean 'records'"),
        (5, "types=5 cannot work"),
        ({"a": "int"}, "types=.* cannot work"),
        ({0: 5}, "no type 5"),
    ],
)
def test_a_type_that_cannot_be_is_refused(types, message):
    with pytest.raises(LocalUsageError, match=message):
        SegmentView(MemorySegment.allocate(32), types=types)


def test_a_segment_alone_shows_what_was_written_and_where(monkeypatch):
    sent = []
    monkeypatch.setattr(SegmentView, "send", lambda self, content, buffers=None: sent.append(content))
    segment = MemorySegment.allocate(32)
    view = SegmentView(segment, types={8: "int"})
    before, still = repr(view), view.svg()
    segment.put_int(8, 305419896)
    assert "int 305419896" in repr(view)
    assert "last change: bytes 8 to 12" in repr(view)
    assert repr(view) == repr(view) != before
    assert view.svg() != still
    segment.free()
    assert "freed" in repr(view)
    view.close()


def test_it_moves_by_itself_while_somebody_looks(monkeypatch):
    import threading

    arrived, sent = threading.Event(), []

    def send(_self, content, buffers=None):
        sent.append(content)
        arrived.set()

    monkeypatch.setattr(SegmentView, "send", send)
    segment = MemorySegment.allocate(16)
    view = SegmentView(segment)
    assert view._mode == "live"
    view._on_message(view, {"type": "visible", "view": "a"}, None)
    assert arrived.wait(120)
    arrived.clear()
    segment.put_byte(3, 0x2A)
    assert arrived.wait(120)
    view.close()
    assert "2a" in sent[-1]["frame"]


def test_a_writer_and_what_it_has_not_committed():
    builder = BufferBuilder(heap_buffer(bytes(20), DataType.DATA))
    view = SegmentView(builder, types="records")
    builder.append_and_commit(b"\0\0\0\5hello")
    builder.append(b"\0\0")
    assert "11 of 20 B written, open, 2 B not committed" in repr(view)
    assert "[00 00 00 05] 68 65 6c 6c 6f [00 00] .." in repr(view)
    view.close()


def test_a_window_into_a_large_segment():
    segment = MemorySegment.allocate(4096)
    segment.put(1000, b"\xab")
    view = SegmentView(segment, start=992, num_bytes=16)
    assert "   992  00 00 00 00 00 00 00 00 ab" in repr(view)
    assert len(view.model()["places"][0]["bytes_hex"]) == 32
    view.close()


def test_a_channel_is_chosen_by_number_or_name(recording: Recording):
    name = recording.topology["channels"][1]["name"]
    for channel in (1, name):
        view = SegmentView(recording, channel=channel)
        assert view.model()["what"] == name
        view.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channel": 99}, "channel=99: the channels are 0 '"),
        ({"channel": "nobody"}, "channel='nobody': the channels are"),
        ({"num_places": 0}, "num_places=0 cannot work: from 1 to 8"),
        ({"num_bytes": 65}, "num_bytes=65 cannot work: from 1 to 64"),
    ],
)
def test_what_is_not_there_is_refused(recording: Recording, options, message):
    with pytest.raises(LocalUsageError, match=message):
        SegmentView(recording, **options)


def test_what_has_no_bytes_is_refused():
    with pytest.raises(LocalUsageError, match="cannot be shown"):
        SegmentView(3)
