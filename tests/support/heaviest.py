"""Which files work longest: `make test` begins with them, so that its two processes end at the same time."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HEAVIEST", "place"]

HEAVIEST: Sequence[str] = (
    "tests/course/test_graders.py",
    "tests/lessons/test_notebooks.py",
    "tests/lessons/test_solved_notebooks.py",
)
"""Each takes more than half a minute of a processor, the longest first. One that is missing here costs time only."""

_PLACES = {name: place for place, name in enumerate(HEAVIEST)}


def place(node_id: str) -> int:
    """Where a test stands: with its file if that is one of the heaviest, else behind them all."""
    return _PLACES.get(node_id.partition("::")[0], len(_PLACES))
