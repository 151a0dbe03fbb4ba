"""A partition of flights as a source of the engine: Arrow batches in, records out, one batch in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course.data.flights import FLIGHT_COLUMNS
from course.data.partitions import Partition
from refimpl.records import StreamRecord
from refimpl.task import ReaderFactory

__all__ = ["FlightsReader", "reader_of"]


class FlightsReader:
    """Reads the flights of one or more partitions, one after the other, in arrival order."""

    def __init__(self, parts: Sequence[Partition], batch_size: int = 4096) -> None:
        self._batches = (batch for part in parts for batch in part.batches(batch_size, FLIGHT_COLUMNS))
        self._rows: Iterator[dict[str, object]] = iter(())

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        """Up to `max_records` flights without event time, or `None` after the last."""
        records = [StreamRecord(row) for _, row in zip(range(max_records), self._rows, strict=False)]
        while len(records) < max_records:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._rows = iter(batch.to_pylist())
            room = max_records - len(records)
            records += [StreamRecord(row) for _, row in zip(range(room), self._rows, strict=False)]
        return records or None

    def close(self) -> None:
        """Close the file being read."""
        self._batches.close()
        self._rows = iter(())


def reader_of(parts: Sequence[Partition]) -> ReaderFactory:
    """The readers of a source: subtask i of n reads partitions i, i + n, i + 2n, …"""

    def make_reader(subtask: int, parallelism: int) -> FlightsReader:
        return FlightsReader(parts[subtask::parallelism])

    return make_reader
