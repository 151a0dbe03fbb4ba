"""A check for parts with a state: after each call, what it gave and how things stand, held against the reference part.

An exercise brings a driver, its cases for each rule from the smallest on, and a function that names the belief behind
the first difference. An event is [call] before the call and [call, {what: text}] after it: the driver writes how
things stand as short texts, and the rows of a message are those that differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import ModuleType
from typing import Any

from course.checks.common import ending_finding
from course.checks.driven import DrivenCheck
from course.curriculum.messages import phrase
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.shrink import smaller_lists

__all__ = ["Difference", "StepsCheck"]

_LONGEST = 112
_WIDEST = 62
_MOST_CHARACTERS = 4000
_MOST_ROWS, _ROWS_OF_ONE = 2, 2
_RAISED = "raised"  # beside an answer: the exception it was; and the code where that is all there is to say
_BYTES = re.compile(r"[0-9a-f]{2}(?: (?:\| )?[0-9a-f]{2})*")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first call after which things stood otherwise: `op` is the call, `before` those made before it.

    `raised` is the text of the exception, if the answer is one.
    """

    rule: str
    op: Sequence[Any]
    got: Mapping[str, str]
    want: Mapping[str, str]
    before: Sequence[Any]
    raised: str = ""

    @property
    def answers(self) -> tuple[str, str]:
        """What the call gave, and should have."""
        return self.got.get("answer", ""), self.want.get("answer", "")

    def number(self, what: str) -> tuple[int, int]:
        """A number among how things stand: yours and the right one."""
        return int(self.got[what]), int(self.want[what])


class StepsCheck(DrivenCheck):
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part.
        driver: the module with `run_case(part, ops, events)` and `label(op)`.
        cases: for each rule, in order, its cases; those of `seeded`, from the seed, come last.
        belief: the code of the message for a difference.
        seeded: the last rule and what makes its cases; `valid` says whether a shortened one still makes sense.
    """

    def __init__(
        self,
        exercise: str,
        part: Any,
        driver: ModuleType,
        cases: Mapping[str, Sequence[list[Any]]],
        belief: Callable[[Difference], str],
        seeded: tuple[str, Callable[[int], Iterable[list[Any]]]],
        valid: Callable[[Sequence[Any]], bool] = bool,
    ) -> None:
        super().__init__(exercise, part, driver.run_case, cases, seeded)
        self._driver, self._belief, self._valid = driver, belief, valid

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """How things stand after each call; that the reference part refuses is in its answer."""
        found = super().expected(cases)
        return [[[call, {k: v for k, v in seen.items() if k != _RAISED}] for call, seen in each] for each in found]

    def _told(self, ops: Sequence[Any]) -> str:
        runs = [(call, len(list(each))) for call, each in groupby(self._driver.label(op) for op in ops)]
        text = "; ".join(f"{number} × {call}" if number > 1 else call for call, number in runs)
        return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition("; ")[0] + "; …"

    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Calls left out; what is made first stays."""
        first = [op for op in ops if op[0] == "new"]
        for calls in smaller_lists([op for op in ops if op[0] != "new"], lambda _: ()):
            if calls and self._valid([*first, *calls]):
                yield [*first, *calls]

    def _is_whole(self, event: list[Any], want: list[Any]) -> bool:
        return len(event) == len(want) and isinstance(event[1], dict)

    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        call, want = expected[index]
        got = {str(name): str(text)[:_MOST_CHARACTERS] for name, text in event[1].items() if name != _RAISED}
        if got == want:
            return None
        error = event[1].get(_RAISED)
        text = str(error.get("text")) if isinstance(error, dict) else ""
        found = Difference(rule.id, case.ops[index], got, want, case.ops[:index], text)
        given, wanted = (each.removeprefix("!") for each in found.answers)
        values = {"got": given, "want": wanted, "where": str(call)}
        code, rows = self._code(found), self._rows(got, want)
        if code == _RAISED:
            raised = Seen([], {"problem": "raised", "error": error})
            return ending_finding(self.exercise, rule.id, case, raised, rows, str(call))
        return Finding(rule.id, code, case.ran, rows, values)

    def _code(self, found: Difference) -> str:
        # What a child says need not be what a driver writes.
        try:
            return self._belief(found)
        except (ValueError, LookupError, ArithmeticError, TypeError):
            return "different"

    def _rows(self, got: Mapping[str, str], want: Mapping[str, str]) -> list[Row]:
        rows: list[Row] = []
        for name in [each for each in want if got.get(each) != want[each]][:_MOST_ROWS]:
            left, right = _shown(got.get(name, "")), _shown(want[name])
            at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
            start = max(0, at - 24) if max(len(left), len(right)) > _WIDEST else 0
            cut = "…" if start else ""
            rows.append(Row(self._named(name), phrase("yours"), cut + left[start : start + _WIDEST]))
            rows.append(Row("", phrase("right"), cut + right[start : start + _WIDEST]))
            if len(rows) == _ROWS_OF_ONE:  # the caret stands below a whole byte, not below one of its digits
                whole = at - at % 3 if _BYTES.fullmatch(right) else at
                rows.append(Row("", "", " " * (whole - start + len(cut)) + "^^ " + phrase("first_difference")))
        return rows

    def tell(self, event: list[Any]) -> str:
        """A call, what came of it, and how things stand."""
        if len(event) != 2:
            return phrase("no_return", call=event[0])
        if not isinstance(event[1], dict):
            return f"{event[0]}   {str(event[1])[:60]}"
        return f"{event[0]}   " + ", ".join(
            f"{self._named(name)} {_shown(str(text))}"
            for name, text in event[1].items()
            if name != _RAISED and text not in ("", "0")
        )

    def _named(self, name: str) -> str:
        try:
            return phrase(name, self.exercise)
        except KeyError:
            return name[:14]


def _shown(text: str) -> str:
    """A text of a driver as people read it: "!IndexError" is an exception, none at all is nothing."""
    return phrase("raises", error=text[1:]) if text.startswith("!") else text or phrase("nothing")
