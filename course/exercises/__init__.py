"""The exercises, each a folder with all that belongs to it; `course/README.md` adds one as an example.

    exercise.toml               its title, and the seam: which part of the engine a learner writes (`course/seams.py`)
    check.py, driver.py         its rules and cases, and what runs a case with a learner's part (`course/checks`)
    messages.toml, hints.toml   what is said of an answer
    right.toml, wrong.toml      answers of both kinds (`course/specimens.py`)
    golden.txt                  what a check says of each wrong one

A folder is called `e`, the lesson, the number in it, and a word for people: `e07_1_subpartition` is exercise 7.1.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["folder", "folders", "table"]

_HERE = Path(__file__).parent
_NAME = re.compile(r"e(\d\d)_(\d)_\w+")


@cache
def folders() -> dict[str, Path]:
    """The folder of every exercise by id, in the order of the course."""
    found = [(_NAME.fullmatch(place.name), place) for place in sorted(_HERE.iterdir())]
    return {f"{int(name[1])}.{name[2]}": place for name, place in found if name is not None}


def folder(exercise_id: str) -> Path:
    """The folder of one exercise.

    Raises:
        KeyError: there is no such exercise.
    """
    return folders()[exercise_id]


@cache
def table(exercise_id: str, name: str) -> dict[str, Any]:
    """One TOML file of an exercise, such as "wrong.toml"; empty if it has none.

    Raises:
        KeyError: there is no such exercise.
    """
    file = folder(exercise_id) / name
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
