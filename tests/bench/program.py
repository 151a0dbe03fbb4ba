"""How every program here ends."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["INTERRUPTED", "run_program"]

INTERRUPTED = 130


def run_program(main: Callable[[], int]) -> None:
    """End this process with what `main` returns; when interrupted with 130, and without a word."""
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
