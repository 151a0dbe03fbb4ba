"""Runs one case of lesson 0 against a map function and writes down what was seen.

The same text runs in the child with the learner's function and in the judge with the reference; it
uses the standard library only. A case is a list of calls:

    ["call", flight]    the function gets this flight (a dict)

An event is [CALL] before the call and [CALL, fields] after it:

    answer           what it gave, as `plain` makes it, or "the flight" if it is that
    shape            "pair", or the kind of what came instead
    airport, delay   the two members of a pair
    flight           the items of the flight, as they are afterwards
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

__all__ = ["run_case"]


_OF_A_TUPLE = ("__iter__", "__getitem__", "__len__", "__eq__", "__hash__")


def plain(value: Any, depth: int = 0) -> list[Any]:
    """A value as [type name, content], so that 5, 5.0, "5" and True stay different in JSON."""
    value = _usual(value)
    kind = type(value)
    if kind in (str, int, bool, float) or value is None:
        return [kind.__name__, str(value)[:80]]
    if kind in (list, tuple, set) and depth < 3:
        members = sorted(value, key=repr) if kind is set else value
        return [kind.__name__, [plain(item, depth + 1) for item in list(members)[:8]], len(members)]
    if kind is dict and depth < 3:
        return ["dict", [[str(key)[:40], plain(item, depth + 1)] for key, item in list(value.items())[:12]]]
    if isinstance(value, types.GeneratorType):
        return ["generator", [plain(item, depth + 1) for _, item in zip(range(3), value, strict=False)]]
    return [kind.__name__[:40], ""]


def _usual(value: object) -> object:
    """A text, whole number or pair of a class of its own, such as a NamedTuple, as what it is everywhere in a job."""
    kind = type(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if isinstance(value, tuple) and all(getattr(kind, name) is getattr(tuple, name) for name in _OF_A_TUPLE):
        return tuple(tuple.__iter__(value))
    return value


def run_case(part: Callable[[dict[str, Any]], Any], case: list[Any], events: list[Any]) -> None:
    """Call `part` once per flight, appending what is seen to `events`; nothing is hidden or caught."""
    for _, given in case:
        flight = dict(given)
        event: list[Any] = ["to_departure"]
        events.append(event)
        answer = part(flight)
        told = ["the flight", ""] if answer is flight else plain(answer)
        event.append({"answer": told, **_members(told), "flight": plain(flight)[1]})


def _members(told: list[Any]) -> dict[str, Any]:
    is_pair = told[0] == "tuple" and told[2] == 2
    airport, delay = told[1] if is_pair else (None, None)
    return {"shape": "pair" if is_pair else told[0], "airport": airport, "delay": delay}
