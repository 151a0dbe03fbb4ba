"""What was decided too much and too little, where a part answers with a list whose order does not matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from course.checks.words import FieldWords
from course.curriculum.messages import phrase

__all__ = ["NO_LIST", "Decided", "DecidedWords"]

NO_LIST = "? no list: "
"""How a driver begins what it writes down in the place of a list."""

_MOST_TOLD = 6


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


class DecidedWords(FieldWords):
    """Operations and decisions by phrases of the exercise, `op_…` and `told_…`; of many decisions the first six.

    `strange` are the codes of what no such part decides, which the driver writes down behind a question mark.
    """

    def __init__(self, exercise: str, strange: Sequence[str]) -> None:
        super().__init__(exercise, self._of_op, lambda _name, out: self.said(out))
        self._strange = strange

    def code_of_strange(self, told: str) -> str:
        """What is wrong with a decision that cannot be: `no_list`, one of the codes, or `strange`."""
        if told.startswith(NO_LIST):
            return "no_list"
        return next((code for code in self._strange if told == f"? {code}"), "strange")

    def _of_op(self, op: Sequence[Any]) -> str:
        return phrase(f"op_{op[0]}", self.exercise, **dict(zip("ab", op[1:], strict=False)))

    def said(self, out: Sequence[Any]) -> str:
        """The decisions of one call in words."""
        told = [self._of_decision(str(each)) for each in out[:_MOST_TOLD]]
        if len(out) > _MOST_TOLD:
            told.append(phrase("told_more", self.exercise, a=len(out) - _MOST_TOLD))
        return ", ".join(told) or phrase("nothing_to_do", self.exercise)

    def _of_decision(self, told: str) -> str:
        if told.startswith(NO_LIST):
            return phrase("told_no_list", self.exercise, a=told.removeprefix(NO_LIST))
        if (code := self.code_of_strange(told)) in self._strange:
            return phrase(f"told_{code}", self.exercise)
        if told.startswith("?"):
            return told.removeprefix("? ")
        kind, *rest = told.split()
        return phrase(f"told_{kind}", self.exercise, **dict(zip("ab", rest, strict=False)))


def _without_reason(told: Counter[str]) -> list[str]:
    return sorted(" ".join(each.split()[:2]) for each in told if each.startswith("abort"))
