"""Events to bytes, into buffers and back, as `EventSerializer` of Flink 1.11.4 and 2.2.1 did."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.memory import DataType
from refimpl.records import (
    ALL_WORKERS_DONE,
    NO_ALIGNMENT_TIMEOUT,
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
    RecoveryMetadata,
    SavepointFormat,
    StopMode,
    SubtaskConnectionDescriptor,
    WatermarkEvent,
    event_from_bytes,
    event_to_buffer,
    event_to_bytes,
)

TOPIC = "events"
BY_VERSION = True

PLAIN = {
    "EndOfPartitionEvent": EndOfPartition(),
    "EndOfSuperstepEvent": EndOfSuperstep(),
    "EndOfChannelStateEvent": EndOfChannelState(),
    "EndOfOutputChannelStateEvent": EndOfChannelState(),
    "EndOfInputChannelStateEvent": EndOfInputChannelState(),
    "EndOfSegmentEvent": EndOfSegment(),
    "AllWorkersDoneEvent": ALL_WORKERS_DONE,
    "TerminationEvent": TERMINATION,
}


def barrier_of(fields: dict) -> CheckpointBarrier:
    location = fields["location_hex"]
    savepoint_format = fields.get("savepoint_format")
    return CheckpointBarrier(
        fields["checkpoint_id"],
        fields["timestamp"],
        CheckpointType[fields["checkpoint_type"]],
        None if location is None else bytes.fromhex(location),
        Alignment[fields["alignment"]],
        None if savepoint_format is None else SavepointFormat[savepoint_format],
        fields.get("aligned_timeout_ms", NO_ALIGNMENT_TIMEOUT),
    )


def event_of(case: dict, version: FlinkVersion) -> Event:
    fields = case["fields"]
    match case["event"]:
        case "CheckpointBarrier":
            return barrier_of(fields)
        case "CancelCheckpointMarker":
            return CancelCheckpointMarker(fields["checkpoint_id"])
        case "EndOfData":
            assert StopMode[fields["stop_mode"]].value == fields["stop_mode_code"]
            return EndOfData(StopMode[fields["stop_mode"]])
        case "RecoveryMetadata":
            return RecoveryMetadata(fields["final_buffer_subpartition_id"])
        case "SubtaskConnectionDescriptor":
            return SubtaskConnectionDescriptor(fields["input_subtask_index"], fields["output_subtask_index"])
        case "WatermarkEvent":
            return WatermarkEvent(fields["identifier"], fields["aligned"], fields["value"])
        case "EventAnnouncement":
            announced = event_from_bytes(bytes.fromhex(fields["announced_hex"]), version)
            return EventAnnouncement(fields["sequence_number"], announced)
        case name if name in PLAIN:
            return PLAIN[name]
        case name:
            pytest.skip(f"event {name} is not described in the format")


def check_data_types(rows: list[dict], version: FlinkVersion) -> None:
    ours = {kind.code(version): kind for kind in DataType if kind.code(version) is not None}
    assert sorted(ours) == sorted(row["code"] for row in rows)
    properties = {
        "is_buffer": lambda kind: kind.is_buffer,
        "is_event": lambda kind: kind.is_event,
        "blocks_upstream": lambda kind: kind.blocks_upstream,
        "has_priority": lambda kind: kind.has_priority,
        "requires_announcement": lambda kind: kind.requires_announcement,
        "partial_record_possible": lambda kind: kind.is_partial_record_possible,
    }
    for row in rows:
        kind = ours[row["code"]]
        assert kind.flink_name(version) == row["name"]
        for name, ask in properties.items():
            if name in row:
                assert ask(kind) is row[name], f"{kind}: {name}"


def test_an_event_becomes_the_same_bytes_and_comes_back(case: dict, version: FlinkVersion) -> None:
    if case["event"] is None:
        check_data_types(case["data_types"], version)
        return
    event = event_of(case, version)
    assert event_to_bytes(event, version).hex() == case["hex"]
    assert len(event_to_bytes(event, version)) == case["buffer_size"]

    buffer = event_to_buffer(event, version)
    assert bytes(buffer.data).hex() == case["consumer_hex"]
    assert buffer.size - case["buffer_size"] == case["trailing_bytes_on_wire"]
    assert buffer.data_type.flink_name(version) == case["data_type"]
    assert buffer.data_type.code(version) == case["data_type_code"]
    assert buffer.data_type.blocks_upstream is case["blocks_upstream"]
    assert not buffer.is_buffer
    if "priority" in case:
        assert buffer.data_type.has_priority is case["priority"]

    for trailing in (b"", b"\0", b"\xff" * 7):
        assert event_from_bytes(bytes.fromhex(case["hex"]) + trailing, version) == event
    assert event_from_bytes(bytes.fromhex(case["consumer_hex"]), version) == event
