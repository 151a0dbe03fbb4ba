"""Runs one case of exercise 12.1 against a rule that names the culprit, and writes down whom it names.

The same text runs in the child with the learner's rule and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["find", [[place, busy, idle, held back, queued], …], [[producer, consumer], …]]

asks about a job. A place is a pair of numbers; shares are in percent. An event is [the function] before it and
[the function, {"named": …, "left": …}] after it: "(1, 0)", "(0, 0) → (1, 0)" for an exchange, "nobody" for `None`, or
"?" and the type of anything else; and which of the two arguments is not as it was.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import members, own, whole
from refimpl.cluster.bottleneck import Load
from refimpl.job.regions import Exchange

__all__ = ["WATCHED", "run_case"]

WATCHED = (Load, Exchange)
"""The engine's classes that are lent to a part; it leaves them as they are."""


def _place(value: Any) -> str:
    """A pair of whole numbers as text, or nothing."""
    pair = members(value)
    numbers = [whole(each) for each in pair] if pair is not None and len(pair) == 2 else []
    return f"({numbers[0]}, {numbers[1]})" if numbers and None not in numbers else ""


def _named(value: Any) -> str:
    if value is None:
        return "nobody"
    if place := _place(value):
        return place
    ends = [value.producer, value.consumer] if isinstance(value, Exchange) else members(value)
    if ends is not None and len(ends) == 2 and (both := [_place(each) for each in ends]) and all(both):
        return f"{both[0]} → {both[1]}"
    usual = own(value)
    return f"? {type(usual).__name__}"[:40]


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Ask about each job of `case`, appending what is said to `events`."""
    for _, rows, flows in case:
        event: list[Any] = ["find_bottleneck"]
        events.append(event)
        loads = {
            tuple(place): Load(busy / 100, idle / 100, held / 100, num_queued=queued)
            for place, busy, idle, held, queued in rows
        }
        exchanges = [Exchange(tuple(producer), tuple(consumer)) for producer, consumer in flows]
        before = dict(loads), list(exchanges)
        found = part(loads, exchanges)
        names = zip(("loads", "exchanges"), (loads, exchanges), before, strict=True)
        left = [name for name, now, was in names if now != was or list(now) != list(was)]
        event.append({"named": _named(found), "left": ", ".join(left)})
