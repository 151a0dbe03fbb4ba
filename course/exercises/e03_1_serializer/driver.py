"""Runs one case of lesson 3 against any record serializer and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the reference part;
so it imports the engine and the standard library only. A case is a list of operations:

    ["new", s]                      serializer number s
    ["serialize", s, data]          data: hex text, or [length, seed] for a generated payload
    ["copy", s, b, capacity, used]  into builder b; it is opened on first use, with `used` bytes in it
    ["drain", s, capacity, used, n] into fresh builders until the answer is not PARTIAL, at most n
    ["emit", s, capacity, data, n]  a record writer's loop: the current builder is kept between records
    ["reset", s]  ["prune", s]
    ["probe", s, n]                 into builders of 64, 128, … bytes until the record ends, n copies were
                                    made or a copy became slow; then ["stopped"] (slow is not wrong)
    ["revive", s]                   reset after prune; an exception counts as "nothing came back"

An event is [name] before the call and [name, fields] after it. Of a copy:

    result        the name of the answer, or "?" and what came instead
    is_result     whether it is one
    bytes         what became visible in the builder
    uncommitted   how many bytes were appended and not committed
    flags         "finished" or "overwrote", if that was done to the builder

and of any other call `done`: "ok", or what came back for "revive".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

from refimpl.memory.buffer import Buffer
from refimpl.memory.builder import BufferBuilder
from refimpl.memory.segment import MemorySegment
from refimpl.records.serialization_result import SerializationResult

__all__ = ["WATCHED", "payload", "run_case"]

WATCHED = (BufferBuilder, SerializationResult, Buffer, MemorySegment)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_MEMBERS = tuple(SerializationResult)
_NAMES = tuple(member.name for member in _MEMBERS)
_PARTIAL = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
_SHOWN_WHOLE = 600
_FILLER = 0xEE
_LARGEST_BUILDER = 1 << 19
_SLOW_COPY_SECONDS = 0.15
_RAMP = bytes((7 * i) & 255 for i in range(256))
_PLUS = [bytes((i + n) & 255 for i in range(256)) for n in range(256)]


def payload(data: str | list[int]) -> bytes:
    """The bytes of a record: from hex, or byte i = (seed + 7 i + 13 (i >> 8)) & 255."""
    if isinstance(data, str):
        return bytes.fromhex(data)
    length, seed = data
    # Every 256 bytes are the same ones plus a number, and after 65,536 bytes it starts again.
    blocks = [_RAMP.translate(_PLUS[(seed + 13 * k) & 255]) for k in range(min(256, length // 256 + 1))]
    period = b"".join(blocks)
    return (period * (length // len(period) + 1))[:length]


def shown(data: bytes) -> str:
    """Bytes as hex; long ones as digest, length and the first 24 bytes."""
    if len(data) <= _SHOWN_WHOLE:
        return data.hex()
    return f"sha256:{hashlib.sha256(data).hexdigest()}:{len(data)}:{data[:24].hex()}"


def _answer(value: object) -> str:
    """The name of the result, or "?" and what came instead."""
    for member, name in zip(_MEMBERS, _NAMES, strict=True):
        if value is member:
            return name
    if value is None or type(value) in (bool, int):
        return f"?{value}"
    if type(value) is str:
        return f"?the text {value[:40]!r}"
    return f"?an object of type {type(value).__name__}"[:60]


class _NoPool:
    """Where the segments of a check go when they are recycled: nowhere."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Keep nothing."""


class _Target:
    """A builder and what has been seen of it."""

    def __init__(self, capacity: int, used: int) -> None:
        self.buffer = Buffer(MemorySegment.allocate(capacity), _NoPool()).retain()
        self.builder = BufferBuilder(self.buffer)
        self.builder.append_and_commit(bytes([_FILLER]) * used)
        self.seen = used
        self.before = bytes([_FILLER]) * used

    def copy_from(self, serializer: Any, event: list[Any]) -> object:
        result = serializer.copy_to_buffer_builder(self.builder)
        builder = self.builder
        memory, visible = self.buffer.memory, builder.committed_bytes
        fresh = bytes(memory[self.seen : visible])
        flags = "finished" if builder.is_finished else ""
        if bytes(memory[: self.seen]) != self.before:
            flags = "overwrote"
        self.before += fresh
        self.seen = max(self.seen, visible)
        named = _answer(result)
        event.append({
            "result": named, "is_result": not named.startswith("?"), "bytes": shown(fresh),
            "uncommitted": builder.written_bytes - visible, "flags": flags,
        })  # fmt: skip
        return result


class _Run:
    """The serializers and builders of one case."""

    def __init__(self, make: Callable[[], Any], events: list[Any], slow_seconds: float) -> None:
        self.make = make
        self.slow_seconds = slow_seconds
        self.events = events
        self.serializers: dict[int, Any] = {}
        self.targets: dict[int, _Target] = {}
        self.current: _Target | None = None

    def begin(self, name: str) -> list[Any]:
        event: list[Any] = [name]
        self.events.append(event)
        return event

    def do(self, op: list[Any]) -> None:
        name, number = op[0], op[1]
        if name == "new":
            self.begin("new").append({"done": "ok"})
            self.serializers[number] = self.make()
            return
        serializer = self.serializers[number]
        match name:
            case "serialize":
                self.serialize(serializer, op[2])
            case "copy":
                if op[2] not in self.targets:
                    self.targets[op[2]] = _Target(op[3], op[4])
                self.targets[op[2]].copy_from(serializer, self.begin("copy"))
            case "drain":
                self.drain(serializer, op[2], op[3], op[4])
            case "emit":
                self.emit(serializer, op[2], op[3], op[4])
            case "probe":
                self.probe(serializer, op[2])
            case "revive":
                self.revive(serializer)
            case _:
                event = self.begin(name)
                getattr(serializer, name)()
                event.append({"done": "ok"})

    def serialize(self, serializer: Any, data: str | list[int]) -> None:
        event = self.begin("serialize")
        serializer.serialize_record(payload(data))
        event.append({"done": "ok"})

    def drain(self, serializer: Any, capacity: int, used: int, limit: int) -> None:
        for attempt in range(limit):
            target = _Target(capacity, 0 if attempt else used)
            if target.copy_from(serializer, self.begin("copy")) is not _PARTIAL:
                return

    def probe(self, serializer: Any, limit: int) -> None:
        for step in range(limit):
            started = time.process_time()
            target = _Target(min(64 << step, _LARGEST_BUILDER), 0)
            if target.copy_from(serializer, self.begin("copy")) is not _PARTIAL:
                return
            if time.process_time() - started > self.slow_seconds:
                break
        self.begin("stopped").append({})

    def emit(self, serializer: Any, capacity: int, data: str | list[int], limit: int) -> None:
        self.serialize(serializer, data)
        for _ in range(limit):
            if self.current is None:
                self.current = _Target(capacity, 0)
            result = self.current.copy_from(serializer, self.begin("copy"))
            if result is not SerializationResult.FULL_RECORD:
                self.current = None
            if result is not _PARTIAL:
                return

    def revive(self, serializer: Any) -> None:
        event = self.begin("revive")
        try:
            serializer.reset()
            target = _Target(64, 0)
            target.copy_from(serializer, [])
            event.append({"done": shown(target.before)})
        except Exception:  # noqa: BLE001 - there is no record to go back to: refusing is right too
            event.append({"done": ""})


def run_case(
    make: Callable[[], Any], case: list[Any], events: list[Any], slow_seconds: float = _SLOW_COPY_SECONDS
) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    run = _Run(make, events, slow_seconds)
    for op in case:
        run.do(op)
