"""`sluice compile`: builds the compiled engine, which `sluice demo`, `run` and `engine` then use. Nothing needs it."""

from __future__ import annotations

import argparse
import sys
import time

from course.compiled.build import build, remove
from course.compiled.compilers import COMPILERS, CompileError
from course.compiled.standing import standing
from course.exit_status import MISSING, NOT_PASSED, PASSED

__all__ = ["add_arguments", "run"]

_SECONDS_BETWEEN_LINES = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice compile`."""
    parser.add_argument(
        "--compiler",
        choices=COMPILERS,
        help="cc: this machine's; zig: that of the package ziglang (default: cc, and zig where there is none)",
    )
    parser.add_argument("--again", action="store_true", help="compile also when nothing has changed")
    parser.add_argument("--remove", action="store_true", help="remove the compiled engine")


def run(arguments: argparse.Namespace) -> int:
    """Compile; 0 if the compiled engine is there, 3 if something for it is missing, 130 if interrupted."""
    if arguments.remove:
        print("the compiled engine is removed" if remove() else "there is no compiled engine")
        return PASSED
    progress, started_s = _Progress(), time.monotonic()
    try:
        folder = build(arguments.compiler, progress.say, again=arguments.again)
    except CompileError as error:
        progress.wipe()
        print(error, file=sys.stderr)
        return MISSING if error.is_missing else NOT_PASSED
    except KeyboardInterrupt:
        progress.wipe()
        raise KeyboardInterrupt("interrupted; nothing of the new build is left") from None
    except SystemExit:  # by a signal
        progress.wipe()
        print("ended by a signal; nothing of the new build is left", file=sys.stderr)
        raise
    progress.wipe()
    made = standing()
    what = f"{made.made['modules']} modules, {made.made['compiler']}"
    if folder is None:
        print(f"the compiled engine is up to date: {what}")
    else:
        print(f"✓ the engine is compiled: {what}, {time.monotonic() - started_s:.0f} s; it is in {folder}")
    return PASSED


class _Progress:
    """One line that is written over, or where no person looks, a line from time to time."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._said_s = float("-inf")

    def say(self, text: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._said_s >= _SECONDS_BETWEEN_LINES:
            self._said_s = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def wipe(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
