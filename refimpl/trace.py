"""What happened, in order: kept here to be told, or handed on in columns to whoever writes it down.

Rule: an object that has no trace pays one comparison with `None` per buffer and nothing per record. One
that has asks once for a `note` of each kind of thing it does, and calls that when it does it.

    kind            subject      target        segment  sequence  amount
    output          partition                                              made; `peer` is the task that writes
    local channel   partition    subpartition                              made; `peer` is the task that reads
    remote channel  partition    subpartition                              the same, over a connection
    queue           partition    subpartition  which                       a buffer is lent, open or full, and queued
    queue event     partition    subpartition
    deliver         partition    subpartition  which    of these  bytes    taken by the task, or to be sent to it
    receive         partition    subpartition  which    of these  bytes    has come over a connection
    take            partition    subpartition  which    of these  bytes    ... and is taken by the task
    recycle         pool                       which                       its segment has come home
    grant           partition    subpartition                     credit   so much there is now, after a grant
    wait            partition    subpartition                     credit   there is data, and too little credit
    made, idle, backpressured, done            (task)                      what a task does from now on
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import length_hint
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["ColumnTrace", "Note", "Place", "Trace", "TraceEvent", "TraceRows", "noting"]

_CREDIT_KINDS = ("grant", "wait")
_ROWS_OF_CHUNK = 16_384
_ROW = struct.Struct("<qiiii")
_ROW_TYPE = np.dtype([("time_ns", "<i8"), ("place", "<i4"), ("segment", "<i4"), ("sequence", "<i4"), ("amount", "<i4")])


class Note(Protocol):
    """Notes that the thing it was asked for happens now; `amount` is bytes or credit, -1 stands for none."""

    def __call__(self, segment: int = -1, sequence: int = -1, amount: int = -1) -> None: ...


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that happened.

    `sequence` counts events from 0; `time_ms` is the driver's clock, virtual in a simulation.
    `kind` is a short verb phrase such as `request`; `subject` is who did it, such as
    `map-1`. `detail` holds the numbers, such as `{"segment": 7, "target": 0}`.
    """

    sequence: int
    time_ms: float
    kind: str
    subject: str
    detail: Mapping[str, object]

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={value}" for name, value in self.detail.items())
        return f"{self.sequence:>6} {self.time_ms:>9.3f} ms  {self.subject:<16} {self.kind} {numbers}".rstrip()


class Trace:
    """A bounded record of events of one run; the oldest go when `capacity` events are kept.

    Several threads may note at the same time.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self.epoch_ns = 0
        self._now_ns: Callable[[], int] | None = None
        self._started_ns = 0
        self._numbers = count()
        self._events: deque[TraceEvent] = deque(maxlen=capacity)

    def use_clock(self, now_ns: Callable[[], int], epoch_ns: int = 0) -> None:
        """The driver says what time it is, before it deploys, since the engine has no clock. The first one counts.

        `epoch_ns` and that time make nanoseconds since 1970; 0 where time is virtual.
        """
        if self._now_ns is None:
            self._now_ns, self.epoch_ns = now_ns, epoch_ns
            self._started_ns = now_ns()

    def note(self, kind: str, subject: str, target: int = -1, peer: str = "") -> Note:
        """What to call each time `subject` does that, to `target` if there are several."""
        amount_name = "credit" if kind in _CREDIT_KINDS else "bytes"

        def note(segment: int = -1, sequence: int = -1, amount: int = -1) -> None:
            values = {"segment": segment, "target": target, "sequence": sequence, amount_name: amount}
            detail: dict[str, object] = {name: value for name, value in values.items() if value >= 0}
            if peer:
                detail["peer"] = peer
            time_ms = (self._now_ns() - self._started_ns) / 1e6 if self._now_ns else 0.0
            self._events.append(TraceEvent(next(self._numbers), time_ms, kind, subject, detail))

        return note

    def close(self) -> None:
        """The run is over, and nothing will be noted any more."""

    @property
    def num_events(self) -> int:
        """How many there were, kept or not."""
        return self._events[-1].sequence + 1 if self._events else 0

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __bool__(self) -> bool:
        return True  # also when nothing is kept yet: it is a trace

    def story(self, name: str, value: object, last: int = 20) -> str:
        """The last events whose detail has `name` equal to `value`, one per line."""
        lines = [str(event) for event in self if event.detail.get(name) == value]
        return "\n".join(lines[-last:]) or f"(nothing recorded of {name} {value})"


def noting(trace: Trace | None, kind: str, subject: str, target: int = -1) -> Note | None:
    """What to call each time, if there is a trace."""
    return None if trace is None else trace.note(kind, subject, target)


# -- in columns --------------------------------------------------------------------------------------


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
                amount_name = "credit" if place.kind in _CREDIT_KINDS else "bytes"
                named = zip(("segment", "sequence", amount_name, "target"), (*numbers, place.target), strict=True)
                detail = {name: value for name, value in named if value >= 0}
                yield TraceEvent(number, (time_ns - self._started_ns) / 1e6, place.kind, place.subject, detail)
                number += 1
            chunk = chunk.successor

    def _add_chunk(self) -> None:
        self._last.successor = _Chunk(self._chunk_rows)
        self._last = self._last.successor
