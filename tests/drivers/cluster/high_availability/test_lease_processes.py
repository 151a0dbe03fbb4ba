"""Leaders by lease as real processes that are killed and paused."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TIMEOUT_MS = 4_000  # a busy machine lets a process wait for long


class Candidate:
    """A process that wants to lead, and what it says."""

    def __init__(self, folder: Path, number: int) -> None:
        command = [sys.executable, "-m", "tests.support.lease_process", str(folder), f"rm@h:{number}", str(TIMEOUT_MS)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked_to_act(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("act\n")
        self.process.stdin.flush()
        return self.says()


@pytest.fixture
def candidate(tmp_path: Path) -> Iterator[Callable[[int], Candidate]]:
    made: list[Candidate] = []

    def make(number: int) -> Candidate:
        made.append(Candidate(tmp_path, number))
        return made[-1]

    yield make
    for each in made:
        each.process.kill()
        each.process.communicate()


@pytest.mark.timeout(120)
def test_who_was_paused_past_its_time_acts_no_more(candidate: Callable[[int], Candidate]) -> None:
    one = candidate(1)
    assert one.says() == "Granted 1"
    assert one.asked_to_act() == "acts 1"
    other = candidate(2)
    assert other.asked_to_act() == "does not act 0"
    one.process.send_signal(signal.SIGSTOP)
    assert other.says() == "Granted 2"
    assert other.asked_to_act() == "acts 2"
    assert one.process.stdin is not None
    one.process.stdin.write("act\n")  # it lies there when it wakes
    one.process.stdin.flush()
    one.process.send_signal(signal.SIGCONT)
    assert {one.says(), one.says()} == {"does not act 1", "Revoked 1"}
    assert other.asked_to_act() == "acts 2"


@pytest.mark.timeout(120)
def test_who_is_killed_is_followed_again_and_again(candidate: Callable[[int], Candidate]) -> None:
    leader = candidate(1)
    assert leader.says() == "Granted 1"
    for epoch in range(2, 4):
        follower = candidate(epoch)
        assert follower.asked_to_act() == "does not act 0"
        leader.process.kill()
        assert follower.says() == f"Granted {epoch}"
        leader = follower
