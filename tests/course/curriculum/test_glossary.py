"""The words of the course: each once, in both languages, explained where the lesson meets it, and linked."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from course.curriculum.glossary import glossary, glossary_page, words_of
from course.curriculum.manifest import LESSONS

ROOT = Path(__file__).resolve().parents[3]


def prose_of(lesson: int) -> str:
    notebook = nbformat.read(ROOT / "lessons" / f"{LESSONS[lesson].name}.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return re.sub(r"[*`_]", "", " ".join(" ".join(cells).split())).casefold()


def test_every_word_stands_there_once_with_both_languages_and_a_sentence() -> None:
    assert [word for word, count in Counter(term.en.casefold() for term in glossary()).items() if count > 1] == []
    for term in glossary():
        assert re.search(r"[\u4e00-\u9fff]", term.zh), term
        assert re.fullmatch(r"[A-Z].*\.", term.says), term
        assert re.fullmatch(r"[A-Za-z0-9 -]+", term.en), f"{term.en}: other signs make other links elsewhere"


def test_chinese_is_announced_in_words_and_is_never_what_a_line_begins_with() -> None:
    entries = glossary_page().split("\n## ")[1:]
    assert [entry for entry in entries if not re.search(r"In Chinese: [^\n]*[\u4e00-\u9fff][^\n]*\.\n", entry)] == []
    for text in (glossary_page(), *map(words_of, LESSONS)):
        assert re.findall(r"^\W*[\u4e00-\u9fff].*", text, re.MULTILINE) == []
        assert not re.search(r"[\u4e00-\u9fff]", text) or "Chinese" in text


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_word_is_used_in_the_lesson_that_brings_it(lesson: int) -> None:
    prose = prose_of(lesson)
    assert [term.en for term in glossary() if term.lesson == lesson and term.en.casefold() not in prose] == []


def test_the_page_is_as_built_and_every_link_of_a_lesson_leads_to_a_word() -> None:
    page = (ROOT / "lessons" / "glossary.md").read_text(encoding="utf-8")
    assert page == glossary_page()
    headings = {line.removeprefix("## ").replace(" ", "-") for line in page.splitlines() if line.startswith("## ")}
    for lesson, info in LESSONS.items():
        text = (ROOT / "lessons" / f"{info.name}.ipynb").read_text(encoding="utf-8")
        linked = set(re.findall(r"glossary\.md#([^)]+)\)", text))
        assert linked <= headings
        assert len(linked) >= words_of(lesson).count("](")
