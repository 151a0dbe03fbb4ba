"""Receipts: what was passed, with everything another machine needs to check it again.

A receipt is plain JSON. It holds the source of each part, so that `verify` can run the same rules
with the same seed and the same vectors, and compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course.curriculum.manifest import EXERCISES
from course.files import read_file
from course.grading.boundary import available
from course.grading.judge import code_hash, judge, vectors_version
from course.grading.report import Report
from course.grading.runner import GraderError
from course.learner import progress

__all__ = ["FORMAT", "ReceiptError", "latest_passed", "make_receipt", "verify"]

FORMAT = "sluice-receipt/1"


class ReceiptError(ValueError):
    """A file that is not a receipt of this version, with what is wrong with it."""


def _entry(report: Report, source: str) -> dict[str, Any]:
    return {
        "exercise": report.exercise,
        "status": report.status.value,
        "seed": report.seed,
        "code_hash": report.code_hash,
        "rules": {rule.id: rule.status.value for rule in report.rules},
        "source": source,
    }


def latest_passed(exercise_id: str) -> tuple[str, int] | None:
    """The newest kept source that passed, and the seed it passed with; None if there is none."""
    passed = {
        str(e.get("code_hash")): e.get("seed")
        for e in progress.events()
        if e.get("event") == "check" and e.get("exercise") == exercise_id and e.get("status") == "passed"
    }
    for file in reversed(progress.attempts(exercise_id)):
        source = file.read_text(encoding="utf-8")
        seed = passed.get(code_hash(source))
        if isinstance(seed, int):
            return source, seed
    return None


def make_receipt(exercises: Iterable[str] | None = None) -> dict[str, Any]:
    """A receipt of every exercise whose passing source is kept; each is judged again for it."""
    entries = []
    for exercise_id in exercises if exercises is not None else EXERCISES:
        found = latest_passed(exercise_id)
        if found is not None:
            entries.append(_entry(judge(exercise_id, *found), found[0]))
    return {"format": FORMAT, "vectors": vectors_version(), "entries": entries}


def verify(file: Path, trust: bool = False) -> tuple[bool, list[str]]:
    """Run everything in a receipt again: whether all of it holds, and a line for each entry.

    A receipt is somebody else's program. Without a boundary of the system (see `grading.boundary`) it is run only with
    `trust`.

    Raises:
        ReceiptError: the file is not a receipt this version can check, or is not to be run here.
    """
    if not trust and available() is None:
        raise ReceiptError(
            f"{file} holds programs, and this system has nothing that keeps a program to its own folder "
            f"(Landlock and seccomp on Linux, Seatbelt on macOS); run it with --trust if you know who wrote it"
        )
    try:
        receipt = json.loads(read_file(file).decode("utf-8"))
    except OSError as error:
        raise ReceiptError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ReceiptError(f"{file} is not JSON: {error}") from error
    if not isinstance(receipt, dict) or receipt.get("format") != FORMAT or not isinstance(receipt.get("entries"), list):
        raise ReceiptError(f"{file} is not a receipt in the format {FORMAT}")
    lines = []
    holds = True
    if receipt.get("vectors") != vectors_version():
        lines.append(f"○ made with vectors {receipt.get('vectors')}; these are {vectors_version()}")
    for entry in receipt["entries"]:
        good, line = _verify_entry(entry)
        holds &= good
        lines.append(line)
    if not receipt["entries"]:
        return False, [*lines, "✗ the receipt is empty: nothing was passed"]
    return holds, lines


def _verify_entry(entry: Any) -> tuple[bool, str]:
    if not isinstance(entry, dict) or entry.get("exercise") not in list(EXERCISES):
        return False, "✗ an entry names no exercise of this version"
    name, source, seed = entry["exercise"], entry.get("source"), entry.get("seed")
    if not isinstance(source, str) or not isinstance(seed, int) or isinstance(seed, bool):
        return False, f"✗ {name}: source or seed is missing"
    if code_hash(source) != entry.get("code_hash"):
        return False, f"✗ {name}: the source is not the one the code hash was made from"
    try:
        again = _entry(judge(name, source, seed), source)
    except (GraderError, ValueError, RecursionError) as error:
        return False, f"✗ {name}: it could not be judged: {error}"
    different = [key for key in ("status", "rules") if again[key] != entry.get(key)]
    if different:
        return False, f"✗ {name}: recorded as {entry.get('status')}, now {again['status']}"
    passed = again["status"] == "passed"
    return passed, f"{'✓' if passed else '✗'} {name}: {again['status']} again, {len(again['rules'])} rules, seed {seed}"
