"""Programs that run a job on processes: what they define themselves, Ctrl-C, and a program that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.driver_rig import TIMEOUT_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# No guard against being imported anew, and nothing in it that another process could import.
OWN_THINGS = """
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.drivers import ProcessRun
from refimpl.job import StreamEnvironment
from refimpl.records import SpanningRecordSerializer
from refimpl.task import IterableReader

FACTOR = 3

@dataclass
class Point:
    x: int
    y: int

class OwnPart(SpanningRecordSerializer):
    pass

def times(n):
    print("times", n)
    return Point(n, FACTOR * n)

points = []
environment = StreamEnvironment(Config(segment_size_bytes=64, object_reuse=True), 2)
environment.use(SpanningRecordSerializer=OwnPart)
(
    environment.source(lambda i, k: IterableReader(range(i, 20, k)))
    .rebalance()
    .map(times)
    .filter(lambda point: point.x % 2)
    .sink(points.append)
)
ProcessRun(environment).run()
assert all(type(point) is Point for point in points), points
print(sorted(point.y for point in points))
"""

# Says which processes it has, and runs until somebody ends it.
FOREVER = """
import threading
from refimpl.drivers import ProcessRun
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader

def sink(n):
    if n == 500:
        print(*run.process_ids, flush=True)
    {in_the_sink}

def work(n):
    {in_the_map}
    return n

environment = StreamEnvironment()
stream = environment.source(lambda i, k: IterableReader(range(10**12)))
stream.rebalance().map(work).rebalance().sink(sink).slot_sharing_group("sinks")
print("ready", flush=True)
run = ProcessRun(environment, 2)
run.run()
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    """A Python of its own, in a process group of its own, as a terminal gives to each program."""
    program = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        process_group=0,
    )
    limit = threading.Timer(3 * TIMEOUT_S, program.kill)  # so that a line that never comes fails
    limit.daemon = True
    limit.start()
    return program


def ends(program: subprocess.Popen[str]) -> tuple[str, str]:
    """What it has printed, when it and every process that has its pipes has ended."""
    try:
        return program.communicate(timeout=2 * TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        raise


def have_ended(processes: list[int]) -> bool:
    """Whether they end; they have let go of our pipes already."""
    give_up_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < give_up_s:
        if not any(map(is_running, processes)):
            return True
    return False


def is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE  # that one was not asked for its status yet
    except psutil.NoSuchProcess:
        return False


def as_a_script(source: str, folder: Path) -> subprocess.Popen[str]:
    path = folder / "own.py"
    path.write_text(source)
    return start(str(path))


def as_a_notebook(source: str, _folder: Path) -> subprocess.Popen[str]:
    """A notebook runs its cells in `__main__`, which is no file."""
    run_cell = "from IPython.core.interactiveshell import InteractiveShell as S; S.instance().run_cell({!r})"
    return start("-c", run_cell.format(source))


def as_a_string(source: str, _folder: Path) -> subprocess.Popen[str]:
    return start("-c", f"exec({source!r}, {{'__name__': '__main__'}})")


@pytest.mark.parametrize("begin", [as_a_script, as_a_notebook, as_a_string])
def test_what_a_program_defines_itself_goes_to_its_processes(begin: Callable, tmp_path: Path) -> None:
    program = begin(OWN_THINGS, tmp_path)
    printed, errors = ends(program)
    assert (program.returncode, errors) == (0, "")
    *lines, last = printed.splitlines()
    assert last == str([3 * n for n in range(1, 20, 2)])
    assert sorted(lines) == sorted(f"times {n}" for n in range(20))


@pytest.mark.parametrize("when", ["before they start", "while they start", "while they run"])
def test_control_c_ends_the_program_and_its_processes_without_a_word_from_them(when: str) -> None:
    program = start("-c", FOREVER.format(in_the_sink="pass", in_the_map="pass"))
    assert program.stdout.readline() == "ready\n"
    processes: list[int] = []
    if when == "while they start":
        processes = children_of(program)
    if when == "while they run":
        processes = list(map(int, program.stdout.readline().split()))
    os.killpg(program.pid, signal.SIGINT)
    _, errors = ends(program)
    assert program.returncode in {130, -signal.SIGINT}
    # A traceback of its own, and none from them. Ctrl-C in some handler of the library has two in one.
    assert errors.count("Traceback") - errors.count("During handling of the above") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert have_ended(processes)


def test_what_user_code_prints_is_seen_while_it_runs() -> None:
    program = start("-c", FOREVER.format(in_the_sink="pass", in_the_map="n == 5 and print('five')"))
    while program.stdout.readline() != "five\n":
        assert program.poll() is None
    program.kill()
    ends(program)


STUCK = "n > 600 and threading.Event().wait()"


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(
    ("in_the_sink", "in_the_map"), [("pass", "pass"), (STUCK, "pass"), ("pass", STUCK)], ids=["busy", "sink", "map"]
)
def test_processes_end_by_themselves_when_their_program_is_killed(in_the_sink: str, in_the_map: str) -> None:
    program = start("-c", FOREVER.format(in_the_sink=in_the_sink, in_the_map=in_the_map))
    assert program.stdout.readline() == "ready\n"
    processes = list(map(int, program.stdout.readline().split()))
    assert len(processes) == 2
    program.kill()
    _, errors = ends(program)
    assert "Traceback" not in errors
    assert have_ended(processes)


def test_a_program_killed_while_its_processes_start_leaves_none() -> None:
    program = start("-c", FOREVER.format(in_the_sink="pass", in_the_map="pass"))
    assert program.stdout.readline() == "ready\n"
    processes = children_of(program)
    program.kill()
    ends(program)
    assert have_ended(processes)


def children_of(program: subprocess.Popen[str]) -> list[int]:
    """Its processes, as soon as it has some."""
    while not (children := psutil.Process(program.pid).children()):
        assert program.poll() is None
    return [child.pid for child in children]
