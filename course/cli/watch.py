"""`sluice watch 3.1 --file mine.py`: checks an answer again each time its file is saved."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from course.cli.options import WrongUseError, add_exercise, add_seed, answering
from course.curriculum.manifest import exercise
from course.curriculum.seams import child_job
from course.curriculum.specimens import zoo
from course.exit_status import NOT_PASSED, PASSED
from course.files import read_file
from course.grading.judge import judge
from course.grading.report import Report
from course.grading.runner import Grader
from course.learner import progress
from course.learner.answers import lesson_notebook, source_in

__all__ = ["add_arguments", "changes", "run"]

_LOOK_EVERY_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice watch`."""
    add_exercise(parser)
    parser.add_argument("--file", metavar="F", help="the file to watch (default: your notebook of the lesson)")
    parser.add_argument("--json", action="store_true", help="print each report as one line of JSON")
    add_seed(parser)


def changes(file: Path, every_s: float = _LOOK_EVERY_S) -> Iterator[bytes]:
    """What is in the file now, and again each time that it is something else.

    Editors that save by putting another file in its place leave none there for a moment; that is no change.
    """
    before = None
    while True:
        try:
            content = read_file(file)
        except OSError:
            content = None
        digest = hashlib.sha256(content).digest() if content is not None else before
        if content is not None and digest != before:
            before = digest
            yield content
        time.sleep(every_s)


def _run(arguments: argparse.Namespace) -> int:
    wanted = exercise(arguments.exercise)
    file = Path(arguments.file) if arguments.file else lesson_notebook(wanted.id)
    try:
        read_file(file)
    except OSError as error:
        is_new = arguments.file and isinstance(error, FileNotFoundError)
        hint = f"; start one with: sluice reset {wanted.id} --file {arguments.file}" if is_new else ""
        raise WrongUseError(f"{file} cannot be read: {error.strerror}{hint}") from error
    # One seed while it watches, so that what changes is the code and nothing else.
    seed = progress.seed_of_a_check() if arguments.seed is None else arguments.seed
    grader = Grader(child_job(wanted.id), keeps_one_ready=True)
    passed = False
    try:
        for content in changes(file):
            try:
                report = _check(wanted.id, content, file, seed, grader)
                passed = report.passed
                said = json.dumps(report.as_json(), ensure_ascii=False) if arguments.json else report.in_terminal()
                print(said, flush=True)
            except WrongUseError as error:
                print(error, flush=True)
            if not arguments.json:
                print(f"\nWatching {file.name} (seed {seed}); save it to check again, Ctrl-C ends.\n", flush=True)
    except KeyboardInterrupt:
        if not arguments.json:
            print()
    finally:
        grader.close()
    return PASSED if passed else NOT_PASSED


def _check(name: str, content: bytes, file: Path, seed: int, grader: Grader) -> Report:
    try:
        source = source_in(content.decode("utf-8-sig"), file, name)
    except UnicodeDecodeError as error:
        raise WrongUseError(f"{file.name} is not a text file in UTF-8") from error
    report = judge(name, source, seed, grader=grader)
    report.num_specimens = len(zoo(name))
    if not progress.record_check(report, source):
        print(progress.NOT_KEPT, file=sys.stderr)
    return report


run = answering(_run)
