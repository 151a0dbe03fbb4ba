"""A world of golden scripts: Storm's way to push back, whose records, notices and seconds are the script.

Its commands stand in `tests/README.md`.
"""

from __future__ import annotations

import math
from typing import ClassVar

from refimpl.rivals import SINK, SLOW, SOURCE, Storm
from refimpl.rivals.storm import REFRESH_MS
from tests.support.checkpoint_worlds import Lines, numbers_of

_SESSION_MS = 1e9


class StormWorld:
    """A topology of one spout, one bolt and one slow sink, each on its worker; nothing happens but what is said."""

    DEFAULTS: ClassVar[dict[str, object]] = {"refresh": int(REFRESH_MS)}
    WORKERS: ClassVar = {"spouts": SOURCE, "sink": SINK}

    def __init__(self, words: list[str]) -> None:
        refresh_ms = float(str(numbers_of(words, self.DEFAULTS)["refresh"]))
        self.storm = Storm(refresh_ms or math.inf)
        self.now_ms = 0.0
        self.watcher = self.storm.store.connect(_SESSION_MS, 0.0)

    def do(self, words: list[str]) -> Lines:
        queue = self.storm.receive[SINK, SLOW]
        match words:
            case ["arrive", number]:
                for _ in range(int(number)):
                    queue.add(self.now_ms)
            case ["take", number]:
                for _ in range(int(number)):
                    queue.consume()
            case ["pass", ms]:
                yield from self._pass(float(ms))
            case ["deaf", who]:
                self.storm.workers[self.WORKERS[who]].is_deaf = True
            case ["hears", who]:
                self.storm.workers[self.WORKERS[who]].is_deaf = False
            case _:
                known = "arrive N, take N, pass MS, deaf spouts, hears spouts"
                raise ValueError(f"{' '.join(words)!r} is none of {known}")

    def _pass(self, ms: float) -> Lines:
        """Let time pass, and say when the spouts stand still or go on."""
        end_ms = self.now_ms + ms
        before = self._are_still
        while self.storm.next_tick_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.storm.next_tick_ms)
            self.storm.on_tick(self.now_ms)
            if self._are_still != before:
                before = self._are_still
                yield f"{self.now_ms:g} ms: the spouts {'stand still' if before else 'go on'}"
        self.now_ms = end_ms

    @property
    def _are_still(self) -> bool:
        return self.storm.may_emit(SLOW, self.now_ms) > 0

    def state(self) -> Lines:
        queue = self.storm.receive[SINK, SLOW]
        throttles = "throttles" if queue.is_throttling else "does not throttle"
        yield f"the sink's queue: {queue.population} records, {queue.num_overflow} of them overflow; it {throttles}"
        flags = self.storm.store.children(self.watcher, "/backpressure/job")
        spouts = "stand still" if self._are_still else "go"
        yield f"flags in the store: {', '.join(flags) or 'none'}; the spouts {spouts}"

    def close(self) -> None: ...
