"""Warnings about the other end of a connection, of which a hostile one can bring about any number."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["FewWarnings", "logger"]

_MOST, _WITHIN_S = 20, 60.0


class FewWarnings(logging.Filter):
    """Lets 20 records of a logger through each minute, and counts the others: the next one says how many."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._until_s = 0.0
        self._num_let = self._num_left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to let this one through; the first after a pause gets the number of those left out."""
        if (now_s := self._now_s()) >= self._until_s:
            self._until_s, self._num_let = now_s + _WITHIN_S, 0
        self._num_let += 1
        if self._num_let > _MOST:
            self._num_left_out += 1
            return False
        if self._num_left_out:
            record.msg, record.args = f"{record.getMessage()} ({self._num_left_out} more were left out before)", ()
            self._num_left_out = 0
        return True


def logger(name: str) -> logging.Logger:
    """The logger of this name, with such a filter."""
    made = logging.getLogger(name)
    if not any(isinstance(each, FewWarnings) for each in made.filters):
        made.addFilter(FewWarnings())
    return made
