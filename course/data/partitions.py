"""Hands a Spark DataFrame to the engine's sources: partition by partition, as Arrow batches, in bounded memory.

Spark sorts the records by arrival and deals them out like cards: the record that arrived as number `i` goes to
partition `i % n`. So the partitions advance through time together, as those of a real log would, and together they hold
each record once. Each partition is one Parquet file in a temporary folder; reading it needs no JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.data.flights import ARRIVAL_ORDER
from course.data.scratch import scratch
from course.data.session import cancels
from refimpl.errors import LocalUsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Partition", "batches_of", "deal", "partition_files", "partitions", "write_parts"]

_RANK, _TARGET, _ID = "_arrival_rank", "_partition", "_arrival_id"
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
        return batches_of(self.path, columns or self.columns, batch_size)


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
        deal(frame, n, order, folder / "dealt")
        yield [_open(folder / "dealt", index, frame.columns) for index in range(n)]


def batches_of(path: Path, columns: Sequence[str], batch_size: int) -> Iterator[pa.RecordBatch]:
    """The rows of one Parquet file, a row group and a batch in memory at a time.

    Raises:
        LocalUsageError: a column is missing, or the file is damaged; says which.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = list(columns)
    try:
        with pq.ParquetFile(path, pre_buffer=False, coerce_int96_timestamp_unit="us") as file:
            if missing := [name for name in wanted if name not in file.schema_arrow.names]:
                there = ", ".join(file.schema_arrow.names)
                raise LocalUsageError(f"{path.name} has no column {missing[0]!r}; it has {there}")
            # A name with a dot would be the path of a field to Parquet: then all is read, and taken by its place.
            asked = None if any("." in name for name in wanted) else wanted
            for batch in file.iter_batches(batch_size, columns=asked, use_threads=False):
                yield batch.select(wanted)
    except FileNotFoundError as error:
        raise LocalUsageError(f"{path.name} is gone: its source was closed before its readers") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise LocalUsageError(f"{path.name} is damaged and cannot be read: {error}") from error


def write_parts(frame: DataFrame, n: int, folder: Path) -> None:
    """Write each partition of `frame` to a file of its own; fewer than `n` partitions are dealt out anew."""
    parts = frame if frame.rdd.getNumPartitions() >= n else frame.repartition(n)
    options = {"compression": "zstd", "parquet.block.size": str(_ROW_GROUP_BYTES)}
    parts.write.options(**options).parquet(f"file://{folder}")


def partition_files(folder: Path, n: int) -> list[tuple[Path, ...]]:
    """The files that `deal` or `write_parts` made, by partition; those of number i, i + n, i + 2n, … are put together.

    Spark writes none for a partition without rows.
    """
    found: list[list[Path]] = [[] for _ in range(n)]
    for file in sorted(folder.glob("**/part-*.parquet")):
        dealt = re.search(rf"{_TARGET}=(\d+)$", str(file.parent))
        number = re.match(r"part-(\d+)-", file.name)
        assert number is not None, f"Spark names its files by partition, not {file.name}"
        found[int((dealt or number)[1]) % n].append(file)
    return [tuple(files) for files in found]


def deal(frame: DataFrame, n: int, order: list[str], folder: Path) -> None:
    """Write record number `i` of the arrival order to the sub-folder of partition `i % n`."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    if taken := {_RANK, _TARGET, _ID}.intersection(map(str.casefold, frame.columns)):
        raise LocalUsageError(f"a column is called {min(taken)!r} as one of ours is; rename it")
    ids = frame.orderBy(*order).withColumn(_ID, F.monotonically_increasing_id()).persist()
    try:
        chunk = F.shiftright(_ID, _ROW_BITS)
        counts = sorted(tuple(row) for row in ids.groupBy(chunk).count().collect())
        # A row's rank is its number within its chunk plus the lengths of the chunks before; few chunks, so a plain sum.
        rank = F.col(_ID).bitwiseAND((1 << _ROW_BITS) - 1)
        for number, length in counts:
            rank = rank + F.when(chunk > number, length).otherwise(0)
        dealt = ids.withColumn(_RANK, rank).drop(_ID).withColumn(_TARGET, F.col(_RANK) % n)
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
