"""The check of each exercise, by id: loaded by name, for whoever grades knows no exercise."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from course.curriculum.folders import folder
from course.curriculum.manifest import exercise
from course.grading.rules import Check

__all__ = ["check_of"]


@cache
def check_of(exercise_id: str) -> Check:
    """The check of one exercise.

    Raises:
        NoSuchExerciseError: there is no such exercise.
    """
    check: Check = import_module(f"course.exercises.{folder(exercise(exercise_id).id).name}.check").CHECK
    return check
