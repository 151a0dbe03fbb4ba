"""What all checks share: how an exception, a stop or a fence in the middle of a case is told."""

from __future__ import annotations

from collections.abc import Sequence

from course.grading.rules import Case, Finding, Row, Seen, Status
from course.messages import phrase

__all__ = ["ending_finding"]


def ending_finding(
    exercise: str, rule: str, case: Case, seen: Seen, rows: Sequence[Row], where: str
) -> Finding:
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
        "SystemExit": "left", "KeyboardInterrupt": "left", "NameError": "unknown_name", "MemoryError": "memory",
        "RecursionError": "recursion", "AttributeError": "attribute",
    }.get(kind, "raised")  # fmt: skip
    code = {"fenced": "fenced", "reference_part": "reference_part", "not_plain": "not_plain", "prints": "prints",
            "vanished": "vanished"}.get(str(problem), code)  # fmt: skip
    return Finding(rule, code, case.ran, rows, values, Status.ERROR, line)
