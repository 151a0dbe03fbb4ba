"""A stub in another language: other docstrings, the same code, and still a stub to whoever grades or compares."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course.curriculum.languages import own_languages
from course.curriculum.manifest import EXERCISES
from course.curriculum.stub_texts import docstrings, with_docstrings
from course.curriculum.stubs import in_english, is_untouched, solution, stub
from course.curriculum.wrapping import width
from course.grading.judge import judge
from course.learner import hints

ROOT = Path(__file__).resolve().parents[3]
IN_ALL = [(exercise, language) for exercise in EXERCISES for language in own_languages()]


def code_of(source: str) -> str:
    """What a source does: without docstrings, and without what a comment or an indent changes."""
    return ast.dump(ast.parse(with_docstrings(source, dict.fromkeys(docstrings(source), "."))))


def say(folder: Path, exercise: str, text: str) -> None:
    target = folder / "xx" / "exercises" / exercise / "stub.toml"
    target.parent.mkdir(parents=True)
    target.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_stub_with_its_own_docstrings_is_what_it_was(exercise):
    assert with_docstrings(stub(exercise), docstrings(stub(exercise))) == stub(exercise)


@pytest.mark.parametrize(("exercise", "language"), IN_ALL)
def test_a_stub_in_a_language_has_other_docstrings_and_the_same_code(exercise, language):
    made, english = stub(exercise, language), stub(exercise)
    assert code_of(made) == code_of(english)
    assert list(docstrings(made)) == list(docstrings(english))
    same = {name for name, text in docstrings(made).items() if text == docstrings(english)[name]}
    assert not same, f"in English: {same}"
    assert max(map(width, made.splitlines())) <= 120


@pytest.mark.parametrize(("exercise", "language"), IN_ALL)
def test_a_stub_is_one_in_every_language(exercise, language):
    made = stub(exercise, language)
    assert is_untouched(exercise, made)
    assert not is_untouched(exercise, made.replace("raise", "# mine\n    raise", 1))
    assert judge(exercise, made).status.value == "not_started"


def test_a_docstring_that_a_language_has_not_is_said_in_english(tmp_path, monkeypatch):
    say(tmp_path, "e03_1_serializer", 'reset = "Nochmal."\nno_such_method = "?"\n')
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    assert docstrings(stub("3.1", "xx")) == {**docstrings(stub("3.1")), "reset": "Nochmal."}
    assert stub("4.1", "xx") == stub("4.1")


def test_the_difference_to_the_reference_part_has_no_docstring_in_it_that_is_a_stubs():
    told = [hints.difference("4.1", _answered(stub("4.1", each))) for each in ("en", "zh")]
    assert told[0] == told[1]
    mine = hints.difference("4.1", _answered(stub("4.1", "zh")).replace("接着在", "还在"))
    assert "还在" in mine
    assert "就地" not in mine


def _answered(source: str) -> str:
    return source.replace('raise NotImplementedError("4.1")', "return None")


def test_what_python_cannot_read_is_compared_as_it_is():
    assert in_english("4.1", "class Mine(:\n") == "class Mine(:\n"
    assert in_english("4.1", solution("4.1")) == solution("4.1")


def test_reset_gives_the_stub_in_the_language_and_keeps_what_is_no_stub(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text(stub("2.2"), encoding="utf-8")
    assert _reset(tmp_path, file) == f"○ 2.2 starts afresh in {file}.\n"  # nothing was there to be kept
    assert file.read_text(encoding="utf-8") == stub("2.2", "zh")
    file.write_text(stub("2.2", "zh").replace("raise", "return []  #"), encoding="utf-8")
    assert _reset(tmp_path, file).endswith("; your version is kept with your attempts.\n")
    assert file.read_text(encoding="utf-8") == stub("2.2", "zh")


def _reset(folder: Path, file: Path) -> str:
    env = {**os.environ, "SLUICE_WORK": str(folder / "work"), "SLUICE_LANGUAGE": "zh"}
    command = [sys.executable, "-m", "course.cli", "reset", "2.2", "--file", str(file)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=True).stdout


@pytest.mark.parametrize("language", own_languages())
def test_a_stub_asks_for_no_escape(language):
    """A docstring is written between quotes as it is."""
    odd = {each for each in EXERCISES if re.search(r"\\|'''", stub(each, language))}
    assert not odd
