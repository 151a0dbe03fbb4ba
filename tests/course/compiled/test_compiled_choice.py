"""Which engine a process runs: asked for, there and fresh, or the source; and what a stale build is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.compiled import choice, standing
from course.compiled.choice import VARIABLE, EngineUnavailable, wanted
from course.compiled.standing import RECORD, ingredients

ROOT = Path(__file__).resolve().parents[3]
WHICH = (
    "import sys; from course.compiled.choice import choose, wanted, in_use\n"
    "remark = choose(wanted(sys.argv[1:])); print(in_use()); print(remark)"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(standing, "build_folder", lambda: tmp_path)
    return tmp_path / "compiled"


def record(folder: Path, **changed: str) -> None:
    folder.mkdir()
    (folder / RECORD).write_text(json.dumps({**ingredients(), "modules": "1", **changed}), encoding="utf-8")


def test_without_a_record_there_is_no_build(folder: Path) -> None:
    assert not standing.standing().is_there
    folder.mkdir()
    assert not standing.standing().is_there
    (folder / RECORD).write_text("{", encoding="utf-8")
    assert not standing.standing().is_there


def test_a_build_of_what_is_here_is_fresh(folder: Path) -> None:
    record(folder)
    assert standing.standing().is_fresh


@pytest.mark.parametrize("name", ["source", "recipe", "python", "mypyc"])
def test_a_build_of_anything_else_is_stale_and_says_why(folder: Path, name: str) -> None:
    record(folder, **{name: "another"})
    found = standing.standing()
    assert found.is_there
    assert not found.is_fresh
    assert found.stale == standing._WORDS[name]


def test_another_text_or_another_module_of_the_engine_is_another_source(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "one.py").write_text("a = 1\n", encoding="utf-8")
    digests = {standing._digest(tmp_path, "**/*.py")}
    (tmp_path / "memory" / "one.py").write_text("a = 2\n", encoding="utf-8")
    digests.add(standing._digest(tmp_path, "**/*.py"))
    (tmp_path / "memory" / "two.py").write_text("", encoding="utf-8")
    digests.add(standing._digest(tmp_path, "**/*.py"))
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("run job.py --engine source", "source"),
        ("run --engine=compiled job.py", "compiled"),
        ("run job.py --engine source --engine compiled", "compiled"),
        ("run job.py", None),
        ("run job.py --engine", None),
        ("demo --driver simulation", "source"),
        ("demo --driver=simulation --engine source", "source"),
        ("run job.py --on spark", "source"),
        ("run flights --master spark://127.0.0.1:7077", None),
    ],
)
def test_the_words_of_a_command_say_which(words: str, asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert wanted(words.split()) == asked


def test_the_variable_says_which_if_the_words_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "compiled")
    assert wanted(["run", "job.py"]) == "compiled"
    assert wanted(["run", "job.py", "--engine", "source"]) == "source"
    assert wanted(["run", "job.py", "--on", "simulation"]) == "source"


@pytest.mark.parametrize("driver", ["simulation", "spark"])
def test_where_only_the_source_runs_the_compiled_engine_is_refused(driver: str) -> None:
    with pytest.raises(EngineUnavailable, match="runs the source"):
        wanted(["run", "job.py", "--on", driver, "--engine", "compiled"])


def test_an_engine_that_is_asked_for_and_not_there_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", {name: each for name, each in sys.modules.items() if name != "refimpl"})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(EngineUnavailable, match="there is no compiled engine"):
        choice.choose("compiled")
    assert choice.choose(None) == ""
    record(folder, source="another")
    with pytest.raises(EngineUnavailable, match="source has changed"):
        choice.choose("compiled")
    assert "this runs the source" in choice.choose(None)
    assert str(folder) not in sys.path
    assert VARIABLE not in os.environ


def test_a_fresh_one_comes_first_on_the_path_unless_the_source_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "modules", {name: each for name, each in sys.modules.items() if name != "refimpl"})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(VARIABLE, "")
    record(folder)
    assert choice.choose("source") == ""
    assert str(folder) not in sys.path
    assert choice.choose(None) == ""
    assert sys.path[0] == str(folder)
    assert os.environ[VARIABLE] == "compiled"


def test_a_process_that_has_the_source_keeps_it(folder: Path) -> None:
    import refimpl  # noqa: F401

    record(folder)
    if choice.in_use() == "source":
        with pytest.raises(EngineUnavailable, match="has loaded the source"):
            choice.choose("compiled")
    assert str(folder) not in sys.path


def test_a_command_says_that_the_engine_is_not_there_and_ends_with_3() -> None:
    words = ["run", "course/example_job.py", "--on", "simulation", "--engine", "compiled"]
    done = subprocess.run([sys.executable, "-m", "course.cli", *words], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


def test_a_process_runs_the_source_if_it_is_asked_to() -> None:
    command = [sys.executable, "-c", WHICH, "--engine", "source"]
    assert subprocess.check_output(command, text=True, cwd=ROOT).splitlines() == ["source", ""]
