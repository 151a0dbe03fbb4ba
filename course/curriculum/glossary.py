"""The words of the course, in English and Chinese: one list, from which page and links are made."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course.curriculum.languages import ENGLISH
from course.curriculum.manifest import LESSONS
from course.curriculum.messages import read_catalogue

__all__ = ["Term", "anchor", "glossary", "glossary_page", "words_of"]

_FILE = Path(__file__).parent / "glossary.toml"
_HEAD = """# Glossary

Many of the best texts on Flink are Chinese, and many Chinese texts use the English words. Here are both, with one
sentence each, and the lesson in which you meet the thing itself. Flink's own names are those of version 1.11.

Empty boxes behind "In Chinese" are characters that no font on this machine has; on Debian `fonts-noto-cjk` brings one.

Made from `course/curriculum/glossary.toml` by `sluice build`.
"""


def anchor(heading: str) -> str:
    """What leads to a heading, as JupyterLab makes it."""
    return heading.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Term:
    """One word: English, Chinese, the lesson that brings it, and what it says."""

    en: str
    zh: str
    lesson: int
    says: str

    @property
    def link(self) -> str:
        """Where it stands on the page."""
        return f"glossary.md#{anchor(self.en)}"


@cache
def glossary() -> tuple[Term, ...]:
    """All words, in the order of the English alphabet."""
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))["term"]
    return tuple(sorted((Term(**row) for row in rows), key=lambda term: term.en.casefold()))


def words_of(lesson: int, language: str = ENGLISH) -> str:
    """The words that this lesson brings, as a line of links; "" if it brings none."""
    found = [f"[{term.en}]({term.link}) {term.zh}" for term in glossary() if term.lesson == lesson]
    line: str = read_catalogue("curriculum/interface.toml", language)["lesson"]["words"]
    return line.format(words=", ".join(found)) if found else ""


def glossary_page() -> str:
    """The page, as Markdown."""
    return "\n".join([_HEAD, *_entries(glossary())])


def _entries(terms: Iterable[Term]) -> Iterable[str]:
    for term in terms:
        info = LESSONS[term.lesson]
        yield f"## {term.en}\n\n{term.says} [Lesson {info.number}]({info.name}.ipynb). In Chinese: {term.zh}.\n"
