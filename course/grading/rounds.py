"""A limit that counts what the learner's code does, for a child on whose system no clock can ring.

A browser has no signals, and on a machine with much to do its clock says little of the work that was done. So the
learner's functions are counted as they are entered, and the rounds of its loops: that is the same on every machine.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

__all__ = ["MOST_ROUNDS", "limit_of_rounds"]

MOST_ROUNDS = 2_000_000
"""What a case may take; none of a check needs a tenth of it."""

_AGAIN = 10_000
"""So many rounds later it is raised once more, for code that swallows everything."""


def limit_of_rounds(
    file: str, error: type[BaseException], most: int = MOST_ROUNDS
) -> Callable[[float], contextlib.AbstractContextManager[None]]:
    """A limit that raises `error` in code of `file` after so many rounds and calls, again and again.

    It stands where `time_limit` of the child does, and takes no notice of the seconds.
    """
    monitoring: Any = vars(sys)["monitoring"]  # from Python 3.12 on
    tool, events = monitoring.PROFILER_ID, monitoring.events
    left = 0

    def count(code: CodeType, *_: object) -> Any:
        nonlocal left
        if code.co_filename != file:
            return monitoring.DISABLE  # at this place, from now on: the engine is as fast as ever
        left -= 1
        if left <= 0:
            left = _AGAIN
            raise error
        return None

    monitoring.use_tool_id(tool, "rounds")
    for event in (events.PY_START, events.PY_RESUME, events.JUMP):
        monitoring.register_callback(tool, event, count)

    @contextlib.contextmanager
    def limit(_seconds: float) -> Iterator[None]:
        nonlocal left
        left = most
        monitoring.set_events(tool, events.PY_START | events.PY_RESUME | events.JUMP)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)

    return limit
