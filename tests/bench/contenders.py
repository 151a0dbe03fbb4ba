"""Who is compared: the engine, and what a user would take instead or what the machine allows at most.

Everyone moves the same records between two threads of one process, through something bounded, and ends in one call per
record (or per batch) that adds up a number, so that every turn can be checked. What is built before the first record,
such as pools and queues, is not timed.

A record is three whole numbers, (time, key, value), as Flink writes a `StreamRecord` of two longs: 29 bytes. A batch is
three columns of numpy at both ends, for everyone: what has to be made of them, a batch of Arrow's or of the engine's,
is made while the clock runs. Contenders that are called *ready* begin with Arrow's batches instead.
"""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import Parts, StreamEnvironment
from refimpl.memory import BufferBuilder, DataType, allocate_pages, heap_buffer
from refimpl.producer import KeyGroupSelector
from refimpl.records import (
    LONG,
    Field,
    RecordBatch,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamRecord,
    TupleType,
)
from refimpl.shortcuts.fixed_width import RecordPacker, RecordUnpacker
from refimpl.shortcuts.lanes import Lanes
from tests.bench.exchange import Exchange
from tests.bench.measure import Benchmark, Contender, Ratio, Row, Turn, in_two_threads, timed

__all__ = ["BENCHMARKS"]

KIND = TupleType(LONG, LONG)
NUM_DISTINCT = 8_192  # few objects, so that cache misses of the data do not hide what is measured
BATCH = 4_096
KEYED_BATCH = 2 * NUM_DISTINCT  # cut over as many channels, 2048 rows for each
KEYED_CHANNELS = 8
KEYED_BUFFERS = 6  # for each channel; a batch takes two of each
QUEUE_RECORDS = 1_024
QUEUE_BATCHES = 10
RECORD_BUFFERS = 10  # Flink's default for one channel: two of its own and eight floating
BATCH_BUFFERS = 34  # 32 KiB each: about the ten batches the queue holds
REMOTE_BUFFERS = 128  # four megabytes, what Linux lets a socket have
REMOTE_BATCHES = 36  # what they hold, for the peers
SEGMENT_BYTES = 32_768
LARGE_BYTES = 4 * SEGMENT_BYTES  # one holds a batch
RECORD_BYTES = 29

_random = np.random.default_rng(20_111)
TIMES = np.arange(NUM_DISTINCT, dtype=np.int64) * 7
KEYS = _random.integers(-(2**40), 2**40, NUM_DISTINCT)
VALUES = _random.integers(-(2**40), 2**40, NUM_DISTINCT)
ROWS: list[Row] = list(zip(TIMES.tolist(), KEYS.tolist(), VALUES.tolist(), strict=True))
RECORDS = [StreamRecord((key, value), time) for time, key, value in ROWS]
SCHEMA = pa.schema([("time", pa.int64()), ("key", pa.int64()), ("value", pa.int64())])
COLUMNS = [
    [column[start : start + BATCH] for column in (TIMES, KEYS, VALUES)] for start in range(0, NUM_DISTINCT, BATCH)
]
LARGE = RecordBatch([np.tile(KEYS, 2), np.tile(VALUES, 2)], np.tile(TIMES, 2))
KEYED_MEANING = f"write_batch of {KEYED_BATCH} rows by key group to {KEYED_CHANNELS} channels; one thread reads all"
SUMS = np.concatenate([[0], np.cumsum(VALUES)]).tolist()


def expected(num_records: int) -> list[Row]:
    """The first records, in order: the distinct ones over and over."""
    whole, rest = divmod(num_records, NUM_DISTINCT)
    return ROWS * whole + ROWS[:rest]


def checksum(num_records: int) -> int:
    """The sum of the values of the first records."""
    whole, rest = divmod(num_records, NUM_DISTINCT)
    return whole * SUMS[-1] + SUMS[rest]


