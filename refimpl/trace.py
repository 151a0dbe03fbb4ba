"""What happened, in order: kept here to be told, or handed on in columns (`column_trace`) to whoever writes it down.

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

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol

__all__ = ["Note", "Trace", "TraceEvent", "amount_name", "noting"]

_CREDIT_KINDS = ("grant", "wait")


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
        amount_of_kind = amount_name(kind)

        def note(segment: int = -1, sequence: int = -1, amount: int = -1) -> None:
            values = {"segment": segment, "target": target, "sequence": sequence, amount_of_kind: amount}
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


def amount_name(kind: str) -> str:
    """What the amount is that an event of this kind has."""
    return "credit" if kind in _CREDIT_KINDS else "bytes"


def noting(trace: Trace | None, kind: str, subject: str, target: int = -1) -> Note | None:
    """What to call each time, if there is a trace."""
    return None if trace is None else trace.note(kind, subject, target)
