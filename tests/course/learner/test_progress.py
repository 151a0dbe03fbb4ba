"""Progress survives two writers at once and a crash in the middle of a line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from course import lesson
from course.curriculum.manifest import EXERCISES
from course.learner import progress

pytestmark = pytest.mark.usefixtures("own_state")

WRITER = """
from course import lesson
from course.learner import progress
from course.curriculum.manifest import EXERCISES
for i in range(300):
    progress.record("check", exercise="3.1", n=i, who={who})
"""


def test_an_event_comes_back(own_state):
    progress.record("check", exercise="3.1", status="failed")
    assert [(e["event"], e["status"]) for e in progress.events()] == [("check", "failed")]
    assert (own_state / "progress.jsonl").read_text().count("\n") == 1


@pytest.mark.slow
def test_two_processes_lose_nothing():
    writers = [subprocess.Popen([sys.executable, "-c", WRITER.format(who=who)]) for who in (1, 2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = progress.events()
    assert len(found) == 600
    assert all([e["n"] for e in found if e["who"] == who] == list(range(300)) for who in (1, 2))


def test_a_crash_in_the_middle_of_a_line_costs_that_line_only(own_state):
    progress.record("check", exercise="3.1", n=1)
    with (own_state / "progress.jsonl").open("a") as file:
        file.write('{"event": "check", "exer')
    progress.record("check", exercise="3.1", n=2)
    assert [e["n"] for e in progress.events()] == [1, 2]


def test_lines_that_cannot_be_read_are_left_out_said_and_kept(own_state):
    progress.record("check", exercise="3.1", status="passed")
    with (own_state / "progress.jsonl").open("ab") as file:
        file.write(b'\xff\x00\n[]\n{"event": "hint", "exercise": "3.1", "rung": "two", "time": null}\n')
    before = (own_state / "progress.jsonl").read_bytes()
    progress.record("check", exercise="0.1", status="passed")
    assert [progress.best_status(each) for each in ("3.1", "0.1")] == ["passed", "passed"]
    assert progress.events()[1]["rung"] == 0
    assert "! 2 lines of " in progress.progress_text()
    assert (own_state / "progress.jsonl").read_bytes().startswith(before)
    assert len(progress.merge(own_state / "progress.jsonl")) == 3


def test_a_place_that_cannot_be_written_is_said(own_state):
    assert progress.troubles() == []
    own_state.mkdir()
    (own_state / "progress.jsonl").mkdir()
    progress.record("check", exercise="3.1")
    (said,) = progress.troubles()
    assert said.startswith("Progress is not kept: ")
    assert "SLUICE_WORK" in said


WITHOUT_ROOM = """
import resource, signal
from course.learner import progress
from course.grading.judge import judge
source = "x = 1\\n" * 100
report = judge("0.1", source)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
for _ in range(9):
    print(progress.record_check(report, source))
"""


def test_what_there_was_no_room_for_is_counted_and_nothing_is_kept_by_half(own_state):
    """A file may have 500 bytes here: the code has 600, one event less, two have more."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_ROOM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 9
    assert [each["code_kept"] for each in progress.events()] == [False]
    assert progress.troubles() == [
        "The code of 1 check was not kept: the disk was full or could not be written then.",
    ]
    assert (own_state / "progress.jsonl").read_bytes().count(b"\n") == 1
    assert [*(own_state / "attempts" / "0.1").iterdir()] == []


def test_a_damaged_attempt_is_left_out_and_kept(own_state):
    first = progress.keep_attempt("3.1", "a = 1\n")
    (first.parent / "0002.py").write_bytes(b"\xff")
    (first.parent / "notes.py").write_text("mine")
    assert progress.keep_attempt("3.1", "a = 3\n").name == "0003.py"
    assert [file.name for file in progress.attempts("3.1")] == ["0001.py", "0003.py"]
    assert (first.parent / "0002.py").read_bytes() == b"\xff"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("SLUICE_WORK", str(blocker / "work"))
    progress.record("check", exercise="3.1")
    assert progress.events() == []
    assert progress.keep_attempt("3.1", "x = 1") is None


def test_attempts_are_numbered_and_doubles_are_kept_once(own_state):
    for source in ("a = 1\n", "a = 2\n", "a = 2\n", "a = 1\n"):
        progress.keep_attempt("3.1", source)
    assert [file.name for file in progress.attempts("3.1")] == ["0001.py", "0002.py", "0003.py"]


def test_once_passed_stays_passed():
    for status in ("failed", "passed", "failed"):
        progress.record("check", exercise="3.1", status=status)
    assert progress.best_status("3.1") == "passed"
    assert "✓ 3.1" in progress.progress_text()
    assert "○ 0.1" in progress.progress_text()


def test_a_part_that_was_given_has_a_mark_of_its_own_and_a_passed_one_the_other(capsys):
    for status in ("failed", "passed"):
        progress.record("catchup", exercise="0.1", lesson=0, by="learner")
        progress.record("check", exercise="0.1", status=status)
        progress.record("catchup", exercise="1.1", lesson=1, by="learner")
        given, passed = ("0.1", "1.1"), "0 of"
        if status == "passed":
            given, passed = ("1.1",), "1 of"
        said = progress.progress_text()
        bar, head, *_ = said.partition("\n")[0].partition("  ")
        assert (bar.count("■"), bar.count("◧")) == (2 - len(given), len(given)), head
        assert f"{passed} {len(EXERCISES)} exercises passed, {len(given)} caught up (◧)" in said
        assert all(f"◧ {each} " in said for each in given)
        assert [each for each in EXERCISES if progress.standing(each) == "caught_up"] == list(given)
        lesson(0)
        assert f"{'◧' if '0.1' in given else '■'} {passed} 1 passed" in capsys.readouterr().out


def test_files_merge_by_union(tmp_path):
    progress.record("check", exercise="3.1", n=1)
    one = tmp_path / "one.jsonl"
    one.write_text("".join(f'{{"event": "check", "time": {t}}}\n' for t in (3, 1)))
    two = tmp_path / "two.jsonl"
    two.write_text('{"event": "check", "time": 1}\n{"event": "hint", "time": 2}\n')
    assert [e["time"] for e in progress.merge(one, two)] == [1, 2, 3]
