"""Waiting for what another process or thread does, where it has no way to tell us."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["until"]

Answer = TypeVar("Answer")

_PAUSE_S = 0.01


def until(condition: Callable[[], Answer], timeout_s: float = 120.0) -> Answer:
    """Look until it is true, and return what it was. `timeout_s` is there only so that a hang fails."""
    give_up_s = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (answer := condition()):
        assert time.monotonic() < give_up_s, "it does not come true"
        pause.wait(_PAUSE_S)
    return answer
