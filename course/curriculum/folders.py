"""The folders of `course/exercises`, by the id of the exercise, and the tables in them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["folder", "folders", "table"]

_EXERCISES = Path(__file__).parents[1] / "exercises"
_NAME = re.compile(r"e(\d\d)_(\d)_\w+")


@cache
def folders() -> dict[str, Path]:
    """The folder of every exercise by id, in the order of the course."""
    found = [(_NAME.fullmatch(place.name), place) for place in sorted(_EXERCISES.iterdir())]
    return {f"{int(name[1])}.{name[2]}": place for name, place in found if name is not None}


def folder(exercise_id: str) -> Path:
    """The folder of one exercise.

    Raises:
        KeyError: there is no such exercise.
    """
    return folders()[exercise_id]


@cache
def table(exercise_id: str, name: str) -> dict[str, Any]:
    """One TOML file of an exercise, such as "answers.toml"; empty if it has none.

    Raises:
        KeyError: there is no such exercise.
    """
    file = folder(exercise_id) / name
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
