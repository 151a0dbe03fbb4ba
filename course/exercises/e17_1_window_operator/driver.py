"""Runs one case of exercise 17.1 against a window operator and writes down what goes out of it.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
standard library only.

    ["size", ms]                             a new operator with windows of this length
    ["record", key, number, timestamp]       a record
    ["watermark", timestamp]                 a watermark
    ["snapshot"]                             a barrier
    ["restore"]                              a new one goes on from what the last snapshot returned
    ["others", [[key, start, count, total], …], …]   a new one goes on from the states of so many others

An event is [method] before an operation and [method, {FIELD: …}] after it: what went "out", in its order where ends
differ; records that were "late"; the "state" that was returned; "kept", what the state returned last says now; and
"given", what the states say now that were restored from.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from course.grading.kinds import members, whole

__all__ = ["run_case"]

_MOST = 400
_METHODS = {"size": "__init__", "record": "on_record", "watermark": "on_watermark", "others": "restore"}


class _Output:
    """Where a part's results go."""

    def __init__(self) -> None:
        self.out: list[list[Any]] = []
        self.late_ones: list[list[Any]] = []

    def emit(self, key: Any, start: Any, end: Any, count: Any, total: Any) -> None:
        if len(self.out) < _MOST:
            self.out.append([_plain(each) for each in (key, start, end, count, total)])

    def late(self, key: Any, number: Any, timestamp: Any) -> None:
        if len(self.late_ones) < _MOST:
            self.late_ones.append([_plain(each) for each in (key, number, timestamp)])

    def told(self) -> dict[str, Any]:
        """What went out since; of equal ends in the order of the keys."""
        runs = [sorted(run, key=repr) for _, run in groupby(self.out, key=lambda each: repr(each[2]))]
        found = {"out": [each for run in runs for each in run], "late": self.late_ones}
        self.out, self.late_ones = [], []
        return found


def _plain(value: Any) -> Any:
    """A key or a number; of anything else what it is."""
    if isinstance(value, str):
        return value
    number = whole(value)
    return f"? {type(value).__name__[:30]}" if number is None else number


def _told(state: Any) -> list[Any]:
    """What a state says, in the order of keys and windows; or what it is instead, alone."""
    if not isinstance(state, dict):
        return [f"? {type(state).__name__[:30]}"]
    found = []
    for name, value in list(state.items())[:_MOST]:
        named, pair = members(name), members(value)
        if named is None or len(named) != 2:
            return [f"? key {type(name).__name__[:30]}"]
        if pair is None or len(pair) != 2:
            return [f"? value {type(value).__name__[:30]}"]
        found.append([_plain(each) for each in (*named, *pair)])
    return sorted(found, key=repr)


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    output = _Output()
    operator: Any = None
    last: Any = None
    given: list[Any] = []
    size = 0
    for name, *values in case:
        event: list[Any] = [_METHODS.get(name, name)]
        events.append(event)
        seen: dict[str, Any] = {}
        if name == "size":
            (size,) = values
            operator = part(size)
        elif name == "record":
            operator.on_record(*values, output)
        elif name == "watermark":
            operator.on_watermark(*values, output)
        elif name == "snapshot":
            last = operator.snapshot()
            seen["state"] = _told(last)
        else:
            given = [_state(each) for each in values] if name == "others" else [] if last is None else [last]
            operator = part(size)
            operator.restore(given)
        seen = {**output.told(), **seen}
        if given:
            seen["given"] = [_told(each) for each in given]
        if last is not None and name != "snapshot":
            seen["kept"] = _told(last)
        event.append(seen)


def _state(rows: list[list[Any]]) -> dict[tuple[Any, Any], tuple[int, int]]:
    return {(key, start): (count, total) for key, start, count, total in rows}
