"""The folders of exercises are whole, and a change says one place of the answer that it changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from course.curriculum.folders import folder, folders, table
from course.curriculum.manifest import EXERCISES, LESSONS
from course.curriculum.seams import _seam
from course.curriculum.specimens import changed, right_answers, unseen, zoo

SOURCE = "def f(a):\n    b = a\n    if b:\n        b = a\n    return b\n"


def test_a_change_takes_out_and_puts_in_where_it_says():
    assert changed(SOURCE, "-    return b\n+    return a\n") == SOURCE.replace("return b", "return a")
    assert changed(SOURCE, "     if b:\n-        b = a\n+        b = 0\n") == SOURCE.replace(
        "        b = a", "        b = 0"
    )
    assert changed(SOURCE, " def f(a):\n-    b = a\n@@\n-    if b:\n-        b = a\n") == "def f(a):\n    return b\n"
    assert changed(SOURCE, " def f(a):\n+\n+    # why\n") == SOURCE.replace("(a):\n", "(a):\n\n    # why\n")


@pytest.mark.parametrize(
    "change",
    [
        "-    return c\n",
        "-b = a\n",
        "-    b = a\n",
        "-    return b\n@@\n-    return b\n",
        "?    return b\n",
        "    return b\n",
    ],
)  # fmt: skip
def test_a_change_that_says_no_place_or_several_is_refused(change):
    source = SOURCE.replace("        b = a", "    b = a")
    with pytest.raises(ValueError, match="not once"):
        changed(source, change)


def test_a_seam_with_a_key_that_is_none_is_refused():
    with pytest.raises(TypeError, match="swapp"):
        _seam("0.1", {**table("0.1", "exercise.toml"), "swapp": "map"})


def test_the_exercises_come_in_the_order_of_the_course():
    ids = list(EXERCISES)
    assert ids == sorted(ids, key=lambda each: [int(part) for part in each.split(".")])
    assert ids == [each.id for lesson in LESSONS.values() for each in lesson.exercises]
    for number, lesson in LESSONS.items():
        assert [each.id for each in lesson.exercises] == [f"{number}.{n}" for n in range(1, len(lesson.exercises) + 1)]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_folder_has_all_that_belongs_to_an_exercise_and_nothing_else(exercise):
    files = {file.name for file in folder(exercise).iterdir() if file.suffix != ".pyc" and file.name != "__pycache__"}
    always = {"exercise.toml", "check.py", "messages.toml", "answers.toml", "golden.txt"}
    assert always <= files
    assert files - always <= {"driver.py", "cases.py", "diagnosis.py", "unseen.toml", "harness.py"}
    assert ("driver.py" in files) == ("driver" not in table(exercise, "exercise.toml"))


@pytest.mark.parametrize("exercise", EXERCISES)
def test_answers_are_code_with_a_note_and_all_different(exercise):
    every = [*right_answers(exercise), *zoo(exercise), *unseen(exercise)]
    assert "plain" in {each.name for each in every}
    for each in every:
        assert ast.get_docstring(ast.parse(each.source)) == each.belief or not each.belief
    assert len({each.source.partition('"""\n')[2] or each.source for each in every}) == len(every)
    rows = table(exercise, "answers.toml")["wrong"]
    for name, row in rows.items():
        assert set(row) <= {"belief", "base", "change", "source"}, name
        assert ("change" in row) != ("source" in row), name
        assert "base" not in row or "change" in row, name


def test_nothing_else_lies_among_the_folders():
    here = next(iter(folders().values())).parent
    names = {each.name for each in Path(here).iterdir()} - {"__init__.py", "__pycache__"}
    assert names == {each.name for each in folders().values()}
