"""Ways of the same records through the engine, in one process, and a queue of lists that a user batches by hand."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.records import LONG, BatchCodec, RecordPacker, StreamRecord, TupleType, TypeSerializer
from tests.bench.contenders import (
    KIND,
    QUEUE_BATCHES,
    RECORD_BUFFERS,
    RECORDS,
    ROWS,
    SEGMENT_BYTES,
    Move,
    checksum,
    chunks,
    contender,
    cycled,
    expected,
)
from tests.bench.exchange import Exchange
from tests.bench.measure import Entry, in_two_threads, timed

__all__ = ["PATHS"]

LIST = 1_024
PER_LOOK = 64  # records written between two looks at the pool, as a source's batch


class Readable(TupleType):
    """A tuple type that does not say that its values are of one length: everything takes the general path."""

    def __init__(self, *fields: TypeSerializer) -> None:
        super().__init__(*fields)
        self.struct_format = None


PLAIN = Readable(LONG, LONG)


def emit(num_records: int, operator: Any) -> tuple[int, float, float]:
    """`writer.emit` for each record, as user code does through a collector."""
    engine = Exchange(KIND, RECORD_BUFFERS)
    return num_records, *in_two_threads(
        lambda: produce_one_by_one(engine, num_records), lambda: engine.consume_records(operator.record)
    )


def emit_many(num_records: int, operator: Any) -> tuple[int, float, float]:
    """`writer.emit_many` of lists."""
    engine = Exchange(KIND, RECORD_BUFFERS)
    pieces = chunks(RECORDS, num_records, LIST)
    return num_records, *in_two_threads(
        lambda: engine.produce_records(pieces), lambda: engine.consume_records(operator.record)
    )


def plain(num_records: int, operator: Any) -> tuple[int, float, float]:
    """The readable path: objects for each step, the same bytes."""
    engine = Exchange(PLAIN, RECORD_BUFFERS)
    return num_records, *in_two_threads(
        lambda: produce_one_by_one(engine, num_records), lambda: engine.consume_records(operator.record)
    )


def produce_one_by_one(engine: Exchange, num_records: int) -> None:
    def written() -> Iterator[Sequence[StreamRecord]]:
        write = engine.writer.emit
        for piece in chunks(RECORDS, num_records, PER_LOOK):
            for record in piece:
                write(record)
            yield ()  # the exchange looks whether the pool has run dry

    engine.produce_records(written())


def codec(num_records: int, operator: Any) -> tuple[int, float, float]:
    """Packed into segments and read again by one thread, handed over to nobody."""
    home = NetworkBufferPool(1, SEGMENT_BYTES)
    pool = LocalBufferPool(home, 1, 1, "codec", 1)
    packer, rows = RecordPacker.of(KIND), BatchCodec(KIND)
    assert packer is not None
    pack, process = packer.pack, operator.record
    per_segment = SEGMENT_BYTES // rows.width

    def work() -> None:
        records = cycled(RECORDS, num_records)
        while piece := list(islice(records, per_segment)):
            builder = pool.request_builder(0)
            assert builder is not None
            arrived = builder.create_consumer()
            for record in piece:
                pack(record, builder)
            builder.finish()
            filled = arrived.build()
            batch, _ = rows.decode(filled.data)
            times, *fields = (batch[name].tolist() for name in batch.dtype.names)
            for element in map(StreamRecord, zip(*fields, strict=True), times):
                process(element)
            filled.recycle()
            arrived.close()

    return num_records, *timed(work)


def pickled_lists(num_records: int, operator: Any) -> tuple[int, float, float]:
    """What a user writes who batches by hand."""
    between: queue.Queue[bytes | None] = queue.Queue(QUEUE_BATCHES)

    def produce() -> None:
        for rows in chunks(ROWS, num_records, LIST):
            between.put(pickle.dumps(rows, pickle.HIGHEST_PROTOCOL))
        between.put(None)

    def consume() -> None:
        process = operator.row
        while (message := between.get()) is not None:
            for row in pickle.loads(message):
                process(row)

    return num_records, *in_two_threads(produce, consume)


def entry(key: str, meaning: str, move: Move) -> Entry:
    return Entry(key, contender(key, meaning, move), expected, checksum)


PATHS = {
    made.key: made
    for made in (
        entry("paths/emit", "RecordWriter.emit to NetworkInput.next_element, ten buffers of 32 KiB", emit),
        entry("paths/emit_many", "the same, lists of 1024 handed to RecordWriter.emit_many", emit_many),
        entry("paths/plain", "the same without any fast path: an object for each step", plain),
        entry("paths/codec", "packed into segments and read again, in one thread, handed to nobody", codec),
        entry("paths/pickled lists", "queue.Queue(10) of pickled lists of 1024: batched by hand", pickled_lists),
    )
}
