"""A build that a signal ends: nothing of it is used or left, no process goes on, and the next one works."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from course.compiled.compilers import CompileError, find_c_compiler

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 300

COMPILE = """
import sys
from pathlib import Path
import course.compiled.build, course.compiled.standing
from course.cli import main
course.compiled.standing.build_folder = lambda: Path(sys.argv[1])
course.compiled.build.modules = lambda engine: [Path("memory/channel_quota.py")]  # one is enough, and soon translated
sys.exit(main(["compile", *sys.argv[2:]]))
"""


def compiling(folder: Path, compiler: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMPILE, str(folder), "--compiler", "cc", *words],
        cwd=ROOT,
        env={**os.environ, "CC": compiler},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def a_compiler_that_waits(folder: Path) -> tuple[str, int]:
    """A compiler that says its process id into a pipe, and waits; also the end of the pipe to read."""
    pipe, program = folder / "pipe", folder / "cc"
    os.mkfifo(pipe)
    program.write_text(f"#!/bin/sh\necho $$ >'{pipe}'\nexec sleep 600\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program), os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)


def first_of(pipe: int) -> psutil.Process:
    """The compiler that says its id first; others may be at work beside it."""
    assert select.select([pipe], [], [], PATIENCE_S)[0], "no compiler was started"
    return psutil.Process(int(os.read(pipe, 100).split()[0]))


def is_over(process: psutil.Process) -> bool:
    """Whether it ends soon; who is dead and whom nobody has asked for its status has ended, too."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            process.wait(0.05)
        except psutil.NoSuchProcess:
            return True
        except psutil.TimeoutExpired:
            continue
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "begins"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by a signal")]
)
def test_a_signal_amid_a_build_leaves_what_was_there_and_no_process(
    number: signal.Signals, status: int, begins: str, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    old = build / "compiled" / "old.txt"
    old.parent.mkdir(parents=True)
    old.write_text("as it was", encoding="utf-8")
    program, pipe = a_compiler_that_waits(tmp_path)
    process = compiling(build, program)
    compiler = first_of(pipe)
    os.close(pipe)
    worker = compiler.parent()
    assert worker is not None
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    assert told.splitlines()[-1] == f"{begins}; nothing of the new build is left"
    assert "Traceback" not in told
    assert is_over(compiler)
    assert is_over(worker)
    assert [each.name for each in build.iterdir()] == ["compiled"]
    assert [each.name for each in old.parent.iterdir()] == ["old.txt"]


@pytest.mark.slow
def test_what_a_killed_build_left_is_removed_by_the_next_which_works(tmp_path: Path) -> None:
    try:
        own = find_c_compiler("cc").environment["CC"]
    except CompileError as error:
        pytest.skip(str(error))
    build = tmp_path / "build"
    program, pipe = a_compiler_that_waits(tmp_path)
    process = compiling(build, program)
    compiler = first_of(pipe)
    os.close(pipe)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    os.killpg(os.getpgid(compiler.pid), signal.SIGKILL)  # what the build cannot end any more
    assert [each.name.partition("-")[0] for each in build.iterdir()] == ["compiling"]
    again = compiling(build, own)
    made, told = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, told
    assert made.startswith("✓ the engine is compiled: 1 modules")
    assert [each.name for each in build.iterdir()] == ["compiled"]
