"""Runs one case against any class or function by calling it, and writes down what came back.

The generic driver: enough for every exercise whose part is told apart by what its calls return. The same text runs in
the child with the learner's part and in the judge with the reference part. A case is a list of calls:

    ["new", ARGUMENT, …]            makes the object; a function needs none
    ["call", METHOD, ARGUMENT, …]   METHOD is "" for a function
    ["set", NAME, VALUE]            an attribute is set
    ["get", NAME]                   an attribute is read
    ["look", K]                     what call K gave is looked at again, the first is 1: it is still the same

Arguments are JSON, or {"hex": "00ff"} for bytes and {"buffer": "0000"} for a bytearray that may be written to.
An event is [METHOD] before the call and [METHOD, {"answer": …, "given": [argument afterwards, …]}] after it; `plain`
makes these values. An exception of the part's own is an answer too, ["raises", its type], so that "refuses" can be
asked for; then "raised" is the exception itself, for where nothing is to be refused.
"""

from __future__ import annotations

import zlib
from typing import Any

from course.grading.kinds import members, octets, own, whole

__all__ = ["argument", "plain", "run_case"]

_MOST_BYTES = 600
_REFUSALS = (ValueError, IndexError, KeyError, OverflowError, BufferError)


def plain(value: Any, depth: int = 0) -> Any:
    """A value as [kind, content], so that 5, 5.0, "5" and True stay different in JSON; kinds are those of `kinds`.

    Of many bytes the content is the first; their number and a checksum of all follow.
    """
    if (raw := octets(value)) is not None:
        rest = [len(raw), zlib.crc32(raw)] if len(raw) > _MOST_BYTES else []
        return ["bytes", raw[:_MOST_BYTES].hex(), *rest]
    if (number := whole(value)) is not None:
        return ["int", str(number)[:200]]
    if type(usual := own(value)) in (type(None), bool, float, str):
        return [type(usual).__name__, str(usual)[:200]]
    name = getattr(value, "name", None)
    if hasattr(type(value), "__members__") and isinstance(name, str):
        return ["member", name]
    if isinstance(value, set | frozenset) and depth < 4:
        return ["set", [plain(each, depth + 1) for each in sorted(value, key=repr)[:200]]]
    if depth < 4 and (listed := members(value)) is not None:
        return ["list", [plain(each, depth + 1) for each in listed[:200]]]
    if isinstance(value, dict) and depth < 4:
        return ["dict", [[plain(k, depth + 1), plain(v, depth + 1)] for k, v in list(value.items())[:200]]]
    return ["object", type(value).__name__[:40]]


def _lasting(value: Any) -> Any:
    """What can be gone through only once as a list, so that it can be looked at again."""
    return list(value) if hasattr(type(value), "__next__") else value


def argument(given: Any) -> Any:
    """An argument of a case as the part gets it."""
    match given:
        case {"hex": str(text)}:
            return bytes.fromhex(text)
        case {"buffer": str(text)}:
            return bytearray.fromhex(text)
        case dict():
            return {key: argument(each) for key, each in given.items()}
        case list():
            return [argument(each) for each in given]
    return given


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Make the object and call it as the case says, appending what is seen to `events`."""
    target = part
    given_back: list[Any] = []
    name: Any
    for kind, *rest in case:
        name, given = ("new", rest) if kind == "new" else (rest[0], rest[1:])
        arguments = [argument(each) for each in given]
        event: list[Any] = [f"#{name}" if kind == "look" else name]
        events.append(event)
        refused: dict[str, Any] = {}
        try:
            if kind == "new":
                target = part(*arguments)
                answer = ["made", ""]
            elif kind == "set":
                setattr(target, name, *arguments)
                answer = ["made", ""]
            elif kind == "get":
                answer = plain(own(getattr(target, name)))
            elif kind == "look":
                answer = plain(given_back[name - 1])
            else:
                given_back.append(_lasting((getattr(target, name) if name else target)(*arguments)))
                answer = plain(given_back[-1])
        except _REFUSALS as error:
            answer = ["raises", type(error).__name__]
            refused = {"raised": error}
        event.append({"answer": answer, "given": [plain(each) for each in arguments], **refused})
