"""The first page says what is missing, what was done, and where to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

import course
from course.curriculum.manifest import EXERCISES, LESSONS
from course.learner import doctor, progress, start
from course.learner.next_exercise import listing


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))


def noted(exercise: str, status: str) -> None:
    progress.record("check", exercise=exercise, status=status)


def test_who_begins_is_sent_to_the_first_exercise() -> None:
    first = next(iter(EXERCISES.values()))
    said = repr(start.lessons())
    where = f"lesson {first.lesson}, exercise {first.id} ({first.title}; not tried yet)"
    assert said.splitlines()[-1] == f"Begin with {where}."
    assert said.count("□") == len(EXERCISES)
    assert "■" not in said


def test_who_comes_back_is_sent_to_what_was_tried_last() -> None:
    noted("0.1", "passed")
    noted("3.1", "failed")
    noted("3.1", "error")
    said = repr(start.lessons())
    assert said.splitlines()[-1] == "Go on with lesson 3, exercise 3.1 (A record over buffers; 2 attempts, all kept)."
    assert said.count("■") == 1


def test_who_has_passed_what_was_tried_last_is_sent_to_the_next() -> None:
    noted("3.1", "passed")
    assert " 0.1 " in repr(start.lessons()).splitlines()[-1]


def test_the_list_beside_the_notebooks_has_every_lesson_and_where_to_go_on() -> None:
    assert [each["title"] for each in listing()["lessons"]] == [each.title for each in LESSONS.values()]
    assert listing()["next"]["card"] == "Begin with L00"
    noted("3.1", "failed")
    shown = listing()
    assert (shown["next"]["card"], shown["next"]["file"]) == ("Go on with L03", "03_spanning.ipynb")
    assert shown["next"]["says"].startswith("Go on here: 3.1 ")
    for exercise in EXERCISES:
        noted(exercise, "passed")
    assert "next" not in listing()
    assert {mark for each in listing()["lessons"] for mark in each["marks"]} == {"■"}


def test_what_a_late_one_was_spared_is_no_place_to_go_on_at_and_has_a_mark_of_its_own() -> None:
    progress.record("catchup", exercise="0.1", lesson=0, by="learner")
    said = repr(start.lessons())
    assert said.splitlines()[1].endswith("◧")
    assert "■" not in said
    assert "exercise 1.1 " in said
    assert "◧: our part stands in" in said
    noted("0.1", "passed")
    assert repr(start.lessons()).splitlines()[1].endswith("■")
    assert "◧" not in repr(start.lessons())


def test_who_was_spared_something_is_not_told_that_all_has_passed() -> None:
    for exercise in EXERCISES:
        noted(exercise, "passed" if exercise != "3.1" else "failed")
    progress.record("catchup", exercise="3.1", lesson=3, by="learner")
    said = repr(start.lessons())
    assert "passed" not in said
    assert "What you did not write yet: 3.1." in said


def test_who_has_done_all_is_told_of_the_receipt() -> None:
    for exercise in EXERCISES:
        noted(exercise, "passed")
    assert "sluice export" in repr(start.lessons())


@pytest.mark.parametrize("table", [start.lessons, start.tracks])
def test_text_and_table_say_the_same_and_every_link_has_a_lesson(table) -> None:
    made = table()
    plain, rich = repr(made), made._repr_markdown_()
    names = {f"{lesson.name}.ipynb" for lesson in LESSONS.values()}
    rows = [line for line in rich.splitlines() if ".ipynb)" in line]
    assert rows
    for row in rows:
        target = row.partition("](")[2].partition(")")[0]
        assert target in names
        for cell in row.replace(f"]({target})", "").replace("[", "").strip("| ").split(" | "):
            assert cell.strip() in plain


def test_a_machine_that_lacks_something_is_told_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = doctor.Finding("Java", doctor.Status.MISSING, "there is none", "run make lab")
    monkeypatch.setattr(start, "_LOOKS", (doctor.python, lambda: missing))
    said = str(start.machine())
    assert "✗ Java: there is none\n    → run make lab" in said
    assert "missing" in said.splitlines()[-1]


def test_the_list_has_its_heading_in_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listing()["heading"] == "Lessons"
    monkeypatch.setenv("SLUICE_LANGUAGE", "zh")
    assert listing()["heading"] == "课程"
    script = (Path(course.__file__).parent / "learner/labextension/static/lessons.js").read_text(encoding="utf-8")
    assert '"Lessons"' not in script  # what it shows is handed to it
