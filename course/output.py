"""Standard output that may be closed or full: whoever writes to it learns so, whatever is being done."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

__all__ = ["OutputLostError", "guarded_output", "let_go"]


class OutputLostError(BaseException):
    """Standard output takes no more. No `Exception`: that would be taken for a failure of what was being done.

    `has_left`: whoever read it has what was wanted, as `head` does; there is nothing to complain about.
    """

    def __init__(self, reason: str, has_left: bool) -> None:
        super().__init__(reason)
        self.has_left = has_left


class _Guarded:
    """A text stream that raises `OutputLostError`, or, as standard error, drops what it cannot write."""

    def __init__(self, stream: TextIO | None, is_needed: bool) -> None:
        self._stream = stream
        self._is_needed = is_needed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            if self._stream is None:
                raise OSError("it is closed")
            return self._stream.write(text)
        except (OSError, ValueError) as error:
            return self._lost(error, len(text))

    def flush(self) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            self._lost(error)

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _lost(self, error: Exception, num_lost: int = 0) -> int:
        if self._is_needed:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise OutputLostError(reason, isinstance(error, BrokenPipeError)) from error
        return num_lost


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guard standard output and standard error within the block; what is buffered is written at its end."""
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", _Guarded(before[0], is_needed=True))
    sys.stderr = cast("TextIO", _Guarded(before[1], is_needed=False))
    try:
        yield
        sys.stdout.flush()
    except OutputLostError:
        let_go(before[0])
        raise
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def let_go(stream: TextIO | None) -> None:
    """Let what is still buffered, and what comes yet, go nowhere: Python would complain when it flushes at its end."""
    with suppress(OSError, ValueError, io.UnsupportedOperation):
        if stream is not None:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
