"""Runs one case of lesson 1 against any kind of segment and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the engine's; so it imports the engine
and the standard library only. A case is a list of operations; segments have the numbers 0, 1, …:

    ["new", s, hex]                       segment s over memory with these bytes
    ["free", s]
    ["window", s, index, length]          the bytes of a window
    ["write", s, index, hex]              into a window, as long as the bytes
    ["put_int", s, index, value, order]   order: "BIG_ENDIAN", "LITTLE_ENDIAN", or "" for none
    ["get_int", s, index, order]
    ["copy_to", s, index, t, target_index, length]
    ["poke", s, index, hex]               the memory itself is changed, behind the segment's back

An event is [call] before and [call, {"answer": …, "memory": …}] after it: what came back ("!" and the name of an
exception, which is there itself as "raised"), and the bytes of every segment as they are then, of a large one the
first ones and a checksum. "earlier" is there too if a window that was given before cannot be read any more, or shows
something else than the memory.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from course.grading.kinds import whole
from refimpl.errors import LocalUsageError
from refimpl.memory.segment import ByteOrder, MemorySegment

__all__ = ["WATCHED", "label", "run_case"]

WATCHED = (MemorySegment, ByteOrder)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_REFUSALS = (IndexError, LocalUsageError, ValueError, BufferError, OverflowError, struct.error)
_NAMES = "abc"
_SHOWN_WHOLE = 1200


def label(op: list[Any]) -> str:
    """An operation as Python writes it."""
    match op:
        case ["new", s, data] if len(data) > 120:
            return f"{_NAMES[s]} = {data[:11]}… ({(len(data) + 1) // 3})"
        case ["new", s, data]:
            return f"{_NAMES[s]} = {data[:40]}" + ("…" if len(data) > 40 else "")
        case ["write", s, index, data]:
            return f"{_NAMES[s]}.window({index}, {len(data) // 2})[:] = {data}"
        case ["poke", s, index, data]:
            return f"{_NAMES[s]}[{index}:] = {data}"
        case ["copy_to", s, index, t, target_index, length]:
            return f"{_NAMES[s]}.copy_to({index}, {_NAMES[t]}, {target_index}, {length})"
        case [name, s, *rest]:
            return f"{_NAMES[s]}.{name}({', '.join(str(each) for each in rest if each != '')})"
    raise AssertionError(f"no such operation: {op}")


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Do what the case says, appending what is seen to `events`."""
    memories: list[bytearray] = []
    segments: list[Any] = []
    windows: list[_Window] = []
    for op in case:
        event: list[Any] = [label(op)]
        events.append(event)
        answer: dict[str, Any] = {"answer": ""}
        if op[0] == "new":
            memories.append(bytearray.fromhex(op[2]))
            segments.append(part(memories[-1]))
        elif op[0] == "poke":
            memories[op[1]][op[2] : op[2] + len(op[3]) // 2] = bytes.fromhex(op[3])
        else:
            answer = _answer(op, segments, windows)
            is_lost = any(not each.shows(memories[each.segment]) for each in windows)
            answer |= {"earlier": "lost"} if is_lost else {}
            windows = [each for each in windows if segments[each.segment].view is not None]
        event.append({**answer, "memory": " | ".join(map(_hex, memories))})


class _Window:
    """A window that somebody was given, and may go on reading until the segment is freed."""

    def __init__(self, segment: int, index: int, length: int, given: Any) -> None:
        self.segment, self._index, self._length, self._given = segment, index, length, given

    def shows(self, memory: bytearray) -> bool:
        """Whether it can be read, and shows what the memory has there."""
        try:
            return bytes(self._given) == memory[self._index : self._index + self._length]
        except (ValueError, TypeError):  # a memoryview that was released
            return False


def _hex(data: bytes | bytearray) -> str:
    """Bytes as hex; of many the first, their number and a checksum."""
    if len(data) <= _SHOWN_WHOLE:
        return data.hex(" ")
    return f"{data[:20].hex(' ')} … ({len(data)} bytes, checksum {zlib.crc32(data):08x})"


def _do(op: list[Any], segments: list[Any], windows: list[_Window]) -> str:
    segment = segments[op[1]]
    match op:
        case ["free", _]:
            segment.free()
        case ["window", _, index, length]:
            given = segment.window(index, length)
            if isinstance(given, memoryview) and given.nbytes == length:
                windows.append(_Window(op[1], index, length, given))
            return _bytes(given)
        case ["write", _, index, data]:
            window = segment.window(index, len(data) // 2)
            try:
                window[:] = bytes.fromhex(data)
            except TypeError:
                return "!TypeError"
        case ["put_int", _, index, value, order]:
            segment.put_int(index, value, *([ByteOrder[order]] if order else []))
        case ["get_int", _, index, order]:
            return _number(segment.get_int(index, *([ByteOrder[order]] if order else [])))
        case ["copy_to", _, index, target, target_index, length]:
            segment.copy_to(index, segments[target], target_index, length)
    return ""


def _bytes(value: Any) -> str:
    """The bytes of something like a window; what holds none, by its type."""
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return "None" if value is None else type(value).__name__
    return _hex(bytes(value))


def _number(value: Any) -> str:
    """A whole number of any kind; what is none, by its type."""
    number = whole(value)
    return ("None" if value is None else type(value).__name__) if number is None else str(number)


def _answer(op: list[Any], segments: list[Any], windows: list[_Window]) -> dict[str, Any]:
    """What came back, or the exception with which the part refused, and its name."""
    try:
        return {"answer": _do(op, segments, windows)}
    except _REFUSALS as error:
        name = next(kind.__name__ for kind in _REFUSALS if isinstance(error, kind))
        return {"answer": f"!{name}", "raised": error}
    except (TypeError, AttributeError) as error:
        if segments[op[1]].view is None:  # a part that never asks whether it was freed
            return {"answer": f"!{type(error).__name__}", "raised": error}
        raise
