"""Data sections of lessons 1 to 4: segments, buffers, records cut and records put together.

Each has two functions: `ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from course.data.comparison import rows_of
from course.data.dataframe_source import DataFrameSource
from course.data.oracle import LENGTH_BYTES, cuts, on_the_stream
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import InsufficientBuffersError
from refimpl.job import StreamEnvironment
from refimpl.memory import Buffer, BufferBuilder, NetworkBufferPool
from refimpl.records import LONG, STRING, SerializationResult, SpanningRecordSerializer, TupleType
from refimpl.task import IterableReader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "ask_buffers", "ask_checksums", "ask_partial", "ask_segments", "count_partial", "fill_segments", "round_trip",
    "start_plans",
]  # fmt: skip

SEGMENT_SIZES = (1 << 10, 4 << 10, 32 << 10)
CUT_SIZES = (64, 1 << 10, 32 << 10)
NUM_PARTITIONS = 3
_SMALL_SEGMENT = 64


# -- L01: segments and waste ---------------------------------------------------------------------------


def ask_segments(documents: DataFrame) -> dict[str, int]:
    """Segments needed and bytes left empty, if each record, with its length, begins in a segment of its own."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    length = F.col("size_bytes").cast("bigint") + LENGTH_BYTES
    sums = [F.sum(F.ceil(length / size)) for size in SEGMENT_SIZES]
    total, *segments = rows_of(documents.agg(F.sum(length), *sums))[0]
    return _segments_in_words({size: (n, n * size - total) for size, n in zip(SEGMENT_SIZES, segments, strict=True)})


def fill_segments(documents: DataFrame) -> dict[str, int]:
    """Segments that the engine's pool hands out for the same records, and the bytes of them that stay empty."""
    records = list(_records(documents))
    found = {}
    for size in SEGMENT_SIZES:
        pool = NetworkBufferPool(1, size)
        serializer = SpanningRecordSerializer()
        num_segments = num_empty = 0
        for record in records:
            serializer.serialize_record(record)
            is_done = False
            while not is_done:
                segment = pool.request_segment()
                assert segment is not None, "the one segment came back"
                builder = BufferBuilder(Buffer(segment, pool))
                is_done = serializer.copy_to_buffer_builder(builder).is_full_record
                num_segments += 1
                num_empty += builder.room
                builder.finish()
        found[size] = num_segments, num_empty
    return _segments_in_words(found)


def _segments_in_words(found: dict[int, tuple[int, int]]) -> dict[str, int]:
    answer: dict[str, int] = {}
    for size, (segments, empty) in found.items():
        answer |= {f"{size >> 10} KiB: segments": segments, f"{size >> 10} KiB: bytes empty": empty}
    return answer


# -- L02: which plan starves ---------------------------------------------------------------------------


def ask_buffers(plans: DataFrame) -> dict[str, str]:
    """Buffers that the fullest TaskManager must have: of outputs and of remote inputs, by Flink's formulas.

    An output with n channels needs n + 1. An input needs 2 for each channel from another TaskManager, and 1 that
    floats. Subtask i is in slot i, and the slots fill the TaskManagers one after the other.
    """
    from pyspark.sql import functions as F  # noqa: N812

    slots = F.greatest("producers", "consumers")

    def place(subtask: Column) -> Column:
        return F.floor(subtask * F.col("task_managers") / slots).cast("int")

    first = plans.withColumn("p", F.explode(F.sequence(F.lit(0), F.col("producers") - 1)))
    outputs = first.select("id", place(F.col("p")).alias("tm"), (F.col("consumers") + 1).alias("n"))
    pairs = first.withColumn("c", F.explode(F.sequence(F.lit(0), F.col("consumers") - 1)))
    is_remote = place(F.col("p")) != place(F.col("c"))
    remote = pairs.where(is_remote).groupBy("id", "c", place(F.col("c")).alias("tm")).count()
    inputs = remote.select("id", "tm", (F.col("count") * 2 + 1).alias("n"))
    on_each = outputs.union(inputs).groupBy("id", "tm").agg(F.sum("n").alias("n"))
    needed = on_each.groupBy("id").agg(F.max("n").alias("needed")).join(plans, "id").orderBy("id")
    rows = rows_of(needed.select("id", "needed", "buffers"))
    return {f"plan {plan}": _verdict(need, starves=need > has) for plan, need, has in rows}


