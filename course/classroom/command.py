"""`sluice class`: serve a class, decide for all, bring in who worked alone, and take out what a gradebook wants.

Everything but `serve` works on the class file, whether it is being served or not.
Exit status: 0 done, 1 not all could be done, 2 wrong use, 3 the file or the port cannot be had, 4 standard output was
closed or full, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from course.classroom.class_file import ClassError, ClassFile, default_path
from course.curriculum.manifest import EXERCISES, LESSONS
from course.files import read_file, write_file
from course.learner.class_events import DEFAULT_PORT

if TYPE_CHECKING:
    from course.classroom.roll import Roll
    from course.classroom.roster import Person

__all__ = ["add_arguments", "run"]

DONE, NOT_ALL, WRONG_USE, MISSING = 0, 1, 2, 3
_STATUSES = """exit status: 0 done, 1 not all could be done, 2 wrong use, 3 the file or the port cannot be had,
4 nobody takes the output"""
FORMATS = ("csv", "json", "canvas", "moodle")


class _WrongUseError(Exception):
    """The command was called with something that does not exist."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice class`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(
        name: str, act: Callable[[argparse.Namespace], int], words: str, more: str, example: str
    ) -> argparse.ArgumentParser:
        made = actions.add_parser(
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}. {more}",
            epilog=f"example: sluice class {example}\n\n{_STATUSES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("--db", type=Path, metavar="FILE", help="the class file (default: .course/class.sqlite)")
        made.set_defaults(act=act, act_name=name)
        return made

    serve = action(
        "serve",
        _serve,
        "serve the class until Ctrl-C",
        "Learners join with a code and a handle; nobody has an account. What was acknowledged survives a crash, "
        "and the next serve goes on with the same class.",
        "serve --host 0.0.0.0 --title 'Streams, Tuesday'",
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen there (%(default)s: this machine only; 0.0.0.0: everybody on your network; see --tls)",
    )
    serve.add_argument("--port", type=_port, default=DEFAULT_PORT, metavar="N", help="of the server (%(default)s)")
    serve.add_argument("--title", type=_title, metavar="TEXT", help="what the class is called")
    serve.add_argument(
        "--tls",
        action="store_true",
        help="encrypt: learners type the code of the class's certificate, which is made and kept beside the class file",
    )
    serve.add_argument(
        "--hub", action="store_true", help="let in the users of the JupyterHub that starts this, and nobody else"
    )
    serve.add_argument(
        "--lessons", type=_lessons, default=frozenset(), metavar="N,N", help="show only these (default: all)"
    )
    serve.add_argument(
        "--instructor-anywhere",
        action="store_true",
        help="let the dashboard open on other machines too; the key then crosses the network; see --tls",
    )
    action("token", _token, "print the key that opens the dashboard", "Keep it off the projector.", "token")
    action("show", _show, "print the dashboard in words", "", "show")
    unlock = action("unlock", _decide, "open hints of an exercise for all", "Rung 0 locks them again.", "unlock 3.1 3")
    unlock.add_argument("exercise", metavar="ID", help=f"one of {', '.join(EXERCISES)}")
    unlock.add_argument("rung", type=int, metavar="RUNG", help="1 to 5")
    checkpoint = action("checkpoint", _decide, "say where the class is", "", "checkpoint 3.1")
    checkpoint.add_argument("exercise", metavar="ID", help=f"one of {', '.join(EXERCISES)}")
    reset = action("reset", _decide, "start an exercise afresh for all", "Attempts are kept.", "reset 3.1")
    reset.add_argument("exercise", metavar="ID", help=f"one of {', '.join(EXERCISES)}")
    catchup = action(
        "catchup", _decide, "open what comes before a lesson for all", "Nothing counts as passed by it.", "catchup 3"
    )
    catchup.add_argument("lesson", type=int, metavar="N", help=f"one of {', '.join(map(str, LESSONS))}")
    for name, words in (
        ("free", "let a handle be joined with anew"),
        ("remove", "take a learner out, with all that is kept"),
    ):
        action(name, _learner, words, "", f"{name} ada").add_argument("handle", metavar="HANDLE", help="of the learner")
    bring = action(
        "import",
        _import,
        "bring in those who worked alone",
        "Takes progress files (.course/progress.jsonl) and receipts (receipt.json), which are judged again. The handle "
        "is the file's name, or its folder's if the file is called progress or receipt. Twice changes nothing.",
        "import ada.jsonl team-7/receipt.json",
    )
    bring.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .jsonl or .json file")
    bring.add_argument("--handle", metavar="NAME", help="whose it is (for one file)")
    bring.add_argument(
        "--trust", action="store_true", help="run receipts also where `sluice doctor` finds no boundary for programs"
    )
    out = action(
        "export",
        _export,
        "write where everybody stands",
        "CSV as in RFC 4180.",
        "export --format canvas --out grades.csv",
    )
    out.add_argument(
        "--format", choices=FORMATS, default="csv", help="canvas and moodle: what these gradebooks import (%(default)s)"
    )
    out.add_argument("--out", type=Path, metavar="FILE", help="write there (default: standard output)")
    out.add_argument(
        "--roster",
        type=Path,
        metavar="FILE",
        help="whom the gradebook knows: what Canvas or Moodle exports, or CSV with columns handle,id,name",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked and return the exit status."""
    arguments.db = (arguments.db or default_path()).absolute()
    try:
        status: int = arguments.act(arguments)
    except _WrongUseError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except ClassError as error:
        print(error, file=sys.stderr)
        return MISSING
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged file, SQLite's complaint is no text
        print(f"{arguments.db} cannot be used: {error}", file=sys.stderr)
        return MISSING
    return status


def _serve(arguments: argparse.Namespace) -> int:
    from course.classroom.serving import serve

    if arguments.hub and (arguments.tls or arguments.host != "127.0.0.1"):
        raise _WrongUseError(
            "the class of a hub listens on the hub's machine alone: --hub goes without --host and --tls"
        )
    return serve(
        arguments.db,
        arguments.host,
        arguments.port,
        title=arguments.title,
        lessons=arguments.lessons,
        is_remote_allowed=arguments.instructor_anywhere,
        tls=arguments.tls,
        hub=arguments.hub,
    )


def _token(arguments: argparse.Namespace) -> int:
    from course.classroom.sessions import instructor_key

    with ClassFile(arguments.db) as file:
        print(instructor_key(file))
    return DONE


def _show(arguments: argparse.Namespace) -> int:
    from course.classroom.model import class_model
    from course.classroom.roll import Roll
    from course.classroom.words import class_text

    with ClassFile(arguments.db) as file:
        print(class_text(class_model(Roll(file), time.time())))
    return DONE


def _decide(arguments: argparse.Namespace) -> int:
    from course.classroom.orders import ordered, said

    kind = arguments.act_name
    wanted = {name: getattr(arguments, name) for name in ("exercise", "rung", "lesson") if hasattr(arguments, name)}
    try:
        order = ordered({"kind": kind, **wanted})
    except ClassError as error:
        raise _WrongUseError(error) from error
    with ClassFile(arguments.db) as file:
        with file.transaction():
            file.add_action(order, time.time())
        print(said(order))
    return DONE


def _learner(arguments: argparse.Namespace) -> int:
    with ClassFile(arguments.db) as file:
        with file.transaction():
            is_freed = arguments.act_name == "free"
            found = file.free(arguments.handle) if is_freed else file.remove(arguments.handle)
        if not found:
            raise _WrongUseError(f"nobody in this class is called {arguments.handle}")
        done = "can be joined with again" if is_freed else "is taken out, with all that was kept"
        print(f"✓ {arguments.handle} {done}.")
    return DONE


def _import(arguments: argparse.Namespace) -> int:
    from course.classroom.bringing_in import bring_in

    if arguments.handle is not None and len(arguments.files) > 1:
        raise _WrongUseError("--handle is for one file; of several, the handle is the file's name")
    with ClassFile(arguments.db, create=True) as file:
        results = [bring_in(file, each, arguments.handle, arguments.trust) for each in arguments.files]
    for result in results:
        print(result.text, file=sys.stdout if result.is_all else sys.stderr)
    return DONE if all(result.is_all for result in results) else NOT_ALL


def _export(arguments: argparse.Namespace) -> int:
    from course.classroom.export import EXPORTS
    from course.classroom.roll import Roll

    with ClassFile(arguments.db) as file:
        roll = Roll(file)
        roster = _roster(arguments.roster, roll) if arguments.roster is not None else {}
        text = EXPORTS[arguments.format](roll, roster)
    if arguments.out is None:
        sys.stdout.buffer.write(text.encode()) if hasattr(sys.stdout, "buffer") else print(text, end="")
        return DONE
    try:
        write_file(arguments.out, text.encode())
    except OSError as error:
        raise _WrongUseError(f"{arguments.out} cannot be written: {error.strerror}") from error
    print(f"✓ {arguments.out}: {len(roll.pupils)} learners, {len(EXERCISES)} exercises")
    return DONE


def _roster(path: Path, roll: Roll) -> dict[str, Person]:
    from course.classroom.roster import RosterError, people_of, read_roster

    handles = [pupil.row.handle for pupil in roll.pupils.values()]
    try:
        found = people_of(handles, read_roster(read_file(path)))
    except OSError as error:
        raise _WrongUseError(f"{path} cannot be read: {error.strerror}") from error
    except RosterError as error:
        raise _WrongUseError(f"{path}: {error}") from error
    if missing := [handle for handle in handles if handle not in found]:
        print(f"○ nobody in {path.name} for: {', '.join(sorted(missing))}", file=sys.stderr)
    return found


def _port(word: str) -> int:
    if word.isdecimal() and int(word) <= 65_535:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is not a number from 0 to 65535; 0 takes a free one")


def _title(word: str) -> str:
    if word.strip() and len(word) <= 60 and word.isprintable():
        return word.strip()
    raise argparse.ArgumentTypeError("a title has 1 to 60 letters, on one line")


def _lessons(word: str) -> frozenset[int]:
    numbers = [int(each) for each in word.split(",") if each.strip().isdecimal()]
    if len(numbers) == len(word.split(",")) and set(numbers) <= set(LESSONS):
        return frozenset(numbers)
    raise argparse.ArgumentTypeError(f"{word!r} are not lessons; there are {', '.join(map(str, LESSONS))}")
