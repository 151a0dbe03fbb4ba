"""Jobs that Spark can read by name; see `course.data.engine_source` for how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from course.data.dataframe_source import ArrowReader
from course.data.flights import FLIGHT_COLUMNS, NUM_FLIGHTS, verified_path
from course.data.flights_job import flights_job, to_rows
from course.data.partitions import batches_of
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["flights"]

_BATCH = 4096


def flights(on_result: Callable[[Any], object], options: Mapping[str, str]) -> StreamEnvironment:
    """Departures and delays per airport and hour, of the first `records` flights (default: all)."""
    records = _number(options, "records", NUM_FLIGHTS)
    parallelism = _number(options, "parallelism", 2)

    def make_reader(subtask: int, parallelism: int) -> ArrowReader:
        return ArrowReader(_share(records, subtask, parallelism), batch_size=_BATCH)

    return flights_job(make_reader, lambda result: on_result(to_rows([result])[0]), parallelism=parallelism)


flights.schema = (  # type: ignore[attr-defined]  # a function may have attributes, and a type knows of none
    "window_start_ms bigint, origin string, departures bigint, delay_sum_minutes bigint, delay_mean_minutes double"
)


def _share(records: int, subtask: int, parallelism: int) -> Iterator[pa.RecordBatch]:
    """Flights number i, i + n, i + 2n, … of the first `records`, from the shipped file."""
    import pyarrow as pa

    start = 0
    for batch in batches_of(verified_path(), FLIGHT_COLUMNS, _BATCH * parallelism):
        kept = batch.slice(0, records - start)
        first = (subtask - start) % parallelism
        yield kept.take(pa.array(range(first, kept.num_rows, parallelism), pa.int64()))
        start += kept.num_rows
        if start >= records:
            return


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise LocalUsageError(f"option {name} is a number of at least 1, not {text!r}")
    return int(text)
