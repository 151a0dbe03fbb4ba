"""The languages of the course, and the one that is chosen.

A language is a folder with files of the same names as the course's: `zh/curriculum/messages.toml` beside
`curriculum/messages.toml`. Those in `course/locales` come with the course; SLUICE_LOCALES names a folder of others,
whose texts go before ours. What a language has not translated is said in English.

SLUICE_LANGUAGE chooses for a process and all that it starts. Without it the choice of the learner holds
(`sluice language zh`), which is kept beside the progress.
"""

from __future__ import annotations

import json
import os
import tomllib
from functools import cache
from pathlib import Path

from course.places import state_folder

__all__ = [
    "ENGLISH", "VARIABLE", "NoSuchLanguageError", "choose", "folders_of", "known", "language", "languages", "name_of",
    "own_languages", "wrong_choice",
]  # fmt: skip

ENGLISH = "en"
VARIABLE = "SLUICE_LANGUAGE"
_OWN = "SLUICE_LOCALES"
_OURS = Path(__file__).parents[1] / "locales"


class NoSuchLanguageError(ValueError):
    """A language that is not there; the text lists those that are."""

    def __init__(self, name: str, said_by: str = "") -> None:
        super().__init__(name)
        self._name, self._said_by = name, said_by

    def __str__(self) -> str:
        where = f" ({self._said_by})" if self._said_by else ""
        return f"there is no language {self._name!r}{where}; there are {', '.join(languages())}"


def languages() -> tuple[str, ...]:
    """The names of all languages, English first."""
    places = [_OURS, *_own_place()]
    found = {each.name for place in places if place.is_dir() for each in place.iterdir() if folders_of(each.name)}
    return (ENGLISH, *sorted(found - {ENGLISH}))


def own_languages() -> tuple[str, ...]:
    """The names of those that come with the course, without English."""
    return tuple(sorted(each.name for each in _OURS.iterdir() if each.is_dir())) if _OURS.is_dir() else ()


def _own_place() -> list[Path]:
    return [Path(place)] if (place := os.environ.get(_OWN)) else []


def folders_of(name: str) -> tuple[Path, ...]:
    """The folders of this language, ours first; none of English, whose texts are the course's own files."""
    return _folders(name, os.environ.get(_OWN, ""))


@cache
def _folders(name: str, own: str) -> tuple[Path, ...]:
    if name == ENGLISH or not name.replace("-", "_").isidentifier():
        return ()
    places = [_OURS, *([Path(own)] if own else [])]
    return tuple(place / name for place in places if (place / name).is_dir())


def name_of(language: str) -> str:
    """What a language calls itself, from `language.toml` in its folder: "中文" of "zh"."""
    if language == ENGLISH:
        return "English"
    files = [folder / "language.toml" for folder in folders_of(language)]
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    return next((str(table["name"]) for table in reversed(tables) if "name" in table), language)


def language() -> str:
    """The language of the texts; English if there is no such one as was chosen, of which `wrong_choice` tells."""
    wanted = _wanted()[0]
    return wanted if wanted == ENGLISH or folders_of(wanted) else ENGLISH


def wrong_choice() -> NoSuchLanguageError | None:
    """What is wrong with the choice, if anything is."""
    wanted, said_by = _wanted()
    return None if wanted == ENGLISH or folders_of(wanted) else NoSuchLanguageError(wanted, said_by)


def known(name: str) -> str:
    """The name of a language.

    Raises:
        NoSuchLanguageError: there is none of this name.
    """
    if name not in languages():
        raise NoSuchLanguageError(name)
    return name


def choose(name: str) -> None:
    """Choose a language for good: for the learner of this folder, and for this process and what it starts.

    Raises:
        NoSuchLanguageError: there is none of this name.
        OSError: the choice cannot be kept.
    """
    file = _file()
    new = file.with_name(f".{file.name}.{os.getpid()}")
    kept = json.dumps({"language": known(name)}) + "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(kept, encoding="utf-8")
    new.replace(file)
    _kept.cache_clear()
    if VARIABLE in os.environ:
        os.environ[VARIABLE] = name


def _wanted() -> tuple[str, str]:
    """The language that was asked for, and by whom."""
    if name := os.environ.get(VARIABLE):
        return name, VARIABLE
    return _kept(os.environ.get("SLUICE_WORK", "")), str(_file())


@cache
def _kept(_work: str) -> str:
    """What the learner of this work folder has chosen; a process keeps to what it found first."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))["language"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ENGLISH
    return found if isinstance(found, str) else ENGLISH


def _file() -> Path:
    return state_folder() / "language.json"
