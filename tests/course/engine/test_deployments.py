"""A cluster for one job, and one whose parts are started one by one: how they end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from course.cli import main
from course.engine.jobs import lines_in
from tests.course.engine.test_engine import GATED, SQUARES, TWO_TRIES
from tests.support.polling import until

ROOT = Path(__file__).parents[3]


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    file = tmp_path / "squares.py"
    file.write_text(GATED)
    return file


def begun(*words: str | Path) -> psutil.Popen:
    """`sluice engine`, as a process of its own."""
    command = [sys.executable, "-m", "course.cli", "engine", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return psutil.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_the_exit_status_says_how_the_job_of_a_cluster_of_its_own_has_ended(
    gated: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gated.with_suffix(".gate").touch()
    assert main(["engine", "run", str(gated), "--task-managers", "1", "--results", str(tmp_path / "out")]) == 0
    assert sorted(capfd.readouterr().out.split()) == sorted(SQUARES) == sorted(lines_in(tmp_path / "out"))
    assert main(["engine", "run", f"{gated}:breaks", "--task-managers", "1", *TWO_TRIES]) == 1
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert gated.with_suffix(".tries").read_text() == "xx"


@pytest.mark.slow
def test_ctrl_c_ends_all_that_was_started(gated: Path) -> None:
    process = begun("run", gated, "--task-managers", "2")
    children = until(lambda: found if len(found := process.children()) == 4 else None)
    process.send_signal(signal.SIGINT)
    _out, said = process.communicate()
    assert process.returncode in {130, -signal.SIGINT}  # a shell calls both 130
    assert "Traceback" not in said
    until(lambda: not any(each.is_running() for each in children))  # one that had just begun sees its parent end


@pytest.mark.slow
def test_containers_find_each_other_and_the_end_of_the_job_is_the_dispatchers(gated: Path, tmp_path: Path) -> None:
    at = ("--at", tmp_path / "cluster")
    others = [begun("serve", role, *at) for role in ("resource-manager", "task-manager")]
    words = ("serve", "dispatcher", *at, "--job", gated, "--id", "squares", "--results", tmp_path / "out")
    first = begun(*words)
    try:
        until(lambda: list((tmp_path / "cluster" / "checkpoints").glob("squares/chk-*/_metadata")))
        first.kill()
        first.communicate()
        second = begun(*words)
        gated.with_suffix(".gate").touch()
        _out, said = second.communicate()
        assert second.returncode == 0, said
        assert lines_in(tmp_path / "out") == SQUARES
    finally:
        for each in others:
            each.terminate()
        ends = [each.communicate()[1] for each in others]
    assert [each.returncode for each in others] == [0, 0], ends
