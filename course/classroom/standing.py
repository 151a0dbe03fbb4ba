"""Where one learner stands in one exercise, as it follows from the events of that learner.

Nothing here asks for the time or depends on the order in which events arrived: two files of one learner, brought
together in any order, give the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from course.classroom.class_file import EventRow

__all__ = ["CAUGHT_UP", "NOT_STARTED", "PASSED", "Standing", "standings"]

NOT_STARTED, PASSED, CAUGHT_UP = "not_started", "passed", "caught_up"
PAUSE_S = 300.0
"""Between two events of a learner at most this much counts as work."""


@dataclass(slots=True)
class Standing:
    """One learner in one exercise. An attempt is code that was not the one checked before."""

    status: str = NOT_STARTED
    rule: str = ""
    attempts: int = 0
    highest_hint: int = 0
    code_hash: str = ""
    vectors: str = ""
    seed: int | None = None
    rules_passed: int = 0
    rules_total: int = 0
    work_s: float = 0.0
    last_at: float = 0.0
    attempt_at: float = 0.0
    is_verified: bool = False
    failed_rules: set[str] = field(default_factory=set)
    hints: Counter[str] = field(default_factory=Counter)

    @property
    def minutes(self) -> int:
        """Time on task in whole minutes."""
        return round(self.work_s / 60)


def standings(events: Iterable[EventRow], resets: Mapping[str, float]) -> dict[str, Standing]:
    """By exercise, from all events of one learner; `resets` says since when an exercise counts anew.

    Once passed stays passed. Before a reset, attempts and hints count, results do not.
    """
    found: dict[str, Standing] = {}
    before: float | None = None
    for event in sorted(events, key=lambda each: (each.at, each.seq)):
        exercise = str(event.body["exercise"])
        standing = found.setdefault(exercise, Standing())
        # Time belongs to the exercise it ends in: whoever checks 3.1 has worked on 3.1 since the event before.
        standing.work_s += 0.0 if before is None else min(PAUSE_S, event.at - before)
        before = standing.last_at = event.at
        counts = event.at > resets.get(exercise, -1.0)
        match event.body["event"]:
            case "check":
                _checked(standing, event, counts=counts)
            case "hint":
                standing.highest_hint = max(standing.highest_hint, event.body.get("rung", 0))
                standing.hints[event.body.get("rule", "")] += 1
            case "catchup" if counts and standing.status != PASSED:
                standing.status, standing.rule = CAUGHT_UP, ""
    return found


def _checked(standing: Standing, event: EventRow, *, counts: bool) -> None:
    body = event.body
    status, code_hash = body["status"], body.get("code_hash", "")
    if status == NOT_STARTED:
        return
    if standing.attempts == 0 or code_hash != standing.code_hash:
        standing.attempts += 1
        standing.attempt_at = event.at
    rule = body.get("rule", "")
    if rule and status != PASSED:
        standing.failed_rules.add(rule)
    is_better = counts and (standing.status != PASSED or status == PASSED)
    if not is_better:
        return
    standing.status, standing.rule, standing.code_hash = status, "" if status == PASSED else rule, code_hash
    standing.vectors, standing.seed = body.get("vectors", ""), body.get("seed")
    standing.rules_passed, standing.rules_total = body.get("rules_passed", 0), body.get("rules_total", 0)
    if status == PASSED:
        standing.is_verified |= event.is_verified
