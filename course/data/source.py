"""A partition of flights as a source of the engine: Arrow batches in, batches of records out, one in memory."""

from __future__ import annotations

from collections.abc import Sequence

from course.data.columns import record_batch_of
from course.data.flights import FLIGHT_COLUMNS
from course.data.partitions import Partition
from refimpl.records import RecordBatch
from refimpl.task import ReaderFactory

__all__ = ["FlightsReader", "reader_of"]


class FlightsReader:
    """Reads the flights of one or more partitions, one after the other, in arrival order."""

    def __init__(self, parts: Sequence[Partition], batch_size: int = 4096) -> None:
        self._batches = (batch for part in parts for batch in part.batches(batch_size, FLIGHT_COLUMNS))

    def read(self, max_records: int) -> RecordBatch | None:
        """The next flights without event time, each a dict, or `None` after the last."""
        batch = next(self._batches, None)
        return None if batch is None else record_batch_of(batch)

    def close(self) -> None:
        """Close the file being read."""
        self._batches.close()


def reader_of(parts: Sequence[Partition]) -> ReaderFactory:
    """The readers of a source: subtask i of n reads partitions i, i + n, i + 2n, …"""

    def make_reader(subtask: int, parallelism: int) -> FlightsReader:
        return FlightsReader(parts[subtask::parallelism])

    return make_reader
