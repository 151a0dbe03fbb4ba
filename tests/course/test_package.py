"""The wheel in an environment of its own and an empty folder: nothing of the checkout is needed there."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from course.author.distribution import DistributionError, main, make_distributions
from course.curriculum.manifest import LESSONS
from course.curriculum.stubs import solution

ROOT = Path(__file__).parents[2]
PACKAGES = ("course", "lessons", "refimpl", "widgets")
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints"}
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Built:
    """Both distributions, the environment in which the wheel is installed, and what the build has said."""

    source: Path
    wheel: Path
    environment: Path
    said: list[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel in a new environment, which takes the packages that Sluice needs from ours, but not our checkout."""
    folder = tmp_path_factory.mktemp("package")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["--out", str(folder / "dist")]) == 0
    (source,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    # A folder that such a file names becomes a part of the path; such files within that folder are not read.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install"]
    command = [*pip, "--quiet", "--no-deps", "--no-index", "--no-compile", "--ignore-installed", str(wheel)]
    subprocess.run(command, check=True, env={**os.environ, "PIP_NO_INPUT": "1"})
    return Built(source, wheel, environment, said.getvalue().splitlines())


def sluice(built: Built, empty: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in this folder, and without what this process was told about folders."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "PYTHON"))}
    command = [str(built.environment / "bin" / "sluice"), *words]
    return subprocess.run(command, cwd=empty, env=env, capture_output=True, text=True, check=False)


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_the_wheel_has_every_file_of_the_packages_and_no_other(built):
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file())
    ours = sorted(str(file.relative_to(ROOT)) for file in files if not LEFT_OUT & {*file.parts})
    assert [name for name in names_in(built.wheel) if ".dist-info/" not in name] == ours


def test_the_source_distribution_has_the_same_files_and_the_tests(built):
    with tarfile.open(built.source) as archive:
        files = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    assert {name for name in names_in(built.wheel) if ".dist-info/" not in name} <= set(files)
    assert {"Makefile", "requirements.txt", "pyproject.toml", "tests/conftest.py"} <= set(files)
    assert [name for name in files if LEFT_OUT & set(name.split("/"))] == []


def test_a_build_that_fails_says_why(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'sluice'\n")  # which lacks the version
    with pytest.raises(DistributionError, match=r"build_sdist failed(.|\n)*version"):
        make_distributions(tmp_path, tmp_path / "dist")


def test_the_sizes_are_said(built):
    assert built.said == [f"{file}  {file.stat().st_size / 1e6:.1f} MB" for file in (built.source, built.wheel)]


def test_the_page_for_organisers_says_how_large_the_wheel_is(built):
    page = (ROOT / "course" / "classroom" / "organising.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"dist/ has the wheel, (\d+) MB", page)
    assert int(said) == round(built.wheel.stat().st_size / 1e6)


def test_own_lessons_are_checked_with_the_wheel_and_with_nothing_of_that_name_elsewhere(built, tmp_path):
    done = sluice(built, tmp_path, "new", "lesson", "Our joins")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "sluice-requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [f"./{built.wheel.name}"]


def test_the_installed_package_runs_itself(built, tmp_path):
    code = f"import sys, {', '.join(PACKAGES)}; print(*(sys.modules[name].__path__[0] for name in {PACKAGES}))"
    python = str(built.environment / "bin" / "python")
    said = subprocess.run([python, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert len(said) == len(PACKAGES)
    assert [Path(place).is_relative_to(built.environment) for place in said] == [True] * len(PACKAGES)


def test_the_doctor_finds_the_machine_ready_and_all_lessons(built, tmp_path):
    done = sluice(built, tmp_path, "doctor", "--json")
    found = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["lessons"]["text"] == f"{len(LESSONS) + 1} in {next(built.environment.rglob('lessons/src')).parent}"
    assert str(tmp_path / "work") in found["folders"]["text"]


def test_an_answer_is_graded_and_progress_stays_in_the_learners_folder(built, tmp_path):
    (tmp_path / "mine.py").write_text(solution("3.1"))  # which is held against what Flink answered
    done = sluice(built, tmp_path, "check", "3.1", "--file", "mine.py", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["status"] == "passed"
    assert {each.name for each in tmp_path.iterdir()} == {"mine.py", ".course"}


def test_the_languages_of_the_course_are_there(built, tmp_path):
    assert "zh  中文" in sluice(built, tmp_path, "language").stdout
    done = sluice(built, tmp_path, "language", "zh")
    assert done.returncode == 0, done.stderr
    assert {each.name for each in tmp_path.iterdir()} == {".course"}


@pytest.mark.spark
def test_the_demo_answers_as_spark_does(built, tmp_path):
    done = sluice(built, tmp_path, "demo", "--records", "500", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["equal_to_spark"] is True
    assert list(tmp_path.iterdir()) == []


def test_the_lessons_are_handed_out_from_the_package(built, tmp_path):
    code = (
        "from course.learner.lessons import hand_out; from course.places import lessons_folder, work_folder; "
        "print(*hand_out(lessons_folder(), work_folder()), sep='\\n')"
    )
    python = str(built.environment / "bin" / "python")
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    env["JUPYTER_DATA_DIR"] = str(tmp_path / "data")
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
    wanted = [f"{lesson.name}.ipynb" for lesson in LESSONS.values()]
    assert {f"{name}: copied" for name in wanted} <= set(done.stdout.splitlines())
    assert all((tmp_path / "work" / name).is_file() for name in wanted)


def test_the_list_of_lessons_in_jupyterlab_is_part_of_it(built):
    extension = next(built.environment.rglob("course/learner/labextension"))
    here = ROOT / "course" / "learner" / "labextension"
    assert (extension / "package.json").read_bytes() == (here / "package.json").read_bytes()
    assert shutil.which("sluice", path=str(built.environment / "bin")) is not None
