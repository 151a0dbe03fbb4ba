"""Runs one case of exercise 9.2 against a decoder of a byte stream and writes down what it found.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. A case begins with how many connections there are, each with its own decoder:

    ["decoders", n]
    ["feed", d, hex]         a piece of the stream comes
    ["next", d]              one call of next_frame
    ["many", d, n, size]     n frames with bodies of `size` bytes come, one by one, and each is taken at once

An event is [method] before an operation and [method, groups] after it, see `scripts.py`.
"""

from __future__ import annotations

import operator
from typing import Any

from refimpl.config import Config
from refimpl.errors import RemoteProtocolError
from refimpl.exchange.request_decoder import RequestDecoder

__all__ = ["MAX_FRAME_BYTES", "frame", "run_case"]

_SEGMENT_BYTES = 64
MAX_FRAME_BYTES = _SEGMENT_BYTES + 128
_SMALL_BYTES = 2_000
_SHOWN_BYTES = 24


def frame(frame_id: int, body: bytes) -> bytes:
    """A frame, made without the engine, since that part may be the learner's."""
    return (9 + len(body)).to_bytes(4, "big") + bytes.fromhex("badc0ffe") + bytes([frame_id]) + body


def _found(answer: object) -> Any:
    """What next_frame gave: bytes as hex, a long one as its length and first bytes."""
    if answer is None:
        return "nothing"
    if not isinstance(answer, bytes | bytearray | memoryview):
        return f"? {type(answer).__name__[:30]}"
    raw = bytes(answer)
    return f"{len(raw)}: {raw[:_SHOWN_BYTES].hex(' ', -4)}"


def _kept(value: object, depth: int = 0) -> int:
    """Bytes that an object holds on to."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, memoryview):
        return value.nbytes
    if isinstance(value, int):
        return (operator.index(value).bit_length() + 7) // 8 if depth else 0
    if isinstance(value, dict) and depth < 3:
        return sum(_kept(each, depth + 1) for each in value.values())
    if hasattr(value, "__iter__") and not isinstance(value, str) and hasattr(value, "__len__") and depth < 3:
        return sum(_kept(each, depth + 1) for each in value)
    return len(value.getbuffer()) if hasattr(value, "getbuffer") else 0


def _next(decoder: Any) -> Any:
    try:
        return _found(decoder.next_frame())
    except RemoteProtocolError:
        return "refused"


def _do(decoders: list[Any], op: list[Any]) -> list[Any]:
    match op:
        case ["feed", number, text]:
            decoders[number].feed(bytes.fromhex(text))
        case ["next", number]:
            return [["answer", [["found", _next(decoders[number])]]]]
        case ["many", number, times, size]:
            decoder, num_right = decoders[number], 0
            for turn in range(times):
                whole = frame(6, bytes([turn % 251]) * size)
                decoder.feed(whole)
                num_right += _next(decoder) == _found(whole)
            kept = sum(_kept(value) for value in vars(decoder).values() if not isinstance(value, int))
            return [["answer", [["right", num_right], ["kept", "little" if kept < _SMALL_BYTES else "everything"]]]]
    return []


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, num_decoders), *rest = case
    first: list[Any] = ["__init__"]
    events.append(first)
    decoders = [part(Config(segment_size_bytes=_SEGMENT_BYTES)) for _ in range(num_decoders)]
    first.append([])
    for op in rest:
        event: list[Any] = ["feed" if op[0] == "feed" else "next_frame"]
        events.append(event)
        event.append(_do(decoders, op))


assert RequestDecoder, "imported here so that a learner's own import of it costs nothing"
