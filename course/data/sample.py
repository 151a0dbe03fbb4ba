"""A few flights without Spark: straight from the shipped file, for lessons and graders that run offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from course.data.flights import FLIGHT_COLUMNS, NUM_FLIGHTS, PARQUET, verified_path
from course.places import IN_A_BROWSER
from refimpl.task import IterableReader, ReaderFactory, SourceReader

__all__ = ["FIRST_FLIGHTS", "reader_of_flights", "sample_flights"]

FIRST_FLIGHTS = PARQUET.with_name("first_flights.json")
"""Where the flights are that a browser has, which cannot read the other file; the site makes this one."""


def sample_flights(num_flights: int, parquet: Path = PARQUET) -> list[dict[str, Any]]:
    """The first flights of 2013 in order of arrival, each a dict.

    Raises:
        FlightsUnavailable: the data file is missing or damaged.
        ValueError: `num_flights` is below 1 or above the number there are.
    """
    if IN_A_BROWSER and parquet == PARQUET:
        return _first_flights(num_flights)
    import pyarrow.parquet as pq

    if not 1 <= num_flights <= NUM_FLIGHTS:
        raise ValueError(f"there are 1 to {NUM_FLIGHTS} flights to have, not {num_flights}")
    with pq.ParquetFile(verified_path(parquet)) as file:
        batches = file.iter_batches(min(num_flights, 65_536), columns=list(FLIGHT_COLUMNS))
        rows = (row for batch in batches for row in batch.select(list(FLIGHT_COLUMNS)).to_pylist())
        return list(islice(rows, num_flights))


def _first_flights(num_flights: int) -> list[dict[str, Any]]:
    flights: list[dict[str, Any]] = json.loads(FIRST_FLIGHTS.read_text(encoding="utf-8"))
    if not 1 <= num_flights <= len(flights):
        raise ValueError(f"in a browser there are 1 to {len(flights)} flights to have, not {num_flights}")
    return flights[:num_flights]


def reader_of_flights(sample: Sequence[dict[str, Any]]) -> ReaderFactory:
    """The readers of a source: subtask i of n reads flights i, i + n, i + 2n, …; each gets dicts of its own."""

    def make_reader(subtask: int, parallelism: int) -> SourceReader:
        return IterableReader(dict(flight) for flight in sample[subtask::parallelism])

    return make_reader
