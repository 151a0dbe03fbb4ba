"""How every program here ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = ["INTERRUPTED", "run_program"]

INTERRUPTED = 130


def run_program(main: Callable[[], int]) -> None:
    """End this process with what `main` returns; with 130 when interrupted, and quietly also when nobody reads."""
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough; Python would complain again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    raise SystemExit(status)
