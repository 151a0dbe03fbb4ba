"""The data set of the course: every flight that left New York City in 2013, as a stream of events.

One record is one departure that took place: 328 521 of 336 776 scheduled ones. *Event time* is the scheduled
departure, *arrival* the actual one: the moment at which a system watching the airfields would have learned of it. In
arrival order, as the file is, 56 % of the records are out of order by event time, the worst by 1300 minutes.

    column             type    meaning
    event_time_ms      int64   scheduled departure, milliseconds since 1970-01-01 UTC
    arrival_ms         int64   actual departure, likewise: event time + delay
    carrier            string  16 airlines, two characters
    origin             string  EWR, JFK or LGA
    dest               string  104 airports
    flight             int32   flight number
    tailnum            string  4 037 aircraft
    dep_delay_minutes  int32   delay in minutes, negative when early
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from course.data.scratch import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ARRIVAL_ORDER",
    "COLUMNS",
    "CONTENT_SHA256",
    "FLIGHT_COLUMNS",
    "NUM_FLIGHTS",
    "FlightsUnavailable",
    "content_digest",
    "load",
    "verified_path",
]

FLIGHT_COLUMNS = ("event_time_ms", "origin", "carrier", "dest", "dep_delay_minutes")
"""What a flight is in the lessons: a dict with these keys."""

FOLDER = Path(__file__).resolve().parent
PARQUET = FOLDER / "flights.parquet"
CHECKSUMS = FOLDER / "SHA256SUMS"

NUM_FLIGHTS = 328_521
CONTENT_SHA256 = "80ca6fce2e30585f160fb8f88403cba159c355c7ece647b365b5de156e27b396"
"""`content_digest` of the data file. The file's own checksum is no such identity: Parquet's writer lists the encodings
of a column in an order that changes from run to run, so the same flights have files that differ in a few bytes."""

COLUMNS = {
    "event_time_ms": "bigint",
    "arrival_ms": "bigint",
    "carrier": "string",
    "origin": "string",
    "dest": "string",
    "flight": "int",
    "tailnum": "string",
    "dep_delay_minutes": "int",
}
"""Column names and Spark types, in the order of the file."""

ARRIVAL_ORDER: tuple[str, ...] = ("arrival_ms", "event_time_ms", "carrier", "flight", "origin", "dest", "tailnum")
"""Sorting by these columns gives the one arrival order: flights of the same minute have a fixed order too."""


class FlightsUnavailable(RuntimeError):  # noqa: N818 (a state to report)
    """The data file is missing or damaged; the text says what to do."""


def verified_path(parquet: Path = PARQUET, checksums: Path = CHECKSUMS) -> Path:
    """Return the path of the data file after comparing it with its checksum.

    Raises:
        FlightsUnavailable: the file or its checksum is missing, or they differ.
    """
    advice = "Run `sluice data prepare` to make it again, or `git checkout course/data` in a clone."
    try:
        digest = hashlib.sha256(parquet.read_bytes()).hexdigest()
        lines = checksums.read_text(encoding="utf-8").splitlines()
        expected = {name: checksum for checksum, name in (line.split() for line in lines)}
    except FileNotFoundError as error:
        raise FlightsUnavailable(f"The flights are missing: {error.filename} does not exist. {advice}") from error
    except (OSError, ValueError) as error:
        raise FlightsUnavailable(f"The flights cannot be read: {error}. {advice}") from error
    if digest != expected.get(parquet.name):
        size = parquet.stat().st_size
        raise FlightsUnavailable(
            f"The flights are damaged: {parquet.name} ({size} bytes) has checksum {digest[:12]}…, expected "
            f"{expected.get(parquet.name, 'none')[:12]}…. {advice}"
        )
    return parquet


def load(session: SparkSession, records: int | None = None) -> DataFrame:
    """Return the flights as a Spark DataFrame; with `records`, only the first so many in arrival order.

    Raises:
        FlightsUnavailable: the data file is missing or damaged.
        ValueError: `records` is less than 1.
    """
    if records is not None and records < 1:
        raise ValueError(f"records must be at least 1, got {records}")
    flights = session.read.parquet(spark_path(verified_path()))
    return flights if records is None else flights.orderBy(*ARRIVAL_ORDER).limit(records)


def content_digest(parquet: Path) -> str:
    """SHA-256 of the values, row by row, whatever the file's encoding and compression are.

    Two files with this digest hold the same flights in the same order.
    """
    import pyarrow.parquet as pq

    total = hashlib.sha256()
    for batch in pq.ParquetFile(parquet).iter_batches(batch_size=65_536, columns=list(COLUMNS)):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            total.update(repr(row).encode())
    return total.hexdigest()
