"""Every lesson with the reference parts in place: each check passes, each part goes into the job and answers as ours.

Only cells of these roles say something else when the parts are there; all others are in `test_notebooks.py`, and in a
whole run they are here too, to show that they do not depend on it. What the cells say is in `solved.txt`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from course.author.build import build, source_of
from course.curriculum.glossary import words_of
from course.curriculum.manifest import LESSONS
from tests.lessons.strict import ROOT

FILE = Path(__file__).parent / "solved.txt"
DEPEND = ("exercise", "check", "swap", "hint", "show", "receipt")
VERDICT = "application/vnd.sluice.check+json"


def recorded() -> dict[str, str]:
    """What each cell says, by lesson and id of the cell."""
    parts = re.split(r"^=== (.+)\n", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: said.strip() for name, said in zip(parts[::2], parts[1::2], strict=True)}


def record(said: dict[str, str]) -> None:
    everything = sorted({**recorded(), **said}.items())
    FILE.write_text("\n".join(f"=== {name}\n{text}\n" for name, text in everything), encoding="utf-8")


def words(cell) -> str:
    """What a cell put out, as text."""
    said = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "\n".join("".join(each) for each in said).strip()


@pytest.mark.slow
@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("lesson", LESSONS.values(), ids=lambda lesson: lesson.name)
def test_a_solved_lesson_says_what_is_recorded(lesson, is_whole, request):
    source = source_of(lesson.name).read_text(encoding="utf-8")
    roles = None if is_whole else ("setup", *DEPEND)
    text = build(source, lesson.name, solved=True, words=words_of(lesson.number), roles=roles)
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    depending = [cell for cell in cells if cell["metadata"]["tags"][0] in DEPEND]
    checks = [out["data"][VERDICT] for cell in cells for out in cell["outputs"] if VERDICT in out.get("data", {})]
    assert [each["exercise"] for each in checks if each["status"] == "passed"] == [each.id for each in lesson.exercises]
    said = {f"{lesson.name} {cell['id']}": words(cell) for cell in depending if cell["outputs"]}
    if request.config.getoption("--rewrite"):
        record(said)
    assert said == {name: text for name, text in recorded().items() if name.startswith(f"{lesson.name} ")}
    shipped = {cell["id"]: cell for cell in json.loads((ROOT / f"lessons/{lesson.name}.ipynb").read_text())["cells"]}
    for cell in cells:
        if is_whole and cell not in depending and cell["metadata"]["tags"][0] != "setup":
            assert cell["outputs"] == shipped[cell["id"]]["outputs"], cell["id"]


def test_nothing_is_recorded_of_a_lesson_that_is_gone():
    names = {lesson.name for lesson in LESSONS.values()}
    assert {name.partition(" ")[0] for name in recorded()} == names


def test_what_is_recorded_names_no_machine():
    assert re.search(r"object at 0x|/home/|/Users/|/root|/tmp/|/var/|localhost|127\.0\.0\.1", FILE.read_text()) is None
