"""Runs one case of exercise 5.3 against a flush policy and writes down what it decides.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["timeout", ms]           a policy with this buffer timeout
    ["set", ms]               the running job has another timeout from now on
    ["record"]                is each record flushed at once?
    ["waits", now]            when is the next deadline? Something waits
    ["quiet", now]            the same; nothing waits, as a full buffer or an event has told of all
    ["look", now]             is it due now?
    ["look", now, since]      the same, from who looked at `since` for the last time

An event is [method] before an operation and [method, {"said": …}] after it: a time in ms, "never", or "yes" and "no".
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import own, whole

__all__ = ["run_case"]

_METHODS = {
    "timeout": "__init__", "set": "timeout_ms", "record": "is_after_each_record", "waits": "next_deadline",
    "quiet": "next_deadline", "look": "is_due",
}  # fmt: skip


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    policy: Any = None
    for name, *given in case:
        event: list[Any] = [_METHODS[name]]
        events.append(event)
        said: Any = ""
        if name == "timeout":
            policy = part(*given)
        elif name == "set":
            policy.timeout_ms = given[0]
        elif name == "record":
            said = _decision(policy.is_after_each_record())
        elif name == "look":
            said = _decision(policy.is_due(*given))
        else:
            said = _time(policy.next_deadline(given[0], name == "waits"))
        event.append({"said": said})


def _decision(answer: Any) -> str:
    return "yes" if answer else "no"


def _time(answer: Any) -> Any:
    """A time as a whole number, also if it came as a fraction; what is none, by its kind."""
    value = own(answer)
    if value is None:
        return "never"
    if isinstance(value, float) and value == float("inf"):
        return "? infinity"
    number = int(value) if isinstance(value, float) and value.is_integer() else whole(value)
    return f"? {type(answer).__name__[:30]}" if number is None else number
