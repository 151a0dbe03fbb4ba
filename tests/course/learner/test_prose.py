"""The prose of a notebook and its stubs follow the language, back and forth, and nothing of the learner's is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from course.curriculum.glossary import words_of
from course.curriculum.languages import choose, own_languages
from course.curriculum.manifest import EXERCISES
from course.curriculum.stubs import stub
from course.learner.lessons import hand_out
from course.learner.prose import in_language, switched
from course.places import lessons_folder

FILE = "02_pools.ipynb"
LESSON = (lessons_folder() / FILE).read_bytes()
TEXTS = {"title": "# 缓冲区和池\n\n第二段。", "why": "## 事故", "recap": "## 你得到了什么"}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A learner's folder, the published lesson 2, and a language xx that has three of its cells."""
    texts = tmp_path / "own" / "xx" / "lessons" / "02_pools.md"
    texts.parent.mkdir(parents=True)
    texts.write_text("".join(f"<!-- {name} -->\n{text}\n\n" for name, text in TEXTS.items()), encoding="utf-8")
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / FILE).write_bytes(LESSON)
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path / "own"))
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.delenv("SLUICE_LANGUAGE")
    return tmp_path


def say_stub(places: Path, exercise: str, text: str) -> None:
    file = places / "own" / "xx" / "exercises" / exercise / "stub.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")


def hand(places: Path, language: str) -> list[str]:
    choose(language)
    return hand_out(places / "lessons", places / "work")


def copy_of(places: Path) -> Path:
    return places / "work" / FILE


def cells(content: bytes) -> dict[str, dict]:
    return {cell["id"]: cell for cell in json.loads(content)["cells"]}


def text(content: bytes, cell: str) -> str:
    return "".join(cells(content)[cell]["source"])


