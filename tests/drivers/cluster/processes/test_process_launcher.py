"""TaskManagers on demand as processes: started once, ended with all that they have started, and none left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from refimpl.drivers.cluster.processes.process_launcher import ProcessLauncher
from tests.support.polling import until

WAITS = "import sys; print('up', flush=True); sys.stdin.read()"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"
HAS_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}]); {WAITS}"
ENDS = "import sys; sys.exit(3)"


class Started:
    """Processes that were started, with what they do by the name they have."""

    def __init__(self, folder: Path, program: str = WAITS) -> None:
        self.folder = folder
        self.launcher = ProcessLauncher(lambda name: [sys.executable, "-c", program, name], folder, grace_s=0.5)

    def printed(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def running(self) -> list[psutil.Process]:
        return [each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Started]:
    started = Started(tmp_path, getattr(request, "param", WAITS))
    yield started
    started.launcher.close()


def test_what_is_started_is_listed_until_it_is_stopped(started: Started) -> None:
    launcher = started.launcher
    before = started.running()
    launcher.start("a")
    launcher.start("b")
    launcher.start("a")
    assert launcher.list() == ["a", "b"]
    assert len(started.running()) == len(before) + 2
    launcher.stop("a")
    launcher.stop("a")
    launcher.stop("stranger")
    assert launcher.list() == ["b"]
    launcher.close()
    assert launcher.list() == []
    assert started.running() == before


@pytest.mark.parametrize("started", [ENDS], indirect=True)
def test_what_has_ended_is_listed_no_more(started: Started) -> None:
    started.launcher.start("a")
    until(lambda: started.launcher.list() == [])


@pytest.mark.parametrize("started", [DEAF, HAS_CHILD], indirect=True)
def test_who_does_not_want_to_end_and_what_it_started_are_killed(started: Started) -> None:
    before = started.running()
    started.launcher.start("a")
    until(lambda: "up" in started.printed("a"))
    started.launcher.stop("a")
    until(lambda: started.running() == before)


def test_all_end_when_who_started_them_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from refimpl.drivers.cluster.processes.process_launcher import ProcessLauncher\n"
        f"launcher = ProcessLauncher(lambda name: [sys.executable, '-c', {WAITS!r}], Path({str(tmp_path)!r}))\n"
        "launcher.start('a'); launcher.start('b'); sys.stdin.read()"
    )
    started = Started(tmp_path, program)
    started.launcher.start("parent")
    until(lambda: all((tmp_path / f"{name}.log").exists() and "up" in started.printed(name) for name in "ab"))
    (parent,) = [each for each in started.running() if program in each.cmdline()]
    workers = parent.children()
    assert len(workers) == 2
    os.kill(parent.pid, signal.SIGKILL)
    psutil.wait_procs(workers, timeout=60)
    assert not any(each.is_running() for each in workers)
    started.launcher.close()
