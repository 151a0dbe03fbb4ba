"""Data section of lesson 8: the same job as a stream and as a batch; what is kept in files, and when a result comes.

`ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from course.data.comparison import rows_of
from course.data.flights import ARRIVAL_ORDER
from course.data.spark_key_groups import subtask_of
from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.producer import BoundedBlockingSubpartition
from refimpl.records import LONG, STRING, TupleType
from refimpl.task import IterableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ask_both_ways", "run_both_ways"]

NUM_SUBTASKS, NUM_KEY_GROUPS = 2, 256
SEGMENT_BYTES = 1_024
RECORD_BYTES = 4 + 1 + 1 + 3 + 8
"""An airport and a delay on the stream: length, tag, length of the text and its letters, and the number."""

END_BYTES = 4 + 1 + 8
"""The watermark that says that no more comes."""

_END_EVENT_BYTES = 4


def ask_both_ways(flights: DataFrame) -> dict[str, int]:
    """Flights of each airport; what is kept of them in the file of each subtask, and how many buffers that fills.

    As a batch all of them are read before the first result, as a stream one is.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    flown = flights.where("dep_delay_minutes IS NOT NULL")
    counts = flown.groupBy("origin").count()
    subtask = subtask_of(F.col("origin"), NUM_SUBTASKS, NUM_KEY_GROUPS)
    loads: dict[int, int] = dict(rows_of(counts.groupBy(subtask.alias("subtask")).agg(F.sum("count"))))
    answer: dict[str, int] = dict(rows_of(counts.orderBy("origin")))
    for number in range(NUM_SUBTASKS):
        num_bytes = RECORD_BYTES * loads.get(number, 0) + END_BYTES
        answer |= {f"file {number}, bytes": num_bytes, f"file {number}, buffers": -(-num_bytes // SEGMENT_BYTES)}
    return answer | {"read before the first result, stream": 1, "and batch": sum(loads.values())}


def run_both_ways(flights: DataFrame) -> dict[str, int]:
    """The same from two runs: counts must be the same in both."""
    flown = flights.where("dep_delay_minutes IS NOT NULL").orderBy(*ARRIVAL_ORDER)
    rows = rows_of(flown.select("origin", "dep_delay_minutes"))
    stream, _, before_stream = _run(rows, ExchangeMode.ALL_PIPELINED)
    batch, kept, before_batch = _run(rows, ExecutionMode.BATCH)
    assert stream == batch, f"as a stream {stream}, as a batch {batch}"
    answer = dict(sorted(batch.items()))
    for number, (num_bytes, num_buffers) in sorted(kept.items()):
        answer |= {f"file {number}, bytes": num_bytes, f"file {number}, buffers": num_buffers}
    return answer | {"read before the first result, stream": before_stream, "and batch": before_batch}


def _run(
    rows: list[tuple[str, int]], mode: ExecutionMode | ExchangeMode
) -> tuple[Counter[str], dict[int, tuple[int, int]], int]:
    """Records for each airport; bytes and buffers kept for each subtask; and flights read before the first result."""
    counts: Counter[str] = Counter()
    kept: dict[int, tuple[int, int]] = {}
    num_read, before = 0, 0

    def flights(_subtask: int, _of: int) -> IterableReader:
        def read() -> Iterator[tuple[str, int]]:
            nonlocal num_read
            for row in rows:
                num_read += 1
                yield row

        return IterableReader(read())

    def counted(flight: tuple[str, int]) -> None:
        nonlocal before
        before = before or num_read
        counts[flight[0]] += 1

    class Noting(BoundedBlockingSubpartition):
        """Ours; it notes what is kept when it is complete."""

        def seal(self) -> None:
            kept[self.index] = self.num_bytes_written - _END_EVENT_BYTES, self.num_buffers
            super().seal()

    config = Config(
        segment_size_bytes=SEGMENT_BYTES, execution_mode=mode, max_parallelism=NUM_KEY_GROUPS, source_batch=1,
        buffer_timeout_ms=0,
    )  # fmt: skip
    environment = StreamEnvironment(config, NUM_SUBTASKS)
    source = environment.source(flights, "flights", TupleType(STRING, LONG), parallelism=1)
    source.key_by(0).sink(counted, "counts")
    with Simulation(environment.use(BoundedBlockingSubpartition=Noting), policy="first", check_every=0) as simulation:
        simulation.run()
    return counts, kept, before
