"""A Spark DataFrame as a source of the engine: partition i is read by subtask i, as Arrow batches.

    environment.source(DataFrameSource(frame), name="flights")

On the drivers of one machine Spark first writes the partitions to Parquet files in a temporary folder, so that nobody
holds the table in memory and no JVM works beside the job. The files go when the last reader is closed, as it is when
the job has ended, failed or been cancelled. Processes of their own read the files too, and then they go with the
source: when it is closed, or forgotten. On a cluster nothing is written: Spark hands each TaskManager its partition.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from course.data.columns import record_batch_of
from course.data.partitions import batches_of, deal, partition_files, write_parts
from course.data.progress_bar import shows_progress
from course.data.scratch import make_scratch, remove_scratch
from course.data.session import cancels
from course.data.spark_values import arrow_schema, check_names, conformed, event_times_ms
from refimpl.errors import LocalUsageError
from refimpl.records import RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["ArrowReader", "DataFrameSource", "MakeBatchReader"]


class ArrowReader:
    """A `SourceReader` of Arrow batches: hands on at most `batch_size` rows at a time, and holds one batch.

    `timestamps` names the column of event times: whole ms, Spark timestamps or dates. Values are dicts by column name,
    as in `spark_values`; columns get the names and types of `schema`, if it is given.
    """

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch],
        timestamps: str | None = None,
        batch_size: int = 4096,
        on_close: Callable[[], None] | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        self._schema = schema
        self._batches: Iterator[pa.RecordBatch] = iter(batches)
        self._timestamps = timestamps
        self._batch_size = batch_size
        self._rest: pa.RecordBatch | None = None
        self._on_close = on_close

    def read(self, max_records: int) -> RecordBatch | None:
        """The next rows, or `None` after the last."""
        batch = self._rest
        while batch is None or not batch.num_rows:
            batch = next(self._batches, None)
            if batch is None:
                return None
        if self._schema is not None and batch is not self._rest:
            batch = conformed(batch, self._schema)
        self._rest = batch.slice(self._batch_size) if batch.num_rows > self._batch_size else None
        return self._with_times(batch.slice(0, self._batch_size))

    def close(self) -> None:
        """Close the file being read, and say that this reader has gone."""
        if (close := getattr(self._batches, "close", None)) is not None:
            close()
        self._rest = None
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()

    def _with_times(self, batch: pa.RecordBatch) -> RecordBatch:
        records = record_batch_of(batch)
        if self._timestamps is None:
            return records
        return records.with_timestamps(event_times_ms(batch.column(self._timestamps), self._timestamps))


@dataclass(frozen=True, slots=True)
class MakeBatchReader:
    """Makes the reader of what Spark hands to a task; it knows nothing of the DataFrame, and can be sent anywhere."""

    timestamps: str | None
    batch_size: int
    schema: pa.Schema | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> ArrowReader:
        return ArrowReader(batches, self.timestamps, self.batch_size, schema=self.schema)


class DataFrameSource:
    """Makes the readers of a source that reads a DataFrame, each row once.

    Subtask i reads Spark's partition i; if there are fewer partitions than subtasks, Spark deals the rows out anew.
    With `order_by` the rows are dealt out in that order, as cards are: row number r goes to subtask r modulo their
    number, so that the subtasks go through time together. `timestamps` names the column of event times.

    Leaving a `with` block, or `close`, removes the files of readers in other processes. `num_files` is how many
    subtasks there will be, where nobody can say so before the source is sent there; the default is the number of
    partitions. What the cluster needs is `frame` and `make_batch_reader`; there `order_by` holds within a partition.

    Raises:
        ValueError: no such column, or a batch size below 1.
        LocalUsageError: two columns have one name, or one is of a type without values here (see `spark_values`).
    """

    def __init__(
        self,
        frame: DataFrame,
        order_by: str | Sequence[str] | None = None,
        timestamps: str | None = None,
        batch_size: int = 4096,
        num_files: int | None = None,
    ) -> None:
        self._order = [order_by] if isinstance(order_by, str) else list(order_by or ())
        for name in (*self._order, *([] if timestamps is None else [timestamps])):
            if name not in frame.columns:
                raise ValueError(f"the DataFrame has no column {name!r}; it has {', '.join(frame.columns)}")
        if batch_size < 1:
            raise ValueError(f"a batch has at least 1 row, not {batch_size}")
        check_names(frame.columns, "the DataFrame")
        self._given = frame
        # On their way columns are numbered: no name can be wrong there, or be one of ours.
        numbers = {name: f"c{place}" for place, name in enumerate(frame.columns)}
        self._numbered = frame.toDF(*numbers.values())
        for name, kind in self._numbered.dtypes:
            if kind == "void":  # no file has a column of nothing
                self._numbered = self._numbered.withColumn(name, self._numbered[name].cast("string"))
        self._numbered_order = [numbers[name] for name in self._order]
        schema = arrow_schema(self._numbered.schema, "the DataFrame", frame.columns)
        if timestamps is not None:
            event_times_ms(schema.empty_table()[timestamps].combine_chunks(), timestamps)  # refuses other types
        self.make_batch_reader = MakeBatchReader(timestamps, batch_size, schema)
        self._num_files = num_files
        self._lock = threading.Lock()
        self._spool: _Spool | None = None
        self._is_shared = False

    def __repr__(self) -> str:
        return f"DataFrameSource({', '.join(self._given.columns)})"

    @property
    def frame(self) -> DataFrame:
        """The DataFrame with numbered columns, each partition in order; `make_batch_reader` knows the names."""
        return self._numbered.sortWithinPartitions(*self._numbered_order) if self._order else self._numbered

    def __call__(self, subtask: int, parallelism: int) -> ArrowReader:
        """The reader of one subtask; the first one lets Spark write the files for all."""
        with self._lock:
            if self._spool is None or self._spool.parallelism != parallelism:
                self._spool = self._write(parallelism)
            self._spool.num_open += 1
            return self._spool.parts.reader(subtask, parallelism, self._done_with(self._spool))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files; readers that are still open fail. Does nothing the second time."""
        with self._lock:
            spool, self._spool = self._spool, None
        if spool is not None:
            spool.remove()

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process: where the files are."""
        with self._lock:
            if self._spool is None:
                number = self._num_files or max(1, self._given.rdd.getNumPartitions())  # an empty frame may have none
                self._spool = self._write(number)
            self._is_shared = True
            return (_same, (self._spool.parts,))

    def _write(self, parallelism: int) -> _Spool:
        """Let Spark write the files for so many subtasks."""
        folder = make_scratch("source")
        try:
            session = self._given.sparkSession
            with cancels(session), shows_progress(session, "Spark writes the source"):
                if self._order:
                    deal(self._numbered, parallelism, self._numbered_order, folder / "parts")
                else:
                    write_parts(self._numbered, parallelism, folder / "parts")
        except BaseException:
            remove_scratch(folder)
            raise
        make = self.make_batch_reader
        parts = _Parts(
            tuple(partition_files(folder / "parts", parallelism)),
            tuple(self._numbered.columns),
            make,
            is_dealt=bool(self._order),
        )
        spool = _Spool(folder, parallelism, parts)
        weakref.finalize(self, remove_scratch, folder)
        return spool

    def _done_with(self, spool: _Spool) -> Callable[[], None]:
        def done() -> None:
            with self._lock:
                spool.num_open -= 1
                is_last = not spool.num_open and not self._is_shared
                if is_last and self._spool is spool:
                    self._spool = None
            if is_last:
                spool.remove()

        return done


@dataclass(frozen=True, slots=True)
class _Parts:
    """The files of each partition, in order, and how to read them."""

    files: tuple[tuple[Path, ...], ...]
    columns: tuple[str, ...]
    make: MakeBatchReader
    is_dealt: bool

    def __call__(self, subtask: int, parallelism: int) -> ArrowReader:
        return self.reader(subtask, parallelism, None)

    def reader(self, subtask: int, parallelism: int, on_close: Callable[[], None] | None) -> ArrowReader:
        number = len(self.files)
        if self.is_dealt and number != parallelism:
            raise LocalUsageError(
                f"the rows were dealt out in order to {number} subtasks, but the source has {parallelism}; "
                f"give DataFrameSource num_files={parallelism}"
            )
        mine = [file for part in self.files[subtask::parallelism] for file in part]
        make = self.make
        batches = (batch for file in mine for batch in batches_of(file, self.columns, make.batch_size))
        return ArrowReader(batches, make.timestamps, make.batch_size, on_close, make.schema)


@dataclass(slots=True)
class _Spool:
    """The files on this machine, for a number of subtasks, and how many readers are open here."""

    folder: Path
    parallelism: int
    parts: _Parts
    num_open: int = 0

    def remove(self) -> None:
        remove_scratch(self.folder)


def _same(parts: _Parts) -> _Parts:
    return parts
