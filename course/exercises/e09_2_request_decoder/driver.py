"""Runs one case of exercise 9.2 against a decoder of a byte stream and writes down what it found.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. A case begins with how many connections there are, each with its own decoder:

    ["decoders", n]
    ["decoders", n, size]    the same, and a segment has `size` bytes
    ["feed", d, hex]         a piece of the stream comes
    ["lend", d, hex]         the same in a bytearray, which its owner writes over afterwards
    ["view", d, hex]         the same, and the piece is a memoryview of it
    ["next", d]              one call of next_frame
    ["again", d]             the frames that it gave are looked at again
    ["many", d, n, size]     n frames with bodies of `size` bytes come, and each is taken as soon as it is there; if
                             more and more is kept meanwhile, large ones follow, until it is let go of
    ["parts", d, n, size]    the same, and with each comes the beginning of the next

An event is [method] before an operation and [method, {"answer": {field: value}}] after it, or [method, {}].
"""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Mapping
from gc import get_referents
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from course.grading.kinds import octets
from refimpl.config import Config
from refimpl.errors import RemoteProtocolError
from refimpl.exchange.request_decoder import RequestDecoder

__all__ = ["MAX_FRAME_BYTES", "frame", "run_case"]

_SEGMENT_BYTES = 64
MAX_FRAME_BYTES = _SEGMENT_BYTES + 128
_OVERWRITTEN = 0xEE
_NOISE_BYTES = 512
_LARGE_FRAMES = 40
_FEW = 2
"""So many of the largest frames may stay when it has let go."""
_MOST_MEMBERS = 20_000
_CONTAINERS = (list, tuple, set, frozenset, dict, deque)
_NO_STORES = (type, ModuleType, BuiltinFunctionType, CodeType)
_SHOWN_BYTES = 24


def frame(frame_id: int, body: bytes) -> bytes:
    """A frame, made without the engine, since that part may be the learner's."""
    return (9 + len(body)).to_bytes(4, "big") + bytes.fromhex("badc0ffe") + bytes([frame_id]) + body


def _found(answer: object) -> Any:
    """What next_frame gave: bytes as hex, a long one as its length and first bytes."""
    if answer is None:
        return "nothing"
    if (raw := octets(answer)) is None:
        return f"? {type(answer).__name__[:30]}"
    return f"{len(raw)}: {raw[:_SHOWN_BYTES].hex(' ', -4)}"


def _kept(found: list[Any]) -> int:
    """Bytes of all that can be reached from these objects, but for classes, modules and code."""
    seen, total = set(), 0
    while found:
        further: list[Any] = []
        opened = []
        for each in found:
            if id(each) in seen or isinstance(each, _NO_STORES):
                continue
            seen.add(id(each))
            try:
                total += each.getbuffer().nbytes if isinstance(each, io.BytesIO) else sys.getsizeof(each)
                has_many = isinstance(each, _CONTAINERS) and len(each) > _MOST_MEMBERS
            except Exception:  # noqa: BLE001, S112 - an object may say anything about itself
                continue
            if isinstance(each, FunctionType):
                further += [each.__closure__, each.__defaults__, each.__kwdefaults__]
            elif not has_many:
                opened.append(each)
        found = further + get_referents(*opened)  # all at once: the fence is asked at each call
    return total


def _roots(decoder: Any) -> list[Any]:
    """The decoder, and what its own classes and their module hold: there, too, something can be kept."""
    home = type(decoder).__module__
    places: list[Mapping[str, Any]] = [vars(each) for each in type(decoder).__mro__ if each.__module__ == home]
    if home in sys.modules:
        known = (home, "builtins", "collections", "_io", "array")
        names = vars(sys.modules[home]).items()
        places.append({n: v for n, v in names if n != "__builtins__" and type(v).__module__ in known})
    return [decoder, *(value for place in places for value in place.values())]


