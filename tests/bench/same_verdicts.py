"""Whether both ways of starting a child say the same: `python -m tests.bench.same_verdicts`.

Every right and wrong part that the repository holds is judged twice, in a child started afresh and in one that was
forked, and the reports are compared word for word.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os

from course.curriculum import seams
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES
from course.grading.children import FORKS
from course.grading.judge import judge
from course.grading.remote import report_to_plain
from course.grading.report import Report
from course.grading.runner import Grader
from tests.bench.checks import parts
from tests.bench.program import run_program


def said(report: Report) -> str:
    """All of a report, findings included, as text."""
    findings = [[rule.id, rule.finding and [rule.finding.code, rule.finding.line]] for rule in report.rules]
    return json.dumps({**report_to_plain(report), "findings": findings}, indent=1, ensure_ascii=False)


def both_ways(exercise: str, source: str, seed: int) -> tuple[str, str]:
    """What is said of a source that runs in a fresh child, and in a forked one."""
    reports = []
    kept = os.environ.get(FORKS)
    try:
        for forks in "01":
            os.environ[FORKS] = forks
            reports.append(said(judge(exercise, source, seed, grader=Grader(seams.child_job(exercise)))))
    finally:
        os.environ.pop(FORKS)
        if kept is not None:
            os.environ[FORKS] = kept
    return reports[0], reports[1]


def main() -> int:
    parser = argparse.ArgumentParser("tests.bench.same_verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", default=list(EXERCISES), metavar="ID", help="these exercises only")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, metavar="N", help="of the checks (%(default)s)")
    arguments = parser.parse_args()
    num_judged = num_different = 0
    for exercise, name, source in parts():
        if exercise not in arguments.exercises:
            continue
        before, after = both_ways(exercise, source, arguments.seed)
        num_judged += 1
        if before != after:
            # A part that uses Python's own hash, say, is told something else each time.
            is_steady = len({before, *(both_ways(exercise, source, arguments.seed)[0] for _ in range(3))}) == 1
            num_different += is_steady
            print("" if is_steady else "Told something else each time, also afresh:")
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "afresh", "forked", n=0, lineterm="")
            print(f"{exercise} {name}", *lines, sep="\n", flush=True)
    print(f"{num_judged} parts, {num_different} with another report, seed {arguments.seed}")
    return 1 if num_different else 0


if __name__ == "__main__":
    run_program(main)
