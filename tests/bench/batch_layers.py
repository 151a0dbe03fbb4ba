"""Where the time of a batch goes: programs of which each does one thing more, for `tests.bench.profile`.

The first ones stay in one thread. Then the way parts: to another thread, or through both ends of a connection, and from
there to another process. What a thread or a process costs is all that the bytes alone do not: waiting, waking, changes
of turn, and memory that another core has to fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from refimpl.memory import NetworkBufferPool
from refimpl.records import RecordBatch, StreamElement, StreamRecord
from refimpl.shortcuts.columns import BatchCodec, WireRows
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.writer import FastRecordWriter
from tests.bench import contenders, remote
from tests.bench.contenders import (
    BATCH,
    BATCH_BUFFERS,
    KIND,
    RECORD_BYTES,
    SEGMENT_BYTES,
    Adding,
    batches,
    whole_batches,
)
from tests.bench.exchange import Exchange, elements_of
from tests.bench.layers import Layer, Outcome
from tests.bench.limits import BothEnds
from tests.bench.remote import config_of

__all__ = ["LAYERS"]


def made(num_records: int) -> Iterator[RecordBatch]:
    """So many records, or some more, as batches made of columns."""
    return batches(whole_batches(num_records))


def make(num_records: int) -> None:
    for _batch in made(num_records):
        pass


def encoded(codec: BatchCodec, num_records: int) -> Iterator[WireRows]:
    for batch in made(num_records):
        rows = codec.encode(batch)
        assert rows is not None, "all records of a batch are equally wide"
        yield rows


def encode(num_records: int) -> None:
    for _rows in encoded(BatchCodec(KIND), num_records):
        pass


def cut(codec: BatchCodec, num_records: int) -> Iterator[list[memoryview]]:
    """The buffers of each batch, the last of them cut short."""
    pool = NetworkBufferPool(-(-BATCH * RECORD_BYTES // SEGMENT_BYTES), SEGMENT_BYTES)
    room = [segment.view for segment in pool.segments if segment.view is not None]
    for rows in encoded(codec, num_records):
        data = rows.view(np.uint8).data
        pieces = []
        for start, segment in zip(range(0, len(data), SEGMENT_BYTES), room, strict=False):
            piece = data[start : start + SEGMENT_BYTES]
            segment[: len(piece)] = piece
            pieces.append(segment[: len(piece)])
        yield pieces


def copy(num_records: int) -> None:
    for _pieces in cut(BatchCodec(KIND), num_records):
        pass


def join(num_records: int) -> None:
    codec = BatchCodec(KIND)
    for pieces in cut(codec, num_records):
        codec.joined(pieces, 0)


def decoded(num_records: int) -> Iterator[RecordBatch]:
    codec = BatchCodec(KIND)
    for pieces in cut(codec, num_records):
        batch, _ = codec.decode(codec.joined(pieces, 0))
        assert batch is not None, "a batch was written, and is no batch"
        yield batch


def decode(num_records: int) -> None:
    for _batch in decoded(num_records):
        pass


def summed(elements: Iterator[RecordBatch | StreamElement], num_records: int) -> Outcome:
    """Let the operator have all that arrives."""
    operator = Adding()
    for element in elements:
        remote.take_element(operator, element)
    return Outcome(whole_batches(num_records) * BATCH, operator.total)


def operate(num_records: int) -> Outcome:
    return summed(decoded(num_records), num_records)


def through(
    writer: FastRecordWriter,
    source: FastNetworkInput,
    buffers_at_once: int,
    carry: Callable[[], None],
    num_records: int,
) -> Outcome:
    """From a writer to an input, in one thread: it writes until there is no buffer left, then it reads them all."""

    def read() -> Iterator[RecordBatch | StreamElement]:
        carry()
        while source.take(buffers_at_once):
            for element in elements_of(source):
                assert isinstance(element, RecordBatch | StreamRecord)
                yield element
            source.recycle()
            carry()

    def written() -> Iterator[RecordBatch | StreamElement]:
        for batch in made(num_records):
            writer.write_batch(batch)
            while not writer.is_available:
                yield from read()
                writer.resume()

    def rest() -> Iterator[RecordBatch | StreamElement]:
        writer.finish()
        yield from read()

    return summed(chain(written(), rest()), num_records)


def exchange(num_records: int) -> Outcome:
    engine = Exchange(KIND, BATCH_BUFFERS, takes_batches=True)
    return through(engine.writer, engine.input, BATCH_BUFFERS, lambda: None, num_records)


def connection(num_records: int) -> Outcome:
    ends = BothEnds(config_of(BATCH_BUFFERS), takes_batches=True)
    try:
        return through(ends.writer, ends.input, BATCH_BUFFERS, ends.carry, num_records)
    finally:
        ends.close()


def moved(move: Callable[..., tuple[int, float, float]], num_records: int, **options: Any) -> Outcome:
    """What a contender of the benchmark did; both processes worked for it, where there are two."""
    operator = Adding()
    num_moved, _, cpu_s = move(num_records, operator, **options)
    return Outcome(num_moved, operator.total, cpu_s)


ALONE, CONNECTED = "writer, queue, gate", "connection"

LAYERS: Sequence[Layer] = (
    Layer("batch", "three columns become a RecordBatch", make),
    Layer("rows", "shortcuts/columns.py encode: columns to the bytes of rows", encode),
    Layer("copy to segments", "four copies, and nothing else", copy),
    Layer("join", "shortcuts/columns.py joined: segments behind each other", join),
    Layer("columns", "shortcuts/columns.py decode: lengths and tags checked, rows to columns", decode),
    Layer("operator", "a call for the batch, which adds up a column", operate),
    Layer(ALONE, "shortcuts/writer.py to consumer/network_input.py", exchange),
    Layer("hand-over", "to another thread, instead", lambda n: moved(contenders.exchange_of_batches, n), ALONE),
    Layer(CONNECTED, "exchange/ and consumer/remote_channel.py: frames, credit, one copy more", connection, ALONE),
    Layer("processes", "drivers/threads/connection_io.py: TCP and six threads, instead",
          lambda n: moved(remote.exchange_of_batches, n), CONNECTED),
)  # fmt: skip
