"""Which cell teaches which subject of the sources: the tags, and the page made from them."""

from __future__ import annotations

import json

import pytest

from course.author import coverage
from course.author.build import cell_ids, parse

ROOT = coverage.PAGE.parents[1]


def test_the_page_is_what_the_lessons_say():
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.coverage_page(), "python -m course.author.coverage"


def test_every_cell_that_is_named_is_in_its_notebook():
    places = {place for each in coverage.taught().values() for place in each}
    assert places
    for lesson, cell in places:
        notebook = json.loads((ROOT / "lessons" / f"{lesson}.ipynb").read_text(encoding="utf-8"))
        assert cell in {each["id"] for each in notebook["cells"]}


def test_event_time_teaches_what_the_sources_say_of_it():
    taught_there = {subject for subject, cells in coverage.taught().items() if "13_event_time" in dict(cells)}
    assert taught_there >= {"I4", "I5", "I6", "I7", "I8", "I9", "B12", "B13", "B14"}


def test_backpressure_teaches_what_the_sources_say_of_it():
    taught_there = {
        subject for subject, cells in coverage.taught().items() if "12_backpressure" in {name for name, _ in cells}
    }
    wanted = {"C14", "G1", "G2", "G10", "G14", "G15", "H8", "H15", "H16", "H17", "H18", "H19"}
    assert taught_there >= wanted | {f"J{number}" for number in range(1, 7)}


def test_a_tag_that_names_no_subject_is_refused(tmp_path, monkeypatch):
    source = tmp_path / "lesson.py"
    monkeypatch.setattr(coverage, "source_of", lambda _name: source)
    source.write_text("# %% figure name=a seeds=I9,B2\n1\n# %% figure name=b seeds=I9\n2\n", encoding="utf-8")
    number_of_lessons = len(coverage.LESSONS)
    assert len(coverage.taught()["I9"]) == 2 * number_of_lessons
    assert len(coverage.taught()["B2"]) == number_of_lessons
    for wrong in ("water", "I10"):
        source.write_text(f"# %% figure name=a seeds={wrong}\n1\n", encoding="utf-8")
        with pytest.raises(ValueError, match=f"'{wrong}' is no subject"):
            coverage.taught()


def test_every_subject_has_words_of_its_own_and_its_file_is_there():
    listed = coverage.subjects()
    assert len({each.what for each in listed.values()}) == len(listed)
    missing = {
        each.engine for each in listed.values() if each.engine and not (ROOT / "refimpl" / each.engine).is_file()
    }
    assert not missing


def test_cells_have_the_ids_of_the_notebook():
    assert cell_ids(parse("# %% figure name=a\n1\n# %% figure\n2\n# %% figure name=a\n3\n", "x")) == [
        "a",
        "figure-02",
        "a-2",
    ]
