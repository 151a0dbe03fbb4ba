"""`sluice build`: the notebooks from their sources."""

from __future__ import annotations

import argparse
import sys

from course.author.build import BuildError, build_all
from course.exit_status import NOT_PASSED, PASSED, WRONG_USE

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice build`."""
    parser.add_argument("lessons", nargs="*", type=int, metavar="N", help="lesson numbers (default: all)")
    parser.add_argument("--check", action="store_true", help="build, compare with what is there, write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Build, and name what differs."""
    try:
        different = build_all(arguments.lessons or None, writes=not arguments.check)
    except BuildError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("interrupted; what was not built yet is as it was") from error
    for line in different:
        print(line)
    return NOT_PASSED if arguments.check and different else PASSED
