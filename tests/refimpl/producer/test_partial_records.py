"""Where the first record of a buffer begins: noted by the writer, carried by snapshots."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    FIRST_BYTES,
    BroadcastRecordWriter,
    BroadcastSelector,
    GlobalSelector,
    RecordWriter,
    ResultPartition,
)
from refimpl.records import (
    LENGTH_BYTES,
    LONG,
    STRING,
    StreamElementSerializer,
    StreamRecord,
    TypeSerializer,
)


def writer_of(size: int, value_type: TypeSerializer = STRING, num_buffers: int = 40, width: int = 1) -> RecordWriter:
    config = Config(segment_size_bytes=size, num_buffers=num_buffers, buffer_timeout_ms=-1)
    pool = LocalBufferPool(NetworkBufferPool(num_buffers, size), num_buffers, name="pool", num_channels=width)
    partition = ResultPartition("partition", width, pool, config)
    make, selector = (BroadcastRecordWriter, BroadcastSelector()) if width > 1 else (RecordWriter, GlobalSelector())
    return make(partition, selector, StreamElementSerializer(value_type))


def starts_of(stream: bytes) -> list[int]:
    """Where the records of a whole stream begin."""
    starts, at = [], 0
    while at < len(stream):
        starts.append(at)
        at += LENGTH_BYTES + int.from_bytes(stream[at : at + LENGTH_BYTES], "big")
    assert at == len(stream)
    return starts


def check(writer: RecordWriter, channel: int = 0) -> list[int]:
    """What each queued buffer says is what the stream says; returns it."""
    subpartition = writer.partition.subpartitions[channel]
    noted = [consumer.partial_record_bytes for consumer in subpartition.queue]
    pieces = [bytes(consumer.buffer.memory[: consumer.unread_bytes]) for consumer in subpartition.queue]
    starts, position = starts_of(b"".join(pieces)), 0
    for piece, said in zip(pieces, noted, strict=True):
        first = next((start for start in starts if position <= start < position + len(piece)), None)
        wanted = first - position if first is not None else -1
        # A record that ends with its buffer: none begins there, and its length is known.
        assert said == wanted or (wanted == -1 and said == len(piece)), (noted, position, wanted)
        position += len(piece)
    return noted


@pytest.mark.parametrize("size", [5, 8, 13, 16, 64])
def test_texts_of_all_lengths(size: int) -> None:
    writer = writer_of(size, num_buffers=400)
    for length in (0, 1, 30, 3, 70, 2, 2, 2, 11, 0, 25):
        writer.emit(StreamRecord("x" * length))
    noted = check(writer)
    if size == 8:
        assert noted[:6] == [0, 5, -1, -1, -1, -1]


@pytest.mark.parametrize("size", [9, 16, 21, 64])
def test_records_of_one_width(size: int) -> None:
    writer = writer_of(size, LONG, 800)
    for number in range(60):
        writer.emit(StreamRecord(number))
    assert len(check(writer)) == -(-60 * 13 // size)


def test_a_record_that_waits_for_a_buffer_is_still_the_same_record() -> None:
    writer = writer_of(8, num_buffers=2)
    writer.emit(StreamRecord("x" * 15))
    assert writer.is_blocked
    first = writer.partition.subpartitions[0].poll()
    assert first is not None
    first.buffer.recycle()
    assert writer.resume()
    assert [consumer.partial_record_bytes for consumer in writer.partition.subpartitions[0].queue] == [-1, 5]


def test_readers_of_one_buffer_are_told_the_same() -> None:
    writer = writer_of(8, width=3)
    for word in ("hello", "to", "everybody"):
        writer.broadcast(StreamRecord(word))
    assert check(writer, 0) == check(writer, 2)
    assert len(set(check(writer, 0))) > 1


def test_a_snapshot_takes_the_first_bytes_along() -> None:
    writer = writer_of(200)
    for _ in range(9):
        writer.emit(StreamRecord("abcdefghijklmnopqrstuvwxyz"))
    full, is_open = writer.partition.snapshot().subpartitions[0].queue
    assert len(full.first_bytes) == FIRST_BYTES
    assert full.first_bytes[:4] == (28).to_bytes(4, "big")
    assert full.partial_record_bytes == 0
    assert is_open.partial_record_bytes == 24
    assert len(is_open.first_bytes) == min(FIRST_BYTES, is_open.written_bytes)
