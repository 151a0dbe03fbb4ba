"""A source that Spark feeds, where checkpoints are: every try must find the same batches in the same hands.

The subtasks of a TaskManager share one partition. Without checkpoints whoever comes first takes the next batch. With
them batch k belongs to subtask k modulo their number, and all have the same number of rows, however Spark cuts them: so
how many records a subtask has had says which they were. A checksum over the batches goes into the snapshot with that
number. A try that goes on from there reads from the beginning again, and a partition whose rows have changed, or have
come in another order, is refused before one of them leaves.

Flink:   none; its sources go back by themselves (SourceReader.snapshotState, 1.11.4)
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from refimpl.errors import RestoreRefusedError
from refimpl.records.elements import RecordBatch, StreamRecord
from refimpl.task.source import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DealtBatches", "FedReader", "same_size"]

ROWS_OF_BATCH = 8192
"""Fixed: with other batches the positions of a checkpoint would be of other rows."""

_MOST_AHEAD = 4
_MARK = struct.Struct(">QI")


class DealtBatches:
    """The batches of one partition, dealt out in turn to the subtasks `numbers`.

    One that is slower than the others lets them wait, once it is four batches behind.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], numbers: Sequence[int]) -> None:
        self._batches = batches
        self._lock = threading.Lock()
        self._waiting: dict[int, deque[pa.RecordBatch]] = {number: deque() for number in numbers}
        self._turns = [*numbers]
        self._num_dealt = 0
        self._has_ended = False

    def is_ready(self, number: int) -> bool:
        """Whether `take` has an answer now that makes no other one's pile too high."""
        with self._lock:
            while not (self._waiting[number] or self._has_ended):
                if len(self._waiting[self._next]) >= _MOST_AHEAD:
                    return False
                self._deal()
        return True

    def take(self, number: int) -> pa.RecordBatch | None:
        """The next batch of a subtask, `None` after the last."""
        with self._lock:
            while not (self._waiting[number] or self._has_ended):
                self._deal()
            return self._waiting[number].popleft() if self._waiting[number] else None

    @property
    def _next(self) -> int:
        return self._turns[self._num_dealt % len(self._turns)]

    def _deal(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            self._has_ended = True
        else:
            self._waiting[self._next].append(batch)
            self._num_dealt += 1


class FedReader:
    """Reads what is dealt to subtask `number`, with the reader that `make` makes of these batches.

    Raises (read):
        RestoreRefusedError: the partition is not what it was.
    """

    def __init__(
        self, dealt: DealtBatches, number: int, make: Callable[[Iterator[pa.RecordBatch]], SourceReader]
    ) -> None:
        self._dealt = dealt
        self._number = number
        self._num_batches = self._checksum = 0
        self._expected: tuple[int, int] | None = None
        self._reader = make(iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._dealt.take(self._number)) is not None:
            self._note(batch)
            yield batch
        if self._expected is not None:
            raise self._refusal(f"it ends after {self._num_batches} batches of {self._expected[0]}")

    @property
    def mark(self) -> bytes:
        """How many batches were taken, and the checksum of all of them."""
        return _MARK.pack(self._num_batches, self._checksum)

    def expect(self, mark: bytes) -> None:
        number, checksum = _MARK.unpack(mark)
        self._expected = (number, checksum) if number else None

    def read(self, max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        """What the reader reads; nothing now while the next batch is for another one that is far behind."""
        return self._reader.read(max_records) if self._dealt.is_ready(self._number) else []

    def close(self) -> None:
        self._reader.close()

    def _note(self, batch: pa.RecordBatch) -> None:
        self._num_batches += 1
        self._checksum = _checksum(batch, self._checksum)
        if self._expected is None or self._num_batches < self._expected[0]:
            return
        if self._checksum != self._expected[1]:
            raise self._refusal(f"the checksum of its first {self._num_batches} batches here is another")
        self._expected = None

    def _refusal(self, why: str) -> RestoreRefusedError:
        return RestoreRefusedError(
            f"the partition that Spark feeds to subtask {self._number} is not what it was before the failure: {why}; "
            f"let the DataFrame be the same whenever it is read: sorted within partitions, without random numbers"
        )


def same_size(batches: Iterator[pa.RecordBatch], num_rows: int = ROWS_OF_BATCH) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `num_rows`, the last one of what is left."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    num_waiting = 0
    for batch in batches:
        waiting.append(batch)
        num_waiting += batch.num_rows
        while num_waiting >= num_rows:
            rows = pa.Table.from_batches(waiting)
            yield _as_one(rows.slice(0, num_rows))
            waiting = rows.slice(num_rows).to_batches()
            num_waiting -= num_rows
    if num_waiting:
        yield _as_one(pa.Table.from_batches(waiting))


def _as_one(rows: pa.Table) -> pa.RecordBatch:
    return rows.combine_chunks().to_batches()[0]


def _checksum(batch: pa.RecordBatch, before: int) -> int:
    """A checksum of the values, whatever lies in the memory of those that are null."""
    import pyarrow as pa

    for column in batch.columns:
        for part in (column.is_valid(), column.drop_null()):
            before = crc32(pa.record_batch([part], ["column"]).serialize(), before)
    return before
