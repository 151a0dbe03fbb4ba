"""How long a learner waits for a check: `make bench-checks`.

Every right and wrong part that the repository holds is checked as learners do it: in a notebook, where the judge's
process is there already, and in a terminal, where everything starts anew; and both again with a fresh child for each
run, which is how checks were started before children were forked. The ways take turns, part by part, so that a busy
moment of the machine meets all. Goal: 95 of 100 answers in less than 0.8 seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from course.curriculum import stubs
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES
from course.curriculum.specimens import right_answers, zoo
from course.grading.children import FORKS
from course.grading.remote import JudgeProcess
from tests.bench.program import run_program

GOAL_SECONDS = 0.8


def parts() -> list[tuple[str, str, str]]:
    """(exercise, name, source) of everything there is to check."""
    found = []
    for exercise in EXERCISES:
        found += [(exercise, "reference", stubs.solution(exercise)), (exercise, "stub", stubs.stub(exercise))]
        found += [(exercise, each.name, each.source) for each in (*zoo(exercise), *right_answers(exercise))]
    return found


class Notebook:
    """A judge's process, whose children are forked or not."""

    def __init__(self, forks: str) -> None:
        self._forks = forks
        self._judge = JudgeProcess()

    def __call__(self, exercise: str, source: str, seed: int) -> None:
        os.environ[FORKS] = self._forks  # for the process, which starts with the first question
        self._judge.ask({"exercise": exercise, "sources": [source], "seed": seed, "names": {}}, 60.0)


class Terminal:
    """`sluice check`, whose children are forked or not."""

    def __init__(self, forks: str) -> None:
        self._forks = forks

    def __call__(self, exercise: str, source: str, seed: int) -> None:
        command = [sys.executable, "-m", "course.cli", "check", exercise, "--file", "-", "--seed", str(seed)]
        environment = {**os.environ, FORKS: self._forks}
        done = subprocess.run(command, input=source.encode(), stdout=subprocess.DEVNULL, env=environment, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"sluice check ended with {done.returncode}")


WAYS: dict[str, Callable[[str, str, int], None]] = {
    "notebook": Notebook("1"), "terminal": Terminal("1"),
    "notebook, afresh": Notebook("0"), "terminal, afresh": Terminal("0"),
}  # fmt: skip
GOAL_OF = ("notebook", "terminal")


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(rounds: int, share: float) -> dict[str, list[tuple[float, str]]]:
    """Seconds of every check by way, with the name of the part; the first check of a notebook is one of them."""
    found: dict[str, list[tuple[float, str]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        shuffled = parts()
        random.Random(number).shuffle(shuffled)
        for exercise, name, source in shuffled[: round(share * len(shuffled))]:
            for way, check in WAYS.items():
                started = time.perf_counter()
                check(exercise, source, DEFAULT_SEED + number)
                found[way].append((time.perf_counter() - started, f"{exercise} {name}"))
    return found


def table(found: dict[str, list[tuple[float, str]]]) -> str:
    lines = [f"{'':18}{'checks':>8}{'median':>9}{'p75':>8}{'p95':>8}{'longest':>9}"]
    for way, measured in found.items():
        seconds = [each for each, _ in measured]
        figures = [percentile(seconds, share) for share in (0.5, 0.75, 0.95)]
        lines.append(
            f"{way:18}{len(seconds):>8}{figures[0]:>8.2f}s{figures[1]:>7.2f}s{figures[2]:>7.2f}s"
            f"{max(seconds):>8.2f}s  {max(measured)[1]}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser("tests.bench.checks", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="times every part is checked (%(default)s)")
    parser.add_argument("--share", type=float, default=1.0, metavar="X", help="of the parts, by chance (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SLUICE_WORK"] = str(Path(folder) / "work")
        load = os.getloadavg()[0]
        found = measure(arguments.rounds, arguments.share)
    print(table(found))
    print(f"load of this machine, which has {os.cpu_count()} cores: {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    slow = [way for way in GOAL_OF if percentile([seconds for seconds, _ in found[way]], 0.95) >= GOAL_SECONDS]
    print(f"goal: p95 below {GOAL_SECONDS} s: {'missed in the ' + ' and the '.join(slow) if slow else 'met'}")
    return 1 if slow else 0


if __name__ == "__main__":
    run_program(main)
