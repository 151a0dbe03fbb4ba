"""Elements to bytes: one tag, then the fields in Java's order; and what is said of other bytes."""

from __future__ import annotations

import struct

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.records import (
    BYTES,
    LONG,
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    STRING,
    InternalWatermark,
    LatencyMarker,
    RecordAttributes,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from tests.support.compiled import refused

V1, V2 = FlinkVersion.V1_11, FlinkVersion.V2_2
BOTH = [V1, V2]

# (element of a stream of longs, its bytes, the versions that have it)
LAYOUTS = [
    (StreamRecord(1, 2), b"\0" + struct.pack(">qq", 2, 1), BOTH),
    (StreamRecord(-1, MIN_TIMESTAMP), b"\0" + struct.pack(">qq", -(2**63), -1), BOTH),
    (StreamRecord(7), b"\1" + struct.pack(">q", 7), BOTH),
    (Watermark(-5), b"\2" + struct.pack(">q", -5), BOTH),
    (MAX_WATERMARK, b"\2\x7f" + b"\xff" * 7, BOTH),
    (LatencyMarker(1, 2, 3, 4), b"\3" + struct.pack(">qqqi", 1, 2, 3, 4), BOTH),
    (StreamStatus.ACTIVE, b"\4\0\0\0\0", BOTH),
    (StreamStatus.IDLE, b"\4\xff\xff\xff\xff", BOTH),
    (RecordAttributes(is_backlog=True), b"\5\1", [V2]),
    (RecordAttributes(is_backlog=False), b"\5\0", [V2]),
    (InternalWatermark(6, 7), b"\6" + struct.pack(">iq", 6, 7), [V2]),
]
CASES = [(element, data, version) for element, data, versions in LAYOUTS for version in versions]


@pytest.mark.parametrize(("element", "data", "version"), CASES)
def test_an_element_has_its_tag_and_fields_and_comes_back(
    element: StreamElement, data: bytes, version: FlinkVersion
) -> None:
    """Flink: `StreamElementSerializerTest#testSerialization` (P103)."""
    serializer = StreamElementSerializer(LONG, version)
    assert serializer.serialize(element) == data
    read = serializer.deserialize(data)
    assert (read, type(read)) == (element, type(element))
    assert serializer.deserialize(memoryview(b"x" + data)[1:]) == element


@pytest.mark.parametrize(("element", "data", "version"), CASES)
def test_an_element_cut_anywhere_or_followed_by_a_byte_is_the_producers_mistake(
    element: StreamElement, data: bytes, version: FlinkVersion
) -> None:
    serializer = StreamElementSerializer(LONG, version)
    for length in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            serializer.deserialize(data[:length])
    with pytest.raises(RemoteProtocolError, match=f"ends at byte {len(data)}, its record at {len(data) + 1}"):
        serializer.deserialize(data + b"\0")


@pytest.mark.parametrize("element", [RecordAttributes(is_backlog=True), InternalWatermark(1, 2)], ids=repr)
def test_the_elements_of_2_are_unknown_to_1_11_on_both_ends(element: StreamElement) -> None:
    data = StreamElementSerializer(LONG, V2).serialize(element)
    with pytest.raises(LocalUsageError, match=r"Flink 1\.11\.4 has no element"):
        StreamElementSerializer(LONG, V1).serialize(element)
    with pytest.raises(RemoteProtocolError, match=rf"{data[0]} is no element tag of Flink 1\.11\.4"):
        StreamElementSerializer(LONG, V1).deserialize(data)


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("tag", [7, 8, 127, 255])
def test_an_unknown_tag_is_refused_by_number(tag: int, version: FlinkVersion) -> None:
    with pytest.raises(RemoteProtocolError, match=f"{tag} is no element tag of Flink {version.value}"):
        StreamElementSerializer(LONG, version).deserialize(bytes((tag, 0, 0, 0, 0)))


@pytest.mark.parametrize("code", [1, -2, 2**31 - 1])
def test_a_status_is_active_or_idle_and_nothing_else(code: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"{code} is no stream status; 0 is active, -1 idle"):
        StreamElementSerializer(LONG).deserialize(b"\4" + struct.pack(">i", code))


@pytest.mark.parametrize(("kind", "value"), [(STRING, None), (STRING, "JFK"), (BYTES, b""), (BYTES, bytes(300))])
def test_values_of_any_length_come_back_with_and_without_a_time(kind: object, value: object) -> None:
    serializer = StreamElementSerializer(kind)
    for record in (StreamRecord(value), StreamRecord(value, 0)):
        assert serializer.deserialize(serializer.serialize(record)) == record


def test_a_value_of_another_type_is_the_callers_mistake() -> None:
    for record in (StreamRecord("seven"), StreamRecord("seven", 7)):
        with pytest.raises(LocalUsageError, match="'seven' is not a long"):
            StreamElementSerializer(LONG).serialize(record)


def test_something_that_is_no_element_is_the_callers_mistake() -> None:
    with refused(LocalUsageError, "has no element 'flight'"):
        StreamElementSerializer(LONG).serialize("flight")


def test_records_are_equal_by_value_and_time() -> None:
    assert StreamRecord((1, 2), 3) == StreamRecord((1, 2), 3)
    assert hash(StreamRecord((1, 2), 3)) == hash(StreamRecord((1, 2), 3))
    assert StreamRecord(1, 3) != StreamRecord(1)
    assert StreamRecord(1) != StreamRecord(2)
    assert StreamRecord(5) != Watermark(5)
    assert repr(StreamRecord("a", 3)) == "StreamRecord('a', 3)"


@pytest.mark.parametrize("time", [2**63, 1.5, "noon"])
def test_a_time_that_is_no_long_is_the_callers_mistake(time: object) -> None:
    serializer = StreamElementSerializer(LONG)
    for make in (lambda: StreamRecord(5, time), lambda: Watermark(time)):
        with refused(LocalUsageError, "an event time is a long"):
            serializer.serialize(make())
