"""What is allowed and seldom: names of jobs, of modules beside them, of notebooks and paths; output nobody takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.curriculum import stubs
from course.curriculum.source_lines import source_lines
from course.grading.judge import judge
from course.learner import progress

pytestmark = pytest.mark.usefixtures("own_state")

SLUICE = [sys.executable, "-m", "course.cli"]
ROOT = Path(__file__).parents[3]
JOB = """
from refimpl.job import StreamEnvironment
import helpers
{more}
def job(sink):
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection(range(4)).map(helpers.twice).sink(sink)
    return environment
"""


def sluice(*words: str, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SLUICE, *words], cwd=cwd, capture_output=True, text=True, env=_environment(), **options)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "helpers.py").write_text("def twice(number):\n    return 2 * number\n")
    return tmp_path


# -- jobs --------------------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("on", ["threads", "processes"])
@pytest.mark.parametrize("beside", [["queue", "random", "threading", "json"], ["numpy", "cloudpickle", "selectors"]])
def test_modules_beside_a_job_are_its_own_and_nobody_elses(folder: Path, on: str, beside: list[str]) -> None:
    for name in beside:
        (folder / f"{name}.py").write_text("MINE = 1\n")
    uses = "\n".join(f"import {name}\nassert {name}.MINE" for name in beside)
    (folder / "flow.py").write_text(JOB.format(more=uses))
    done = sluice("run", "flow.py", "--on", on, cwd=folder)
    assert sorted(done.stdout.split()) == ["0", "2", "4", "6"], done.stderr


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("name", ["refimpl", "course", "widgets", "types", "queue", "numpy"])
@pytest.mark.parametrize("on", ["threads", "processes"])
def test_a_job_may_be_called_as_something_else_is(folder: Path, name: str, on: str) -> None:
    (folder / f"{name}.py").write_text(JOB.format(more=""))
    done = sluice("run", f"{name}.py", "--on", on, cwd=folder)
    assert sorted(done.stdout.split()) == ["0", "2", "4", "6"], done.stderr


@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("name", ["run22:30", "a [b] {c}", "ü#%20é", "it's"])
def test_a_path_may_have_any_characters(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    (folder / name / "helpers.py").write_text((folder / "helpers.py").read_text())
    (folder / name / "flow.py").write_text(JOB.format(more=""))
    for job in (f"{name}/flow.py", f"{name}/flow.py:job"):
        done = sluice("run", job, "--trace", f"{name} trace {job[-3:]}", cwd=folder)
        assert sorted(done.stdout.split()) == ["0", "2", "4", "6"], done.stderr
        assert list((folder / f"{name} trace {job[-3:]}").glob("trace-*.parquet"))


@pytest.mark.parametrize("code", ["import sys\nsys.exit()\n", "import sys\ndef job(sink):\n    sys.exit(0)\n"])
def test_a_job_that_ends_the_program_is_no_success(folder: Path, code: str) -> None:
    (folder / "flow.py").write_text(code)
    done = sluice("run", "flow.py", cwd=folder)
    assert done.returncode == 2
    assert "SystemExit" in done.stderr


# -- output ------------------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=5)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", [["--help"], ["progress"], ["zoo", "3.1"], ["run", "course/example_job.py"],
                                   ["doctor"], ["data", "list"],
                                   ["check", "3.1", "--file", "course/files.py"]])  # fmt: skip
@pytest.mark.parametrize("where", ["full", "closed", "pipe"])
def test_output_that_nobody_takes_has_a_status_of_its_own(words: list[str], where: str) -> None:
    command = " ".join([f"exec {' '.join(SLUICE)}", *words])
    ends = {"full": "> /dev/full", "closed": ">&-", "pipe": ""}
    if where == "pipe":
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([*SLUICE, *words], stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        os.close(writing)
    else:
        done = subprocess.run(["sh", "-c", f"{command} {ends[where]}"], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.returncode == 4, done.stderr
    assert ("standard output takes no more" in done.stderr) == (where != "pipe"), "who has left wanted no more"
    assert "Traceback" not in done.stderr


# -- notebooks ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sampled(one_in=6)
@pytest.mark.parametrize("name", ["nb[1].ipynb", "team[2]/nb.ipynb", "a::b.ipynb", "-x.ipynb", "it's ü.ipynb"])
def test_a_notebook_of_any_name_is_verified_with_nobodys_settings(tmp_path: Path, name: str, monkeypatch) -> None:
    cell = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {},
            "source": "import os\nos.path.exists('there')",
            "outputs": [{"output_type": "execute_result", "execution_count": 1, "metadata": {},
                         "data": {"text/plain": "True"}}]}  # fmt: skip
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    (file.parent / "there").touch()
    file.write_text(json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (file.parent / "conftest.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    done = sluice("verify", name, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are what your code produces" in done.stdout


# -- sources -----------------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=8)
@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x1c", "\x1d", "\x1e", "\x0b", "\x0c"], ids=repr)
def test_characters_that_end_no_line_in_python_end_none_in_a_check(odd: str) -> None:
    right = stubs.solution("3.1")
    assert judge("3.1", f"# a {odd} b\ntext = '''{odd}'''\n{right}").passed
    wrong = judge("3.1", f"# a {odd} b\n\nraise KeyError('{odd}')\n")
    assert "your line     3 > raise" in str(wrong)
    assert source_lines(f"a{odd}b\r\nc\rd\n\ne") == [f"a{odd}b", "c", "d", "", "e"]


# -- progress ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", ["1" * 400, "-" + "9" * 30, "1e999", "NaN", '"x"', "null", "[1]", "true"])
def test_any_time_in_the_file_of_progress_is_survived(time: str) -> None:
    progress.record("check", exercise="3.1", status="passed")
    file = progress._file()
    with file.open("a") as opened:
        opened.write(f'{{"event": "hint", "exercise": "3.1", "rung": 1, "time": {time}}}\n')
    assert "1 of" in progress.progress_text()
    assert len(progress.merge(file, file)) == 2


def test_a_check_that_cannot_be_kept_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from course.cli import main

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    main(["check", "3.1"])
    assert progress.NOT_KEPT in capsys.readouterr().err
