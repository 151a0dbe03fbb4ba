"""Runs one case of exercise 13.2 against a valve of watermarks and writes down what comes out.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["channels", n]         a valve for n channels
    ["watermark", i, ms]    a watermark arrives on channel i
    ["idle", i]             channel i says that it is idle
    ["active", i]           channel i says that it is active

An event is [method] before an operation and [method, {"out": [...]}] after it: times of watermarks, names of statuses,
and "? …" for what is neither, or no list.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import members, whole
from refimpl.records.elements import StreamStatus, Watermark

__all__ = ["WATCHED", "run_case"]

WATCHED = (Watermark,)
"""The engine's classes that are lent to a part; it leaves them as they are."""


def _told(element: Any) -> Any:
    if isinstance(element, StreamStatus):
        return element.name
    time = whole(element.timestamp) if isinstance(element, Watermark) else None
    return f"? {type(element).__name__[:30]}" if time is None else time


def _out(answer: Any) -> list[Any]:
    listed = members(answer)
    if listed is None:
        return [f"? no list: {type(answer).__name__[:30]}"]
    return [_told(each) for each in listed[:8]]


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, num_channels), *rest = case
    events.append(["__init__"])
    valve = part(num_channels)
    events[-1].append({})
    for name, index, *time in rest:
        event: list[Any] = ["input_watermark" if name == "watermark" else "input_status"]
        events.append(event)
        if name == "watermark":
            answer = valve.input_watermark(Watermark(*time), index)
        else:
            answer = valve.input_status(StreamStatus[name.upper()], index)
        event.append({"out": _out(answer)})