def chunks(of: Sequence[Any], num_records: int, size: int) -> Iterator[Sequence[Any]]:
    """`num_records` of these, over and over, in pieces of `size`; `size` divides their number."""
    pieces = [of[start : start + size] for start in range(0, len(of), size)]
    for index in range(-(-num_records // size)):
        piece = pieces[index % len(pieces)]
        yield piece[: num_records - index * size]


def cycled(of: Sequence[Any], num_items: int) -> Iterator[Any]:
    for start in range(0, num_items, len(of)):
        yield from islice(of, num_items - start)


def batches(num_batches: int) -> Iterator[RecordBatch]:
    """The columns as the engine takes them."""
    return (RecordBatch(fields, times) for times, *fields in cycled(COLUMNS, num_batches))


def arrow_of(columns: Sequence[Any]) -> pa.RecordBatch:
    """The columns as Arrow takes them, which copies nothing."""
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


READY = [arrow_of(columns) for columns in COLUMNS]
"""Arrow's batches, there before the clock runs. They are made with this module in any case: pyarrow looks for pandas,
and loads it, when it makes its first array."""


def arrow_batches(num_batches: int, is_ready: bool) -> Iterator[pa.RecordBatch]:
    """Arrow's batches: made as they are asked for, or there already."""
    return cycled(READY, num_batches) if is_ready else map(arrow_of, cycled(COLUMNS, num_batches))


class Adding:
    """The operator at the end: one call per record, or per batch, that adds up values."""

    def __init__(self) -> None:
        self.total = 0

    def record(self, value: tuple[int, int], _time: int | None) -> None:
        self.total += value[1]

    def value(self, value: tuple[int, int]) -> None:
        self.total += value[1]

    def row(self, row: Row) -> None:
        self.total += row[2]

    def columns(self, _times: Any, _keys: Any, values: Any) -> None:
        self.total += int(values.sum())


class Keeping:
    """The operator at the end when delivery is checked: keeps everything."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def record(self, value: tuple[int, int], time: int) -> None:
        self.rows.append((time, *value))

    def value(self, value: tuple[int, int]) -> None:
        """A sink sees no times: this one is what it must have been."""
        self.rows.append((TIMES[len(self.rows) % NUM_DISTINCT].item(), *value))

    def row(self, row: Row) -> None:
        self.rows.append(row)

    def columns(self, times: Any, keys: Any, values: Any) -> None:
        self.rows.extend(zip(times.tolist(), keys.tolist(), values.tolist(), strict=True))


Move = Callable[[int, Any], tuple[int, float, float]]
"""Moves about n records to an operator; returns (records moved, wall seconds, CPU seconds)."""


def contender(name: str, meaning: str, move: Move, is_ordered: bool = True) -> Contender:
    def run(num_records: int) -> Turn:
        operator = Adding()
        return Turn(*move(num_records, operator), operator.total)

    def deliver(num_records: int) -> tuple[int, list[Row]]:
        operator = Keeping()
        num_moved = move(num_records, operator)[0]
        return num_moved, operator.rows

    return Contender(name, meaning, run, deliver, is_ordered)


# -- one record at a time ------------------------------------------------------------------------------


def exchange(num_records: int, operator: Any) -> tuple[int, float, float]:
    return through(Exchange(KIND, RECORD_BUFFERS), num_records, operator)


def through(engine: Exchange, num_records: int, operator: Any) -> tuple[int, float, float]:
    """One call of `emit` for each record."""
    pieces = chunks(RECORDS, num_records, 64)
    return num_records, *in_two_threads(
        lambda: engine.produce_records(pieces), lambda: engine.consume_records(operator.record)
    )


def exchange_of_chunks(num_records: int, operator: Any) -> tuple[int, float, float]:
    engine, pieces = Exchange(KIND, RECORD_BUFFERS), chunks(RECORDS, num_records, QUEUE_RECORDS)
    return num_records, *in_two_threads(
        lambda: engine.produce_chunks(pieces), lambda: engine.consume_records(operator.record)
    )


def keyed_exchange(num_records: int, operator: Any) -> tuple[int, float, float]:
    by_key = KeyGroupSelector(Field(0), 128)
    engine = Exchange(KIND, RECORD_BUFFERS, selector=by_key)
    for record in RECORDS:
        engine.writer.select(record.value)  # a key is hashed once, and these come over and over
    return through(engine, num_records, operator)


def readable_exchange(num_records: int, operator: Any) -> tuple[int, float, float]:
    """Every step an object and a call, as the code reads: the fast paths need the reference parts themselves."""

    class Serializer(SpanningRecordSerializer):
        pass

    class Deserializer(SpillingAdaptiveSpanningRecordDeserializer):
        pass

    parts = Parts(Serializer, Deserializer)
    return through(Exchange(KIND, RECORD_BUFFERS, parts), num_records, operator)


def codec(num_records: int, operator: Any) -> tuple[int, float, float]:
    """The engine's packing and unpacking of one record at a time, in one thread, into and out of one segment."""
    unpacker = RecordUnpacker(KIND)

    def work() -> None:
        lanes = Lanes(RecordPacker.of(KIND), 1, lambda record, _channel: turn(record))
        builder: BufferBuilder | None = None

        def turn(record: StreamRecord) -> None:
            nonlocal builder
            if builder is not None:
                unload(builder)
            builder = BufferBuilder(heap_buffer(bytes(SEGMENT_BYTES), DataType.DATA))
            lanes.open(0, builder)
            put(record)

        put = lanes.put[0]
        for record in cycled(RECORDS, num_records):
            put(record)
        if builder is not None:
            unload(builder)

    def unload(builder: BufferBuilder) -> None:
        process = operator.record
        filled = builder.memory[: builder.written_bytes]
        _, values, times = unpacker.unpack(filled)
        for value, time in zip(values, times, strict=True):
            process(value, time)

    return num_records, *timed(work)


class Reader:
    """A source that hands out the records there are, without making new ones."""

    def __init__(self, num_records: int) -> None:
        self._pieces = chunks(RECORDS, num_records, 64)

    def read(self, _max_records: int) -> Sequence[StreamRecord] | None:
        return next(self._pieces, None)

    def close(self) -> None: ...


def job(num_records: int, operator: Any) -> tuple[int, float, float]:
    environment = StreamEnvironment(Config(buffer_timeout_ms=-1, num_buffers=64, source_batch=64))
    source = environment.source(lambda _subtask, _parallelism: Reader(num_records), type=KIND)
    source.rebalance().sink(operator.value)
    return num_records, *timed(ThreadedRun(environment).run)


def queue_of_records(num_records: int, operator: Any) -> tuple[int, float, float]:
    between: queue.Queue[Row | None] = queue.Queue(QUEUE_RECORDS)

    def produce() -> None:
        put = between.put
        for row in cycled(ROWS, num_records):
            put(row)
        put(None)

    def consume() -> None:
        get, process = between.get, operator.row
        while (row := get()) is not None:
            process(row)

    return num_records, *in_two_threads(produce, consume)


def queue_of_pickles(num_records: int, operator: Any) -> tuple[int, float, float]:
    """What who batches by hand gets: lists of 1024 rows, pickled."""
    between: queue.Queue[bytes | None] = queue.Queue(QUEUE_BATCHES)

    def produce() -> None:
        for rows in chunks(ROWS, num_records, QUEUE_RECORDS):
            between.put(pickle.dumps(rows, pickle.HIGHEST_PROTOCOL))
        between.put(None)

    def consume() -> None:
        process = operator.row
        while (message := between.get()) is not None:
            for row in pickle.loads(message):
                process(row)

    return num_records, *in_two_threads(produce, consume)


# -- many records at a time ----------------------------------------------------------------------------


def whole_batches(num_records: int) -> int:
    """How many batches hold at least that many records."""
    return max(1, -(-num_records // BATCH))


def exchange_of_batches(
    num_records: int, operator: Any, segment_bytes: int = SEGMENT_BYTES
) -> tuple[int, float, float]:
    num_buffers = -(-BATCH_BUFFERS * SEGMENT_BYTES // segment_bytes)  # as much on the way, however large they are
    engine = Exchange(KIND, num_buffers, takes_batches=True, segment_bytes=segment_bytes)
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *in_two_threads(
        lambda: engine.produce_batches(batches(num_batches)),
        lambda: engine.consume_batches(lambda batch: operator.columns(batch.timestamps, *batch.columns)),
    )


def keyed_exchange_of_batches(num_records: int, operator: Any) -> tuple[int, float, float]:
    engine = Exchange(
        KIND, KEYED_BUFFERS, selector=KeyGroupSelector(Field(0), 128), takes_batches=True, num_channels=KEYED_CHANNELS
    )
    num_batches = max(1, -(-num_records // KEYED_BATCH))
    return num_batches * KEYED_BATCH, *in_two_threads(
        lambda: engine.produce_batches(repeat(LARGE, num_batches)),
        lambda: engine.consume_batches(lambda batch: operator.columns(batch.timestamps, *batch.columns)),
    )


def queue_of_arrow(num_records: int, operator: Any, is_ready: bool = False) -> tuple[int, float, float]:
    between: queue.Queue[pa.Buffer | None] = queue.Queue(QUEUE_BATCHES)
    num_batches = whole_batches(num_records)
    made = arrow_batches(num_batches, is_ready)

    def produce() -> None:
        for batch in made:
            between.put(batch.serialize())
        between.put(None)

    def consume() -> None:
        while (message := between.get()) is not None:
            batch = pa.ipc.read_record_batch(message, SCHEMA)
            operator.columns(*(column.to_numpy() for column in batch.columns))

    return num_batches * BATCH, *in_two_threads(produce, consume)


def copied_segments(num_records: int, operator: Any) -> tuple[int, float, float]:
    """Segments of 32 KiB from a pool to a queue and back; the bytes are copied in and out, and nobody looks at them.

    The segments hold the columns of whole batches one after the other, as raw numbers; they count as many records as
    29 bytes go into them, what the engine has to move for as many.
    """
    home: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
    for _ in range(BATCH_BUFFERS):
        home.put(allocate_pages(SEGMENT_BYTES))
    between: queue.SimpleQueue[tuple[memoryview, int] | None] = queue.SimpleQueue()
    num_batches = whole_batches(num_records)
    images = [image_of(columns) for columns in COLUMNS]
    arrived = allocate_pages(BATCH * RECORD_BYTES)

    def produce() -> None:
        for image in cycled(images, num_batches):
            for start in range(0, len(image), SEGMENT_BYTES):
                piece = image[start : start + SEGMENT_BYTES]
                segment = home.get()
                segment[: len(piece)] = piece
                between.put((segment, len(piece)))
        between.put(None)

    def consume() -> None:
        position = 0
        while (taken := between.get()) is not None:
            segment, length = taken
            arrived[position : position + length] = segment[:length]
            home.put(segment)
            position += length
            if position == len(arrived):
                position = 0
                numbers = np.frombuffer(arrived, np.int64, 3 * BATCH)
                operator.columns(*numbers.reshape(3, BATCH))

    return num_batches * BATCH, *in_two_threads(produce, consume)


def image_of(columns: Sequence[Any]) -> memoryview:
    """Three columns of raw numbers, filled up to 29 bytes for each record."""
    image = bytearray(len(columns[0]) * RECORD_BYTES)
    numbers = np.stack(columns)
    image[: numbers.nbytes] = numbers.tobytes()
    return memoryview(image)


BENCHMARKS = (
    Benchmark(
        "record",
        "one record at a time, from thread to thread",
        (
            contender("exchange", "RecordWriter.emit to NetworkInput.next_values, ten buffers of 32 KiB", exchange),
            contender("emit_many", "the same with RecordWriter.emit_many of 1024 records", exchange_of_chunks),
            contender("keyed", "the same with emit, and a key group for each record", keyed_exchange),
            contender("readable", "the same with emit and no fast path: an object for each step", readable_exchange),
            contender("codec", "what emit and the input do to a record's bytes, in one thread, no exchange", codec),
            contender("job", "source to sink in two tasks, by ThreadedRun: what a user's job gets", job),
            contender("queue.Queue", "the objects themselves, nothing serialised; at most 1024 wait", queue_of_records),
            contender("pickle", "queue.Queue of lists of 1024 rows, pickled: batched by hand", queue_of_pickles),
        ),
        (
            Ratio("exchange", "queue.Queue", goal=3.5, floor=2.5),
            Ratio("exchange", "readable", goal=5, floor=4),
            Ratio("exchange", "pickle", goal=0.85, floor=0.7),
            Ratio("exchange", "codec", goal=0.9, floor=0.8),
            Ratio("emit_many", "pickle", goal=1.0, floor=0.9),
            Ratio("emit_many", "queue.Queue"),
            Ratio("keyed", "exchange"),
            Ratio("job", "queue.Queue"),
            Ratio("job", "exchange"),
        ),
        expected,
        checksum,
    ),
    Benchmark(
        "batch",
        f"{BATCH} rows at a time, from thread to thread",
        (
            contender("exchange", "RecordWriter.write_batch to rows again: Flink's bytes", exchange_of_batches),
            contender(
                "large", "buffers of 128 KiB, as much memory", partial(exchange_of_batches, segment_bytes=LARGE_BYTES)
            ),
            contender("keyed", KEYED_MEANING, keyed_exchange_of_batches, is_ordered=False),
            contender("Arrow IPC", "queue.Queue of the batch in Arrow's own format", queue_of_arrow),
            contender("Arrow IPC, ready", "the same of Arrow's batches", partial(queue_of_arrow, is_ready=True)),
            contender("copy", "copied into segments of 32 KiB and out, nothing encoded: the limit", copied_segments),
        ),
        (Ratio("exchange", "Arrow IPC", goal=1.0, floor=0.8), Ratio("exchange", "copy", goal=0.5, floor=0.35)),
        expected,
        checksum,
    ),
)  # fmt: skip
