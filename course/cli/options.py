"""What subcommands share: arguments that several have, and how wrong use and a machine's trouble end them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

from course.curriculum.manifest import DEFAULT_SEED, EXERCISES, NoSuchExerciseError, exercise
from course.exit_status import MISSING, WRONG_USE
from course.grading.runner import GraderError
from course.learner.receipts import ReceiptError

__all__ = ["Command", "WrongUseError", "add_exercise", "add_exercises", "add_seed", "answering"]


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its arguments, and what runs and gives the exit status."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class WrongUseError(Exception):
    """The command was called with something that does not exist."""


def add_exercise(parser: argparse.ArgumentParser) -> None:
    """The exercise, which every subcommand here is about."""
    parser.add_argument("exercise", metavar="ID", help=f"exercise, one of {', '.join(EXERCISES)}")


def add_exercises(parser: argparse.ArgumentParser) -> None:
    """Any number of exercises, checked at once so that a typing error costs no minutes."""

    def known(text: str) -> str:
        try:
            return exercise(text).id
        except NoSuchExerciseError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    parser.add_argument("exercises", metavar="ID", nargs="*", type=known, help="exercises (default: all)")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """`--seed`, with what it is when nobody names one."""
    said = f"seed of the random cases ({DEFAULT_SEED}; in class mode, SLUICE_MODE=class, a fresh one)"
    parser.add_argument("--seed", type=int, metavar="N", help=said)


def answering(call: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Wrap a subcommand so that wrong use ends with 2 and a machine's trouble with 3, each with one line."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            return call(arguments)
        except (WrongUseError, NoSuchExerciseError, ReceiptError) as error:
            print(error, file=sys.stderr)
            return WRONG_USE
        except GraderError as error:
            print(error, file=sys.stderr)
            return MISSING
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(str(error) or "interrupted; this says nothing about your code") from error

    return run