def start_plans(plans: DataFrame) -> dict[str, str]:
    """Start each plan with the buffers it has; those that cannot start say so themselves."""
    names = ["id", "producers", "consumers", "task_managers", "buffers"]
    found = {}
    for plan, producers, consumers, task_managers, buffers in rows_of(plans.select(*names).orderBy("id")):
        environment = StreamEnvironment(Config(num_buffers=buffers, segment_size_bytes=_SMALL_SEGMENT))
        source = environment.source(lambda *_: IterableReader(()), parallelism=producers)
        source.rebalance().sink(_ignore).set_parallelism(consumers)
        needed = environment.execution_graph(task_managers).num_required_buffers
        try:
            with Simulation(environment, num_task_managers=task_managers):
                starves = False
        except InsufficientBuffersError:
            starves = True
        found[f"plan {plan}"] = _verdict(needed, starves=starves)
    return found


def _verdict(needed: int, *, starves: bool) -> str:
    return f"{needed}, {'starves' if starves else 'starts'}"


def _ignore(_value: object) -> None: ...


# -- L03: how often a record is cut --------------------------------------------------------------------


def ask_partial(documents: DataFrame) -> dict[str, int]:
    """Copies that say PARTIAL: a record on the stream is cut at each multiple of the buffer size within it."""
    from pyspark.sql import functions as F  # noqa: N812

    sums = [F.sum(cuts(F.col("start"), F.col("end"), size)) for size in CUT_SIZES]
    found = rows_of(on_the_stream(documents).agg(*sums))[0]
    return {f"{size} bytes": number for size, number in zip(CUT_SIZES, found, strict=True)}


def count_partial(documents: DataFrame) -> dict[str, int]:
    """The same from the engine's serializer."""
    records = list(_records(documents))
    partial = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
    return {f"{size} bytes": Counter(results_of_copies(records, size))[partial] for size in CUT_SIZES}


def results_of_copies(records: Iterable[bytes], segment_size: int) -> Iterator[SerializationResult]:
    """What the serializer answers, copy by copy, when records go into buffers of one size, one after the other."""
    pool = NetworkBufferPool(1, segment_size)
    serializer = SpanningRecordSerializer()
    builder: BufferBuilder | None = None
    for record in records:
        serializer.serialize_record(record)
        is_done = False
        while not is_done:
            if builder is None:
                segment = pool.request_segment()
                assert segment is not None, "the one segment came back"
                builder = BufferBuilder(Buffer(segment, pool))
            result = serializer.copy_to_buffer_builder(builder)
            yield result
            is_done = result.is_full_record
            if result.is_full_buffer:
                builder.finish()
                builder = None
        serializer.prune()


# -- L04: a round trip ---------------------------------------------------------------------------------


def ask_checksums(documents: DataFrame) -> dict[str, str]:
    """Rows, bytes and the sum of CRC-32 of the texts of each partition."""
    from pyspark.sql import functions as F  # noqa: N812

    part = F.pmod(F.col("id"), F.lit(NUM_PARTITIONS)).alias("part")
    sums = F.count("*"), F.sum(F.length("text")), F.sum(F.crc32(F.encode("text", "utf-8")))
    rows = rows_of(documents.groupBy(part).agg(*sums).orderBy("part"))
    return {f"partition {number}": _checksum(*of_part) for number, *of_part in rows}


def round_trip(documents: DataFrame) -> dict[str, str]:
    """The same of what arrives behind a network of buffers of 64 bytes, most records in many of them."""
    found = {part: [0, 0, 0] for part in range(NUM_PARTITIONS)}
    lock = threading.Lock()

    def add(value: tuple[int, str]) -> None:
        with lock:
            sums, text = found[value[0]], value[1].encode()
            sums[0] += 1
            sums[1] += len(text)
            sums[2] += zlib.crc32(text)

    config = Config(segment_size_bytes=_SMALL_SEGMENT, num_buffers=512)
    environment = StreamEnvironment(config, parallelism=NUM_PARTITIONS)
    with DataFrameSource(documents.select("id", "text"), order_by="id", batch_size=64) as source:
        stream = environment.source(source, "documents").map(_part_and_text, type=TupleType(LONG, STRING))
        stream.key_by(0).sink(add)
        ThreadedRun(environment).run()
    return {f"partition {part}": _checksum(*sums) for part, sums in found.items()}


def _part_and_text(document: dict[str, Any]) -> tuple[int, str]:
    return document["id"] % NUM_PARTITIONS, document["text"]


def _checksum(num_rows: int, num_bytes: int, total: int) -> str:
    return f"{num_rows} rows, {num_bytes} bytes, {total}"


def _records(documents: DataFrame) -> Iterator[bytes]:
    """Records as long as the documents, in order; what is in them makes no difference."""
    for (size,) in rows_of(documents.orderBy("id").select("size_bytes")):
        yield bytes(size)
