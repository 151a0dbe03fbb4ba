"""Runs one case of lesson 0 against a map function and writes down what was seen.

The same text runs in the child with the learner's function and in the judge with the reference; it
uses the standard library only. A case is a list of flights (dicts), given to the function in order.
An event is ["call"] before the call and ["call", answer, flight afterwards] after it.
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


def run_case(part: Callable[[dict[str, Any]], Any], case: list[dict[str, Any]], events: list[Any]) -> None:
    """Call `part` once per flight, appending answers to `events`; nothing is hidden or caught."""
    for given in case:
        flight = dict(given)
        event: list[Any] = ["call"]
        events.append(event)
        answer = part(flight)
        event.append(["the flight", ""] if answer is flight else plain(answer))
        event.append(plain(flight)[1])
