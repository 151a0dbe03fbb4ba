"""The judge in a process of its own, for notebooks: the kernel asks, plain data comes back.

The kernel is where learner code has run, so nothing in it can be trusted with a verdict.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course.grading.report import Report, RuleResult
from course.grading.rules import RuleStatus, Status
from course.grading.runner import GraderError

__all__ = ["judge_apart", "report_from_plain", "report_to_plain"]

_ROOT = Path(__file__).parent.parent.parent
_START = "import sys; sys.path.insert(0, sys.argv[1]); from course.grading.remote import main; main()"


def report_to_plain(report: Report) -> dict[str, Any]:
    """A report as JSON-ready data, with what `show` needs beside the public form."""
    extra = {"printed": report.printed, "printed_text": report.printed_text, "trace": report.trace,
             "ended": [rule.ended.value for rule in report.rules]}  # fmt: skip
    return {**report.as_json(), **extra}


def report_from_plain(data: Mapping[str, Any]) -> Report:
    """The report from its plain form; findings are not carried over, their messages are."""
    rules = [
        RuleResult(rule["id"], rule["title"], RuleStatus(rule["status"]), rule["message"], Status(ended))
        for rule, ended in zip(data["rules"], data["ended"], strict=True)
    ]
    return Report(
        data["exercise"], Status(data["status"]), data["seed"], data["vectors"], data["code_hash"], rules,
        data["printed"], data["printed_text"], trace=data["trace"],
    )  # fmt: skip


def judge_apart(
    exercise: str, sources: Sequence[str | None], seed: int, names: Mapping[str, str] | None = None
) -> list[Report]:
    """Judge one or several sources in a fresh process; reports come back in the same order.

    Raises:
        GraderError: the process could not do its work.
    """
    order = {"exercise": exercise, "sources": list(sources), "seed": seed, "names": dict(names or {})}
    command = [sys.executable, "-I", "-X", "utf8", "-c", _START, str(_ROOT)]
    try:
        done = subprocess.run(command, input=json.dumps(order), capture_output=True, text=True, encoding="utf-8",
                              check=False, timeout=30 + 15 * len(sources))  # fmt: skip
        answers = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraderError(f"the check could not be started: {error}") from error
    except ValueError as error:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise GraderError(f"the check ended without an answer: {last}") from error
    if "trouble" in answers:
        raise GraderError(answers["trouble"])
    return [report_from_plain(each) for each in answers["reports"]]


def main() -> None:
    """The other end: read the order from standard input, judge, write the answer."""
    from course.grading.judge import judge

    order = json.loads(sys.stdin.read())
    try:
        reports = [judge(order["exercise"], source, order["seed"], order["names"]) for source in order["sources"]]
        answer: dict[str, Any] = {"reports": [report_to_plain(report) for report in reports]}
    except GraderError as error:
        answer = {"trouble": str(error)}
    sys.stdout.write(json.dumps(answer))
