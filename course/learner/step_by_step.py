"""What `show("3.1")` gives: the failing input step by step, as a picture where there is one for it, else as text.

A ribbon is buffers of one size, filled by one serializer. Cases with two serializers, resets, part-filled builders or
long records keep their text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course.curriculum.messages import phrase
from course.curriculum.wrapping import cut, width

__all__ = ["ShowView", "drawn", "view_of"]

_LONGEST_SHOWN = 64
_LONGEST_LINE = 120
_ENDS_IN_ROOM = "FULL_RECORD"


@dataclass(frozen=True)
class ShowView:
    """The failing input of a check, and what it led to.

    `ops` are the operations of the case, `yours` and `flink` the events they led to, in the form of the
    exercise's driver; `text` is the same in words.
    """

    exercise: str
    ran: str
    text: str
    ops: list[Any]
    yours: list[Any]
    flink: list[Any]

    def __repr__(self) -> str:
        return self.text


def view_of(exercise_id: str, trace: dict[str, Any]) -> ShowView:
    """The view of a report's trace; its text ends with the first step that differs."""
    yours, flink = trace["yours_lines"], trace["flink_lines"]
    lines = [f"{exercise_id}  {trace['ran']}"]
    for number, right in enumerate(flink):
        mine = yours[number] if number < len(yours) else phrase("not_here")
        same = f"   = {phrase('flink')}" if mine == right else ""
        lines.append(f"  {number + 1:>3}  {phrase('yours')}  {mine}{same}")
        if mine != right:
            lines += [f"       {phrase('flink')}  {right}", f"       ^ {phrase('first_step_that_differs')}"]
            break
    text = "\n".join(map(_cut, lines))
    return ShowView(exercise_id, trace["ran"], text, trace["ops"], trace["yours"], trace["flink"])


def _cut(line: str) -> str:
    """A line of at most 120 columns; a longer one ends between two words."""
    return line if width(line) <= _LONGEST_LINE else cut(line, _LONGEST_LINE - 1).rpartition(" ")[0] + "…"


def drawn(view: ShowView) -> object:
    """The widget for this view, or the view itself, whose `repr` is its text."""
    return _ribbon(view) if view.exercise == "3.1" else view


def _ribbon(view: ShowView) -> object:
    records, segment_size = _records(view.ops)
    if not records:
        return view
    from widgets import ribbon

    keeps_buffer = any(op[0] == "emit" for op in view.ops)
    yours, flink = (_steps(events, keeps_buffer=keeps_buffer) for events in (view.yours, view.flink))
    return ribbon(records, segment_size, yours, flink, title=f"{view.exercise}  {view.ran}")


def _records(ops: list[Any]) -> tuple[list[str], int]:
    """The payloads as hex and the one size of all buffers; no payloads if a ribbon cannot show these operations."""
    records: list[str] = []
    sizes: set[int] = set()
    for op in ops:
        match op:
            case ["new", 0]:
                continue
            case ["serialize", 0, str(data)]:
                records.append(data)
            case ["copy", 0, 0, int(size), 0] | ["drain", 0, int(size), 0, _]:
                sizes.add(size)
            case ["emit", 0, int(size), str(data), _]:
                records.append(data)
                sizes.add(size)
            case _:
                return [], 0
    is_short = all(len(record) <= 2 * _LONGEST_SHOWN for record in records)
    return (records, sizes.pop()) if len(sizes) == 1 and is_short else ([], 0)


def _steps(events: list[Any], *, keeps_buffer: bool) -> list[dict[str, Any]]:
    """The copies among the events, each with its buffer; an unfinished event is a copy that raised."""
    steps: list[dict[str, Any]] = []
    buffer, is_open = -1, False
    for event in events:
        if event[0] != "copy":
            continue
        buffer += not is_open
        result, written = (event[1]["result"], event[1]["bytes"]) if len(event) > 1 else ("raised", "")
        is_open = keeps_buffer and result == _ENDS_IN_ROOM
        steps.append({"buffer": buffer, "bytes_hex": written.partition(":")[0], "result": result.lstrip("?")})
    return steps
