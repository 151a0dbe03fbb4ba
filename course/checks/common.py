"""What checks share: how a case that did not come to its end is told; cases recorded from a real Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from course.grading.rules import Case, Finding, Row, Seen, Status
from course.grading.runner import GraderError
from course.messages import phrase

__all__ = ["ending_finding", "letters", "recorded"]


def letters(length: int, start: int = 0x61) -> bytes:
    """Bytes that differ from their neighbours: from `start` on, each seven more than the one before."""
    return bytes((start + 7 * i) & 255 for i in range(length))


def ending_finding(exercise: str, rule: str, case: Case, seen: Seen, rows: Sequence[Row], where: str) -> Finding:
    """The finding for a case that did not come to its end; `where` is the call it was in."""
    ending = seen.ending or {}
    problem = ending.get("problem", "vanished")
    error = ending.get("error")
    error = error if isinstance(error, dict) else {}
    kind, text = str(error.get("type", "")), str(error.get("text", ""))
    line = error.get("line") if isinstance(error.get("line"), int) else None
    values = {"error": kind, "text": text or phrase("no_text"), "where": where, "step": case.ran,
              "name": str(error.get("name", "?"))}  # fmt: skip
    if problem == "timeout":
        return Finding(rule, "endless", case.ran, rows, values, Status.TIMEOUT, line)
    if problem == "raised" and kind == "NotImplementedError" and text == exercise:
        return Finding(rule, "not_yet", case.ran, rows, values, Status.FAILED, line)
    code = {
        "SystemExit": "left",
        "KeyboardInterrupt": "left",
        "NameError": "unknown_name",
        "MemoryError": "memory",
        "RecursionError": "recursion",
        "AttributeError": "attribute",
    }.get(kind, "raised")
    code = {
        "fenced": "fenced",
        "reference_part": "reference_part",
        "not_plain": "not_plain",
        "prints": "prints",
        "vanished": "vanished",
    }.get(str(problem), code)
    return Finding(rule, code, case.ran, rows, values, Status.ERROR, line)


def recorded(read: Callable[[], Iterable[Case]]) -> tuple[Case, ...]:
    """The cases that `read` finds in a recording of a real Flink.

    Raises:
        GraderError: the file they stand in is missing or damaged.
    """
    try:
        return tuple(read())
    except (OSError, ValueError, KeyError) as error:
        raise GraderError(f"the recorded Flink cannot be read ({error!r}); restore course/vectors") from error
