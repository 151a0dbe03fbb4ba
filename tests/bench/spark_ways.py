"""Every way out of Spark into Python: rows per second of the same table, ways taking turns.

    python -m tests.bench.spark_ways                   a table; the same as JSON in .cache/bench/spark_ways.json
    python -m tests.bench.spark_ways --rows 5000000    a larger table
    python -m tests.bench.spark_ways toArrow TCP       some of them

All ways start from one Parquet file of Spark's and end when Python has seen every row: their number and the sum of two
columns are checked in each turn. A ratio is to `collect` within one round. CPU is of this process alone; what the JVM
and its Python workers do shows in the wall clock only.
"""

from __future__ import annotations

import argparse
import os
import queue
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.compute as pc

from course.data.dataframe_source import DataFrameSource
from course.data.datasets import data_set
from course.data.partitions import batches_of
from course.data.scratch import scratch
from course.data.session import spark
from course.data.store import make, read_table
from refimpl.records import RecordBatch
from tests.bench.program import run_program
from tests.bench.report import deliver, machine, machine_in_words, number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CHOSEN", "WAYS", "Way", "main", "run"]

FORMAT = "sluice-spark-ways/1"
FILE = Path(__file__).parents[2] / ".cache" / "bench" / "spark_ways.json"
LOOPBACK = "127.0.0.1"
TABLE = "zipf"

Sums = tuple[int, int, int]
"""Rows, and the sums of `id` and `amount_cents`."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way out: what it does, and what of the table is in this process's memory at a time."""

    name: str
    meaning: str
    holds: str
    take: Callable[[DataFrame], Sums]


# -- ways --------------------------------------------------------------------------------------------


def of_rows(rows: Iterable[Any]) -> Sums:
    count = ids = amounts = 0
    for row in rows:
        count += 1
        ids += row.id
        amounts += row.amount_cents
    return count, ids, amounts


def of_arrow(batches: Iterable[pa.RecordBatch | pa.Table]) -> Sums:
    count = ids = amounts = 0
    for batch in batches:
        count += batch.num_rows
        ids += pc.sum(batch["id"]).as_py() or 0
        amounts += pc.sum(batch["amount_cents"]).as_py() or 0
    return count, ids, amounts


def of_batches(batches: Iterable[RecordBatch]) -> Sums:
    count = ids = amounts = 0
    for batch in batches:
        count += len(batch)
        ids += int(batch["id"].sum())
        amounts += int(batch["amount_cents"].sum())
    return count, ids, amounts


def through_files(frame: DataFrame) -> Sums:
    """As the engine's sources do on one machine: Spark writes, two readers read, one after the other."""
    source = DataFrameSource(frame, batch_size=65_536)
    readers = [source(subtask, 2) for subtask in range(2)]
    try:
        return of_batches(batch for reader in readers for batch in iter(partial(reader.read, 1), None))
    finally:
        for reader in readers:
            reader.close()


def files_alone(frame: DataFrame) -> Sums:
    """What is left of that when the files are there already, and Spark has no part in it."""
    files = [Path(url2pathname(urlparse(name).path)) for name in frame.inputFiles()]
    return of_arrow(batch for file in files for batch in batches_of(file, frame.columns, 65_536))


