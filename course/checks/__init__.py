"""The checks of all exercises, by id. A lesson's rules live in its own file, cNN.py."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from course.grading.rules import Check
from course.manifest import exercise

__all__ = ["check_of"]


@cache
def check_of(exercise_id: str) -> Check:
    """The check of one exercise.

    Raises:
        NoSuchExerciseError: there is no such exercise.
    """
    module = import_module(f"course.checks.c{exercise(exercise_id).lesson:02d}")
    check: Check = module.CHECKS[exercise_id]
    return check
