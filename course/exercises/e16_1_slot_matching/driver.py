"""Runs one case of exercise 16.1 against a matching of slots and writes down who serves whom.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. Slots and requests are numbers here, and allocation ids for the part.

    ["request", n, b, [t, …]]    request n comes; b is the slot it had before, or 0; near are TaskManagers t, …
    ["offer", n, t]              TaskManager t offers slot n
    ["release", n]               slot n is used no longer
    ["withdraw", n]              request n waits no longer
    ["remove", n]                slot n is gone

An event is [method] before an operation and [method, {"out": …}] after it: the number of the slot or request, "none",
or "? …" for what is neither; nothing for the last two.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import own
from refimpl.cluster.slots import AllocationId

__all__ = ["WATCHED", "run_case"]

WATCHED = (AllocationId,)
"""The engine's class that is lent to a part; it leaves it as it is."""


def _id(number: int) -> AllocationId:
    return AllocationId("counts", 1, number)


def _told(answer: Any) -> str:
    answer = own(answer)
    if answer is None:
        return "none"
    if isinstance(answer, AllocationId) and answer == _id(answer.number):
        return str(answer.number)
    return f"? {answer}" if isinstance(answer, bool) else f"? {type(answer).__name__[:30]}"


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    matching = part()
    for op in case:
        event: list[Any] = [op[0]]
        events.append(event)
        match op:
            case ["request", number, before, near]:
                names = tuple(f"tm-{each}" for each in near)
                answer = matching.request(_id(number), _id(before) if before else None, names)
            case ["offer", number, task_manager]:
                answer = matching.offer(_id(number), f"tm-{task_manager}")
            case ["release", number]:
                answer = matching.release(_id(number))
            case ["withdraw", number]:
                answer = matching.withdraw(_id(number))
            case _:
                answer = matching.remove(_id(op[1]))
        event.append({"out": _told(answer)} if op[0] in ("request", "offer", "release") else {})
