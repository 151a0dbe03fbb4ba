"""The hint ladder: five rungs for each rule, chosen by the rule that failed.

In self-study every call gives the next rung. In class mode (in a class, or with SLUICE_MODE=class) the next rung
needs changed code, or five minutes, or an instructor who unlocks it for all. Rung 5 is the reference part beside the
learner's own.
"""

from __future__ import annotations

import difflib
import time
from typing import TYPE_CHECKING

from course.curriculum.messages import exercise_catalogue, phrase, title
from course.curriculum.source_lines import source_lines
from course.curriculum.stubs import in_english, reference_source
from course.curriculum.wrapping import wrap
from course.learner import membership, progress

__all__ = ["NUM_RUNGS", "difference", "hint_for", "hint_text", "next_rung", "rungs"]

if TYPE_CHECKING:
    from course.grading.report import Report

NUM_RUNGS = 5
_WAIT_SECONDS = 300.0


def rungs(exercise_id: str, rule: str) -> dict[str, str]:
    """The texts of rungs "1" to "4" and the question "after" rung 5.

    Raises:
        KeyError: the rule has no hints, which a test forbids.
    """
    found: dict[str, str] = exercise_catalogue(exercise_id)["hints"][rule]
    return found


def next_rung(exercise_id: str, rule: str, code_hash: str, *, now: bool = False) -> tuple[int, str | None]:
    """The rung to show, and why it is not a higher one (None if it is)."""
    shown = [e for e in progress.events() if e.get("event") == "hint" and e.get("exercise") == exercise_id]
    mine = [e for e in shown if e.get("rule") == rule]
    if not mine:
        return 1, None
    last, highest = mine[-1], max(int(each.get("rung", 0)) for each in mine)
    rung = min(NUM_RUNGS, highest + 1)
    if now or not progress.is_class_mode() or rung <= membership.unlocked_rung(exercise_id):
        return rung, None
    waited = time.time() - float(last.get("time", 0)) >= _WAIT_SECONDS
    if waited or last.get("code_hash") != code_hash:
        return rung, None
    return max(1, highest), phrase("hint_wait")


def hint_for(report: Report, source: str, rung: int | None = None, *, now: bool = False) -> str:
    """The hint a report calls for, noted in the progress; without a failed rule, what there is to say instead.

    `rung` asks for a certain one and `now` for the next at once. In class mode neither goes higher than the ladder has
    come to, or the instructor has unlocked.
    """
    exercise_id, failed = report.exercise, report.failed_rule
    if failed is None:
        if report.passed:
            return "✓ " + phrase("hint_holds", exercise=exercise_id)
        if report.status.value == "not_started":
            step = wrap(phrase("first_step", exercise_id), 94, "  ", "  ")
            return "\n".join([f"○ {phrase('hint_not_started', exercise=exercise_id)}", *step])
        return str(report)
    is_class = progress.is_class_mode()
    number, why = next_rung(exercise_id, failed.id, report.code_hash, now=now and not is_class)
    if rung is not None:
        most = max(number, membership.unlocked_rung(exercise_id)) if is_class else NUM_RUNGS
        number, why = max(1, min(most, rung)), phrase("hint_wait") if rung > most else None
    progress.record("hint", exercise=exercise_id, rule=failed.id, rung=number, code_hash=report.code_hash)
    marks = [f" {phrase(who)} " for who in ("yours", "flink", "right")]
    failing = [line for line in failed.message.splitlines() if any(mark in line for mark in marks)]
    text = hint_text(exercise_id, failed.id, number, source, "\n".join(failing))
    return text if why is None else f"{text}\n\n  ({why})"


def hint_text(exercise_id: str, rule: str, rung: int, source: str = "", failing: str = "") -> str:
    """One rung as text; `failing` is the comparison of the failing input, shown on rung 2."""
    texts = rungs(exercise_id, rule)
    head = phrase(
        "hint_head",
        rung=rung,
        num=NUM_RUNGS,
        rule=rule,
        title=title(exercise_id, rule),
        kind=phrase(f"hint_{rung}"),
        exercise=exercise_id,
    )
    if rung < NUM_RUNGS:
        text = texts[str(rung)].strip("\n")
        lines = text.splitlines() if rung == 4 else wrap(text, 92, breaks_hyphens=True)
        extra = failing.splitlines() if rung == 2 and failing else []
        return "\n".join([head, "", *(f"  {line}" for line in lines), *(["", *extra] if extra else [])])
    return "\n".join([head, "", difference(exercise_id, source), "", f"  {texts['after']}"])


def difference(exercise_id: str, source: str) -> str:
    """The reference part, and a unified diff from it to the learner's source; our docstrings are no difference."""
    reference = reference_source(exercise_id)
    shown = [reference]
    if source.strip():
        source = in_english(exercise_id, source)
        names = phrase("diff_reference"), phrase("diff_yours")
        lines = difflib.unified_diff(source_lines(reference), source_lines(source.strip()), *names, n=1, lineterm="")
        shown += ["", *lines]
    return "\n".join(shown)
