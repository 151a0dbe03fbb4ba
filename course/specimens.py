"""The zoo (known-wrong parts) and the wheat (other right parts): files that are read, never imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course.manifest import exercise

__all__ = ["Specimen", "wheat", "zoo"]

_COURSE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Specimen:
    """One part: its name, the belief behind it (or what is special about it), its source."""

    name: str
    belief: str
    source: str


@cache
def _all(kind: str, exercise_id: str) -> tuple[Specimen, ...]:
    wanted = exercise(exercise_id)
    folder = _COURSE / kind / f"c{wanted.lesson:02d}"
    number = exercise_id.partition(".")[2]
    # The first exercise of a lesson has its files in the lesson's folder, further ones in one below.
    place = folder if number == "1" else folder / f"e{number}"
    found = []
    for file in sorted(place.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        found.append(Specimen(file.stem, ast.get_docstring(ast.parse(source)) or "", source))
    return tuple(found)


def zoo(exercise_id: str) -> tuple[Specimen, ...]:
    """The known-wrong parts of one exercise, by name."""
    return _all("zoo", exercise_id)


def wheat(exercise_id: str) -> tuple[Specimen, ...]:
    """Other right parts of one exercise, by name."""
    return _all("wheat", exercise_id)
