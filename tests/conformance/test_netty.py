"""Frames to bytes and back, as `NettyMessage` of Flink 1.11.4 and 2.2.1 wrote them, however they are cut."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from refimpl.config import FlinkVersion
from refimpl.exchange import (
    HEADER_BYTES,
    AckAllUserRecordsProcessed,
    AddCredit,
    BacklogAnnouncement,
    BufferReceived,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    FrameDecoder,
    Message,
    NewBufferSize,
    PartitionRequest,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    SegmentId,
    TaskEventRequest,
    decode,
    encode,
    read_java_error,
)
from refimpl.memory import Buffer, DataType, heap_buffer
from refimpl.records import ALL_WORKERS_DONE, TERMINATION, event_to_bytes

TOPIC = "netty"
BY_VERSION = True

NUM_RANDOM_CUTS = 5


class Buffers:
    """Gives a fresh buffer for every payload."""

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer:
        buffer = heap_buffer(bytes(size), response.data_type)
        buffer.size = 0
        return buffer


def partition_of(fields: dict) -> ResultPartitionId:
    if "producer_id" in fields:
        producer = ProducerId(bytes.fromhex(fields["producer_id"]))
    else:
        producer = ProducerId(
            bytes.fromhex(fields["execution_graph_id"]),
            bytes.fromhex(fields["job_vertex_id"]),
            fields["subtask_index"],
            fields["attempt_number"],
        )
    return ResultPartitionId(bytes.fromhex(fields["data_set_id"]), fields["partition_number"], producer)


def response_of(fields: dict, receiver: bytes, version: FlinkVersion) -> BufferResponse:
    kinds = [kind for kind in DataType if kind.flink_name(version) == fields["data_type"]]
    assert [kind.code(version) for kind in kinds] == [fields["data_type_code"]]
    payload = bytes.fromhex(fields["payload_hex"])
    assert len(payload) == fields["size"]
    return BufferResponse(
        receiver,
        fields["sequence_number"],
        fields["backlog"],
        kinds[0],
        payload,
        fields["compressed"],
        fields.get("subpartition_id", 0),
        tuple(fields.get("partial_buffer_sizes", ())),
    )


def error_of(fields: dict, receiver: bytes | None) -> ErrorResponse:
    message = ErrorResponse(bytes.fromhex(fields["java_serialized_hex"]), receiver)
    assert (message.receiver is None) == fields["fatal"]
    assert read_java_error(message.error).class_name == fields["exception_class"]
    return message


def event_of(fields: dict, version: FlinkVersion) -> bytes:
    if "event_hex" in fields:
        return bytes.fromhex(fields["event_hex"])
    events = {event.class_name: event for event in (ALL_WORKERS_DONE, TERMINATION)}
    return event_to_bytes(events[fields["event_class"]], version)


def message_of(case: dict, version: FlinkVersion) -> Message:
    """The message that has the fields of a case."""
    fields = case["fields"]
    receiver = bytes.fromhex(fields.get("receiver_id") or "")
    match case["id"]:
        case 0:
            return response_of(fields, receiver, version)
        case 1:
            return error_of(fields, receiver or None)
        case 2:
            first = fields.get("subpartition_start", fields.get("subpartition_index"))
            last = fields.get("subpartition_end_inclusive", first)
            return PartitionRequest(partition_of(fields), first, last, receiver, fields["credit"])
        case 3:
            return TaskEventRequest(event_of(fields, version), partition_of(fields), receiver)
        case 4:
            return CancelPartitionRequest(receiver)
        case 5:
            return CloseRequest()
        case 6:
            return AddCredit(fields["credit"], receiver)
        case 7:
            return ResumeConsumption(receiver)
        case 8:
            return AckAllUserRecordsProcessed(receiver)
        case 9:
            return BacklogAnnouncement(fields["backlog"], receiver)
        case 10:
            return NewBufferSize(fields["buffer_size"], receiver)
        case 11:
            return SegmentId(fields["subpartition_index"], fields["segment_id"], receiver)
    pytest.fail(f"message id {case['id']} is not described in the format")


def whole(message: Message | BufferReceived) -> Message:
    """A message with its payload in it again."""
    if not isinstance(message, BufferReceived):
        return message
    payload = b"" if message.buffer is None else bytes(message.buffer.data)
    assert len(payload) == message.size
    return message.response._replace(payload=payload)


def received(data: bytes, sizes: list[int], version: FlinkVersion) -> list[Message]:
    """What a decoder makes of `data` when it comes in pieces of these sizes."""
    assert sum(sizes) == len(data)
    decoder = FrameDecoder(Buffers(), max(len(data), HEADER_BYTES), version)
    messages = []
    start = 0
    for size in sizes:
        messages += [whole(message) for message in decoder.receive(data[start : start + size])]
        start += size
    assert decoder.is_between_frames
    return messages


def cuts(case: dict, length: int) -> Iterator[tuple[str, list[int]]]:
    """Ways to cut a stream, each with a name that lets one repeat it."""
    yield "in one", [length]
    yield "byte by byte", [1] * length
    if "chunk_sizes" in case:
        yield "as the vectors say", case["chunk_sizes"]
    for seed in range(NUM_RANDOM_CUTS):
        rng = random.Random(f"{case['name']} {seed}")
        sizes = []
        while sum(sizes) < length:
            sizes.append(min(rng.choice([0, 1, 2, 3, 5, 8, 13, 55, 377]), length - sum(sizes)))
        yield f"at random, seed {case['name']} {seed}", sizes


def frames_in(data: bytes) -> Iterator[bytes]:
    """The frames that lie one behind the other, by their lengths alone."""
    while data:
        length = int.from_bytes(data[:4], "big")
        yield data[:length]
        data = data[length:]


def test_a_frame_has_flinks_bytes_and_fields(case: dict, version: FlinkVersion) -> None:
    """Flink: `NettyMessageSerializationTest#testEncodeDecode` (P71)."""
    data = bytes.fromhex(case["hex"])
    if "messages_in_order" in case:
        messages = [decode(frame[8], memoryview(frame)[HEADER_BYTES:], version) for frame in frames_in(data)]
        assert [type(message).__name__ for message in messages] == case["messages_in_order"]
        assert b"".join(encode(message, version) for message in messages) == data
        return
    message = message_of(case, version)
    assert encode(message, version).hex() == case["hex"]
    assert len(data) == case["frame_length"]
    assert decode(case["id"], memoryview(data)[HEADER_BYTES:], version) == message


def test_frames_are_found_wherever_the_stream_is_cut(case: dict, version: FlinkVersion) -> None:
    data = bytes.fromhex(case["hex"])
    for how, sizes in cuts(case, len(data)):
        messages = received(data, sizes, version)
        assert b"".join(encode(message, version) for message in messages) == data, how
        if "messages_in_order" in case:
            assert [type(message).__name__ for message in messages] == case["messages_in_order"], how
        else:
            assert messages == [message_of(case, version)], how
