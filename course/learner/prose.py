"""The prose of a notebook in a language: its Markdown cells, by the id that they have had since it was built.

What is switched is a cell whose text is, letter for letter, that of the lesson in one of the languages. A cell that the
learner changed, added or split is the learner's, as are all code cells and their outputs.
"""

from __future__ import annotations

import json
from typing import Any

from course.curriculum.glossary import words_of
from course.curriculum.languages import ENGLISH, languages
from course.curriculum.lesson_texts import lesson_texts

__all__ = ["in_language", "switched"]

_Notebook = dict[str, Any]


def in_language(lesson: bytes, name: str, language: str) -> bytes:
    """A published lesson, such as "01_segments", with its prose in a language; as it is if there is none in it."""
    notebook = _notebook(lesson) if language != ENGLISH else None
    texts = _texts(notebook, name, language) if notebook is not None else {}
    if notebook is None or not texts:
        return lesson
    for cell in _prose(notebook):
        if cell["id"] in texts:
            _put(cell, texts[cell["id"]])
    return _bytes(notebook)


def switched(copy: bytes, lesson: bytes, name: str, language: str) -> bytes | None:
    """A learner's copy with the prose of the lesson in a language; `None` if there is nothing to switch."""
    theirs, ours = _notebook(copy), _notebook(lesson)
    if theirs is None or ours is None:
        return None
    english = {cell["id"]: _text(cell) for cell in _prose(ours)}
    in_all = {each: english | _texts(ours, name, each) for each in languages()}
    wanted = in_all[language]
    changed = [
        cell
        for cell in _prose(theirs)
        if cell["id"] in wanted and _text(cell) != wanted[cell["id"]]
        and any(_text(cell) == texts[cell["id"]] for texts in in_all.values())
    ]  # fmt: skip
    for cell in changed:
        _put(cell, wanted[cell["id"]])
    return _bytes(theirs) if changed else None


def _texts(notebook: _Notebook, name: str, language: str) -> dict[str, str]:
    """The texts of the cells in a language, by id; a recap ends with the words of the lesson."""
    texts = lesson_texts(name, language)
    words = words_of(int(name[:2])) if name[:2].isdecimal() else ""
    for cell in _prose(notebook):
        if words and cell["id"] in texts and _text(cell).endswith(words):
            texts[cell["id"]] += "\n\n" + words_of(int(name[:2]), language)
    return texts


def _prose(notebook: _Notebook) -> list[dict[str, Any]]:
    """The Markdown cells that have an id."""
    return [
        cell
        for cell in notebook["cells"]
        if isinstance(cell, dict) and cell.get("cell_type") == "markdown" and isinstance(cell.get("id"), str)
    ]


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _put(cell: dict[str, Any], text: str) -> None:
    cell["source"] = text.splitlines(keepends=True)


def _notebook(content: bytes) -> _Notebook | None:
    """What is in a file, if it is a notebook."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("cells"), list) else None


def _bytes(notebook: _Notebook) -> bytes:
    """As Jupyter writes it."""
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
