"""What `show("3.1")` draws: the failing input as a ribbon, yours above Flink's, where a ribbon can show it.

A ribbon is buffers of one size, filled by one serializer. Cases with two serializers, resets, part-filled builders or
long records keep their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.notebook import ShowView

__all__ = ["ribbon_or_text"]

_LONGEST_SHOWN = 64
_ENDS_IN_ROOM = "FULL_RECORD"


def ribbon_or_text(view: ShowView) -> object:
    """The widget for this view, or the view itself, whose `repr` is its text."""
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
        result, written = (event[1], event[2]) if len(event) > 2 else ("raised", "")
        is_open = keeps_buffer and result == _ENDS_IN_ROOM
        steps.append({"buffer": buffer, "bytes_hex": written.partition(":")[0], "result": result.lstrip("?")})
    return steps
