"""Runs one case of exercise 8.2 against a function that says what cannot run, and writes down its answers.

The same text runs in the child with the learner's function and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["ask", RESULT, STREAM, START]    the names of the three

An event is ["why_not"] before the call and ["why_not", {"answer": …}] after it: "runs" for None, "refused" for a text,
"empty" for a text without words, "raised" for the engine's own refusal, and "? …" for anything else.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import own
from refimpl.errors import LocalUsageError
from refimpl.job.scheduling_modes import Boundedness, ConsumerStart
from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["WATCHED", "run_case"]

WATCHED = (ResultPartitionType, Boundedness, ConsumerStart)
"""The engine's classes that are lent to a part; it leaves them as they are."""


def _told(answer: Any) -> str:
    answer = own(answer)
    if answer is None:
        return "runs"
    if isinstance(answer, str):
        return "refused" if answer.strip() else "empty"
    return f"? {answer}" if isinstance(answer, bool) else f"? {type(answer).__name__[:30]}"


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Ask, appending what is seen to `events`."""
    for _, result, boundedness, start in case:
        event: list[Any] = ["why_not"]
        events.append(event)
        try:
            answer = part(ResultPartitionType[result], Boundedness[boundedness], ConsumerStart[start])
            event.append({"answer": _told(answer)})
        except LocalUsageError:
            event.append({"answer": "raised"})
