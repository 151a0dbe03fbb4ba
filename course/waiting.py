"""What a command says on standard error while somebody waits for it, and nothing if that is not for long."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

__all__ = ["Waiting"]

_PATIENCE_S = 2.0
_TICK_S = 1.0


class Waiting:
    """Says what takes so long, from the third second on: one line that counts, or where no person looks, one line.

    `now` says what comes next.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._since_s = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_terminal = sys.stderr.isatty()
        self._said = ""
        self._thread = threading.Thread(target=self._count, name="waiting", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        self._thread.join()
        self._wipe()

    def now(self, what: str) -> None:
        """Something else has begun."""
        with self._lock:
            self._what, self._since_s = what, time.monotonic()

    def _count(self) -> None:
        while not self._ended.wait(_TICK_S / 4):
            with self._lock:
                seconds = time.monotonic() - self._since_s
                if seconds >= _PATIENCE_S:
                    self._say(f"{self._what} …", seconds)

    def _say(self, text: str, seconds: float) -> None:
        if self._is_terminal:
            text = f"{text} {seconds:.0f} s"
            if text != self._said:
                print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text != self._said:
            print(text, file=sys.stderr, flush=True)
        self._said = text

    def _wipe(self) -> None:
        if self._is_terminal and self._said:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