def as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In Spark's workers: each batch as one row of bytes."""
    for batch in batches:
        with pa.BufferOutputStream() as out:
            with pa.ipc.new_stream(out, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.record_batch([pa.array([out.getvalue().to_pybytes()], pa.binary())], ["data"])


def through_rows_of_bytes(frame: DataFrame) -> Sums:
    rows = frame.mapInArrow(as_bytes, "data binary").toLocalIterator(prefetchPartitions=True)
    return of_arrow(batch for row in rows for batch in pa.ipc.open_stream(row.data))


def push(port: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In Spark's workers: each partition over a connection of its own."""
    with socket.create_connection((LOOPBACK, port)) as out, out.makefile("wb") as file:
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_stream(file, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()
        file.flush()
        out.shutdown(socket.SHUT_WR)
        out.recv(1)  # until all is read: when a job is done its port is closed, which may not have accepted this yet
    yield pa.record_batch([pa.array([1], pa.int32())], ["done"])


class Inbox:
    """A port to push to, and what comes there; at most four batches wait."""

    def __init__(self) -> None:
        self._ready: queue.Queue[pa.RecordBatch | None] = queue.Queue(4)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._readers: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What comes, until `end`."""
        return iter(self._ready.get, None)

    def end(self) -> None:
        """Nobody will connect any more; what is under way still comes."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        for reader in self._readers:
            reader.join()
        self._ready.put(None)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it was shut down
                return
            self._readers.append(threading.Thread(target=self._receive, args=(connection,), daemon=True))
            self._readers[-1].start()

    def _receive(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file:
            if file.peek(1):  # a partition without rows sends nothing
                for batch in pa.ipc.open_stream(file):
                    self._ready.put(batch)


def while_spark_works(job: Callable[[int], object]) -> Sums:
    """Let Spark do `job(port)`, and take what comes to the port in a thread of its own.

    Not the other way round: a thread that Spark has not seen knows no session, and so no data source of it.
    """
    inbox = Inbox()
    taken: list[Sums] = []
    taker = threading.Thread(target=lambda: taken.append(of_arrow(inbox.batches())), daemon=True)
    taker.start()
    try:
        job(inbox.port)
    finally:
        inbox.end()
        taker.join()
    return taken[0]


def through_tcp(frame: DataFrame) -> Sums:
    return while_spark_works(lambda port: frame.mapInArrow(partial(push, port), "done int").collect())


def through_data_source(frame: DataFrame) -> Sums:
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class Writer(DataSourceArrowWriter):
        def __init__(self, port: int) -> None:
            self.port = port

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            list(push(self.port, iterator))
            return WriterCommitMessage()

    class Push(DataSource):
        @classmethod
        def name(cls) -> str:
            return "sluice-bench-push"

        def writer(self, schema: Any, overwrite: bool) -> Writer:
            return Writer(int(self.options["port"]))

    frame.sparkSession.dataSource.register(Push)

    def work(port: int) -> None:
        frame.write.format("sluice-bench-push").option("port", port).mode("append").save()

    return while_spark_works(work)


WAYS = [
    Way("collect", "Row objects, all at once", "the table", lambda frame: of_rows(frame.collect())),
    Way("toLocalIterator", "Row objects, partition by partition", "a partition",
        lambda frame: of_rows(frame.toLocalIterator(prefetchPartitions=True))),
    Way("toArrow", "one Arrow table", "the table", lambda frame: of_arrow([frame.toArrow()])),
    Way("files", "Spark writes Parquet, pyarrow reads it (DataFrameSource)", "a row group", through_files),
    Way("files alone", "the same files read again, without Spark", "a row group", files_alone),
    Way("bytes", "mapInArrow makes a row of bytes of each batch", "a partition", through_rows_of_bytes),
    Way("TCP", "mapInArrow pushes Arrow over a connection", "four batches", through_tcp),
    Way("DataSource", "a Python data source's writer does the same", "four batches", through_data_source),
]  # fmt: skip

CHOSEN = """\
DataFrameSource takes the files where all is on one machine: memory is bounded by a row group, partition i is read by
subtask i, and no JVM works beside the job that is measured. On a cluster the tasks get their partitions from mapInArrow
directly, so that nothing passes the driver. For small answers, such as an oracle's, toArrow is one line and quick."""


# -- turns -------------------------------------------------------------------------------------------


def run(
    ways: Sequence[Way], rows: int, rounds: int, say: Callable[[str], object], *, quick_start: bool = False
) -> list[dict[str, Any]]:
    """Let the ways take turns; a first turn of each, which warms the JVM, does not count."""
    session = spark("bench", quick=quick_start)
    found: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    with scratch("ways") as folder:
        make(TABLE, session, folder / TABLE, rows)
        frame = read_table(session, folder / TABLE, data_set(TABLE).types).select("id", "user", "amount_cents")
        want = of_arrow([frame.toArrow()])
        for turn in range(rounds + 1):
            say(f"round {turn} of {rounds}" if turn else "warming up")
            for way in ways:
                wall, cpu = time.perf_counter(), time.process_time()
                got = way.take(frame)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                assert got == want, f"{way.name} brought {got}, not {want}"
                if turn:
                    found[way.name].append((wall, cpu))
    first = found[ways[0].name]
    return [
        {
            "name": way.name,
            "meaning": way.meaning,
            "holds": way.holds,
            "rows_per_s": statistics.median(rows / wall for wall, _ in found[way.name]),
            "cpu_ns_per_row": statistics.median(cpu * 1e9 / rows for _, cpu in found[way.name]),
            f"times_{ways[0].name}": statistics.median(
                a / b for (a, _), (b, _) in zip(first, found[way.name], strict=True)
            ),
        }
        for way in ways
    ]


def as_table(found: Sequence[dict[str, Any]]) -> str:
    ratio = next(name for name in found[0] if name.startswith("times_"))
    lines = [("way", "rows/s", f"× {ratio.removeprefix('times_')}", "CPU ns/row", "in memory", "")]
    lines += [
        (
            row["name"],
            f"{row['rows_per_s'] / 1e6:.2f} M",
            number(row[ratio]),
            number(row["cpu_ns_per_row"]),
            row["holds"],
            row["meaning"],
        )
        for row in found
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(5)]
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(line[place].rjust(widths[place]) for place in range(1, 4)),
                line[4].ljust(widths[4]),
                line[5],
            ]
        ).rstrip()
        for line in lines
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    names = [way.name for way in WAYS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark_ways", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)}; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="rows of the table (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each way (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help=f"write it there, not to {FILE.name}; - prints it instead")
    chosen = parser.parse_args(arguments)
    for name in chosen.names:
        if name not in names:
            parser.error(f"there is no way {name!r}; there are {', '.join(names)}")
    if chosen.rounds < 1 or chosen.rows < 1:
        parser.error("at least 1 round of 1 row")
    load = os.getloadavg()[0]
    ways = [way for way in WAYS if not chosen.names or way.name in chosen.names]
    found = run(ways, chosen.rows, chosen.rounds, partial(print, file=sys.stderr))
    answer = {
        "format": FORMAT, "rows": chosen.rows, "rounds": chosen.rounds, "machine": machine(load), "ways": found,
        "chosen": CHOSEN,
    }  # fmt: skip
    file = deliver(answer, chosen.json, FILE)
    if file is not None:
        print(as_table(found), "", CHOSEN, machine_in_words(answer["machine"]), f"All of it: {file}", sep="\n")
    return 0


if __name__ == "__main__":
    run_program(main)
