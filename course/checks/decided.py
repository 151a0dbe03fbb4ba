"""What was decided too much and too little, where a part answers with a list whose order does not matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["Decided"]


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided too much and too little, and all of it; each a short text that begins with its kind."""

    more: Counter[str]
    less: Counter[str]
    got: Sequence[str]
    want: Sequence[str]

    @classmethod
    def of(cls, got: Sequence[str], want: Sequence[str]) -> Self:
        return cls(Counter(got) - Counter(want), Counter(want) - Counter(got), got, want)

    def is_more(self, kind: str) -> bool:
        return any(each.startswith(kind) for each in self.more)

    def is_less(self, kind: str) -> bool:
        return any(each.startswith(kind) for each in self.less)

    @property
    def is_of_another_reason(self) -> bool:
        """Whether what is aborted is right, and why it is not."""
        more = _without_reason(self.more)
        return bool(more) and more == _without_reason(self.less)


def _without_reason(told: Counter[str]) -> list[str]:
    return sorted(" ".join(each.split()[:2]) for each in told if each.startswith("abort"))
