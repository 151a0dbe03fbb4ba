"""Events to bytes: every kind in both versions, what travels behind them, and bytes that are no event."""

from __future__ import annotations

import struct

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.memory import DataType
from refimpl.records import (
    ALL_WORKERS_DONE,
    TERMINATION,
    Alignment,
    CancelCheckpointMarker,
    CheckpointBarrier,
    CheckpointType,
    EndOfChannelState,
    EndOfData,
    EndOfInputChannelState,
    EndOfPartition,
    EndOfSegment,
    EndOfSuperstep,
    Event,
    EventAnnouncement,
    GenericEvent,
    RecoveryMetadata,
    SavepointFormat,
    StopMode,
    SubtaskConnectionDescriptor,
    WatermarkEvent,
    event_from_bytes,
    event_to_buffer,
    event_to_bytes,
)

V1, V2 = FlinkVersion.V1_11, FlinkVersion.V2_2
SAVEPOINT = CheckpointBarrier(
    7, 8, CheckpointType.SAVEPOINT, b"/there", Alignment.FORCED_ALIGNED, SavepointFormat.NATIVE
)

IN_BOTH: list[Event] = [
    EndOfPartition(), EndOfSuperstep(), EndOfChannelState(), CancelCheckpointMarker(-9), TERMINATION,
    ALL_WORKERS_DONE, GenericEvent("org.example.Event"), CheckpointBarrier(1, 2),
    CheckpointBarrier(2**40, -1, location=b""), CheckpointBarrier(1, 2, location=b"/here"),
    CheckpointBarrier(1, 2, alignment=Alignment.UNALIGNED), CheckpointBarrier(1, 2, alignment=Alignment.AT_LEAST_ONCE),
]  # fmt: skip
ONLY_IN_1_11: list[Event] = [
    CheckpointBarrier(1, 2, CheckpointType.SAVEPOINT), CheckpointBarrier(1, 2, CheckpointType.SAVEPOINT_SUSPEND),
    CheckpointBarrier(1, 2, CheckpointType.SAVEPOINT_TERMINATE),
]  # fmt: skip
ONLY_IN_2: list[Event] = [
    EndOfData(StopMode.DRAIN), EndOfData(StopMode.NO_DRAIN), EndOfSegment(), EndOfInputChannelState(),
    RecoveryMetadata(5), SubtaskConnectionDescriptor(3, 4), WatermarkEvent("time", is_aligned=True, value=2**40),
    WatermarkEvent("flag", is_aligned=False, value=True), WatermarkEvent("flag", is_aligned=False, value=False),
    EventAnnouncement(6, CheckpointBarrier(1, 2)), SAVEPOINT,
    CheckpointBarrier(1, 2, CheckpointType.FULL_CHECKPOINT, alignment_timeout_ms=30),
]  # fmt: skip
CASES = [(event, V1) for event in IN_BOTH + ONLY_IN_1_11] + [(event, V2) for event in IN_BOTH + ONLY_IN_2]


@pytest.mark.parametrize(("event", "version"), CASES)
def test_an_event_comes_back_whatever_follows_it(event: Event, version: FlinkVersion) -> None:
    """Flink: `EventSerializerTest#testSerializeDeserializeEvent` (P104)."""
    data = event_to_bytes(event, version)
    for trailing in (b"", b"\0", bytes(99)):
        read = event_from_bytes(data + trailing, version)
        assert (read, type(read)) == (event, type(event))
        if isinstance(event, WatermarkEvent):
            assert type(read.value) is type(event.value)


@pytest.mark.parametrize(("event", "version"), CASES)
def test_an_event_in_a_buffer_comes_back_and_has_no_pool(event: Event, version: FlinkVersion) -> None:
    buffer = event_to_buffer(event, version)
    assert event_from_bytes(buffer.data, version) == event
    assert buffer.data_type.is_event
    assert buffer.size == len(buffer.memory)
    segment = buffer.segment
    buffer.recycle()
    assert segment.is_freed


@pytest.mark.parametrize(("event", "version"), CASES)
def test_an_event_cut_anywhere_is_incomplete(event: Event, version: FlinkVersion) -> None:
    data = event_to_bytes(event, version)
    for length in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            event_from_bytes(data[:length], version)