def _grows(kept: list[int]) -> bool:
    """Whether more and more is kept: never again as little as at some time near the beginning."""
    early, late = kept[len(kept) // 10 : len(kept) // 5], kept[len(kept) // 2 :]
    return min(late) - min(kept) > 1.5 * (max(early) - min(kept)) + _NOISE_BYTES


class _Flow:
    """Frames that come one by one, each taken at once; `then` is so much of the next one that came with the last."""

    def __init__(self, decoder: Any, *, in_parts: bool) -> None:
        self.decoder = decoder
        self.in_parts = in_parts
        self.num_right = self.num_come = 0
        self.begun = b""

    def come(self, size: int, size_then: int) -> None:
        """A frame with a body of `size` bytes; the beginning of one of `size_then` may come with it."""
        whole = frame(6, bytes([self.num_come % 251]) * size)
        following = frame(6, bytes([(self.num_come + 1) % 251]) * size_then)
        begun = following[: (7 * self.num_come) % 12 + 1 if self.in_parts else 0]
        self.decoder.feed(whole[len(self.begun) :] + begun)
        self.num_right += _next(self.decoder) == _found(whole) and _next(self.decoder) == "nothing"
        self.num_come, self.begun = self.num_come + 1, begun

    def kept(self) -> int:
        return _kept(_roots(self.decoder))


def _many(decoder: Any, times: int, size: int, largest: int, *, in_parts: bool) -> dict[str, Any]:
    """Frames one by one: how many were given right, each at once, and whether more and more is kept."""
    flow, kept = _Flow(decoder, in_parts=in_parts), list[int]()
    for turn in range(times):
        flow.come(size, size if turn + 1 < times else largest)
        # Near the beginning each time, so that all of a cycle is seen; a look takes longer when much is kept.
        is_early = times // 10 <= turn < times // 5
        kept.append(flow.kept() if is_early or turn % 25 == 0 else kept[-1])
    grows = _grows(kept) and not _lets_go(flow, min(kept), largest)
    return {"wrong": flow.num_come - flow.num_right, "kept": "more and more" if grows else "little"}


def _lets_go(flow: _Flow, least: int, size: int) -> bool:
    """Whether it lets go of what was read in the end, whatever amount of it an author finds worth the trouble."""
    most = 0
    for _ in range(_LARGE_FRAMES):
        flow.come(size, size)
        kept = flow.kept()
        most = max(most, kept)
        if most - kept > _FEW * size > kept - least:
            return True
    return False


def _next(decoder: Any, given: list[tuple[Any, Any]] | None = None) -> Any:
    try:
        answer = decoder.next_frame()
    except RemoteProtocolError:
        return "refused"
    found = _found(answer)
    if given is not None:
        given.append((answer, found))
    return found


class _Transport:
    """What gives a decoder its bytes; memory that it lent is its own again after the call."""

    def __init__(self, part: Any, num_decoders: int, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self.segment_bytes = segment_bytes
        self.decoders = [part(Config(segment_size_bytes=segment_bytes)) for _ in range(num_decoders)]
        self.lent: list[tuple[bytearray, bytes]] = []
        self.given: list[tuple[Any, Any]] = []  # frames, and what they were when they were given

    def do(self, op: list[Any]) -> dict[str, Any]:
        """An operation, and what can be said of it."""
        kind, decoder = op[0], self.decoders[op[1]]
        answer: dict[str, Any] = {}
        if kind in ("many", "parts"):
            return _many(decoder, op[2], op[3], self.segment_bytes, in_parts=kind == "parts")
        if kind == "feed":
            decoder.feed(bytes.fromhex(op[2]))
        elif kind == "next":
            answer["found"] = _next(decoder, self.given)
        elif kind == "again":
            answer["found"] = " ".join(_found(each) for each, was in self.given if _found(each) != was)
        else:
            memory = bytearray.fromhex(op[2])
            self.lent.append((memory, bytes(memory)))
            decoder.feed(memoryview(memory) if kind == "view" else memory)
        if self.lent:
            is_whole = all(memory == right for memory, right in self.lent)
            answer["lent"] = "as it was" if is_whole else "changed"
        if kind in ("lend", "view"):
            memory[:] = bytes([_OVERWRITTEN]) * len(memory)
            self.lent[-1] = memory, bytes(memory)
        return answer


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, *given), *rest = case
    first: list[Any] = ["__init__"]
    events.append(first)
    transport = _Transport(part, *given)
    first.append({})
    for op in rest:
        event: list[Any] = [
            "feed" if op[0] in ("feed", "lend", "view") else "again" if op[0] == "again" else "next_frame"
        ]
        events.append(event)
        answer = transport.do(op)
        event.append({"answer": answer} if answer else {})


_LOADED = RequestDecoder  # so that a learner's own import of it costs nothing
