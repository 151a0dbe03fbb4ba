"""What a profile is made of: programs that do one thing more than another, and what each of them came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Layer", "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many records a program moved, the sum of their values, and the CPU seconds of all its processes.

    `None` is what this process has worked meanwhile.
    """

    num_records: int
    total: int
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """What the program `move` does more than the one called `after`, or the one before, and where that stands.

    `move(n)` moves n records, or some more to fill a batch, and says what arrived; or `None`, where nothing does.
    """

    name: str
    where: str
    move: Callable[[int], Outcome | None]
    after: str = ""
