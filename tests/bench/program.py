"""How every program here ends."""

from __future__ import annotations

import sys
from collections.abc import Callable

from course.output import let_go

__all__ = ["INTERRUPTED", "run_program"]

INTERRUPTED = 130


def run_program(main: Callable[[], int]) -> None:
    """End this process with what `main` returns; with 130 when interrupted, and quietly also when nobody reads."""
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted before it was done", file=sys.stderr)
        status = INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough; Python would complain again at its end
        let_go(sys.stdout)
        status = 0
    raise SystemExit(status)
