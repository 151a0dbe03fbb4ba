"""`sluice watch` checks what is in the file, again when it changes, and ends with Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from course.cli import main
from course.cli.watch import changes
from course.curriculum import stubs
from course.learner import progress

pytestmark = pytest.mark.usefixtures("own_state")
RIGHT = stubs.solution("0.1")


@pytest.mark.slow
def test_each_change_is_checked_and_the_last_answer_is_the_exit_status(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(stubs.stub("0.1"))
    command = [sys.executable, "-m", "course.cli", "watch", "0.1", "--file", str(file), "--json", "--seed", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as watching:
        said = []
        for source in (RIGHT.replace("max", "min"), "def f(: pass", RIGHT, None):
            said.append(json.loads(watching.stdout.readline()))
            if source is not None:
                new = tmp_path / "new"  # as editors do: another file takes its place
                new.write_text(source)
                new.replace(file)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(120) == 0
    assert [each["status"] for each in said] == ["not_started", "failed", "error", "passed"]
    assert {each["seed"] for each in said} == {5}
    assert progress.best_status("0.1") == "passed"


def test_a_file_that_is_away_for_a_moment_or_saved_unchanged_is_no_change(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("1")
    seen = changes(file, every_s=0)
    assert next(seen) == b"1"
    file.write_text("2")
    assert next(seen) == b"2"
    file.unlink()
    file.write_text("2")
    file.write_text("3")
    assert next(seen) == b"3"


def test_a_file_that_is_not_there_is_wrong_use_and_the_answer_says_what_to_do(tmp_path, capsys):
    assert main(["watch", "0.1", "--file", str(tmp_path / "none.py")]) == 2
    assert "start one with: sluice reset 0.1 --file" in capsys.readouterr().err
    assert main(["watch", "9.9"]) == 2


@pytest.mark.slow
def test_class_mode_draws_a_seed_and_says_how_to_have_it_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLUICE_MODE", "class")
    file = tmp_path / "mine.py"
    file.write_text(RIGHT.replace("max", "min"))
    seeds = set()
    for _ in range(2):
        assert main(["check", "0.1", "--file", str(file)]) == 1
        said = capsys.readouterr().out
        seed = progress.latest_check("0.1")["seed"]
        assert f"Seed {seed}: sluice check 0.1 --seed {seed}  runs exactly this again." in said
        assert len(said.splitlines()) <= 20
        seeds.add(seed)
    assert len(seeds) == 2
    assert main(["hint", "0.1", "--file", str(file)]) == 0
    assert "Hint 1 of 5 for 0.1, rule C" in capsys.readouterr().out
