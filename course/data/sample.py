"""A few flights without Spark: straight from the shipped file, for lessons and graders that run offline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from course.data.flights import FLIGHT_COLUMNS, NUM_FLIGHTS, PARQUET, verified_path
from refimpl.task import IterableReader, ReaderFactory, SourceReader

__all__ = ["reader_of_flights", "sample_flights"]


def sample_flights(num_flights: int, parquet: Path = PARQUET) -> list[dict[str, Any]]:
    """The first flights of 2013 in order of arrival, each a dict.

    Raises:
        FlightsUnavailable: the data file is missing or damaged.
        ValueError: `num_flights` is below 1 or above the number there are.
    """
    import pyarrow.parquet as pq

    if not 1 <= num_flights <= NUM_FLIGHTS:
        raise ValueError(f"there are 1 to {NUM_FLIGHTS} flights to have, not {num_flights}")
    with pq.ParquetFile(verified_path(parquet)) as file:
        batches = file.iter_batches(min(num_flights, 65_536), columns=list(FLIGHT_COLUMNS))
        rows = (row for batch in batches for row in batch.select(list(FLIGHT_COLUMNS)).to_pylist())
        return list(islice(rows, num_flights))


def reader_of_flights(sample: Sequence[dict[str, Any]]) -> ReaderFactory:
    """The readers of a source: subtask i of n reads flights i, i + n, i + 2n, …; each gets dicts of its own."""

    def make_reader(subtask: int, parallelism: int) -> SourceReader:
        return IterableReader(dict(flight) for flight in sample[subtask::parallelism])

    return make_reader
