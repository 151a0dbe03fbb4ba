"""What happens to the kernel in the middle: it is restarted, interrupted, forked, or its judge is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from course.curriculum import stubs
from course.grading.remote import JudgeProcess
from course.grading.runner import GraderError
from course.learner import progress
from course.learner.answers import without_magics

pytestmark = [pytest.mark.usefixtures("own_state"), pytest.mark.slow]

CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True)
    sys.stdout.flush()
"""
SETUP = "from course import check, hint, lesson, reset\nL = lesson(0)"
SLEEPS = '@L.exercise("0.1")\ndef slow(flight):\n    import time\n    time.sleep(60)\n'


def kernel(*cells: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CELLS.format(cells=[SETUP, *cells])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def order(source: str) -> dict[str, object]:
    return {"exercise": "0.1", "sources": [source], "seed": 1, "names": {}}


@pytest.fixture
def judge_process():
    process = JudgeProcess()
    yield process
    process.close()


def test_a_kernel_that_was_restarted_says_so_and_that_nothing_is_lost():
    progress.keep_attempt("0.1", "first")
    progress.keep_attempt("0.1", "second")
    said, _ = kernel('check("0.1")', 'hint("0.1")', 'reset("0.1")', 'check("0.1")').communicate(timeout=60)
    assert said.count("this kernel has not run your cell yet; it was started afresh.") == 2
    assert "attempt 2 of yours is kept" in said
    assert "○ 0.1 not started" in said.partition("starts afresh in the cell below")[2]


def test_an_interrupt_ends_the_check_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run = kernel(SLEEPS, 'check("0.1")', 'print("going on")', 'check("0.1")')
    kernel_process = psutil.Process(run.pid)
    deadline = time.monotonic() + 120
    # The judge, the child that works (its folder is there) and the one that waits.
    while len(kernel_process.children(recursive=True)) < 3 or not set(tmp_path.glob("sluice-check-*")):
        assert time.monotonic() < deadline
        os.sched_yield()
    started, folders = kernel_process.children(recursive=True), set(tmp_path.glob("sluice-check-*"))
    run.send_signal(signal.SIGINT)
    while run.stdout is not None and "going on" not in (line := run.stdout.readline()):
        assert line, "the kernel ended"
        if "interrupted" in line:
            assert "it says nothing about your code" in line
            gone, alive = psutil.wait_procs(started, timeout=120)
            assert not alive
            assert len(gone) >= 3
            # The kernel goes on meanwhile, and its next check has a folder of its own.
            assert not folders & set(tmp_path.glob("sluice-check-*"))
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()


def test_the_judge_ends_with_the_kernel_even_when_that_is_killed():
    run = kernel(SLEEPS, 'check("0.1")')
    kernel_process = psutil.Process(run.pid)
    deadline = time.monotonic() + 120
    while len(kernel_process.children(recursive=True)) < 3:
        assert time.monotonic() < deadline
        os.sched_yield()
    started = kernel_process.children(recursive=True)
    run.kill()
    run.communicate()
    assert not psutil.wait_procs(started, timeout=120)[1]


def test_a_judge_that_was_killed_is_started_again(judge_process):
    first = judge_process.ask(order(stubs.solution("0.1")), 60)
    judge_process._process.kill()
    judge_process._process.wait()
    assert judge_process.ask(order(stubs.solution("0.1")), 60) == first


def test_one_that_ends_when_nobody_asks_is_started_again():
    process = JudgeProcess(idle_seconds=0.1)
    first = process.ask(order(stubs.solution("0.1")), 60)
    assert process._process.wait(120) == 0
    assert process.ask(order(stubs.solution("0.1")), 60) == first
    process.close()


def test_orders_that_come_together_are_answered_one_by_one(judge_process):
    judge_process.tell({"prepare": "0.1", "seed": 1})
    judge_process.tell({"prepare": "3.1", "seed": 1})
    answer = judge_process.ask(order(stubs.solution("0.1")), 60)
    assert answer["reports"][0]["status"] == "passed"


def test_a_judge_that_does_not_answer_is_ended(judge_process):
    with pytest.raises(GraderError, match="did not answer"):
        judge_process.ask(order("import time\ntime.sleep(60)"), 0.5)
    assert judge_process._process is None


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("%%time\nx = 1\n", "# %%time\nx = 1\n"),
        ("%matplotlib inline\n!ls\nx = 1\n", "# %matplotlib inline\n# !ls\nx = 1\n"),
        ("if x:\n    %time f()\n", "if x:\n    pass  # %time f()\n"),
        ("y = !ls\nprint?\n", "# y = !ls\n# print?\n"),
        ("x = ('a %d'\n     % 3)\n", "x = ('a %d'\n     % 3)\n"),
        ('x = """\n%d\n!"""\n', 'x = """\n%d\n!"""\n'),
        ("def f(:\n", "def f(:\n"),
        ("a b\n%time\n", "a b\n%time\n"),
    ],
)
def test_only_what_python_cannot_read_is_taken_for_ipython_s_own(cell, plain):
    assert without_magics(cell) == plain
