"""A shuffle by way of the disk: batches of columns written to the end, and then read, beside Arrow's own files.

All write the same three columns of numbers to a file of the machine's temporary directory, and sum one of them when
they read it. The file is not forced to the disk, by nobody: whoever needs that makes checkpoints.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from refimpl.batch_options import Compression
from refimpl.config import Config
from refimpl.drivers.blocking_files import ResultFiles
from refimpl.exchange import ProducerId, ResultPartitionId
from refimpl.job import Parts
from refimpl.memory import NetworkBufferPool
from refimpl.producer import ForwardSelector, max_buffers, required_buffers
from refimpl.records import RecordBatch, SpanningRecordSerializer, StreamElementSerializer, StreamRecord
from refimpl.shortcuts.channels import FastInputGate
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.makers import FastMakers
from refimpl.shortcuts.partition import FastBufferPool, FastLocalInputChannel
from refimpl.shortcuts.writer import FastRecordWriter
from tests.bench.exchange import elements_of
from tests.bench.measure import Entry, timed
from tests.bench.stateful import entry
from tests.bench.windows import BATCH, KIND, columns, in_all

__all__ = ["BLOCKING"]


def batches(num: int) -> Iterator[list[Any]]:
    """The columns, a batch at a time."""
    return ([column[start : start + BATCH] for column in columns(num)] for start in range(0, num, BATCH))


def by_our_files(num: int, compression: Compression) -> tuple[int, float, float]:
    """A blocking result of one channel, written by one writer and then read by one reader."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(spill_directory=folder, compression=compression)
        files = ResultFiles(config, 1)
        with closing(files):
            total: list[int] = []
            spent = timed(lambda: total.append(_written_and_read(num, config, files)))
    assert total == [in_all(num, 1)]
    return num, *spent


def _written_and_read(num: int, config: Config, files: ResultFiles) -> int:
    elements, makers, results = StreamElementSerializer(KIND), FastMakers(), files.results[0]
    most = max_buffers(1, config)
    pool = FastBufferPool(NetworkBufferPool(most, config.segment_size_bytes), required_buffers(1), most, "source-0", 1)
    partition = results.create(ResultPartitionId(bytes(16), 0, ProducerId(bytes(16))), "source-0", 1, pool)
    writer = FastRecordWriter(partition, ForwardSelector(), elements, SpanningRecordSerializer(), nullcontext())
    for each in batches(num):
        writer.write_batch(RecordBatch(each))
        while not writer.resume():
            pass
    writer.finish()
    channel = FastLocalInputChannel(0, partition.create_view(0))
    gate = FastInputGate("sink-0", [channel], codec=results.codec, most_bytes=config.segment_size_bytes)
    source = FastNetworkInput(gate, elements, lambda: makers.deserializer(Parts(), config), takes_batches=True)
    gate.open()
    total = 0
    while not source.is_finished:
        source.take(16)
        for element in elements_of(source):
            if isinstance(element, RecordBatch):
                total += int(element[1].sum())
            elif isinstance(element, StreamRecord):
                total += element.value[1]
        source.recycle()
    return total


def by_arrow(num: int, compression: str | None) -> tuple[int, float, float]:
    """The columns as an IPC file, mapped when it is read."""
    with tempfile.TemporaryDirectory() as folder:
        total: list[int] = []
        spent = timed(lambda: total.append(_by_ipc(num, Path(folder) / "columns.arrow", compression)))
    assert total == [in_all(num, 1)]
    return num, *spent


def _by_ipc(num: int, path: Path, compression: str | None) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = pa.schema([(name, pa.int64()) for name in "kvt"])
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for each in batches(num):
            writer.write_batch(pa.record_batch([pa.array(column) for column in each], schema=schema))
    with pa.memory_map(str(path)) as mapped:
        reader = pa.ipc.open_file(mapped)
        read = (reader.get_batch(number) for number in range(reader.num_record_batches))
        return sum(pc.sum(batch.column(1)).as_py() for batch in read)


def by_parquet(num: int) -> tuple[int, float, float]:
    """The columns as Parquet with lz4, as a spill of pyarrow is written."""
    with tempfile.TemporaryDirectory() as folder:
        total: list[int] = []
        spent = timed(lambda: total.append(_by_parquet(num, Path(folder) / "columns.parquet")))
    assert total == [in_all(num, 1)]
    return num, *spent


def _by_parquet(num: int, path: Path) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.int64()) for name in "kvt"])
    with pq.ParquetWriter(path, schema, compression="lz4") as writer:
        for each in batches(num):
            writer.write_batch(pa.record_batch([pa.array(column) for column in each], schema=schema))
    return sum(pc.sum(batch.column(1)).as_py() for batch in pq.ParquetFile(path).iter_batches())


def _made(key: str, meaning: str, run: Callable[[int], tuple[int, float, float]]) -> Entry:
    return entry(key, meaning, run, least_records=20 * BATCH)


BLOCKING: dict[str, Entry] = {
    each.key: each
    for each in (
        _made("blocking/files", "a blocking result, batches", partial(by_our_files, compression=Compression.NONE)),
        _made("blocking/lz4", "the same, compressed", partial(by_our_files, compression=Compression.LZ4)),
        _made("peers/Arrow IPC file", "an IPC file of the same columns", partial(by_arrow, compression=None)),
        _made("peers/Arrow IPC file, lz4", "the same, compressed", partial(by_arrow, compression="lz4")),
        _made("peers/Parquet, lz4", "a Parquet file of the same columns", by_parquet),
    )
}
