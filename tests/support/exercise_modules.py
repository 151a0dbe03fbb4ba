"""The modules in the folder of an exercise, for tests that look into them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from course.curriculum.folders import folder

__all__ = ["exercise_module"]


def exercise_module(exercise: str, name: str = "check") -> ModuleType:
    """One module of an exercise, such as its `driver`."""
    return import_module(f"course.exercises.{folder(exercise).name}.{name}")
