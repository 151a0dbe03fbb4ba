"""A check for parts that are told apart by what their calls return: rules, cases, and a belief for each difference.

What an exercise brings: for each rule its cases, from the smallest on, and a function that names the misconception.
Everything else (running, comparing, rows with a caret, shrinking) is the same for all. See course/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.checks import drive_calls
from course.checks.common import ending_finding
from course.checks.driven import DrivenCheck
from course.curriculum.messages import phrase
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.shrink import smaller_lists

__all__ = ["CallsCheck", "Difference", "written"]

_LONGEST = 150


@dataclass(frozen=True, slots=True)
class Difference:
    """The first call that came to something else: the call, what it gave and should have, what was called before.

    `got` and `want` are [type name, content], see `drive_calls.plain`; `changed` says that the answer was right and an
    argument was changed that should not have been, or the reverse.
    """

    rule: str
    method: str
    arguments: Sequence[Any]
    got: Sequence[Any]
    want: Sequence[Any]
    before: Sequence[Any]
    changed: bool


class CallsCheck(DrivenCheck):
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part.
        cases: for each rule, in order, its cases; those of `seeded`, from the seed, come last.
        belief: the code of the message for a difference.
        seeded: the last rule and what makes its cases, if there is one.
        run_case: the driver, if it is not the one that only calls.
    """

    def __init__(
        self,
        exercise: str,
        part: Any,
        cases: Mapping[str, Sequence[list[Any]]],
        belief: Callable[[Difference], str],
        seeded: tuple[str, Callable[[int], Iterable[list[Any]]]] | None = None,
        run_case: Callable[[Any, list[Any], list[Any]], None] = drive_calls.run_case,
    ) -> None:
        super().__init__(exercise, part, run_case, cases, seeded)
        self._belief = belief

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """What each call gives; that the reference part refuses is its answer."""
        return [[event[:3] for event in each] for each in super().expected(cases)]

    def _told(self, ops: Sequence[Any]) -> str:
        return written(ops)

    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Calls left out; the object is made first in any case."""
        first = [op for op in ops[:1] if op[0] == "new"]
        for calls in smaller_lists(ops[len(first) :], lambda _: ()):
            if calls:
                yield [*first, *calls]

    def _is_whole(self, event: list[Any], want: list[Any]) -> bool:
        return len(event) in (3, 4)

    def _ended(self, rule: Rule, case: Case, seen: Seen, index: int, want: list[Any]) -> Finding:
        return ending_finding(self.exercise, rule.id, case, seen, (), _named(want))

    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        want = expected[index]
        if event[:3] == want:
            return None
        if len(event) == 4 and want[1][0] != "raises":  # nothing was to be refused: it is told as any exception
            raised = Seen([], {"problem": "raised", "error": event[3]})
            return ending_finding(self.exercise, rule.id, case, raised, (), _named(want))
        changed = event[1] == want[1]
        op = case.ops[index]
        found = Difference(
            rule.id, want[0], op[1:] if op[0] == "new" else op[2:], event[1], want[1], case.ops[:index], changed
        )
        left, right = (_value(["tuple", each[2]]) if changed else _value(each[1]) for each in (event, want))
        values = {"got": left, "want": right, "where": _named(want)}
        return Finding(rule.id, self._belief(found), case.ran, _rows(_named(want), left, right), values)

    def tell(self, event: list[Any]) -> str:
        """A call and what came back."""
        return f"{event[0]}  {_value(event[1])}" if len(event) > 1 else phrase("no_return", call=event[0])


def _named(event: Sequence[Any]) -> str:
    """What was called."""
    return str(event[0] or phrase("your_function"))


def _rows(label: str, left: str, right: str) -> list[Row]:
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, at - 24)
    cut = "…" if start else ""
    return [
        Row(label[:14], phrase("yours"), cut + left[start : start + 60]),
        Row("", phrase("flink"), cut + right[start : start + 60]),
    ]


def _value(shown: Sequence[Any]) -> str:
    """A plain value as Python writes it."""
    kind, content = shown[0], shown[1]
    if kind == "bytes":
        more = f" … ({shown[2]})" if len(shown) > 2 else ""
        return bytes.fromhex(content).hex(" ") + more or phrase("nothing")
    if kind in ("list", "tuple", "set", "frozenset"):
        inner = ", ".join(_value(each) for each in content)
        return f"[{inner}]" if kind == "list" else f"({inner})" if kind == "tuple" else f"{{{inner}}}"
    if kind == "dict":
        return "{" + ", ".join(f"{_value(key)}: {_value(value)}" for key, value in content) + "}"
    if kind == "raises":
        return phrase("raises", error=content)
    return repr(content) if kind == "str" else str(content)


def written(ops: Sequence[Any]) -> str:
    """The calls of a case as Python writes them; a long one ends in dots."""
    found = []
    for kind, *rest in ops:
        if kind in ("get", "set", "look"):
            shown = f"#{rest[0]}" if kind == "look" else rest[0]
            found.append(f"{shown} = {rest[1]!r}" if kind == "set" else shown)
            continue
        name, given = (phrase("new"), rest) if kind == "new" else (rest[0] or phrase("your_function"), rest[1:])
        inner = ", ".join(_value(drive_calls.plain(drive_calls.argument(each))) for each in given)
        found.append(f"{name}({inner})")
    text = "; ".join(found)
    if len(text) <= _LONGEST:
        return text
    whole = text[: _LONGEST - 3].rpartition("; ")[0]
    return f"{whole}; …" if whole else text[: _LONGEST - 1] + "…"
