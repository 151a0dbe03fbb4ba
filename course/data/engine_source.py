"""The engine as a data source of Spark: a job runs inside a Spark task, and its results are rows.

    spark.dataSource.register(EngineSource)
    spark.read.format("sluice").option("job", "flights").option("records", 5000).load()

`job` is a name from `JOBS` or `module:function`. The function gets what to call with each result, and the other
options as texts; it returns the job. Its attribute `schema` says what a result is, as a Spark schema in words; without
one, say it in Spark: `spark.read.schema("...")`.

There is one partition: subtasks of a job exchange records, so a job can be cut at no place that Spark would know of. It
runs in one task, on threads, with the parallelism it has. Results leave in Arrow batches while it runs, and a slow
reader is backpressure for the job: it waits, and nothing piles up. Whoever stops reading, as `limit` does, ends it.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from course.data.spark_fit import fit_of_row
from course.data.spark_values import arrow_schema, rows_as_arrow
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from refimpl.job import StreamEnvironment

__all__ = ["JOBS", "EngineSource", "JobFunction", "find_job", "results_of"]

JobFunction = Callable[[Callable[[Any], object], Mapping[str, str]], "StreamEnvironment"]

JOBS = {"flights": "course.data.engine_jobs:flights"}

_ROWS_PER_BATCH = 4096
_BATCHES_WAITING = 4


class EngineSource(DataSource):
    """`format("sluice")`."""

    @classmethod
    def name(cls) -> str:
        return "sluice"

    def schema(self) -> str:
        function = find_job(self.options.get("job"))
        schema = getattr(function, "schema", None)
        if not isinstance(schema, str):
            raise LocalUsageError(f"the job {self.options.get('job')!r} has no `schema`; say spark.read.schema(...)")
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema, dict(self.options))


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        find_job(options.get("job"))  # what does not exist is told before a task starts
        self._schema = schema
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema, fit = arrow_schema(self._schema, "the schema of the job"), fit_of_row(self._schema)
        for rows in results_of(find_job(self._options.get("job")), self._options):
            try:
                fitted = [fit(row) for row in rows]
            except (ValueError, TypeError, OverflowError) as error:
                raise LocalUsageError(f"a result does not fit the schema of the job: {error}") from error
            yield rows_as_arrow(fitted, schema)


def find_job(name: str | None) -> JobFunction:
    """The function that makes a job, by its name or as `module:function`.

    Raises:
        LocalUsageError: there is none; says what was looked for.
    """
    if not name:
        raise LocalUsageError(f'say which job: .option("job", ...), one of {", ".join(JOBS)} or module:function')
    module, _, function = JOBS.get(name, name).partition(":")
    try:
        found: JobFunction = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise LocalUsageError(
            f"there is no job {name!r}: {error}; jobs are {', '.join(JOBS)} or module:function"
        ) from error
    return found


def results_of(
    function: JobFunction, options: Mapping[str, str], rows_per_batch: int = _ROWS_PER_BATCH
) -> Iterator[list[Any]]:
    """Run a job on threads and yield its results, some at a time, while it runs.

    Raises:
        SluiceError: the job failed.
    """
    ready: queue.Queue[list[Any]] = queue.Queue(_BATCHES_WAITING)
    gathered: list[Any] = []
    has_left = threading.Event()
    lock = threading.Lock()  # sinks of several subtasks call at once

    def take(result: object) -> None:
        with lock:
            gathered.append(result)
            if len(gathered) >= rows_per_batch:
                put(gathered.copy())
                gathered.clear()

    def put(batch: list[Any]) -> None:
        while not has_left.is_set():
            with suppress(queue.Full):
                return ready.put(batch, timeout=0.1)
        raise LocalUsageError("nobody reads the results any more")

    with ThreadedRun(function(take, options)) as run:
        run.start()
        try:
            while not run.join(0) or not ready.empty():
                with suppress(queue.Empty):
                    yield ready.get(timeout=0.05)
            if gathered:
                yield gathered
        finally:
            has_left.set()
