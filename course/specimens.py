"""The zoo (known-wrong parts), the wheat (other right ones), and those unseen: files that are read, never imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course.manifest import exercise

__all__ = ["Specimen", "harness", "unseen", "wheat", "zoo"]

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
    return tuple(map(_specimen, sorted(place.glob("*.py"))))


def _specimen(file: Path) -> Specimen:
    source = file.read_text(encoding="utf-8")
    return Specimen(file.stem, ast.get_docstring(ast.parse(source)) or "", source)


def zoo(exercise_id: str) -> tuple[Specimen, ...]:
    """The known-wrong parts of one exercise, by name."""
    return _all("zoo", exercise_id)


def wheat(exercise_id: str) -> tuple[Specimen, ...]:
    """Other right parts of one exercise, by name."""
    return _all("wheat", exercise_id)


@cache
def unseen(exercise_id: str) -> tuple[Specimen, ...]:
    """Wrong parts that no zoo shows: a learner's rule is tried on them."""
    return tuple(map(_specimen, sorted((_unseen_folder(exercise_id) / "wrong").glob("*.py"))))


@cache
def harness(exercise_id: str) -> str:
    """The source that makes of a part what a learner's rule is given."""
    return (_unseen_folder(exercise_id) / "harness.py").read_text(encoding="utf-8")


def _unseen_folder(exercise_id: str) -> Path:
    return _COURSE / "unseen" / f"c{exercise(exercise_id).lesson:02d}"
