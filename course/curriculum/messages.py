"""The catalogue: all learner-visible text of checks, by exercise, rule and code.

A catalogue is what each exercise has in its folder, `messages.toml`, the questions of all lessons,
`curriculum/questions.toml`, and what all exercises share, `curriculum/messages.toml`, with what is said around checks,
`curriculum/interface.toml`. English is in `course`; other languages are folders with files of the same names
(`languages.py`). A text is looked up under its rule first, then under "any" of the exercise, then under "any" of all,
so that a code which means the same everywhere is written once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from course.curriculum.folders import folder
from course.curriculum.languages import folders_of, language
from course.curriculum.manifest import Exercise

__all__ = [
    "belief", "common", "exercise_catalogue", "exercise_title", "phrase", "read_catalogue", "said", "text", "title",
    "titles", "word",
]  # fmt: skip

_COURSE = Path(__file__).parent.parent
_WORD = re.compile(r"(\? )?(.*?)( \d+)?", re.DOTALL)


def read_catalogue(file: str, name: str) -> Mapping[str, Any]:
    """One file of the course, such as "curriculum/questions.toml", in one language, else in English."""
    return _catalogue(file, folders_of(name))


@cache
def _catalogue(file: str, folders: tuple[Path, ...]) -> Mapping[str, Any]:
    table: Mapping[str, Any] = tomllib.loads((_COURSE / file).read_text(encoding="utf-8"))
    for other in (place / file for place in folders):
        if other.is_file():
            table = _merged(table, tomllib.loads(other.read_text(encoding="utf-8")))
    return table


def _merged(english: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The other language's texts where it has them, of the same shape; English otherwise."""
    found = dict(english)
    for key, value in other.items():
        mine = english.get(key)
        if isinstance(mine, Mapping) and isinstance(value, Mapping):
            found[key] = _merged(mine, value)
        elif mine is None or type(mine) is type(value):
            found[key] = value
    return found


def common(name: str = "") -> Mapping[str, Any]:
    """What is said the same for every exercise, in the current language: all of it, or one table."""
    texts = read_catalogue("curriculum/messages.toml", language())
    found: Mapping[str, Any] = texts[name] if name else texts
    return found


def exercise_catalogue(exercise_id: str) -> Mapping[str, Any]:
    """What is said of one exercise only, in the current language; its `hints` are a table for each rule."""
    return read_catalogue(f"exercises/{folder(exercise_id).name}/messages.toml", language())


def exercise_title(exercise: Exercise) -> str:
    """The title of an exercise, in the current language."""
    return str(read_catalogue(f"exercises/{folder(exercise.id).name}/exercise.toml", language())["title"])


def belief(exercise_id: str, wrong: str) -> str:
    """What the author of a known-wrong part believed, in the current language."""
    answers = read_catalogue(f"exercises/{folder(exercise_id).name}/answers.toml", language())
    return " ".join(answers["wrong"][wrong]["belief"].split())


def phrase(key: str, of: str | None = None, **values: object) -> str:
    """A short text by name, with its blanks filled: of this exercise, or one that all share."""
    own = exercise_catalogue(of).get("phrases", {}) if of is not None else {}
    return str(own[key] if key in own else common("phrases")[key]).format(**values)


def said(key: str, **values: object) -> str:
    """What is said around checks, by name, with its blanks filled."""
    place, _, name = key.partition(".")
    texts = read_catalogue("curriculum/interface.toml", language())
    return str(texts[place][name]).format(**values)


def word(seen: str, of: str) -> str:
    """What a driver wrote down, in the current language: its phrases name it `value_…`, as `value_an_old_buffer`.

    A "? " in front and a number behind stay. What no phrase names, such as the name of a type, is given back as it is.
    """
    sign, named, number = _WORD.fullmatch(seen).groups("")  # type: ignore[union-attr]  # it matches any text
    found = exercise_catalogue(of).get("phrases", {}).get("value_" + re.sub(r"\W+", "_", named))
    return seen if found is None else f"{sign}{found}{number}"


def titles(exercise: str) -> dict[str, str]:
    """The titles of an exercise's rules, in their order; the first is rule "S", the same for every exercise."""
    return {**common("titles"), **exercise_catalogue(exercise)["titles"]}


def title(exercise: str, rule: str) -> str:
    """One rule's title."""
    return titles(exercise)[rule]


def text(exercise: str, rule: str, code: str) -> Mapping[str, str]:
    """The message for (rule, code): says, and where it has them job, ask and look.

    Raises:
        KeyError: the catalogue has no such message, which a test forbids.
    """
    texts = exercise_catalogue(exercise)
    for place in (texts.get(rule, {}), texts.get("any", {}), common().get("any", {})):
        if code in place:
            found: Mapping[str, str] = place[code]
            return found
    raise KeyError(f"no message for exercise {exercise}, rule {rule}, code {code}")
