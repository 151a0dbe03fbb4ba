"""Who in a class is here, and who is stuck."""

from __future__ import annotations

from typing import Any

from course.classroom.class_file import AWAY_AFTER_S
from course.classroom.roll import Pupil, Roll
from course.classroom.standing import CAUGHT_UP, PASSED, Standing
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import titles

__all__ = ["NEVER", "STUCK_AFTER_S", "is_here", "where_stuck"]

STUCK_AFTER_S = 480.0
"""Whoever has shown no new attempt for this long may want somebody to come by."""

NEVER = Standing()
"""Where a learner stands who has never tried an exercise."""


def is_here(pupil: Pupil, now: float) -> bool:
    """Whether the learner has been heard of lately."""
    return pupil.row.secret is not None and abs(now - pupil.row.seen) <= AWAY_AFTER_S


def where_stuck(roll: Roll, pupil: Pupil, found: dict[str, Standing], now: float) -> dict[str, Any] | None:
    """Where a learner who is here has shown nothing new for too long; None if there is no such place.

    Everything is measured since the learner was last away: a machine that slept is not a learner who struggles.
    """
    if not is_here(pupil, now):
        return None
    last = max(found.items(), key=lambda item: item[1].last_at, default=("", NEVER))
    exercise, standing = last
    since = max(standing.attempt_at or standing.last_at, roll.orders.resets.get(exercise, 0.0))
    if exercise not in EXERCISES or standing.status in {PASSED, CAUGHT_UP}:
        exercise = roll.orders.checkpoint
        standing = found.get(exercise, NEVER)
        since = max(roll.orders.checkpoint_at, last[1].last_at)
        if exercise not in EXERCISES or standing.status in {PASSED, CAUGHT_UP}:
            return None
    waited_s = now - max(since, pupil.row.here_since)
    if waited_s < STUCK_AFTER_S:
        return None
    return {
        "handle": pupil.row.handle,
        "exercise": exercise,
        "rule": standing.rule,
        "title": titles(exercise).get(standing.rule, ""),
        "minutes": int(waited_s // 60),
        "attempts": standing.attempts,
        "hint": standing.highest_hint,
    }
