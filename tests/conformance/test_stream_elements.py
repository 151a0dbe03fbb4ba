"""Stream elements, written and read, byte for byte as `StreamElementSerializer` did."""

from __future__ import annotations

import struct

import pytest

from refimpl.config import FlinkVersion
from refimpl.records import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    LONG,
    MAX_WATERMARK,
    STRING,
    InternalWatermark,
    LatencyMarker,
    RecordAttributes,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    Watermark,
)

TOPIC = "stream_elements"
BY_VERSION = True

TYPES = {
    "long": LONG,
    "int": INT,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "bytes": BYTES,
    "string": STRING,
    "tuple2_string_int": TupleType(STRING, INT),
}


def value_of(case: dict) -> object:
    if "value_bytes_hex" in case:
        return bytes.fromhex(case["value_bytes_hex"])
    if "value_ieee754_hex" in case:
        return struct.unpack(">d", bytes.fromhex(case["value_ieee754_hex"]))[0]
    value = case["value"]
    return tuple(value) if isinstance(value, list) else value


def element_of(case: dict) -> StreamElement:
    match case["element"]:
        case "record":
            return StreamRecord(value_of(case), case["timestamp"])
        case "watermark":
            return MAX_WATERMARK if case.get("special") == "max" else Watermark(case["timestamp"])
        case "latency_marker":
            halves = struct.unpack(">qq", bytes.fromhex(case["operator_id_hex"]))
            assert halves == (case["operator_id_lower"], case["operator_id_upper"])
            return LatencyMarker(case["marked_time"], *halves, case["subtask_index"])
        case "stream_status" | "watermark_status":
            assert StreamStatus[case["status"]].value == case["code"]
            return StreamStatus[case["status"]]
        case "record_attributes":
            return RecordAttributes(case["backlog"])
        case "internal_watermark":
            return InternalWatermark(case["subpartition_index"], case["timestamp"])
    pytest.skip(f"element {case['element']} is not described in the format")


def is_nan(element: StreamElement) -> bool:
    return isinstance(element, StreamRecord) and element.value != element.value


def test_an_element_becomes_the_same_bytes_and_comes_back(case: dict, version: FlinkVersion) -> None:
    type_name = case.get("type", "long")
    if type_name not in TYPES:
        pytest.skip(f"type {type_name} is not described in the format")
    serializer = StreamElementSerializer(TYPES[type_name], version)
    element = element_of(case)
    data = serializer.serialize(element)
    assert data.hex() == case["hex"]
    if "value_hex" in case:
        target = bytearray()
        serializer.value_type.serialize(value_of(case), target)
        assert target.hex() == case["value_hex"]
    back = serializer.deserialize(memoryview(bytes.fromhex(case["hex"])))
    if is_nan(element):
        assert is_nan(back)
    else:
        assert back == element
    assert serializer.serialize(back).hex() == case["hex"]
