"""Runs one case of exercise 13.1 against a generator of watermarks and writes down what it says.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["bound", ms]     a generator with this bound
    ["event", ms]     a record with this event time has gone out
    ["probe"]         it is asked how far event time has come

An event is [method] before an operation and [method, {"said": …}] after it: the time of the watermark that was said,
"" if there was none, or what else was said. A watermark at the least long says nothing, as does one that was said
before: it would not go out.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import own, whole
from refimpl.records.elements import MIN_TIMESTAMP, Watermark

__all__ = ["WATCHED", "run_case"]

WATCHED = (Watermark,)
"""The engine's classes that are lent to a part; it leaves them as they are."""


class _Output:
    """What a generator may talk to; it keeps what is said."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self._last = MIN_TIMESTAMP

    def emit_watermark(self, watermark: Any) -> None:
        if isinstance(watermark, Watermark) and own(watermark.timestamp) == MIN_TIMESTAMP:
            return  # of any kind: it says nothing
        time = whole(watermark.timestamp) if isinstance(watermark, Watermark) else None
        if time is None:
            inner = f" of {_kind(watermark.timestamp)}" if isinstance(watermark, Watermark) else ""
            self.said.append(f"? {_kind(watermark)}{inner}")
        elif time != self._last:
            self._last = time
            self.said.append(time)

    def mark_idle(self) -> None:
        self.said.append("? idle")


def _kind(value: Any) -> str:
    return type(value).__name__[:30]


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    output = _Output()
    generator: Any = None
    for number, (name, *given) in enumerate(case):
        event: list[Any] = [{"bound": "__init__", "event": "on_event", "probe": "on_periodic_emit"}[name]]
        events.append(event)
        output.said = []
        if name == "bound":
            generator = part(*given)
        elif name == "event":
            generator.on_event(f"flight {number}", *given, output)
        else:
            generator.on_periodic_emit(output)
        said = output.said
        event.append({"said": "" if not said else said[0] if len(said) == 1 else "? " + ", ".join(map(str, said))[:60]})
