"""The `sluice` command: finds the subcommand, imports only that one, and turns its outcome into an exit status.

Exit status: 0 passed, 1 not passed, 2 wrong use, 3 something is missing on this machine, 4 standard output was closed
or full, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from course.compiled.choice import ENGINES, EngineUnavailable, choose, wanted
from course.curriculum.languages import wrong_choice
from course.exit_status import INTERRUPTED, MISSING, OUTPUT_LOST, WRONG_USE
from course.output import OutputLostError, guarded_output
from course.version import __version__

__all__ = ["COMMANDS", "Subcommand", "main"]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand: its module has `add_arguments(parser)` and `run(arguments) -> exit status`.

    A module with several subcommands has an object with these two for each, by name, in `COMMANDS`.
    """

    module: str
    help: str
    example: str
    has_engine: bool = False
    """Whether it runs whole jobs, so that it may use the compiled engine; `--engine` chooses."""


COMMANDS = {
    "lab": Subcommand("course.learner.lab", "open the lessons in JupyterLab", "sluice lab --no-browser --port 8890"),
    "language": Subcommand(
        "course.learner.language_command", "say or choose the course's language", "sluice language zh"
    ),
    "doctor": Subcommand(
        "course.learner.doctor", "say what this machine has and what is missing", "sluice doctor --deep"
    ),
    "demo": Subcommand(
        "course.jobs.demo", "run flights through the engine; compare with Spark", "sluice demo --json", True
    ),
    "trace": Subcommand("course.cli.trace_command", "ask Spark what a run's trace says", "sluice trace DIR"),
    "data": Subcommand("course.data.command", "list, describe and make tables", "sluice data describe zipf"),
    "check": Subcommand("course.cli.commands", "grade an exercise", "sluice check 3.1 --file mine.py"),
    "watch": Subcommand("course.cli.watch", "grade it again each time you save", "sluice watch 3.1 --file mine.py"),
    "hint": Subcommand("course.cli.commands", "ask for the next hint", "sluice hint 3.1"),
    "reset": Subcommand("course.cli.commands", "start an exercise afresh", "sluice reset 3.1"),
    "progress": Subcommand("course.cli.commands", "show what is done", "sluice progress"),
    "zoo": Subcommand("course.cli.commands", "show known-wrong parts and what catches them", "sluice zoo 3.1"),
    "graders": Subcommand("course.author.graders", "measure how good the graders are", "sluice graders 3.1"),
    "verify": Subcommand("course.cli.commands", "check a notebook or receipt", "sluice verify receipt.json"),
    "export": Subcommand("course.cli.commands", "write a receipt of what was passed", "sluice export"),
    "class": Subcommand("course.classroom.command", "serve a workshop's class", "sluice class serve --host 0.0.0.0"),
    "join": Subcommand("course.learner.join_command", "join a class", "sluice join K7M-2QX-9PT@HOST:8765 --handle ada"),
    "catchup": Subcommand("course.learner.join_command", "begin with a later lesson", "sluice catchup 3"),
    "instructor-pack": Subcommand(
        "course.author.instructor_pack",
        "write plans and answers for instructors",
        "sluice instructor-pack pack --lesson 3",
    ),
    "build": Subcommand("course.author.build_command", "make the notebooks from their sources", "sluice build --check"),
    "new": Subcommand("course.author.new_lesson", "begin a lesson of your own", "sluice new lesson 'Our joins'"),
    "run": Subcommand(
        "course.jobs.run", "run a job on any driver, Spark included", "sluice run flights --on processes", True
    ),
    "checkpoints": Subcommand(
        "course.jobs.checkpoints_command", "list, show and verify what a job has saved", "sluice checkpoints verify DIR"
    ),
    "race": Subcommand(
        "course.jobs.race_command", "race other ways to push back against credits", "sluice race --only storm"
    ),
    "cluster": Subcommand(
        "course.spark.cluster", "start a Spark cluster; keys for several machines", "sluice cluster start"
    ),
    "engine": Subcommand(
        "course.engine.command", "run jobs on a cluster of our own", "sluice engine submit course/example_job.py", True
    ),
    "compile": Subcommand(
        "course.compiled.command", "build the compiled engine, which is optional", "sluice compile --compiler zig"
    ),
    "flink": Subcommand("course.flink.command", "bring the real Flink, for the tests against it", "sluice flink fetch"),
    "peer": Subcommand("course.peer", "be one end of a conversation with Flink", "sluice peer serve --records 100000"),
}

_DESCRIPTION = "Sluice: a course on how a distributed stream processor moves data, whose textbook is a running program."
_EPILOG = """examples:
  sluice lab                    open the first lesson in JupyterLab
  sluice check 3.1              grade your answer to exercise 1 of lesson 3
  sluice demo --records 5000    5000 flights from Spark through the engine

exit status: 0 passed, 1 not passed, 2 wrong use, 3 something is missing on this machine, 4 nobody takes the output
(standard output is closed or full), 130 interrupted"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `sluice` with these arguments (default: those of the process); return the exit status."""
    signal.signal(signal.SIGTERM, _end_by_signal)
    signal.signal(signal.SIGHUP, _end_by_signal)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ is no reason to fail
    given = list(sys.argv[1:] if argv is None else argv)
    # A file whose name begins with a dash is no option.
    words = [f"./{word}" if word.startswith("-") and len(word) > 2 and Path(word).is_file() else word for word in given]
    try:
        with guarded_output():
            try:
                return _run(words)
            except KeyboardInterrupt as error:
                print(str(error) or "interrupted before it was done", file=sys.stderr)
                return INTERRUPTED
    except OutputLostError as error:
        if sys.stderr is not None and not error.has_left:
            with suppress(OSError):
                print(f"sluice: standard output takes no more ({error}); what came after is lost", file=sys.stderr)
        return OUTPUT_LOST


def _run(words: list[str]) -> int:
    try:
        arguments = _parser(words).parse_args(words)
    except EngineUnavailable as error:
        print(error, file=sys.stderr)
        return MISSING
    if arguments.command != "language" and (wrong := wrong_choice()):
        print(wrong, file=sys.stderr)
        return WRONG_USE
    try:
        return int(arguments.run(arguments))
    except _unavailable() as error:
        print(error, file=sys.stderr)
        return MISSING


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser; only the subcommand that is asked for is imported, so that `--help` is instant."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("sluice", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"sluice {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, command in COMMANDS.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        sub = commands.add_parser(
            name, help=command.help, description=description, epilog=f"example: {command.example}", formatter_class=raw
        )
        if name == asked:
            if command.has_engine:
                sub.add_argument(
                    "--engine", choices=ENGINES, help="what runs (default: compiled if `make fast` has built it)"
                )
                if remark := choose(wanted(words)):
                    print(remark, file=sys.stderr)
            module = importlib.import_module(command.module)
            source = getattr(module, "COMMANDS", {}).get(name, module)
            source.add_arguments(sub)
            sub.set_defaults(run=source.run, command=name)
    return parser


def _unavailable() -> tuple[type[Exception], ...]:
    """Return the errors that mean: this machine lacks something; the text says what to do."""
    from course.data.flights import FlightsUnavailable
    from course.data.session import SparkUnavailable
    from course.spark.java import JavaUnavailable

    return FlightsUnavailable, SparkUnavailable, JavaUnavailable


def _end_by_signal(number: int, frame: FrameType | None) -> None:
    """End like an ordinary exit, so that child processes are stopped and temporary files removed."""
    raise SystemExit(128 + number)