@pytest.mark.parametrize(
    ("event", "version", "data"),
    [
        (EndOfPartition(), V1, "00000000"),
        (EndOfSuperstep(), V1, "00000002"),
        (GenericEvent("ab"), V1, "00000003 0002 6162"),
        (CancelCheckpointMarker(1), V1, "00000004 0000000000000001"),
        (EndOfChannelState(), V1, "00000005"),
        (EventAnnouncement(6, EndOfPartition()), V2, "00000006 00000006 00000000"),
        (SubtaskConnectionDescriptor(3, 4), V2, "00000007 00000003 00000004"),
        (EndOfData(StopMode.NO_DRAIN), V2, "00000008 01"),
        (EndOfSegment(), V2, "00000009"),
        (RecoveryMetadata(5), V2, "0000000a 00000005"),
        (WatermarkEvent("w", is_aligned=True, value=2), V2, "0000000b 0001 77 01 00000000 0000000000000002"),
        (WatermarkEvent("w", is_aligned=False, value=True), V2, "0000000b 0001 77 00 00000001 01"),
        (EndOfInputChannelState(), V2, "0000000c"),
        (CheckpointBarrier(1, 2), V1, "00000001 0000000000000001 0000000000000002 00000000 ffffffff 01"),
        (CheckpointBarrier(1, 2, CheckpointType.SAVEPOINT, b"z", Alignment.AT_LEAST_ONCE), V1,
         "00000001 0000000000000001 0000000000000002 00000001 00000001 7a 00"),
        (CheckpointBarrier(1, 2), V2,
         "00000001 0000000000000001 0000000000000002 00 ffffffff 01 7fffffffffffffff"),
        (CheckpointBarrier(1, 2, CheckpointType.SAVEPOINT, b"z", Alignment.UNALIGNED, SavepointFormat.NATIVE, 3), V2,
         "00000001 0000000000000001 0000000000000002 01 01 00000001 7a 02 0000000000000003"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_bytes_are_code_and_fields_in_order(event: Event, version: FlinkVersion, data: str) -> None:
    """Flink: `CheckpointSerializationTest`."""
    assert event_to_bytes(event, version) == bytes.fromhex(data)


@pytest.mark.parametrize(
    ("event", "version", "num_bytes"),
    [
        (CheckpointBarrier(1, 2), V1, 30),
        (CheckpointBarrier(1, 2, location=b"abc"), V1, 33),
        (CheckpointBarrier(1, 2), V2, 38),
        (SAVEPOINT, V2, 44),
        (EventAnnouncement(1, CheckpointBarrier(1, 2)), V2, 8 + 38),
        (EndOfPartition(), V1, 4),
        (EndOfData(StopMode.DRAIN), V2, 5),
        (GenericEvent("ab"), V1, 128),
        (GenericEvent("a" * 122), V1, 128),
        (GenericEvent("a" * 123), V1, 256),
        (WatermarkEvent("w", is_aligned=True, value=1), V2, 128),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_whole_array_an_event_was_written_into_travels(event: Event, version: FlinkVersion, num_bytes: int) -> None:
    """A barrier of 2.x fills 34 of its 38 bytes."""
    buffer = event_to_buffer(event, version)
    written = event_to_bytes(event, version)
    assert buffer.size == num_bytes
    assert bytes(buffer.data) == written + bytes(num_bytes - len(written))


@pytest.mark.parametrize(
    ("event", "in_1_11", "in_2"),
    [
        (CheckpointBarrier(1, 2), DataType.ALIGNED_BARRIER, DataType.ALIGNED_BARRIER),
        (CheckpointBarrier(1, 2, alignment_timeout_ms=9), DataType.ALIGNED_BARRIER, DataType.TIMEOUTABLE_BARRIER),
        (CheckpointBarrier(1, 2, alignment=Alignment.FORCED_ALIGNED, alignment_timeout_ms=9),
         DataType.ALIGNED_BARRIER, DataType.ALIGNED_BARRIER),
        (CheckpointBarrier(1, 2, alignment=Alignment.UNALIGNED), DataType.EVENT, DataType.PRIORITY_EVENT),
        (CheckpointBarrier(1, 2, alignment=Alignment.AT_LEAST_ONCE), DataType.EVENT, DataType.EVENT),
        (EndOfPartition(), DataType.EVENT, DataType.END_OF_PARTITION),
        (EndOfChannelState(), DataType.EVENT, DataType.RECOVERY_COMPLETION),
        (EndOfSuperstep(), DataType.EVENT, DataType.EVENT),
        (EndOfData(StopMode.DRAIN), None, DataType.END_OF_DATA),
        (EventAnnouncement(1, EndOfPartition()), None, DataType.PRIORITY_EVENT),
        (WatermarkEvent("w", is_aligned=True, value=1), None, DataType.ALIGNED_WATERMARK),
        (WatermarkEvent("w", is_aligned=False, value=1), None, DataType.UNALIGNED_WATERMARK),
    ],
    ids=lambda value: getattr(value, "name", None) or type(value).__name__,
)  # fmt: skip
def test_an_event_decides_the_kind_of_its_buffer(event: Event, in_1_11: DataType | None, in_2: DataType) -> None:
    assert event_to_buffer(event, V2).data_type is in_2
    if in_1_11 is not None:
        assert event_to_buffer(event, V1).data_type is in_1_11


# -- what one version has and the other has not ----------------------------------------------------


@pytest.mark.parametrize("event", [event for event in ONLY_IN_2 if event is not SAVEPOINT], ids=repr)
def test_1_11_has_no_events_of_2(event: Event) -> None:
    with pytest.raises(LocalUsageError, match=r"Flink 1\.11\.4 has no event"):
        event_to_bytes(event, V1)
    if not isinstance(event, CheckpointBarrier):
        with pytest.raises(RemoteProtocolError, match=r"is no event of Flink 1\.11\.4"):
            event_from_bytes(event_to_bytes(event, V2), V1)


@pytest.mark.parametrize("event", [*ONLY_IN_1_11, CheckpointBarrier(1, 2, savepoint_format=SavepointFormat.NATIVE)])
def test_in_2_a_savepoint_and_only_a_savepoint_has_a_format(event: Event) -> None:
    with pytest.raises(LocalUsageError, match="only a savepoint, has a format"):
        event_to_bytes(event, V2)


# -- bytes that are no event -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("code", [13, 14, -1, 2**31 - 1])
def test_an_unknown_code_is_refused_by_number(code: int, version: FlinkVersion) -> None:
    with pytest.raises(RemoteProtocolError, match=f"{code} is no event of Flink {version.value}"):
        event_from_bytes(struct.pack(">i", code) + bytes(64), version)


def barrier_with(version: FlinkVersion, position: int, code: bytes) -> bytes:
    data = bytearray(event_to_bytes(CheckpointBarrier(1, 2), version))
    data[position : position + len(code)] = code
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "version", "complaint"),
    [
        (barrier_with(V1, 20, b"\0\0\0\x04"), V1, "4 is no checkpoint type of Flink 1.11"),
        (barrier_with(V1, 20, b"\0\0\0\x09"), V1, "9 is no CheckpointType"),
        (barrier_with(V1, 28, b"\x04"), V1, "4 is no Alignment"),
        (barrier_with(V1, 24, b"\xff\xff\xff\xfe"), V1, "incomplete event: -2 bytes wanted"),
        (barrier_with(V1, 24, b"\x7f\xff\xff\xff"), V1, "incomplete event: 2147483647 bytes wanted"),
        (barrier_with(V2, 20, b"\x01\x05"), V2, "5 is no SavepointFormat"),
        (struct.pack(">ib", 8, 2), V2, "2 is no StopMode"),
        (struct.pack(">iiii", 6, 1, 6, 1), V2, "an announcement cannot announce event 6"),
        (struct.pack(">iii", 6, 1, 99), V2, "an announcement cannot announce event 99"),
        (struct.pack(">ihbi", 11, 0, 0, 2) + bytes(8), V2, "2 is no kind of watermark value"),
        (struct.pack(">ih", 3, 1) + b"\xc3", V1, "has half a character"),
        (struct.pack(">ih", 3, 2) + b"\xe2\x82", V1, "has half a character"),
        (struct.pack(">ih", 3, 2) + b"\xc3A", V1, "has half a character"),
        (struct.pack(">ih", 3, 1) + b"\xff", V1, "0xff begins no character"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fields_that_cannot_be_are_the_producers_mistake(data: bytes, version: FlinkVersion, complaint: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        event_from_bytes(data, version)
    assert complaint in str(caught.value)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("", b""),
        ("a\x7f", b"a\x7f"),
        ("\0", b"\xc0\x80"),  # zero takes two bytes
        ("é", b"\xc3\xa9"),
        ("\u07ff\u0800", b"\xdf\xbf\xe0\xa0\x80"),
        ("€", b"\xe2\x82\xac"),
        ("😀", b"\xed\xa0\xbd\xed\xb8\x80"),  # two surrogates of three bytes each
        ("\ud83d", b"\xed\xa0\xbd"),
    ],
    ids=ascii,
)
def test_names_are_modified_utf_8_as_java_writes_it(name: str, raw: bytes) -> None:
    data = event_to_bytes(GenericEvent(name))
    assert data == struct.pack(">ih", 3, len(raw)) + raw
    assert event_from_bytes(data) == GenericEvent(name)


def test_a_name_too_long_for_its_length_is_the_callers_mistake() -> None:
    longest = GenericEvent("a" * 65_535)
    assert event_from_bytes(event_to_bytes(longest)) == longest
    with pytest.raises(LocalUsageError, match="a name of 65536 bytes does not fit"):
        event_to_bytes(GenericEvent("a" * 65_536))
