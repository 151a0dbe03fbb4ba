"""Hands a Spark DataFrame to the engine's sources: partition by partition, as Arrow batches, in bounded memory.

Spark sorts the records by arrival and deals them out like cards: the record that arrived as number `i` goes to
partition `i % n`. So the partitions advance through time together, as those of a real log would, and together they hold
each record once. Each partition is one Parquet file in a temporary folder; reading it needs no JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.data.flights import ARRIVAL_ORDER
from course.data.scratch import scratch
from course.data.session import cancels

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Partition", "partitions"]

_RANK, _TARGET = "_arrival_rank", "_partition"
_ROW_GROUP_BYTES = 4 << 20
_ROW_BITS = 33
"""`monotonically_increasing_id` is the Spark partition in the upper bits and the row within it in the lower 33."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition's records in arrival order; readable until the `with` block of `partitions` ends."""

    index: int
    path: Path
    num_rows: int
    columns: tuple[str, ...]

    def batches(self, batch_size: int = 4096, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the records, at most `batch_size` at a time, only the named columns if any are named.

        Holds one row group (4 MiB of pages) and one batch in memory, however long the partition is.
        """
        import pyarrow.parquet as pq

        wanted = list(columns or self.columns)
        with pq.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size, columns=wanted, use_threads=False):
                yield batch.select(wanted)


@contextmanager
def partitions(frame: DataFrame, n: int, order_by: str | Sequence[str] = ARRIVAL_ORDER) -> Iterator[list[Partition]]:
    """Lend the records of `frame` as `n` partitions; the temporary files go when the block ends.

    `order_by` names the columns of the arrival order. When it leaves ties, their order is Spark's choice.
    On a cluster the temporary folder must be one that all machines see: set SLUICE_SCRATCH.

    Raises:
        ValueError: `n` is less than 1.
        OSError: the temporary folder cannot be written.
    """
    if n < 1:
        raise ValueError(f"the number of partitions must be at least 1, got {n}")
    order = [order_by] if isinstance(order_by, str) else list(order_by)
    with scratch("partitions") as folder, cancels(frame.sparkSession):
        _deal(frame, n, order, folder / "dealt")
        yield [_open(folder / "dealt", index, frame.columns) for index in range(n)]


def _deal(frame: DataFrame, n: int, order: list[str], folder: Path) -> None:
    """Write record number `i` of the arrival order to the sub-folder of partition `i % n`."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    ids = frame.orderBy(*order).withColumn("_id", F.monotonically_increasing_id()).persist()
    try:
        chunk = F.shiftright("_id", _ROW_BITS)
        counts = sorted(tuple(row) for row in ids.groupBy(chunk).count().collect())
        # A row's rank is its number within its chunk plus the lengths of the chunks before; few chunks, so a plain sum.
        rank = F.col("_id").bitwiseAND((1 << _ROW_BITS) - 1)
        for number, length in counts:
            rank = rank + F.when(chunk > number, length).otherwise(0)
        dealt = ids.withColumn(_RANK, rank).drop("_id").withColumn(_TARGET, F.col(_RANK) % n)
        dealt = dealt.repartition(n, _TARGET).sortWithinPartitions(_TARGET, _RANK)
        options = {"compression": "zstd", "parquet.block.size": str(_ROW_GROUP_BYTES)}
        dealt.write.partitionBy(_TARGET).options(**options).parquet(f"file://{folder}")
    finally:
        ids.unpersist()


def _open(folder: Path, index: int, columns: Sequence[str]) -> Partition:
    """Find the file of one partition; a partition without records gets an empty one."""
    import pyarrow.parquet as pq

    parts = sorted((folder / f"{_TARGET}={index}").glob("part-*.parquet"))
    if not parts:
        # Fewer records than partitions: Spark writes nothing for the rest.
        some = next(folder.glob("**/part-*.parquet"), None)
        assert some is not None, "Spark writes at least one file"
        empty = folder / f"empty-{index}.parquet"
        pq.write_table(pq.read_schema(some).empty_table(), empty)
        parts = [empty]
    (part,) = parts
    return Partition(index, part, pq.read_metadata(part).num_rows, tuple(columns))
