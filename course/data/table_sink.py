"""What comes out of a job as a DataFrame: a sink that writes Parquet, a row group in memory at a time.

    with TableSink("origin string, departures bigint") as sink:
        stream.sink(sink)
        ThreadedRun(environment).run()
        sink.commit()
        frame = sink.frame(session)

Until `commit` nothing has the table's name, and a `with` block that is left without it leaves nothing. Without a folder
of its own the table is in a temporary one, and goes with the block: use the frame inside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from course.data.scratch import scratch
from course.data.spark_fit import fit_of_row
from course.data.spark_values import arrow_schema, check_names, rows_as_arrow
from course.data.store import Manifest, in_words, placed, read_table, seal, types_of
from refimpl.errors import LocalUsageError

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["TableSink"]


class TableSink:
    """A sink function that stores its values as rows of `schema`, a Spark schema in words or a `StructType`.

    A value is a tuple of the fields in order, a dict by name, or, with one column, the field. It may be called from
    several threads. `folder` is what the table will be called; None is a temporary one. Words need a Spark session.

    Raises (entering the block):
        LocalUsageError: the schema is the type of a value, without a name of its column; it cannot be read, or there is
            no session to read it; two columns have one name; a column is of a type that cannot be stored.
    Raises (call, commit):
        LocalUsageError: a value does not fit the schema; or the sink is closed.
        TableError: the disk is full, or cannot be written.
    """

    def __init__(self, schema: str | StructType, folder: Path | None = None, rows_per_group: int = 65_536) -> None:
        if rows_per_group < 1:
            raise ValueError(f"a row group has at least 1 row, not {rows_per_group}")
        self._given = schema
        self._folder = folder
        self._rows_per_group = rows_per_group
        self._lock = threading.Lock()
        self._rows: list[Any] = []
        self._scratch = ExitStack()
        self._placing: ExitStack | None = None
        self._writer: pq.ParquetWriter | None = None
        self._is_committed = False

    def __enter__(self) -> Self:
        import pyarrow.parquet as pq

        self._struct = _struct_of(self._given)
        self._schema = arrow_schema(self._struct, "the table")
        self._fit = fit_of_row(self._struct)
        with ExitStack() as on_failure:
            on_failure.push(self.__exit__)
            if self._folder is None:
                self._folder = self._scratch.enter_context(scratch("sink")) / "table"
            self._placing = ExitStack()
            self._beside = self._placing.enter_context(placed(self._folder.absolute()))
            with self._explains():
                (self._beside / "data").mkdir()
                file = self._beside / "data" / "part-00000.parquet"
                self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
            on_failure.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Leave nothing behind that was not committed."""
        writer, self._writer = self._writer, None
        placing, self._placing = self._placing, None
        with self._scratch:
            if writer is not None:
                with suppress(OSError):  # it is thrown away; the disk may be what failed
                    writer.close()
            if placing is not None:
                placing.__exit__(_NotCommitted, _NotCommitted(), None)

    def __call__(self, value: object) -> None:
        """One row more."""
        if self._writer is None:
            raise LocalUsageError("the sink of a table is used in its `with` block, before `commit`")
        try:
            row = self._fit(value)
        except (ValueError, TypeError, OverflowError) as error:
            words = self._given if isinstance(self._given, str) else self._given.simpleString()
            raise LocalUsageError(f"a value like {value!r:.100} does not fit the table {words!r}: {error}") from error
        with self._lock:
            if self._writer is None:
                raise LocalUsageError("the sink of a table is used in its `with` block, before `commit`")
            self._rows.append(row)
            if len(self._rows) >= self._rows_per_group:
                self._write()

    def commit(self) -> Manifest:
        """Write what is left, and give the table its name; call it when the job has succeeded."""
        with self._lock:
            if self._writer is None or self._placing is None:
                raise LocalUsageError("the sink of a table is committed once, in its `with` block")
            if self._rows:
                self._write()
            writer, self._writer = self._writer, None
            with self._explains():
                writer.close()
                manifest = seal(self._beside, self._struct, {"name": "results of a job"})
            placing, self._placing = self._placing, None
            placing.close()
            self._is_committed = True
            return manifest

    def frame(self, session: SparkSession) -> DataFrame:
        """The table, after `commit`."""
        if not self._is_committed or self._folder is None:
            raise LocalUsageError("there is no table yet: `commit` has not been called")
        return read_table(session, self._folder, types_of(self._struct))

    def _write(self) -> None:
        assert self._writer is not None, "both callers have looked"
        rows, self._rows = self._rows, []
        batch = rows_as_arrow(rows, self._schema)
        with self._explains():
            self._writer.write_batch(batch)

    @contextmanager
    def _explains(self) -> Iterator[None]:
        assert self._folder is not None, "set when the block was entered"
        try:
            yield
        except OSError as error:
            raise in_words(error, self._folder) from error


class _NotCommitted(Exception):  # noqa: N818 (it is no error, it ends a block)
    """The block was left without `commit`."""


def _struct_of(schema: str | StructType) -> StructType:
    """A Spark schema in words as Spark has it."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    struct: DataType | str = schema
    if isinstance(schema, str):
        try:
            struct = StructType.fromDDL(schema)
        except PySparkException as error:
            if error.getCondition() == "SESSION_OR_CONTEXT_NOT_EXISTS":
                raise LocalUsageError(
                    f"the schema {schema!r} is read by Spark, and there is no session yet: make one first, "
                    f"or give a StructType, which needs none"
                ) from error
            why = str(error).strip().splitlines()[0]
            raise LocalUsageError(f"Spark cannot read the schema {schema!r}: {why}") from error
    if not isinstance(struct, StructType):
        raise LocalUsageError(f"the schema {schema!r} names no columns; give them names, such as 'n {schema}'")
    if not len(struct):
        raise LocalUsageError("a table has at least one column")
    check_names(struct.names, "the table")
    return struct