def worked_in(places: Path) -> bytes:
    """The copy with an answer and an output, a changed cell of prose, and one of the learner's own."""
    notebook = json.loads(copy_of(places).read_bytes())
    by_id = {cell["id"]: cell for cell in notebook["cells"]}
    by_id["exercise-2-1"]["source"] = ["class Mine:\n", "    pass"]
    by_id["check-1"]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["✓ 2.1\n"]}]
    by_id["why"]["source"] = [*by_id["why"]["source"], "\n", "\n", "My note: 缓冲."]
    own = {"cell_type": "markdown", "id": "f00d", "metadata": {}, "source": ["What I think"]}
    notebook["cells"].insert(2, own)
    content = (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    copy_of(places).write_bytes(content)
    return content


def test_a_lesson_in_a_language_differs_in_its_prose_only(places):
    made = in_language(LESSON, "02_pools", "xx")
    nbformat.validate(nbformat.reads(made.decode(), nbformat.NO_CONVERT))
    assert text(made, "title") == TEXTS["title"]
    assert text(made, "recap") == TEXTS["recap"] + "\n\n" + words_of(2)
    changed = {name for name, cell in cells(made).items() if cell != cells(LESSON)[name]}
    assert changed == {"title", "why", "recap"}


def test_every_lesson_is_written_as_jupyter_writes_it_so_that_nothing_else_changes(places):
    for file in lessons_folder().glob("*.ipynb"):
        lesson = file.read_bytes()
        own = places / "own" / "xx" / "lessons" / f"{file.stem}.md"
        own.write_text("<!-- title -->\nanother\n", encoding="utf-8")
        made = in_language(lesson, file.stem, "xx")
        assert made != lesson
        assert switched(made, lesson, file.stem, "en") == lesson


def test_a_stub_follows_the_language_back_and_forth(places):
    say_stub(places, "e02_1_counted_buffer", 'CountedBuffer = "计数。"\nretain = "加一。"\n')
    hand(places, "en")
    hand(places, "xx")
    assert text(copy_of(places).read_bytes(), "exercise-2-1") == stub("2.1", "xx").strip("\n")
    assert '"""加一。"""' in text(copy_of(places).read_bytes(), "exercise-2-1")
    assert text(copy_of(places).read_bytes(), "exercise-2-2") == text(LESSON, "exercise-2-2")
    hand(places, "en")
    assert copy_of(places).read_bytes() == LESSON


def test_of_a_changed_copy_only_the_stubs_that_are_letter_for_letter_ours_are_switched(places):
    say_stub(places, "e02_1_counted_buffer", 'retain = "加一。"\n')
    say_stub(places, "e02_2_shares", 'share_out = "分段。"\n')
    say_stub(places, "e02_3_pool", 'take_back = "收下。"\n')
    hand(places, "en")
    notebook = json.loads(worked_in(places))
    by_id = {cell["id"]: cell for cell in notebook["cells"]}
    by_id["exercise-2-2"]["source"] = [*by_id["exercise-2-2"]["source"][:-1], "    return [0]"]
    by_id["exercise-2-3"]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["run\n"]}]
    mine = (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    copy_of(places).write_bytes(mine)
    hand(places, "xx")
    other = copy_of(places).read_bytes()
    changed = {name for name, cell in cells(other).items() if cell != cells(mine)[name]}
    assert changed == {"title", "recap", "exercise-2-3"}
    assert cells(other)["exercise-2-3"]["outputs"] == cells(mine)["exercise-2-3"]["outputs"]
    hand(places, "en")
    assert copy_of(places).read_bytes() == mine


def test_lines_of_the_lesson_before_a_stub_stay(places):
    say_stub(places, "e02_2_shares", 'share_out = "分段。"\n')
    notebook = json.loads(LESSON)
    cell = next(each for each in notebook["cells"] if each["id"] == "exercise-2-2")
    cell["source"] = ["# A word first.\n", "\n", *cell["source"]]
    made = in_language(json.dumps(notebook).encode(), "02_pools", "xx")
    assert text(made, "exercise-2-2") == "# A word first.\n\n" + stub("2.2", "xx").strip("\n")


@pytest.mark.parametrize("language", own_languages())
def test_every_stub_of_every_lesson_is_in_the_language(language):
    seen = set()
    for file in lessons_folder().glob("[0-9]*.ipynb"):
        for cell in cells(in_language(file.read_bytes(), file.stem, language)).values():
            if exercise := cell["metadata"].get("sluice", {}).get("exercise"):
                assert "".join(cell["source"]).endswith(stub(exercise, language).strip("\n"))
                seen.add(exercise)
    assert seen == {*EXERCISES}


def test_a_lesson_that_the_language_has_not_is_english(places):
    assert in_language(LESSON, "03_spanning", "xx") == LESSON
    assert in_language(LESSON, "02_pools", "en") == LESSON
    assert in_language(b"no notebook", "02_pools", "xx") == b"no notebook"


def test_a_copy_that_nobody_changed_follows_the_language_back_and_forth(places):
    assert hand(places, "xx") == [f"{FILE}: copied"]
    assert text(copy_of(places).read_bytes(), "why") == "## 事故"
    assert hand(places, "en") == [f"{FILE}: in English"]
    assert copy_of(places).read_bytes() == LESSON
    assert hand(places, "xx") == [f"{FILE}: in xx"]
    assert hand(places, "xx") == []


def test_what_the_learner_wrote_stays_whatever_the_language(places):
    hand(places, "en")
    mine = worked_in(places)
    assert hand(places, "xx") == [f"{FILE}: in xx now, but for cells that you changed; your code and your outputs stay"]
    other = copy_of(places).read_bytes()
    assert text(other, "title") == TEXTS["title"]
    assert text(other, "why") == text(mine, "why")
    changed = {name for name, cell in cells(other).items() if cell != cells(mine)[name]}
    assert changed == {"title", "recap"}
    assert list(cells(other)) == list(cells(mine))
    assert hand(places, "xx") == []
    hand(places, "en")
    assert copy_of(places).read_bytes() == mine
    assert [each.name for each in (places / "work").glob("*.ipynb")] == [FILE]


def test_a_changed_copy_is_as_old_and_as_trusted_as_it_was(places):
    hand(places, "en")
    worked_in(places)
    os.utime(copy_of(places), ns=(5, 7_000_000_000))
    assert not is_trusted(places)
    hand(places, "xx")
    assert (copy_of(places).stat().st_mtime_ns, is_trusted(places)) == (7_000_000_000, False)
    NotebookNotary().sign(nbformat.read(copy_of(places), nbformat.NO_CONVERT))
    hand(places, "en")
    assert (copy_of(places).stat().st_mtime_ns, is_trusted(places)) == (7_000_000_000, True)


def is_trusted(places: Path) -> bool:
    return NotebookNotary().check_signature(nbformat.read(copy_of(places), nbformat.NO_CONVERT))


def test_a_new_version_comes_beside_a_changed_copy_in_the_language(places):
    hand(places, "en")
    mine = worked_in(places)
    newer = LESSON.replace(b"## An incident", b"## The incident")
    (places / "lessons" / FILE).write_bytes(newer)
    said = hand(places, "xx")
    assert said[0] == f"{FILE}: you changed your copy, so the new version is beside it: 02_pools.new.ipynb"
    beside = (places / "work" / "02_pools.new.ipynb").read_bytes()
    assert beside == in_language(newer, "02_pools", "xx")
    assert text(copy_of(places).read_bytes(), "exercise-2-1") == text(mine, "exercise-2-1")
    assert hand(places, "xx") == []
    hand(places, "en")
    assert copy_of(places).read_bytes() == mine


def test_a_new_version_and_another_language_at_once_replace_an_unchanged_copy(places):
    hand(places, "en")
    (places / "lessons" / FILE).write_bytes(LESSON.replace(b"## An incident", b"## The incident"))
    assert hand(places, "xx") == [f"{FILE}: new version"]
    assert text(copy_of(places).read_bytes(), "title") == TEXTS["title"]


@pytest.mark.parametrize("content", [b"mine", b"[]", b'{"cells": 3}', b'{"cells": [1, {"cell_type": "markdown"}]}'])
def test_a_copy_that_is_no_such_notebook_stays(content, places):
    hand(places, "en")
    copy_of(places).write_bytes(content)
    assert hand(places, "xx") == []
    assert copy_of(places).read_bytes() == content


def test_without_a_record_only_our_own_cells_change(places):
    hand(places, "en")
    mine = worked_in(places)
    (places / "work" / ".lessons.json").unlink()
    hand(places, "xx")
    assert text(copy_of(places).read_bytes(), "title") == TEXTS["title"]
    hand(places, "en")
    assert copy_of(places).read_bytes() == mine
