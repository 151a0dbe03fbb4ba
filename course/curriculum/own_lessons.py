"""Lessons that somebody has written beside those of the course: in a folder of theirs, and in no package.

    own-lessons/40_joins.ipynb      what `sluice build` makes of the source, and `sluice lab` hands out
    own-lessons/src/40_joins.py     the source, in percent format
    own-lessons/src/40_joins.toml   `title`, `minutes`, and its predictions and quiz questions, as in questions.toml

They have no exercises: what is graded is a part of the course.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course.curriculum.manifest import LESSONS, Lesson
from course.places import own_lessons_folder

__all__ = ["FIRST_NUMBER", "OwnLessonError", "own_lesson", "own_lessons", "own_questions"]

FIRST_NUMBER = 40
"""Lower numbers are the course's, also those that it does not use yet."""
_NAME = re.compile(r"([4-9][0-9])_[a-z0-9_]+")


class OwnLessonError(KeyError):
    """A lesson of one's own that is not as it should be; the text names the file."""

    def __str__(self) -> str:
        return str(self.args[0])


def own_lessons() -> dict[int, Lesson]:
    """All of them by number; none where there is no such folder.

    Raises:
        OwnLessonError: one cannot be read, or two have one number.
    """
    found: dict[int, Lesson] = {}
    for file in sorted((own_lessons_folder() / "src").glob("*.toml")):
        name = _NAME.fullmatch(file.stem)
        if name is None:
            raise OwnLessonError(f"{file}: a lesson's name is a number from {FIRST_NUMBER} to 99, _ and small letters")
        number = int(name[1])
        if number in found:
            raise OwnLessonError(f"{file}: lesson {number} is {found[number].name} already")
        title, minutes = (_table(file).get(each) for each in ("title", "minutes"))
        if not isinstance(title, str) or not title.strip() or type(minutes) is not int or minutes < 1:
            raise OwnLessonError(f'{file}: it needs title = "…" and minutes = a whole number')
        found[number] = Lesson(number, file.stem, title, minutes, ())
    return found


def own_lesson(number: int) -> Lesson | None:
    """The lesson of one's own with this number, if there is one.

    Raises:
        OwnLessonError: as `own_lessons`.
    """
    return None if number in LESSONS or number < FIRST_NUMBER else own_lessons().get(number)


def own_questions(number: int) -> Mapping[str, Any]:
    """The tables of its predictions and quiz questions by name; none if there is no such lesson.

    Raises:
        OwnLessonError: as `own_lessons`, or a question lacks something.
    """
    if (lesson := own_lesson(number)) is None:
        return {}
    file = own_lessons_folder() / "src" / f"{lesson.name}.toml"
    rows = {name: row for name, row in _table(file).items() if isinstance(row, dict)}
    for name, row in rows.items():
        if why := _wrong(name, row, number):
            raise OwnLessonError(f'{file}: ["{name}"] {why}')
    return rows


def _wrong(name: str, row: Mapping[str, Any], number: int) -> str:
    """What this question lacks; empty if nothing."""
    prefix, _, rest = name.partition(".")
    if prefix != str(number) or not re.fullmatch(r"[a-z][a-z0-9]*", rest):
        return f'has to be called like "{number}.a"'
    choices = row.get("choices")
    if not isinstance(row.get("ask"), str) or not isinstance(choices, dict) or len(choices) < 2:
        return 'needs ask = "…" and at least two choices'
    if row.get("kind") == "predict":
        answers = row.get("answers")
        return (
            "" if isinstance(answers, dict) and answers.keys() == choices.keys() else "needs an answer to each choice"
        )
    if row.get("kind") == "quiz":
        is_whole = row.get("right") in choices and isinstance(row.get("because"), str)
        return "" if is_whole else 'needs right = one of its choices, and because = "…"'
    return 'needs kind = "predict" or "quiz"'


def _table(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OwnLessonError(f"{file} cannot be read: {error}") from error
