"""Where records come from: a reader of the user's, asked for a few records at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar, runtime_checkable

from refimpl.errors import USER_CODE_RAISES, SluiceError, UserCodeError, failure_of
from refimpl.records.elements import MAX_WATERMARK, RecordBatch, StreamElement, StreamRecord

__all__ = ["IterableReader", "MarkedReader", "ReaderFactory", "SeekableReader", "SourceInput", "SourceReader"]


T = TypeVar("T")

_MOST_EMPTY_READS = 5  # 2^5 / 2 = 16 ms is rest enough, and is no delay that somebody sees


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


@runtime_checkable
class SeekableReader(SourceReader, Protocol):
    """A reader that need not read what comes before the place where it is to begin.

    Flink:   CheckpointedFunction of a source (streaming.api.checkpoint), 1.11.4
    """

    def seek(self, position: int) -> None:
        """Begin behind the first `position` records; called once, before the first `read`."""


@runtime_checkable
class MarkedReader(SourceReader, Protocol):
    """A reader that remembers, beside how far it has come, what it has read: a snapshot keeps its mark.

    Flink:   SourceReader.snapshotState (api.connector.source), 1.11.4
    """

    @property
    def mark(self) -> bytes:
        """What to keep."""

    def expect(self, mark: bytes) -> None:
        """Refuse, sooner or later, to read anything else than the reader whose mark this was."""


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

    The last element is the watermark that ends event time. A new input with another reader of the same records goes
    on where this one is: after `seek` to its `position`.

    Raises:
        UserCodeError: the reader raised, or has fewer records than it had; names the source and the subtask.
    """

    valve = None  # one stream of records needs none
    alignment = None  # as above
    held_buffers = ()  # records of a reader are not in buffers

    def __init__(self, name: str, subtask: int, reader: SourceReader, batch_size: int) -> None:
        self._name = name
        self._subtask = subtask
        self._reader = reader
        self._batch_size = batch_size
        self._num_empty_reads = 0  # in a row
        self._has_turn = False
        self._elements: deque[StreamElement] = deque()
        self._num_read = 0
        self._num_to_skip = 0
        self._has_ended = False
        self._is_closed = False

    @property
    def position(self) -> int:
        """How many of the reader's elements have been handed on; the last watermark is none of them."""
        return self._num_read + self._num_to_skip - max(0, self._num_at_hand - self._has_ended)

    @property
    def is_ready(self) -> bool:
        return not self.is_finished

    @property
    def pause_ms(self) -> float:
        """How long a driver that has a clock waits before the next read: 1 ms after an empty one, then longer."""
        return 2.0**self._num_empty_reads / 2 if self._num_empty_reads else 0.0

    @property
    def is_drained(self) -> bool:
        return not self._has_turn and not self._elements

    @property
    def is_finished(self) -> bool:
        return self._has_ended and self.is_drained

    @property
    def mark(self) -> bytes:
        """What the reader wants to be kept with the position; mostly nothing."""
        return self._reader.mark if isinstance(self._reader, MarkedReader) else b""

    def seek(self, position: int, mark: bytes = b"") -> None:
        """Begin behind the first `position` elements; a reader that cannot do so reads and forgets them."""
        if isinstance(self._reader, MarkedReader) and mark:
            self._reader.expect(mark)
        if isinstance(self._reader, SeekableReader):
            reader = self._reader
            self._call(lambda: reader.seek(position))
            self._num_read = position
        else:
            self._num_to_skip = position

    def take(self, limit: int = 1) -> int:
        """Allow one batch to be read; reading itself waits for `next_element`."""
        if self._has_ended:
            return 0
        self._has_turn = True
        return 1

    def next_element(self) -> StreamElement | None:
        """The next record of the batch, or `None` when a `take` is needed."""
        if self._has_turn:
            self._has_turn = False
            self._read()
        return self._elements.popleft() if self._elements else None

    def recycle(self) -> None:
        """Give nothing back: there are no buffers."""

    def close(self) -> None:
        """Close the reader, once."""
        self._elements.clear()
        if not self._is_closed:
            self._is_closed = True
            self._call(self._reader.close)

    @property
    def _num_at_hand(self) -> int:
        """Elements that have been read and not been handed on, the last watermark among them."""
        return len(self._elements)

    def _read(self) -> None:
        records = self._read_now()
        if records is None:
            self._has_ended = True
            self._elements.append(MAX_WATERMARK)
        elif isinstance(records, RecordBatch):
            self._elements.extend(records.records())
        else:
            self._elements.extend(self._checked(records))

    def _read_now(self) -> Sequence[StreamRecord] | RecordBatch | None:
        """What the reader has behind the position it was to begin at."""
        while True:
            records = self._answer()
            self._num_read += 0 if records is None else len(records)
            if not self._num_to_skip:
                return records
            if records is None:
                shorter = ValueError(f"the source ends {self._num_to_skip} records before the place it had come to")
                raise UserCodeError(self._name, self._subtask, None, shorter)
            if len(records) > self._num_to_skip or not len(records):
                behind, self._num_to_skip = slice(self._num_to_skip, None), max(0, self._num_to_skip - len(records))
                return records.take(behind) if isinstance(records, RecordBatch) else records[behind]
            self._num_to_skip -= len(records)

    def _answer(self) -> Sequence[StreamRecord] | RecordBatch | None:
        """What the reader answers, if that is an answer."""
        records = self._call(lambda: self._reader.read(self._batch_size))
        if isinstance(records, str | bytes) or not isinstance(records, Sequence | RecordBatch | None):
            wrong = TypeError(
                f"read returned a {type(records).__name__}; it is to return a list of StreamRecords, "
                f"empty if there are none now, a RecordBatch, or None at the end"
            )
            raise UserCodeError(self._name, self._subtask, None, wrong)
        is_empty = records is not None and not len(records)
        self._num_empty_reads = min(self._num_empty_reads + 1, _MOST_EMPTY_READS) if is_empty else 0
        return records

    def _checked(self, records: Sequence[StreamRecord]) -> Sequence[StreamRecord]:
        """What the reader has read, if all of it may travel in a stream."""
        for kind in set(map(type, records)):
            if not issubclass(kind, StreamElement):
                wrong = TypeError(f"read returned a {kind.__name__}, not a StreamRecord")
                raise UserCodeError(self._name, self._subtask, None, wrong)
        return records

    def _call(self, method: Callable[[], T]) -> T:
        try:
            return method()
        except SluiceError:
            raise
        except USER_CODE_RAISES as error:
            raise failure_of(self._name, self._subtask, None, error) from error
