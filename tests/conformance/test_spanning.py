"""Records cut into buffers and read back, byte for byte as `SpanningRecordSerializer` of Flink 1.11.4 did."""

from __future__ import annotations

import hashlib

from refimpl.config import Config
from refimpl.memory import Buffer, BufferBuilder, BufferSlice, MemorySegment
from refimpl.records import DeserializationResult, SpanningRecordSerializer, SpillingAdaptiveSpanningRecordDeserializer

TOPIC = "spanning"
BY_VERSION = False


class Kept:
    """Takes segments back and counts them."""

    num_recycled = 0

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.num_recycled += 1


def payload_of(record: str | dict[str, int]) -> bytes:
    if isinstance(record, str):
        return bytes.fromhex(record)
    length, seed = record["gen_len"], record["gen_seed"]
    block = 256  # i >> 8 is constant in a block, so a block is one rotation of the same pattern
    pattern = bytes(i * 7 & 255 for i in range(block))
    rows = []
    for start in range(0, length, block):
        shift = (seed + (start >> 8) * 13 + start * 7) & 255
        rows.append(bytes((byte + shift) & 255 for byte in pattern))
    return b"".join(rows)[:length]


class Written:
    """What the writer's loop made of the records."""

    def __init__(self, payloads: list[bytes], segment_size: int, home: Kept) -> None:
        self.copies: list[list[str]] = []
        self.buffers: list[BufferSlice] = []
        self.is_full: list[bool] = []
        serializer = SpanningRecordSerializer()
        builder: BufferBuilder | None = None
        for payload in payloads:
            serializer.serialize_record(payload)
            results = []
            while True:
                if builder is None:
                    builder = BufferBuilder(Buffer(MemorySegment.allocate(segment_size), home))
                    consumer = builder.create_consumer()
                result = serializer.copy_to_buffer_builder(builder)
                results.append(result.value)
                if result.is_full_buffer:
                    self.close(builder, consumer, is_full=True)
                    builder = None
                if result.is_full_record:
                    break
            serializer.prune()
            self.copies.append(results)
        if builder is not None:
            self.close(builder, consumer, is_full=False)

    def close(self, builder: BufferBuilder, consumer: object, is_full: bool) -> None:
        builder.finish()
        self.buffers.append(consumer.build())
        consumer.close()
        self.is_full.append(is_full)


def read(buffer: BufferSlice, deserializer: SpillingAdaptiveSpanningRecordDeserializer, records: list[bytes]) -> dict:
    """Hand over one buffer and ask until it is used up."""
    first = len(records)
    results = []
    deserializer.set_next_buffer(buffer)
    while True:
        result, payload = deserializer.get_next_record()
        results.append(result.value)
        if payload is not None:
            records.append(bytes(payload))
        if result is not DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER:
            break
    is_unfinished = bool(deserializer.get_unconsumed())
    used = deserializer.get_current_buffer()
    assert used is buffer
    used.recycle()
    return {"results": results, "records": list(range(first, len(records))), "unfinished_after": is_unfinished}


def test_records_are_cut_and_read_as_flink_does(case: dict, tmp_path: object) -> None:
    home = Kept()
    payloads = [payload_of(record) for record in case["records"]]
    written = Written(payloads, case["segment_size"], home)
    contents = [bytes(buffer.data) for buffer in written.buffers]

    assert written.copies == case["copies"]
    assert [len(content) for content in contents] == case["buffer_sizes"]
    assert written.is_full == case["buffer_full"]
    if "buffers" in case:
        assert [content.hex() for content in contents] == case["buffers"]
    if "buffers_sha256" in case:
        sums = [hashlib.sha256(content).hexdigest() for content in contents]
        assert sums[: len(case["buffers_sha256"])] == case["buffers_sha256"]
    if "all_bytes_sha256" in case:
        assert hashlib.sha256(b"".join(contents)).hexdigest() == case["all_bytes_sha256"]

    deserializer = SpillingAdaptiveSpanningRecordDeserializer(Config(spill_directory=str(tmp_path)))
    records: list[bytes] = []
    reads = [read(buffer, deserializer, records) for buffer in written.buffers]
    assert reads == case["reads"]
    assert records == payloads
    assert home.num_recycled == len(contents)
    assert list(tmp_path.iterdir()) == []
