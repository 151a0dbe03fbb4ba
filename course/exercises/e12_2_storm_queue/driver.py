"""Runs one case of exercise 12.2 against a queue of Storm and writes down what can be seen of it.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["queue", size]     a queue of this size: the high mark is 0.9 of it, the low one 0.4, rounded down
    ["add", n]          n records come, each is put in and then looked at
    ["publish"]         a record is put in, and not looked at yet
    ["looked", n]       now the queue is told that it held n then
    ["take", n]         n records are asked for, one after the other

An event is [method] before an operation and [method, fields] after it: `taken`, the numbers of the records that came
out, "none" where there was none; `told`, what the queue said of itself at each call of on_change; `throttling`; and
`holds`. Records are numbered as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course.grading.kinds import own
from refimpl.rivals.storm import DisruptorQueue

__all__ = ["WATCHED", "run_case"]

WATCHED = (DisruptorQueue,)
"""The engine's class that is lent to a part; it leaves it as it is."""

_METHODS = {"queue": "__init__", "add": "looked", "publish": "publish", "looked": "looked", "take": "consume"}


def _yes(value: Any) -> str:
    plain = own(value)
    return ("no", "yes")[plain] if isinstance(plain, bool) else f"? {type(plain).__name__}"[:30]


def _number(record: Any) -> str:
    plain = own(record)
    if plain is None:
        return "none"
    return str(int(plain)) if type(plain) is float and plain.is_integer() else f"? {type(plain).__name__}"[:30]


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    queue: Any = None
    told: list[str] = []
    num_come = 0
    for name, *given in case:
        event: list[Any] = [_METHODS[name]]
        events.append(event)
        told.clear()
        taken: list[str] = []
        if name == "queue":
            queue = part(*given)
            queue.on_change = _teller(queue, told)
        elif name == "add":
            for _ in range(given[0]):
                num_come += 1
                queue.add(float(num_come))
        elif name == "publish":
            num_come += 1
            queue.publish(float(num_come))
        elif name == "looked":
            queue.looked(*given)
        else:
            taken += [_number(queue.consume()) for _ in range(given[0])]
        event.append({
            "taken": " ".join(taken), "told": " ".join(told), "throttling": _yes(queue.is_throttling),
            "holds": str(len(queue.records)),
        })  # fmt: skip


def _teller(queue: Any, told: list[str]) -> Callable[[], None]:
    return lambda: told.append(_yes(queue.is_throttling))
