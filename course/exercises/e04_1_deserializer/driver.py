"""Runs one case of lesson 4 against any record deserializer and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the reference part;
so it imports the engine and the standard library only. A case is a list of operations:

    ["new", s]                        deserializer number s
    ["stream", s, records, sizes]     what channel s carries: records (hex, or [length, seed] for a generated
                                      payload) cut into buffers of these sizes; the last size is used again and again
    ["begin", s, data]                the same, but for one buffer with these bytes: the beginning of something
    ["feed", s, n]                    n buffers of it are read, one after the other, each as a task does it
    ["feed", s, n, lead]              the same, each a window that begins at byte `lead` of a larger segment
    ["around", s, t]                  one of s is read, and one of t after the first answer about it
    ["again", s]                      the buffer is asked for once more

Reading a buffer is: set_next_buffer, then get_next_record for as long as it says INTERMEDIATE, then get_current_buffer;
the buffer is recycled, and its memory is written over, as the next producer would.
A record is looked at until the next call of its own deserializer: in place or in an array that is used again, it may
be another one after that. If calls of another deserializer change it, the answer ends with "changed".

An event is [name] before the call and [name, fields] after it:

    new, set       done: "ok"
    get            result; record, as hex, None, or "?" and what came instead; is_answer: whether both are what they may
                   be; flags
    back, again    buffer: "the buffer", "nothing" or "another"; one that the part has recycled itself is "recycled",
                   one that is not home when its reader gave it back is "retained"
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from course.grading.kinds import octets
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.segment import MemorySegment
from refimpl.records.spanning import DeserializationResult

__all__ = ["WATCHED", "payload", "pieces", "run_case"]

WATCHED = (Buffer, BufferSlice, DeserializationResult, MemorySegment)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_MEMBERS = tuple(DeserializationResult)
_MORE = DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER
_SHOWN_WHOLE = 600
_AROUND = b"\xee"
_NEXT_OWNER = b"\xdd"


def payload(data: str | list[int]) -> bytes:
    """The bytes of a record: from hex, or byte i = (seed + 7 i + 13 (i >> 8)) & 255."""
    if isinstance(data, str):
        return bytes.fromhex(data)
    length, seed = data
    every = b"".join(_in_sevens((seed + 13 * block) & 255) for block in range((length + 255) >> 8))
    return every[:length]


@cache
def _in_sevens(first: int) -> bytes:
    """256 bytes, each 7 more than the one before."""
    return bytes((first + 7 * i) & 255 for i in range(256))


def pieces(records: list[Any], sizes: list[int]) -> list[bytes]:
    """The stream of these records, a length and a payload each, cut into buffers."""
    every = [payload(each) for each in records]
    stream = b"".join(len(each).to_bytes(4, "big") + each for each in every)
    found, start, number = [], 0, 0
    while start < len(stream):
        size = sizes[min(number, len(sizes) - 1)]
        found.append(stream[start : start + size])
        start, number = start + size, number + 1
    return found


def shown(data: bytes) -> str:
    """Bytes as hex; long ones as digest, length and the first 24 bytes."""
    if len(data) <= _SHOWN_WHOLE:
        return data.hex()
    return f"sha256:{hashlib.sha256(data).hexdigest()}:{len(data)}:{data[:24].hex()}"


def _name(value: object) -> str | None:
    """The name of a result; None if it is none."""
    return next((member.name for member in _MEMBERS if value is member), None)


def _record(value: Any) -> str | None:
    if value is None:
        return None
    if (raw := octets(value)) is not None:
        return shown(raw)
    try:
        return shown(bytes(memoryview(value)))
    except TypeError:
        return f"?{type(value).__name__}"[:60]


def _answer(value: object) -> dict[str, Any]:
    """Result and record as text, or "?" and what came instead of them; and whether nothing did."""
    result, record = _pair(value)
    return {
        "result": result,
        "record": record,
        "is_answer": not any((each or "").startswith("?") for each in (result, record)),
    }


def _pair(value: object) -> tuple[str, str | None]:
    if value is None:
        return "?None", None
    if not isinstance(value, tuple | list) or len(value) != 2:
        alone = _name(value) or (f"{len(value)} values" if isinstance(value, tuple | list) else type(value).__name__)
        return "?alone " + alone[:60], None
    first, second = value
    if _name(second) is not None and _name(first) is None:
        return "?turned", None
    return _name(first) or f"?{first!r}"[:60], _record(second)


class _Pool:
    """Where a segment goes when it is recycled: to somebody else, whose record has the same length and other bytes."""

    def __init__(self) -> None:
        self.num_recycled = 0

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Write over it; the length stays, so that who looks into old memory finds a record, and a wrong one."""
        self.num_recycled += 1
        view = segment.view
        if view is not None:
            start = 4 if len(view) > 4 else 0
            view[start:] = _NEXT_OWNER * (len(view) - start)


class _Channel:
    """One deserializer and the buffers that are to come for it."""

    def __init__(self, part: Any, events: list[Any]) -> None:
        self.part = part
        self.events = events
        self.coming: list[bytes] = []
        self.last: BufferSlice | None = None

    def begin(self, name: str) -> list[Any]:
        event: list[Any] = [name]
        self.events.append(event)
        return event

    def read(self, lead: int = 0, meanwhile: _Channel | None = None) -> None:
        piece, pool = self.coming.pop(0), _Pool()
        data = _AROUND * lead + piece + _AROUND * lead
        window = BufferSlice(Buffer(MemorySegment(bytearray(data)), pool, size=len(data)), lead, lead + len(piece))
        event = self.begin("set")
        self.part.set_next_buffer(window)
        event.append({"done": "ok"})
        for _ in range(len(piece) // 4 + 3):
            event = self.begin("get")
            answer = self.part.get_next_record()
            seen = {**_answer(answer), "flags": "recycled" if pool.num_recycled else ""}
            event.append(seen)
            is_pair = isinstance(answer, tuple | list) and len(answer) == 2
            is_more = is_pair and answer[0] is _MORE
            if meanwhile is not None:
                meanwhile.read()
                meanwhile = None
                if is_pair and _record(answer[1]) != seen["record"]:
                    seen["flags"] = "changed"
            del answer
            if not is_more:
                break
        self.last = window
        event = self.ask_for_it("back")
        was_recycled = window.is_recycled
        if not was_recycled:
            window.recycle()
        if event[1]["buffer"] == "the buffer" and (was_recycled or not window.is_recycled):
            event[1]["buffer"] = "recycled" if was_recycled else "retained"

    def ask_for_it(self, name: str) -> list[Any]:
        event = self.begin(name)
        given = self.part.get_current_buffer()
        event.append({"buffer": "nothing" if given is None else "the buffer" if given is self.last else "another"})
        return event


def run_case(make: Callable[[], Any], case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    channels: dict[int, _Channel] = {}
    for name, number, *rest in case:
        if name == "new":
            event: list[Any] = ["new"]
            events.append(event)
            channels[number] = _Channel(make(), events)
            event.append({"done": "ok"})
        elif name == "stream":
            channels[number].coming = pieces(*rest)
        elif name == "begin":
            channels[number].coming = [payload(rest[0])]
        elif name == "again":
            channels[number].ask_for_it("again")
        elif name == "around":
            channels[number].read(meanwhile=channels[rest[0]])
        else:
            for _ in range(rest[0]):
                channels[number].read(*rest[1:])
