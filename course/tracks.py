"""Which lessons to take when there is time for some of them only."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TRACKS", "Track"]


@dataclass(frozen=True, slots=True)
class Track:
    """A choice of lessons; one that is not part of this version yet is passed over."""

    name: str
    lessons: tuple[int, ...]


TRACKS = (
    Track("half a day", (0, 3, 10, 11)),
    Track("one day", (0, 2, 3, 10, 11, 14)),
    Track("two days", (0, 1, 2, 3, 4, 7, 9, 10, 11, 12, 13, 14, 17)),
)
