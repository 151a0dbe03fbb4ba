"""The results of a job on Spark: rows that Spark keeps, brought here when they are asked for.

Spark makes the rows again if it loses them, by running the job again. So what is handed to the sinks is
first brought here as a whole, and is the rows of one try: none is missing, none is of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from struct import Struct
from typing import IO, TYPE_CHECKING, Any

from refimpl.drivers.processes.messages import unpack
from refimpl.drivers.spark.rows import COUNTS, ERROR, RESULT, TRACE
from refimpl.drivers.spark.try_checkpoints import TrySummary
from refimpl.errors import RemoteTransportError
from refimpl.laws.records import RecordCounts, check_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkResults"]

_NUM_TRIES = 4
_HEAD = Struct(">iQ")  # operator, and length of what follows

_NUMBERS_AT_A_TIME = 32
"""TaskRows of each TaskManager that come here together; a row is about a MiB at most."""


class SparkResults:
    """The rows of a barrier stage, as `ROW_SCHEMA` says; to be closed by its owner.

    `summary` is of the checkpoints of the try whose rows were fetched, if there were any.
    """

    def __init__(self, stage: DataFrame) -> None:
        from pyspark import StorageLevel

        self.summary: TrySummary | None = None
        # To one partition: it is the shuffle that makes Spark try the stage again.
        rows = stage.repartition(1).sortWithinPartitions("kind", "task_manager", "number")
        self._rows = rows.persist(StorageLevel.DISK_ONLY)
        self._most_tables = 0

    def fetch(self, file: IO[bytes]) -> list[RecordCounts]:
        """Run the stage if need be, write its results to `file`, and return the counts of each TaskManager.

        Raises:
            BaseException: the error of a TaskManager.
            RemoteTransportError: the rows were lost again and again.
        """
        for _ in range(_NUM_TRIES):
            file.seek(0)
            file.truncate()
            last = self._rows.where(f"kind IN ('{COUNTS}', '{ERROR}')").collect()
            values = [(row.kind, unpack(bytes(row.value))) for row in last]
            for kind, value in values:
                if kind == ERROR:
                    raise value.error()
            attempts = {row.attempt for row in last}
            num_rows = 0
            nums_results, nums_tables, counts, summaries = zip(*(value for _kind, value in values), strict=True)
            for row in self._rows_of(RESULT, max(nums_results)):
                value = bytes(row.value)
                file.write(_HEAD.pack(row.operator, len(value)) + value)
                attempts.add(row.attempt)
                num_rows += 1
            if len(attempts) == 1 and num_rows == sum(nums_results):
                check_records(counts)
                self._most_tables = max(nums_tables)
                self.summary = next(filter(None, summaries), None)
                return list(counts)
        raise RemoteTransportError("the executor that keeps the results was lost each time before they were here")

    def _rows_of(self, kind: str, most: int) -> Iterator[Any]:
        """The rows of a kind, of which no TaskManager has more than `most`; those of each are in order."""
        for start in range(1, most + 1, _NUMBERS_AT_A_TIME):
            some = f"kind = '{kind}' AND number >= {start} AND number < {start + _NUMBERS_AT_A_TIME}"
            yield from self._rows.where(some).collect()

    @staticmethod
    def values(file: IO[bytes]) -> Iterator[tuple[int, int, Any]]:
        """The values that `fetch` has written: operator, subtask and value, in the order of each subtask."""
        file.seek(0)
        while head := file.read(_HEAD.size):
            operator, length = _HEAD.unpack(head)
            for subtask, data in unpack(file.read(length)):
                yield operator, subtask, unpack(data)

    def frame(self, session: SparkSession, operators: Sequence[int], schema: str) -> DataFrame:
        """The values of these operators as rows of `schema`."""
        rows = self._rows.where(f"kind = '{RESULT}' AND operator IN ({', '.join(map(str, operators))})")
        as_rows = partial(_values_as_rows, session.createDataFrame([], schema).toArrow().schema)
        return rows.select("value").mapInArrow(as_rows, schema)

    def trace(self, session: SparkSession, empty: pa.Table) -> DataFrame:
        """The tables of the trace as one DataFrame, with the columns of `empty`."""
        frame = session.createDataFrame(_decoded(empty))
        rows = self._rows.where(f"kind = '{TRACE}'")
        return rows.select("value").mapInArrow(_tables_as_rows, frame.schema)

    def trace_tables(self) -> Iterator[pa.Table]:
        """The tables of the trace, those of each TaskManager in order, a few of them here at a time."""
        for row in self._rows_of(TRACE, self._most_tables):
            yield _table_in(row.value)

    def close(self) -> None:
        """Let Spark forget the rows."""
        self._rows.unpersist()


def _values_as_rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed values as rows: of a tuple each part is a column, anything else is the only one."""
    import pyarrow as pa

    for batch in batches:
        for packed in batch.column(0).to_pylist():
            values = [unpack(data) for _, data in unpack(packed)]
            columns = [*zip(*values, strict=True)] if isinstance(values[0], tuple) else [values]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _tables_as_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for value in batch.column(0):
            yield from _decoded(_table_in(value.as_buffer())).to_batches()


def _table_in(value: pa.Buffer | bytes) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(value).read_all()


def _decoded(table: pa.Table) -> pa.Table:
    """The table with each word written out: Spark knows no column whose words are kept once."""
    import pyarrow as pa

    kinds = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema([*zip(table.schema.names, kinds, strict=True)]))
