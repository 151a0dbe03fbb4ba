"""The subcommands around exercises: check, hint, reset, progress, zoo, verify, export.

Exit status: 0 passed, 1 not passed, 2 wrong use (no such exercise, no file), 3 something is missing on
this machine, 4 standard output was closed or full, 130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from course.cli.options import Command, WrongUseError, add_exercise, add_seed, answering
from course.curriculum.languages import language
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES, exercise
from course.curriculum.messages import belief, said
from course.curriculum.specimens import zoo
from course.curriculum.stubs import is_untouched, stub
from course.exit_status import MISSING, NOT_PASSED, PASSED
from course.files import MOST_BYTES, read_file
from course.grading.judge import judge
from course.learner import hints, membership, progress
from course.learner.answers import source_in
from course.learner.receipts import make_receipt, verify
from course.learner.saved import Saved, clock, newest, progress_report
from course.places import own_lessons_folder

__all__ = ["COMMANDS"]


def _source(arguments: argparse.Namespace) -> Saved:
    """The source to grade: --file, else the newer of the saved notebook and the last attempt."""
    exercise(arguments.exercise)
    if arguments.file is None:
        return newest(arguments.exercise)
    file = Path(arguments.file)
    try:
        if arguments.file == "-":
            raw, where = _standard_input(), "standard input"
        else:
            raw, where = read_file(file), f"{file}, saved {clock(file.stat().st_mtime)}"
        return Saved(source_in(raw.decode("utf-8-sig"), file, arguments.exercise), where)
    except OSError as error:
        raise WrongUseError(f"{arguments.file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongUseError(f"{arguments.file} is not a text file in UTF-8") from error


def _standard_input() -> bytes:
    raw = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise WrongUseError("standard input cannot be read: it is larger than 16 MiB")
    return raw


def check_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice check`."""
    add_exercise(parser)
    parser.add_argument(
        "--file",
        metavar="F",
        help="the file to grade; - is standard input (default: the newer of your saved notebook and your last check)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_seed(parser)
    parser.add_argument("--all", action="store_true", help="show every rule that fails, not only the first")


def _check(arguments: argparse.Namespace) -> int:
    read = _source(arguments)
    seed = progress.seed_of_a_check() if arguments.seed is None else arguments.seed
    report = judge(arguments.exercise, read.source, seed)
    report.num_specimens = len(zoo(arguments.exercise))
    report.show_all = arguments.all
    is_kept = progress.record_check(report, read.source)
    if arguments.json:
        print(json.dumps({**report.as_json(), "read": read.said}, indent=1, ensure_ascii=False))
    else:
        print(f"{report.in_terminal()}\n\n  {said('progress.read', what=read.said)}")
    for line in [*([] if is_kept else [progress.NOT_KEPT]), *membership.news()]:
        print(line, file=sys.stderr)
    return PASSED if report.passed else NOT_PASSED


def hint_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice hint`."""
    add_exercise(parser)
    parser.add_argument("--file", metavar="F", help="the file it is for (default: as for check)")
    parser.add_argument("--rung", type=int, choices=range(1, hints.NUM_RUNGS + 1), help="a certain rung")
    parser.add_argument("--now", action="store_true", help="do not wait; in a class, the instructor decides")
    add_seed(parser)


def _hint(arguments: argparse.Namespace) -> int:
    read = _source(arguments)
    # What failed with one seed may hold with another, so the hint is for the seed of the last check.
    last = progress.latest_check(arguments.exercise)
    seed = last.get("seed") if last is not None and arguments.seed is None else arguments.seed
    report = judge(arguments.exercise, read.source, seed if isinstance(seed, int) else DEFAULT_SEED)
    text = hints.hint_for(report, read.source or "", arguments.rung, now=arguments.now)
    print(f"{text}\n\n  {said('progress.read', what=read.said)}")
    return PASSED


def reset_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice reset`."""
    add_exercise(parser)
    parser.add_argument("--file", metavar="F", help="write the stub into this file (default: print it)")


def _reset(arguments: argparse.Namespace) -> int:
    text = stub(exercise(arguments.exercise).id, language())
    if arguments.file is None:
        print(text, end="")
    else:
        file, after = Path(arguments.file), ""
        try:
            before = read_file(file).decode("utf-8") if file.exists() else text
            if not is_untouched(arguments.exercise, before):
                kept = progress.keep_attempt(arguments.exercise, before)
                if kept is None:
                    raise WrongUseError(f"{file.name} could not be kept, so it was not changed: is the disk full?")
                after = "; your version is kept with your attempts"
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise WrongUseError(f"{arguments.file} cannot be written: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise WrongUseError(f"{arguments.file} is not a text file in UTF-8") from error
        print(f"○ {arguments.exercise} starts afresh in {arguments.file}{after}.")
    progress.record("reset", exercise=arguments.exercise)
    return PASSED


def progress_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice progress`."""
    parser.add_argument("--json", action="store_true", help="print the status of each exercise as JSON")


def _progress(arguments: argparse.Namespace) -> int:
    noted = progress.events()
    statuses = {each: progress.standing(each, noted) for each in EXERCISES}
    print(json.dumps(statuses, indent=1) if arguments.json else progress_report())
    for trouble in progress.troubles() if arguments.json else ():
        print(trouble, file=sys.stderr)
    return PASSED


def zoo_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice zoo`."""
    add_exercise(parser)
    parser.add_argument("--message", action="store_true", help="print the message each part gets, too")


def _zoo(arguments: argparse.Namespace) -> int:
    found = zoo(exercise(arguments.exercise).id)
    num_escaped = 0
    for each in found:
        report = judge(arguments.exercise, each.source)
        rule = report.failed_rule
        num_escaped += report.passed
        print(f"{'✗' if rule else '!'} {each.name}")
        print(said("notebook.zoo_belief", belief=belief(arguments.exercise, each.name)))
        if rule is not None:
            print(said("notebook.zoo_caught", rule=rule.id, title=rule.title))
        else:
            print(f"{said('notebook.zoo_escaped')} ({report.status.value})")
        if arguments.message:
            print("\n" + report.in_terminal() + "\n")
    print(said("notebook.zoo_all", caught=len(found) - num_escaped, count=len(found)))
    return NOT_PASSED if num_escaped else PASSED


def verify_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice verify`."""
    parser.add_argument("file", metavar="FILE", help="a receipt (.json) or a notebook (.ipynb)")
    parser.add_argument(
        "--trust", action="store_true", help="run a receipt also where `sluice doctor` finds no boundary for programs"
    )


def _verify(arguments: argparse.Namespace) -> int:
    file = Path(arguments.file)
    if file.suffix == ".ipynb":
        try:
            return _verify_notebook(file, read_file(file))
        except OSError as error:
            raise WrongUseError(f"{arguments.file} cannot be read: {error.strerror}") from error
    holds, lines = verify(file, arguments.trust)
    print("\n".join(lines))
    return PASSED if holds else NOT_PASSED


def _verify_notebook(file: Path, raw: bytes) -> int:
    """Run nbval: are the saved outputs what the code produces from top to bottom?

    It runs a copy with a plain name, in a folder without anybody's settings; the notebook's kernel starts in the
    notebook's own folder all the same.
    """
    if missing := [name for name in ("pytest", "nbval") if find_spec(name) is None]:
        print(f"{' and '.join(missing)} missing: pip install {' '.join(missing)}", file=sys.stderr)
        return MISSING
    with tempfile.TemporaryDirectory(prefix="sluice-verify-") as folder:
        copy = Path(folder) / "notebook.ipynb"
        copy.write_bytes(raw)
        (Path(folder) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        command = [sys.executable, "-P", "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
        command += ["-q", "-p", "no:cacheprovider", "-p", "course.cli.no_addresses"]
        command += ["-p", "nbval.plugin", "-p", "course.cli.nbval_folder"]
        command += ["--rootdir", folder, "-c", str(Path(folder) / "pytest.ini"), str(copy)]
        foreign = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        here = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SLUICE_NOTEBOOK_FOLDER": str(file.resolve().parent)}
        here["SLUICE_OWN_LESSONS"] = str(own_lessons_folder())
        status = subprocess.run(command, check=False, cwd=folder, env={**environment, **here}).returncode
    if status > 1:
        raise WrongUseError(f"{file.name} could not be run as a notebook")
    words = "what your code produces from top to bottom" if status == 0 else "not what your code produces"
    print(f"{'✓' if status == 0 else '✗'} {file.name}: the saved outputs are {words}")
    return PASSED if status == 0 else NOT_PASSED


def export_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice export`."""
    parser.add_argument("--out", default=".", metavar="DIR", help="folder for receipt.json and progress.csv")


_COLUMNS = (
    "exercise", "status", "rules_passed", "rules_total", "attempts", "highest_hint", "code_hash", "vectors", "seed",
)  # fmt: skip


def _export(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.out)
    receipt = make_receipt()
    by_exercise = {entry["exercise"]: entry for entry in receipt["entries"]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "receipt.json").write_text(json.dumps(receipt, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        with (folder / "progress.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, _COLUMNS)
            table.writeheader()
            noted = progress.events()
            for each in EXERCISES:
                entry = by_exercise.get(each, {})
                rules = entry.get("rules", {})
                asked = [e for e in noted if e["event"] == "hint" and e.get("exercise") == each]
                rungs = [int(e.get("rung", 0)) for e in asked]
                row = (each, progress.standing(each, noted), list(rules.values()).count("passed"), len(rules),
                       len(progress.attempts(each)), max(rungs, default=0), entry.get("code_hash", ""),
                       receipt["vectors"], entry.get("seed", ""))  # fmt: skip
                table.writerow(dict(zip(_COLUMNS, row, strict=True)))
    except OSError as error:
        raise WrongUseError(f"{arguments.out} cannot be written: {error.strerror}") from error
    print(f"receipt.json: {len(by_exercise)} of {len(EXERCISES)} exercises passed; progress.csv: one line for each")
    return PASSED


COMMANDS: dict[str, Command] = {
    name: Command(add_arguments, answering(call))
    for name, add_arguments, call in (
        ("check", check_add_arguments, _check),
        ("hint", hint_add_arguments, _hint),
        ("reset", reset_add_arguments, _reset),
        ("progress", progress_add_arguments, _progress),
        ("zoo", zoo_add_arguments, _zoo),
        ("verify", verify_add_arguments, _verify),
        ("export", export_add_arguments, _export),
    )
}
