"""Where records come from: a reader of the user's, asked for a few records at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import length_hint
from typing import Protocol, TypeVar

from refimpl.errors import SluiceError, UserCodeError
from refimpl.records.elements import MAX_WATERMARK, RecordBatch, StreamElement, StreamRecord

__all__ = ["IterableReader", "ReaderFactory", "SourceInput", "SourceReader"]


T = TypeVar("T")


class SourceReader(Protocol):
    """Reads one subtask's share of a source, as records or as batches.

    Flink:   SourceReader (api.connector.source), 1.11.4
    """

    def read(self, max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        """Up to `max_records` records, none if there are none now, or `None` at the end.

        A batch is as large as the reader likes.
        """

    def close(self) -> None:
        """Give up files and connections."""


ReaderFactory = Callable[[int, int], SourceReader]
"""Makes the reader of subtask i of n: `make_reader(i, n)`."""


class IterableReader:
    """Reads values from an iterable. A value that is a `StreamRecord` keeps its event time."""

    def __init__(self, values: Iterable[object]) -> None:
        self._values: Iterator[object] = iter(values)

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        values = list(islice(self._values, max_records))
        if not values:
            return None
        return [value if isinstance(value, StreamRecord) else StreamRecord(value) for value in values]

    def close(self) -> None: ...


class SourceInput:
    """The input of a source task: what `NetworkInput` is to the others, but from a reader.

    The last element is the watermark that ends event time.

    Raises:
        UserCodeError: the reader raised; names the source and the subtask.
    """

    valve = None  # its one stream of records needs none
    alignment = None  # as above

    def __init__(self, name: str, subtask: int, reader: SourceReader, batch_size: int) -> None:
        self._name = name
        self._subtask = subtask
        self._reader = reader
        self._batch_size = batch_size
        self._has_turn = False
        self._is_dry = False  # the reader had none when it was last asked
        self._run: Iterator[StreamRecord] = iter(())  # comes before `_others`
        self._others: deque[StreamElement] = deque()
        self._has_ended = False
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        return not self.is_finished

    @property
    def is_flowing(self) -> bool:
        return not (self._has_ended or self._is_dry)

    @property
    def is_drained(self) -> bool:
        return not self._has_turn and not self._others and not length_hint(self._run)

    @property
    def is_finished(self) -> bool:
        return self._has_ended and self.is_drained

    def take(self, limit: int = 1) -> int:
        """Allow one batch to be read; reading itself waits for `next_element`."""
        if self._has_ended:
            return 0
        self._has_turn = True
        return 1

    def next_element(self) -> StreamElement | None:
        """The next record of the batch, or `None` when a `take` is needed."""
        for record in self.next_records():
            return record
        return self._others.popleft() if self._others else None

    def next_records(self) -> Iterator[StreamRecord]:
        """The records that come next, maybe none. What is not taken from the iterator stays here."""
        if self._has_turn:
            self._has_turn = False
            self._read()
        return self._run

    def next_values(self) -> Iterator[tuple[object, int | None]]:
        """The same as values with their times."""
        return ((record.value, record.timestamp) for record in self.next_records())

    def recycle(self) -> None:
        """Nothing to give back: records of a reader are not in buffers."""

    def close(self) -> None:
        """Close the reader, once."""
        self._run = iter(())
        self._others.clear()
        if not self._is_closed:
            self._is_closed = True
            self._call(self._reader.close)

    def _read(self) -> None:
        records = self._call(lambda: self._reader.read(self._batch_size))
        self._is_dry = False
        if records is None:
            self._has_ended = True
            self._others.append(MAX_WATERMARK)
            return
        if isinstance(records, RecordBatch):
            self._others.append(records)
            return
        self._is_dry = not records
        kinds = set(map(type, records))
        for kind in kinds:
            if not issubclass(kind, StreamElement):
                wrong = TypeError(f"read returned a {kind.__name__}, not a StreamRecord")
                raise UserCodeError(self._name, self._subtask, None, wrong)
        if kinds == {StreamRecord}:
            self._run = iter(list(records))
        else:
            self._others.extend(records)

    def _call(self, method: Callable[[], T]) -> T:
        try:
            return method()
        except SluiceError:
            raise
        except Exception as error:
            raise UserCodeError(self._name, self._subtask, None, error) from error
