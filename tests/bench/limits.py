"""The parts of the engine's work alone: how far the rest of it could get at most, and why a goal may be out of reach.

What is left out is said in the name: threads and what they hand over, writing, sockets. Each runs in one thread.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from refimpl.config import Config
from refimpl.drivers.transport import ConsumerEnd, ProducerEnd
from refimpl.memory import BufferBuilder, BufferConsumer, DataType, allocate_pages, heap_buffer
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.fixed_width import RecordPacker, RecordUnpacker
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.lanes import Lanes
from tests.bench.contenders import (
    BATCH,
    BATCH_BUFFERS,
    KIND,
    NUM_DISTINCT,
    QUEUE_RECORDS,
    RECORD_BYTES,
    RECORDS,
    ROWS,
    SEGMENT_BYTES,
    batches,
    checksum,
    contender,
    cycled,
    expected,
    whole_batches,
)
from tests.bench.measure import Benchmark, timed
from tests.bench.remote import (
    PIECE,
    PIECE_ROWS,
    checksum_of_pieces,
    config_of,
    contender_of_pieces,
    expected_pieces,
    whole_pieces,
)
from tests.bench.stations import Station

__all__ = ["BENCHMARKS"]

Spent = tuple[int, float, float]
PER_SEGMENT = QUEUE_RECORDS  # as many as a list has; a segment would hold 1129 and a part of one


# -- reading records -----------------------------------------------------------------------------------


def reading(num_records: int, operator: Any) -> Spent:
    """The engine's bytes become values again, and each is handed to a function."""
    unpacker, process = RecordUnpacker(KIND), operator.record
    filled = [packed(start) for start in range(0, NUM_DISTINCT, PER_SEGMENT)]
    num_segments = -(-num_records // PER_SEGMENT)

    def work() -> None:
        for data in cycled(filled, num_segments):
            _, values, times = unpacker.unpack(data)
            for value, time in zip(values, times, strict=True):
                process(value, time)

    return num_segments * PER_SEGMENT, *timed(work)


def packed(start: int) -> memoryview:
    builder = BufferBuilder(heap_buffer(bytes(SEGMENT_BYTES), DataType.DATA))
    lanes = Lanes(RecordPacker.of(KIND), 1, lambda record, _channel: None)
    lanes.open(0, builder)
    for record in RECORDS[start : start + PER_SEGMENT]:
        lanes.put[0](record)
    return builder.memory[: builder.written_bytes]


def reading_pickle(num_records: int, operator: Any) -> Spent:
    process = operator.row
    pieces = [ROWS[start : start + QUEUE_RECORDS] for start in range(0, NUM_DISTINCT, QUEUE_RECORDS)]
    messages = [pickle.dumps(rows, pickle.HIGHEST_PROTOCOL) for rows in pieces]
    num_messages = -(-num_records // QUEUE_RECORDS)

    def work() -> None:
        for message in cycled(messages, num_messages):
            for row in pickle.loads(message):
                process(row)

    return num_messages * QUEUE_RECORDS, *timed(work)


# -- batches -------------------------------------------------------------------------------------------


def batch_codec(num_records: int, operator: Any) -> Spent:
    """Columns to rows, into segments, joined, and columns again: what every batch in this wire format needs."""
    codec, num_batches = BatchCodec(KIND), whole_batches(num_records)
    segments = allocate_pages(-(-BATCH * RECORD_BYTES // SEGMENT_BYTES) * SEGMENT_BYTES)  # as the engine's begin
    joined = allocate_pages(BATCH * RECORD_BYTES)

    def work() -> None:
        for batch in batches(num_batches):
            rows = codec.encode(batch)
            assert rows is not None
            data = rows.view(np.uint8).data
            for to, source in ((segments, data), (joined, segments[: len(data)])):
                for start in range(0, len(data), SEGMENT_BYTES):
                    piece = source[start : start + SEGMENT_BYTES]
                    to[start : start + len(piece)] = piece
            found, _ = codec.decode(joined)
            assert found is not None
            operator.columns(found.timestamps, *found.columns)

    return num_batches * BATCH, *timed(work)


# -- both ends of a connection -------------------------------------------------------------------------


class BothEnds:
    """Two TaskManagers in one thread: what one end has to say, the other is handed, in one piece as from a socket."""

    def __init__(self, config: Config, takes_batches: bool = False) -> None:
        self.near, self.far = (Station(config, number, KIND, takes_batches) for number in (0, 1))
        self.writer = self.near.deployment.writers[0, 0]
        self.partition = self.writer.partition
        for segment in self.near.deployment.pool.segments:
            segment.put(0, PIECE)
        source = self.far.deployment.tasks[0].input
        assert isinstance(source, FastNetworkInput)
        self.input, self.gate = source, source.gate
        source.takes_batches = takes_batches
        there, here = self.far.deployment.shuffle, self.near.deployment.shuffle
        (connection_id,) = there.remote_reads
        self._ends = (
            ConsumerEnd(there.connect(connection_id, "to the producer")),
            ProducerEnd(here.accept("to the consumer"), here),
        )
        self.carry()

    def carry(self) -> None:
        """Until neither end has anything to say."""
        ends = self._ends
        while any(end.has_data_to_send for end in ends):
            for one, other in (ends, ends[::-1]):
                other.receive_data(memoryview(b"".join(one.data_to_send())))
                one.data_sent()

    def arrived(self, num_buffers: int) -> Iterator[memoryview]:
        """So many buffers are queued, as many at a time as there are, and go through the connection."""
        while num_buffers:
            for buffer in islice(iter(partial(self.partition.pool.request_buffer, 0), None), num_buffers):
                buffer.size = SEGMENT_BYTES
                self.partition.add(BufferConsumer.of_buffer(buffer), 0)
                num_buffers -= 1
            self.partition.flush_all()  # the last would else wait for one more
            self.carry()
            while (taken := self.gate.poll_next()) is not None:
                assert taken.buffer is not None
                yield taken.buffer.data
                taken.buffer.recycle()
                if not self.gate.is_ready:
                    self.carry()  # the credit for all, and what it allows

    def close(self) -> None:
        self.near.deployment.close()
        self.far.deployment.close()


def both_ends(num_records: int, operator: Any) -> Spent:
    num_pieces = whole_pieces(num_records)
    ends = BothEnds(config_of(BATCH_BUFFERS))

    def work() -> None:
        for data in ends.arrived(num_pieces):
            operator.piece(data)

    try:
        return num_pieces * PIECE_ROWS, *timed(work)
    finally:
        ends.close()


BENCHMARKS = (
    Benchmark(
        "alone",
        "parts of the work, in one thread",
        (
            contender("reading", "full segments to values and times, and a call for each record", reading),
            contender("pickle.loads", "lists of 1024 rows, and a call for each row", reading_pickle),
            contender("batch codec", "columns to rows, to segments, joined, to columns; no hand-over", batch_codec),
        ),
        (),
        expected,
        checksum,
    ),
    Benchmark(
        "alone-buffer",
        "both ends of a connection in one thread",
        (contender_of_pieces("no socket", "whole buffers, queue to gate with credits; bytes handed over", both_ends),),
        (),
        expected_pieces,
        checksum_of_pieces,
    ),
)  # fmt: skip
