"""What happened, in order: one line per event of the engine's life.

Rule: an object that has no trace pays one comparison with `None` per buffer and nothing per record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Trace", "TraceEvent"]


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that happened.

    `sequence` counts events from 0; `time_ms` is the driver's clock, virtual in a simulation.
    `kind` is a short verb phrase such as `request segment`; `subject` is who did it, such as
    `map-1`. `detail` holds the numbers, such as `{"segment": 7, "target": 0}`.
    """

    sequence: int
    time_ms: float
    kind: str
    subject: str
    detail: Mapping[str, object]

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={value}" for name, value in self.detail.items())
        return f"{self.sequence:>6} {self.time_ms:>9.3f} ms  {self.subject:<16} {self.kind} {numbers}"


class Trace:
    """A bounded record of events; the oldest go when `capacity` events are kept.

    The driver sets `now_ms` before each action, since the engine has no clock.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self.now_ms = 0.0
        self.num_events = 0
        self._events: deque[TraceEvent] = deque(maxlen=capacity)

    def add(self, kind: str, subject: str, **detail: object) -> None:
        """Append one event at the current time."""
        self._events.append(TraceEvent(self.num_events, self.now_ms, kind, subject, detail))
        self.num_events += 1

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def story(self, name: str, value: object, last: int = 20) -> str:
        """The last events whose detail has `name` equal to `value`, one per line."""
        lines = [str(event) for event in self._events if event.detail.get(name) == value]
        return "\n".join(lines[-last:]) or f"(nothing recorded of {name} {value})"
