"""The hint ladder: five rungs for each rule, chosen by the rule that failed.

In self-study every call gives the next rung. In class mode (SLUICE_MODE=class) the next rung needs
changed code or five minutes. Rung 5 is the reference part beside the learner's own.
"""

from __future__ import annotations

import difflib
import os
import textwrap
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course import progress
from course.manifest import exercise
from course.messages import title
from course.seams import reference_source

__all__ = ["NUM_RUNGS", "difference", "hint_for", "hint_text", "next_rung", "rungs"]

if TYPE_CHECKING:
    from course.grading.report import Report

NUM_RUNGS = 5
_WAIT_SECONDS = 300.0
_HERE = Path(__file__).parent / "hints"
_KINDS = ("a question", "the idea", "another case", "with blanks", "the reference part")


@cache
def _table(lesson: int) -> dict[str, Any]:
    return tomllib.loads((_HERE / f"{lesson:02d}.toml").read_text(encoding="utf-8"))


def rungs(exercise_id: str, rule: str) -> dict[str, str]:
    """The texts of rungs "1" to "4" and the question "after" rung 5.

    Raises:
        KeyError: the rule has no hints, which a test forbids.
    """
    table: dict[str, str] = _table(exercise(exercise_id).lesson)[exercise_id][rule]
    return table


def next_rung(exercise_id: str, rule: str, code_hash: str, *, now: bool = False) -> tuple[int, str | None]:
    """The rung to show, and why it is not a higher one (None if it is)."""
    shown = [e for e in progress.events() if e.get("event") == "hint" and e.get("exercise") == exercise_id]
    mine = [e for e in shown if e.get("rule") == rule]
    if not mine:
        return 1, None
    last = mine[-1]
    rung = min(NUM_RUNGS, int(last.get("rung", 0)) + 1)
    if os.environ.get("SLUICE_MODE") != "class" or now:
        return rung, None
    waited = time.time() - float(last.get("time", 0)) >= _WAIT_SECONDS
    if waited or last.get("code_hash") != code_hash:
        return rung, None
    return int(last.get("rung", 1)), "the next rung comes with changed code, or after five minutes"


def hint_for(report: Report, source: str, rung: int | None = None, *, now: bool = False) -> str:
    """The hint a report calls for, noted in the progress; without a failed rule, what there is to say instead."""
    exercise_id, failed = report.exercise, report.failed_rule
    if failed is None:
        if report.passed:
            return f"✓ {exercise_id} holds: there is nothing to hint at."
        if report.status.value == "not_started":
            return f"○ {exercise_id} has not failed yet. First step:\n  {exercise(exercise_id).first_step}"
        return str(report)
    number, why = next_rung(exercise_id, failed.id, report.code_hash, now=now)
    if rung is not None and why is None:
        number = max(1, min(NUM_RUNGS, rung))
    progress.record("hint", exercise=exercise_id, rule=failed.id, rung=number, code_hash=report.code_hash)
    marks = (" yours ", " Flink ", " right ")
    failing = [line for line in failed.message.splitlines() if any(mark in line for mark in marks)]
    text = hint_text(exercise_id, failed.id, number, source, "\n".join(failing))
    return text if why is None else f"{text}\n\n  ({why})"


def hint_text(exercise_id: str, rule: str, rung: int, source: str = "", failing: str = "") -> str:
    """One rung as text; `failing` is the comparison of the failing input, shown on rung 2."""
    texts = rungs(exercise_id, rule)
    head = f"Hint {rung} of {NUM_RUNGS} for {exercise_id}, rule {rule} ({title(exercise_id, rule)}): {_KINDS[rung - 1]}"
    if rung < NUM_RUNGS:
        text = texts[str(rung)].strip("\n")
        lines = text.splitlines() if rung == 4 else textwrap.wrap(text, 92)
        extra = failing.splitlines() if rung == 2 and failing else []
        return "\n".join([head, "", *(f"  {line}" for line in lines), *(["", *extra] if extra else [])])
    return "\n".join([head, "", difference(exercise_id, source), "", f"  {texts['after']}"])


def difference(exercise_id: str, source: str) -> str:
    """The reference part, and a unified diff from it to the learner's source."""
    reference = reference_source(exercise_id)
    shown = [reference]
    if source.strip():
        lines = difflib.unified_diff(
            reference.splitlines(), source.strip().splitlines(), "the reference part", "yours", n=1, lineterm=""
        )
        shown += ["", *lines]
    return "\n".join(shown)
