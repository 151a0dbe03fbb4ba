"""The instructor pack: a plan that takes the lesson's minutes, what is said at a cell, answers, the zoo's sheet."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from course.author.build import build, parse, source_of
from course.author.instructor_pack import overview, plan
from course.cli import main
from course.curriculum.manifest import LESSONS
from course.curriculum.specimens import zoo

NOTED = """\
# %% [markdown] title
# # Top
#! Say hello.
# %% figure
#! Wait for it.
1 + 1
#! Then ask why.
# %% figure
2 + 2
"""


@pytest.mark.parametrize("number", LESSONS)
def test_a_plan_takes_the_minutes_of_its_lesson_one_cell_after_the_other(number: int) -> None:
    lesson = LESSONS[number]
    cells = parse(source_of(lesson.name).read_text(encoding="utf-8"), lesson.name)
    steps = plan(cells, lesson.minutes)
    assert len(steps) == len(cells)
    assert sum(step.minutes for step in steps) == lesson.minutes
    assert all(one.begin_min + one.minutes == other.begin_min for one, other in pairwise(steps))
    exercises = [step for step in steps if step.what.startswith("exercise")]
    assert max(steps, key=lambda step: step.minutes) in exercises


def test_what_is_said_at_a_cell_is_in_the_plan_and_in_no_notebook() -> None:
    cells = parse(NOTED, "noted.py")
    first, second, third = plan(cells, 10)
    assert first.say == "Say hello."
    assert second.say.endswith("name. Wait for it. Then ask why.")
    assert third.say == "", "the usual thing is said once"
    assert [cell.source for cell in cells] == ["# Top", "1 + 1", "2 + 2"]


@pytest.mark.slow
def test_notes_are_not_built() -> None:
    assert "#!" not in build(NOTED, "noted.py")


@pytest.mark.slow
def test_the_files_have_every_specimen_and_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructor-pack", str(tmp_path / "pack"), "--lesson", "0"]) == 0
    said = capsys.readouterr()
    assert "1 of 1: lesson 0" in said.err
    assert said.out.endswith("README.md is the first page.\n")
    assert {file.name for file in (tmp_path / "pack").iterdir()} == {"README.md", f"{LESSONS[0].name}.md"}
    sheet = (tmp_path / "pack" / f"{LESSONS[0].name}.md").read_text()
    predictions = [each for each in questions_of(0) if each.kind == "predict"]
    assert all(words in sheet for each in predictions for words in each.answers.values())
    for specimen in zoo("0.1"):
        number = specimen.name.partition("_")[0]
        (row,) = [line for line in sheet.splitlines() if line.startswith(f"| {number} |")]
        assert all(cell.strip() for cell in row.strip("|").split("|")), row
        assert "{" not in row
    assert sheet.count("✓") == sum(each.kind == "quiz" for each in questions_of(0))
    assert overview() == (tmp_path / "pack" / "README.md").read_text()


def questions_of(lesson: int):
    from course.curriculum.questions import questions

    return questions(lesson).values()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["instructor-pack", str(tmp_path / "file" / "pack")]) == 2
    assert "cannot be written" in capsys.readouterr().err
