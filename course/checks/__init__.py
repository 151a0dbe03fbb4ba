"""The kinds of checks that exercises use, and the check of each exercise, by id."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from course.exercises import folder
from course.grading.rules import Check
from course.manifest import exercise

__all__ = ["check_of"]


@cache
def check_of(exercise_id: str) -> Check:
    """The check of one exercise.

    Raises:
        NoSuchExerciseError: there is no such exercise.
    """
    check: Check = import_module(f"course.exercises.{folder(exercise(exercise_id).id).name}.check").CHECK
    return check
