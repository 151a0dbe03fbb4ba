"""What Spark is at, for whatever takes longer than two seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from IPython.display import DisplayHandle
    from pyspark.sql import SparkSession

__all__ = ["shows_progress"]

_QUIET_SECONDS = 2.0
_TERMINAL_SECONDS, _FILE_SECONDS = 0.5, 10.0


Say = Callable[[str], None]
"""Shows a line in the place of the one before; an empty one takes it away."""


@contextmanager
def shows_progress(session: SparkSession, what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Tell how many of Spark's tasks are done, while the body runs: on `stream`, or where the user looks.

    That is stderr, and in a notebook a line of the cell that goes when the body ends: what a cell has put out must
    not depend on how fast the machine is. Where a notebook is built or compared nobody looks.
    """
    is_over = threading.Event()
    say, seconds = _place(sys.stderr if stream is None else stream, is_given=stream is not None)
    teller = threading.Thread(target=_tell, args=(session, what, say, seconds, is_over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _place(stream: TextIO, *, is_given: bool) -> tuple[Say, float]:
    """Where to say it, and how many seconds lie between two lines."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules and not is_given else None
    if hasattr(shell, "kernel"):
        return (_nowhere if "PYTEST_CURRENT_TEST" in os.environ else _Line()), _TERMINAL_SECONDS
    if stream.isatty():
        return partial(_over, stream), _TERMINAL_SECONDS
    return partial(_below, stream), _FILE_SECONDS


def _nowhere(_line: str) -> None: ...


def _over(stream: TextIO, line: str) -> None:
    stream.write(f"\r\x1b[K{line}")
    stream.flush()


def _below(stream: TextIO, line: str) -> None:
    if line:
        stream.write(f"{line}\n")
        stream.flush()


class _Line:
    """A line of a notebook's cell."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def __call__(self, line: str) -> None:
        from IPython.display import DisplayHandle

        data = {"text/plain": line} if line else {}
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(data, raw=True)
        else:
            self._handle.update(data, raw=True)


def _tell(session: SparkSession, what: str, say: Say, seconds: float, is_over: threading.Event) -> None:
    started = time.monotonic()
    wait, has_told = _QUIET_SECONDS, False
    while not is_over.wait(wait):
        wait, has_told = seconds, True
        say(f"{what}: {_tasks(session)}{time.monotonic() - started:.0f} s")
    if has_told:
        say("")


def _tasks(session: SparkSession) -> str:
    """How far the stages that run now are."""
    from py4j.protocol import Py4JError

    done = total = 0
    with suppress(Py4JError, OSError):  # the JVM may be on its way out
        tracker = session.sparkContext.statusTracker()
        for number in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(number)
            if stage is not None:
                done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return f"{done} of {total} tasks, " if total else ""
