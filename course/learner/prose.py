"""A notebook in a language: its Markdown cells and its stubs, by the id that they have had since it was built.

What is switched is a cell whose text is, letter for letter, that of the lesson in one of the languages. A cell that the
learner changed, added or split is the learner's: a stub too, from the first letter of an answer on. So are all other
code cells, and all outputs.
"""

from __future__ import annotations

import json
from typing import Any

from course.curriculum.glossary import words_of
from course.curriculum.languages import ENGLISH, languages
from course.curriculum.lesson_texts import lesson_texts
from course.curriculum.stub_texts import stub_texts
from course.curriculum.stubs import stub

__all__ = ["in_language", "switched"]

_Notebook = dict[str, Any]


def in_language(lesson: bytes, name: str, language: str) -> bytes:
    """A published lesson, such as "01_segments", with its texts in a language; as it is if there are none in it."""
    notebook = _notebook(lesson) if language != ENGLISH else None
    texts = _texts(notebook, name, language) if notebook is not None else {}
    if notebook is None or not texts:
        return lesson
    for cell in _cells(notebook):
        if cell["id"] in texts:
            _put(cell, texts[cell["id"]])
    return _bytes(notebook)


def switched(copy: bytes, lesson: bytes, name: str, language: str) -> bytes | None:
    """A learner's copy with the texts of the lesson in a language; `None` if there is nothing to switch."""
    theirs, ours = _notebook(copy), _notebook(lesson)
    if theirs is None or ours is None:
        return None
    english = {cell["id"]: _text(cell) for cell in _cells(ours) if _is_prose(cell) or _exercise(cell)}
    in_all = {each: english | _texts(ours, name, each) for each in languages()}
    wanted = in_all[language]
    changed = [
        cell
        for cell in _cells(theirs)
        if cell["id"] in wanted and _text(cell) != wanted[cell["id"]]
        and any(_text(cell) == texts[cell["id"]] for texts in in_all.values())
    ]  # fmt: skip
    for cell in changed:
        _put(cell, wanted[cell["id"]])
    return _bytes(theirs) if changed else None


def _texts(notebook: _Notebook, name: str, language: str) -> dict[str, str]:
    """The texts of the cells in a language, by id; a recap ends with the words of the lesson, an exercise is a stub."""
    prose = lesson_texts(name, language)
    words = words_of(int(name[:2])) if name[:2].isdecimal() else ""
    texts: dict[str, str] = {}
    for cell in _cells(notebook):
        if (exercise := _exercise(cell)) and stub_texts(exercise, language):
            english = stub(exercise).strip("\n")
            if _text(cell).endswith(english):  # in front of it are lines of the lesson's own
                texts[cell["id"]] = _text(cell).removesuffix(english) + stub(exercise, language).strip("\n")
        elif _is_prose(cell) and cell["id"] in prose:
            texts[cell["id"]] = prose[cell["id"]]
            if words and _text(cell).endswith(words):
                texts[cell["id"]] += "\n\n" + words_of(int(name[:2]), language)
    return texts


def _cells(notebook: _Notebook) -> list[dict[str, Any]]:
    """The cells that have an id."""
    return [cell for cell in notebook["cells"] if isinstance(cell, dict) and isinstance(cell.get("id"), str)]


def _is_prose(cell: dict[str, Any]) -> bool:
    return cell.get("cell_type") == "markdown"


def _exercise(cell: dict[str, Any]) -> str:
    """The exercise whose stub a cell of the lesson has; "" if it has none."""
    if cell.get("cell_type") != "code":
        return ""
    return str(cell.get("metadata", {}).get("sluice", {}).get("exercise", ""))


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
