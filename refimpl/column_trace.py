"""What happened, as rows that somebody fetches now and then; the kinds are those of `trace`.

A file of its own, because it alone of the two needs numpy, and a trace is known wherever there is a pool: who only
looks at memory, as the check of an exercise does, starts in half the time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import length_hint

import numpy as np
import numpy.typing as npt

from refimpl.trace import Note, Trace, TraceEvent, amount_name

__all__ = ["ColumnTrace", "Place", "TraceRows"]

_ROWS_OF_CHUNK = 16_384
_ROW = struct.Struct("<qiiii")
_ROW_TYPE = np.dtype([("time_ns", "<i8"), ("place", "<i4"), ("segment", "<i4"), ("sequence", "<i4"), ("amount", "<i4")])


@dataclass(frozen=True, slots=True)
class Place:
    """What all rows of one note have in common."""

    kind: str
    subject: str
    target: int
    peer: str


@dataclass(frozen=True, slots=True)
class TraceRows:
    """Some rows of a trace, in order, the first with number `first_number`.

    `rows` has the columns `time_ns`, `place` (an index into `places`), `segment`, `sequence` and `amount`.
    `num_lost` counts the rows that found no room before these.
    """

    places: Sequence[Place]
    rows: npt.NDArray[np.void]
    first_number: int
    epoch_ns: int
    num_lost: int

    @staticmethod
    def joined(parts: Sequence[TraceRows]) -> TraceRows:
        """What several calls of `drain` gave, one after the other, as one."""
        rows = np.concatenate([each.rows for each in parts])
        return replace(parts[-1], rows=rows, first_number=parts[0].first_number)

    def split(self, most_rows: int) -> Iterator[TraceRows]:
        """The same in parts of at most so many rows."""
        for start in range(0, len(self.rows), most_rows):
            yield replace(self, rows=self.rows[start : start + most_rows], first_number=self.first_number + start)


class _Chunk:
    """Memory for some rows. Who draws an offset writes there, so no two write in one place.

    A row counts as written when its place does, which is counted from 1 there and is 0 before.
    """

    __slots__ = ("data", "num_drained", "offsets", "successor")

    def __init__(self, num_rows: int) -> None:
        self.data = bytearray(num_rows * _ROW.size)
        self.offsets = iter(range(0, len(self.data), _ROW.size))
        self.num_drained = 0
        self.successor: _Chunk | None = None

    @property
    def rows(self) -> npt.NDArray[np.void]:
        """What has been written and not drained, up to the first row that somebody is about to write."""
        num_drawn = len(self.data) // _ROW.size - length_hint(self.offsets)
        rows = np.frombuffer(self.data, _ROW_TYPE, num_drawn)[self.num_drained :]
        unwritten = np.flatnonzero(rows["place"] == 0)
        return rows[: unwritten[0]] if len(unwritten) else rows


class ColumnTrace(Trace):
    """A trace that keeps nothing: each event is a row, and somebody calls `drain` now and then to get the rows.

    Any thread may note, none waits. One thread drains. There is room for some `most_rows` that nobody has
    drained; what finds none is lost and counted: the job goes on, whatever the one who drains does.
    """

    def __init__(self, most_rows: int = 1_000_000) -> None:
        super().__init__(capacity=0)
        self.num_lost = 0
        self._places: list[Place] = []
        self._num_drained = 0
        self._chunk_rows = min(most_rows, _ROWS_OF_CHUNK)
        self._first = self._last = self._current = _Chunk(self._chunk_rows)
        for _ in range(most_rows // self._chunk_rows - 1):
            self._add_chunk()

    def note(self, kind: str, subject: str, target: int = -1, peer: str = "") -> Note:
        now_ns, pack_into = self._now_ns or (lambda: 0), _ROW.pack_into
        self._places.append(Place(kind, subject, target, peer))
        place = len(self._places)

        def note(segment: int = -1, sequence: int = -1, amount: int = -1) -> None:
            chunk = self._current
            try:
                pack_into(chunk.data, next(chunk.offsets), now_ns(), place, segment, sequence, amount)
            except StopIteration:
                # Several threads may come here, a slow one may even go back a chunk: the next note finds the way again.
                if chunk.successor is None:
                    self.num_lost += 1
                else:
                    self._current = chunk.successor
                    note(segment, sequence, amount)

        return note

    def drain(self) -> TraceRows:
        """Everything noted since the last time, but for what is being written right now."""
        found = []
        while True:
            rows = self._first.rows
            found.append(rows.copy())
            self._first.num_drained += len(rows)
            if self._first.num_drained < self._chunk_rows:
                break
            self._add_chunk()
            assert self._first.successor is not None, "a chunk was added behind the last one"
            self._first = self._first.successor
        rows = np.concatenate(found)
        rows["place"] -= 1
        first, self._num_drained = self._num_drained, self._num_drained + len(rows)
        return TraceRows(tuple(self._places), rows, first, self.epoch_ns, self.num_lost)

    @property
    def num_events(self) -> int:
        return self._num_drained + len(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[TraceEvent]:
        """The events that nobody has drained yet."""
        chunk: _Chunk | None = self._first
        number = self._num_drained
        while chunk is not None:
            for time_ns, index, *numbers in chunk.rows.tolist():
                place = self._places[index - 1]
                names = ("segment", "sequence", amount_name(place.kind), "target")
                named = zip(names, (*numbers, place.target), strict=True)
                detail = {name: value for name, value in named if value >= 0}
                yield TraceEvent(number, (time_ns - self._started_ns) / 1e6, place.kind, place.subject, detail)
                number += 1
            chunk = chunk.successor

    def _add_chunk(self) -> None:
        self._last.successor = _Chunk(self._chunk_rows)
        self._last = self._last.successor
