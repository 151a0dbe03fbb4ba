"""`sluice language`: which languages there are, and the one that is chosen for good."""

from __future__ import annotations

import argparse
import os
import sys

from course.curriculum.languages import (
    ENGLISH,
    VARIABLE,
    NoSuchLanguageError,
    choose,
    language,
    languages,
    name_of,
    wrong_choice,
)
from course.curriculum.messages import said
from course.exit_status import MISSING, PASSED, WRONG_USE

__all__ = ["add_arguments", "add_option", "chosen", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice language`."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="the language to choose, such as zh (default: list them)"
    )


def add_option(parser: argparse.ArgumentParser) -> None:
    """`--language`, which chooses as `sluice language` does."""
    parser.add_argument("--language", metavar="NAME", help="choose it for good, as `sluice language NAME` does")


def run(arguments: argparse.Namespace) -> int:
    """List the languages, or choose one; return the exit status."""
    if arguments.name is None:
        return _list()
    overrules = os.environ.get(VARIABLE)
    if status := chosen(arguments.name):
        return status
    print(said("language.chosen", name=name_of(arguments.name)))
    if overrules not in (None, "", arguments.name):
        print(said("language.overruled", variable=VARIABLE, value=overrules), file=sys.stderr)
    return PASSED


def chosen(name: str) -> int:
    """Choose a language for good; return the exit status, and say what is wrong if it is not 0."""
    try:
        choose(name)
    except NoSuchLanguageError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except OSError as error:
        print(said("language.not_kept", why=error.strerror), file=sys.stderr)
        return MISSING
    return PASSED


def _list() -> int:
    if error := wrong_choice():
        print(said("language.wrong", error=error), file=sys.stderr)
    for name in languages():
        print(f"{'▸' if name == language() else ' '} {name:<4}{name_of(name)}")
    others = [name for name in languages() if name != language()]
    print("\n" + said("language.how", example=others[0] if others else ENGLISH))
    return PASSED
