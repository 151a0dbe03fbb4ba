"""The prose of a lesson in another language: `lessons/NN_name.md` in the folder of the language.

    <!-- why -->
    ## …

is the text of the Markdown cell with this name. A cell without a text there is said in English.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from course.curriculum.languages import folders_of, language
from course.curriculum.manifest import Lesson

__all__ = ["lesson_texts", "lesson_title", "sections"]

_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_MARK = re.compile(r"^<!-- ([\w.-]+) -->[ \t]*$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """The texts of such a file by the name of the cell; what stands before the first one has the name ""."""
    before, *rest = _MARK.split(text)
    found = {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2], strict=True)}
    return {"": before.strip(), **found} if before.strip() else found


def lesson_texts(lesson: str, language: str) -> dict[str, str]:
    """The texts of one lesson, such as "01_segments", by the name of the cell; none in English."""
    return _of_folders(lesson, folders_of(language))


def _of_folders(lesson: str, folders: tuple[Path, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in (folder / "lessons" / f"{lesson}.md" for folder in folders):
        if file.is_file():
            found |= sections(file.read_text(encoding="utf-8"))
    found.pop("", None)
    return found


def lesson_title(lesson: Lesson, of: str | None = None) -> str:
    """The title of a lesson in a language, by default the current one: the first heading of its prose there."""
    return _title(lesson.name, folders_of(of or language())) or lesson.title


@cache
def _title(lesson: str, folders: tuple[Path, ...]) -> str:
    found = _HEADING.search(_of_folders(lesson, folders).get("title", ""))
    return found[1].strip() if found else ""
