"""Draws from a seed, so always the same: the next of the enabled actions, and how long a message is on its way."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from refimpl.errors import LocalUsageError

__all__ = ["Delays", "Policy"]

A = TypeVar("A")
_POLICIES = ("random", "round_robin", "first", "timed")


class Policy:
    """Picks among enabled actions: `random` by `seed`, `round_robin` in turn, `first` the most downstream task.

    `timed` is `random` among what is possible at one moment of a time that work takes.

    Raises:
        LocalUsageError: there is no policy called `name`.
    """

    def __init__(self, name: str, seed: int) -> None:
        if name not in _POLICIES:
            raise LocalUsageError(f"policy {name!r} is none of {', '.join(_POLICIES)}")
        self.seed = seed
        self._name = name
        self._random = Random(seed)
        self._turn = 0

    def pick(self, enabled: Sequence[A]) -> A:
        """The next action."""
        match self._name:
            case "first":
                return enabled[-1]  # drain before producing more
            case "round_robin":
                self._turn += 1
                return enabled[self._turn % len(enabled)]
            case _:
                return enabled[int(self._random.random() * len(enabled))]


class Delays:
    """How long each message is on its way: up to `max_ms`, by `seed`, and `least_ms` before that.

    Raises:
        LocalUsageError: `max_ms` is below 0.
    """

    def __init__(self, max_ms: float, seed: int, least_ms: float = 0.0) -> None:
        if max_ms < 0:
            raise LocalUsageError(f"a delay of {max_ms} ms would arrive before it was sent")
        self._max_ms, self._least_ms = max_ms, least_ms
        self._random = Random(f"delays of seed {seed}")  # not the policy's draws

    def next_ms(self) -> float:
        return self._least_ms + self._random.random() * self._max_ms
