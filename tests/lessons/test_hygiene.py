"""What nbval does not see: cells that never ran, outputs that are missing, traces of a machine, lessons too long."""

from __future__ import annotations

import html
import itertools
import json
import re
from pathlib import Path

import pytest

from course.curriculum.manifest import START
from course.curriculum.questions import question, questions

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "lessons").glob("*.ipynb"))
LESSONS = [path for path in PAGES if path.stem != START]

MUST_SHOW = {"check", "figure", "spark", "swap", "zoo", "predict", "quiz", "receipt"}
IGNORED = {"setup": "names the version, the machine, or what a learner has done so far"}
ANATOMY = ["title", "setup", "why", "figure", "predict", "explain", "task", "exercise", "check", "swap", "zoo", "spark",
           "quiz", "recap", "receipt"]  # fmt: skip


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def role(cell):
    return cell["metadata"]["tags"][0]


def shown(output):
    """All text of an output."""
    parts = [output.get("text", ""), output.get("evalue", ""), *output.get("data", {}).values()]
    return "\n".join("".join(part) if isinstance(part, list | str) else json.dumps(part) for part in parts)


page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)


@page
def test_every_code_cell_was_run_in_order(path):
    counts = [cell["execution_count"] for cell in cells(path) if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


@page
def test_cells_that_must_show_something_do(path):
    empty = [
        cell["id"]
        for cell in cells(path)
        if cell["cell_type"] == "code" and role(cell) in MUST_SHOW and not cell["outputs"]
    ]
    assert empty == []


@page
def test_no_output_names_a_machine_an_address_or_a_picture_without_words(path):
    forbidden = re.compile(r"object at 0x|/home/|/Users/|/root|/tmp/|/var/|localhost|127\.0\.0\.1|\.local\b")
    for cell in cells(path):
        for output in cell.get("outputs", []):
            found = forbidden.search(shown(output))
            assert found is None, f"{cell['id']}: {found}"
            data = output.get("data", {})
            assert "image/png" not in data, f"{cell['id']} stores a PNG, which nbval does not compare"
            if "image/svg+xml" in data:
                svg = "".join(data["image/svg+xml"])
                assert "<title" in svg, f"{cell['id']}: a picture without a title"
                assert "<desc" in svg, f"{cell['id']}: a picture without a description"
                assert "text/plain" in data, f"{cell['id']}: a picture without a text twin"


@page
def test_only_setup_cells_are_left_out_of_the_comparison(path):
    left_out = {role(cell) for cell in cells(path) if "nbval-ignore-output" in cell["metadata"]["tags"]}
    assert left_out <= set(IGNORED)
    assert not any("nbval-skip" in cell["metadata"]["tags"] for cell in cells(path))


@lesson
def test_a_lesson_has_its_anatomy_in_order(path):
    roles = [role(cell) for cell in cells(path)]
    firsts = [roles.index(each) for each in ANATOMY]  # a missing part fails here, by name
    assert firsts == sorted(firsts), dict(zip(ANATOMY, firsts, strict=True))


@lesson
def test_a_lesson_keeps_its_budget(path):
    words = sum(len("".join(cell["source"]).split()) for cell in cells(path) if cell["cell_type"] == "markdown")
    assert 22 <= len(cells(path)) <= 31  # one of them may be a job that runs
    assert words <= 1_200
    for cell in cells(path):
        if role(cell) == "explain" and cell["cell_type"] == "markdown":
            assert len("".join(cell["source"]).split()) <= 220, cell["id"]


@page
def test_what_spark_predicted_is_what_the_engine_measured(path):
    if path.stem == START:
        return
    printed = "\n".join(shown(out) for cell in cells(path) if role(cell) == "spark" for out in cell.get("outputs", []))
    receipts = re.findall(r"^L(\d\d) (\S) (\d+) of (\d+) as predicted", printed, re.MULTILINE)
    assert receipts
    for number, sign, right, of in receipts:
        assert (number, sign, right) == (path.stem[:2], "✓", of)


@page
def test_what_answers_a_prediction_is_folded_below_its_question(path):
    """And what is seen of a prediction before a choice holds no answer to any."""
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    found = []
    for cell, behind in itertools.pairwise(code):
        if role(cell) != "predict":
            continue
        names = re.findall(r'"(\d+\.[a-z])"', "".join(cell["source"]))
        found += names
        assert behind["metadata"]["collapsed"] is behind["metadata"]["jupyter"]["outputs_hidden"] is True, behind["id"]
        assert "hide-output" in behind["metadata"]["tags"]
        assert shown(behind["outputs"][0]).strip().startswith(f"{names[0]}  {question(names[0], 'predict').ask[:40]}")
        seen = "".join(unfolded("".join(out["data"][kind])) for out in cell["outputs"] for kind in out["data"])
        for name in names:
            asked = question(name, "predict")
            assert asked.ask in seen
            assert [letter for letter, words in asked.answers.items() if words in seen] == []
    if path.stem != START:
        assert found == [each.id for each in questions(int(path.stem[:2])).values() if each.kind == "predict"]


def unfolded(page):
    """The text of a page that is seen before anybody clicks: what no closed <details> holds but its summary."""
    assert not re.search(r"<details[^>]*\bopen\b", page)
    return html.unescape(re.sub(r"(<details[^>]*>.*?</summary>).*?</details>", r"\1", page, flags=re.DOTALL))


def test_the_first_page_says_nothing_of_a_machine_before_it_is_run_there():
    (machine,) = [cell for cell in cells(PAGES[0]) if cell["id"] == "machine"]
    assert PAGES[0].stem == START
    assert machine["outputs"] == []
    said = "".join(shown(output) for cell in cells(PAGES[0]) for output in cell.get("outputs", []))
    assert "You can start" not in said
    assert "✓" not in said


@lesson
def test_what_is_shipped_is_not_started(path):
    statuses = [
        output["data"]["application/vnd.sluice.check+json"]["status"]
        for cell in cells(path)
        for output in cell.get("outputs", [])
        if "application/vnd.sluice.check+json" in output.get("data", {})
    ]
    assert statuses
    assert set(statuses) == {"not_started"}


@page
def test_ids_are_unique_and_stable(path):
    ids = [cell["id"] for cell in cells(path)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", each) for each in ids)
