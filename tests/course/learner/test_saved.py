"""What a check and the list of progress read: the newer of the notebook and what was checked, and they say which."""

from __future__ import annotations

import json
import os
import re

import nbformat
import pytest

from course.cli import main
from course.curriculum.specimens import right_answers, zoo
from course.learner import progress
from course.learner.saved import newest

pytestmark = pytest.mark.usefixtures("own_state")

RIGHT, WRONG = right_answers("0.1")[0].source, zoo("0.1")[0].source
T0 = 1_700_000_000


@pytest.fixture
def save(tmp_path):
    """Save a notebook of lesson 0 with this answer at this time; without one, a notebook that has none."""

    def saved(source, at):
        cells = [nbformat.v4.new_code_cell(f'L.exercise("0.1")\n{source}')] if source else []
        file = tmp_path / "work" / "00_ten_records.ipynb"
        file.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
        os.utime(file, (at, at))

    return saved


def checked(source, at):
    os.utime(progress.keep_attempt("0.1", source), (at, at))


@pytest.fixture
def sluice(capsys):
    def run(*words):
        status = main([*words])
        return status, capsys.readouterr().out

    return run


def test_the_newer_of_the_two_counts_and_is_named(save):
    assert newest("0.1").source is None
    assert "nothing: there is no 00_ten_records.ipynb" in newest("0.1").said
    save(WRONG, T0)
    assert (newest("0.1").source or "").endswith(WRONG)
    assert "00_ten_records.ipynb, saved 2023-11-1" in newest("0.1").said
    checked(RIGHT, T0 + 60)
    assert newest("0.1").source == RIGHT
    assert re.search(r"what you checked last, .*; 00_ten_records.ipynb was saved before that, .*", newest("0.1").said)
    save(WRONG, T0 + 120)
    assert (newest("0.1").source or "").endswith(WRONG)
    save(None, T0 + 180)
    assert newest("0.1").source == RIGHT
    assert 'has no cell with exercise("0.1")' in newest("0.1").said


def test_what_is_checked_again_is_the_newest_again(save):
    checked(RIGHT, T0)
    save(WRONG, T0 + 60)
    progress.keep_attempt("0.1", RIGHT)
    assert newest("0.1").source == RIGHT


def test_check_and_progress_agree_about_a_notebook_that_was_not_saved(save, sluice, tmp_path):
    """The learner passed in the notebook; what is saved of it is older and wrong."""
    save(WRONG, T0)
    (tmp_path / "mine.py").write_text(RIGHT)
    assert sluice("check", "0.1", "--file", str(tmp_path / "mine.py"))[0] == 0
    status, out = sluice("check", "0.1")
    assert status == 0
    assert "  Read: what you checked last, " in out
    status, out = sluice("progress")
    assert "✓ 0.1 A map function: passed\n" in out
    assert f"Read from {tmp_path / '.course' / 'progress.jsonl'}; the last check in it: 0.1, 20" in out
    assert re.search(r"0\.1: 00_ten_records\.ipynb, saved .*, is older than your last check, ", out)
    save(WRONG, T0 + 10**9)
    status, out = sluice("progress")
    assert "holds an answer that was not checked since" in out
    status, out = sluice("check", "0.1", "--json")
    assert (status, "00_ten_records.ipynb, saved 20" in json.loads(out)["read"]) == (1, True)
    out = sluice("progress")[1]
    assert "✓ 0.1 A map function: passed; the last check of it failed\n" in out
    assert "not checked since" not in out


@pytest.mark.parametrize("time", ["9e14", "-9e14", "1" * 400])
def test_a_time_that_no_clock_has_stops_nobody(sluice, time):
    progress.record("check", exercise="0.1", status="failed")
    with progress._file().open("a") as file:
        file.write(f'{{"event": "check", "exercise": "0.1", "status": "failed", "time": {time}}}\n')
    status, out = sluice("progress")
    assert (status, "the last check in it: 0.1" in out) == (0, True)


def test_every_source_is_named(sluice, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(RIGHT)
    assert f"  Read: {tmp_path / 'mine.py'}, saved 20" in sluice("check", "0.1", "--file", str(tmp_path / "mine.py"))[1]
    assert "  Read: what you checked last, 20" in sluice("hint", "0.1")[1]
