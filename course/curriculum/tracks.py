"""Which lessons to take when there is time for some of them only."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TRACKS", "Track"]


@dataclass(frozen=True, slots=True)
class Track:
    """A choice of lessons, in order: each finds before it what it requires and asks about."""

    name: str
    lessons: tuple[int, ...]


TRACKS = (
    Track("half a day", (0, 1, 2, 7)),
    Track("one day", (0, 1, 2, 7, 9, 10, 11)),
    Track("two days", (0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 14)),
)
