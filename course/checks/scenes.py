"""A check for parts that act on objects: each operation of a case leaves an event with named fields.

The driver of the exercise runs the operations against any part and writes down for each ["name", {field: value, …}];
["name"] alone is an operation that did not come back. What an exercise brings: its cases, the fields each rule looks
at, a function that names the belief behind a difference, and how an operation and a field are written.

What is no plain value a driver writes as "?" and the name of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType
from typing import Any

from course.checks.common import ending_finding
from course.checks.driven import DrivenCheck
from course.curriculum.messages import phrase
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.shrink import smaller_lists

__all__ = ["Difference", "ScenesCheck", "Seeded"]

_MOST_RAN, _MOST_OF_A_ROW = 160, 72


@dataclass(frozen=True, slots=True)
class Difference:
    """The first field that came to something else.

    `op` is the operation and `before` those that came first; `now` and `right` are all fields of the event, the part's
    and the reference's; `past` are the reference's events of `before`.
    """

    rule: str
    op: Sequence[Any]
    field: str
    got: Any
    want: Any
    now: Mapping[str, Any]
    right: Mapping[str, Any]
    before: Sequence[Sequence[Any]]
    past: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Seeded:
    """The last rule, whose cases come from the seed: its letter, what makes them, and what a smaller one must keep."""

    rule: str
    make: Callable[[int], Iterable[list[Any]]]
    simpler: Callable[[list[Any]], Iterable[list[Any]]] = lambda _op: ()
    is_valid: Callable[[list[Any]], bool] = bool


class ScenesCheck(DrivenCheck):
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part.
        driver: the module that runs a case, which the child gets as text.
        cases: for each rule, in order, the fields it looks at (none: all) and its cases.
        belief: the code of the message for a difference.
        tell_op, tell_field: an operation, and a field with its value, in words; an empty text leaves it out.
        seeded: the last rule, if there is one whose cases are made from the seed.
        values: blanks of the messages, beside `got`, `want` and `where`.
        ending: the code of the message for an operation that raised the error of that text; empty for the usual one.
        call: what of the part an operation calls, by the name of the operation.
        shown: whether a field belongs into the short form of an event.
    """

    def __init__(
        self,
        exercise: str,
        part: Any,
        driver: ModuleType,
        cases: Mapping[str, tuple[Sequence[str], Sequence[list[Any]]]],
        belief: Callable[[Difference], str],
        tell_op: Callable[[Sequence[Any]], str],
        tell_field: Callable[[str, Any], str],
        seeded: Seeded | None = None,
        values: Callable[[Difference], Mapping[str, str]] = lambda _found: {},
        ending: Callable[[Sequence[Any], str], str] = lambda _op, _error: "",
        call: Callable[[str], str] = str,
        shown: Callable[[str, Any], bool] = lambda _name, _value: True,
    ) -> None:
        last = None if seeded is None else (seeded.rule, seeded.make)
        super().__init__(exercise, part, driver.run_case, {rule: every for rule, (_, every) in cases.items()}, last)
        self.rules = [Rule(each.id, " ".join(cases[each.id][0] if each.id in cases else ())) for each in self.rules]
        self._simpler: Callable[[list[Any]], Iterable[list[Any]]] = seeded.simpler if seeded else lambda _op: ()
        self._is_valid: Callable[[list[Any]], bool] = seeded.is_valid if seeded else bool
        self._belief, self._values, self._ending, self._call = belief, values, ending, call
        self._shown = shown
        self._tell_op, self._tell_field = tell_op, tell_field

    def _told(self, ops: Sequence[Any]) -> str:
        told = [each for each in map(self._tell_op, ops) if each]
        shown = told[: sum(size <= _MOST_RAN for size in accumulate(len(each) + 2 for each in told))]
        return "; ".join([*shown, *["…"] * (len(shown) < len(told))])

    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Operations left out, or made simpler."""
        return filter(self._is_valid, smaller_lists(ops, self._simpler))

    def _is_whole(self, event: list[Any], want: list[Any]) -> bool:
        return len(event) == len(want) and (len(want) == 1 or isinstance(event[1], dict))

    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        want = expected[index]
        if len(want) == 1:
            return None
        looked_at = rule.aspect.split() or list(want[1])
        field = next((each for each in looked_at if event[1].get(each) != want[1].get(each)), None)
        if field is None:
            return None
        found = Difference(
            rule.id,
            case.ops[index],
            field,
            event[1].get(field),
            want[1].get(field),
            event[1],
            want[1],
            case.ops[:index],
            expected[:index],
        )
        told = self._tell_field(field, found.got) if str(found.got).startswith("?") else _alone(found.got)
        values = {"got": told, "want": _alone(found.want), "where": self._call(str(want[0])), **self._values(found)}
        return Finding(rule.id, self._belief(found), case.ran, self._rows(found, looked_at), values)

    def _ended(self, rule: Rule, case: Case, seen: Seen, index: int, want: list[Any]) -> Finding:
        op = case.ops[index]
        error = (seen.ending or {}).get("error")
        where = self._call(str(op[0]))
        code = self._ending(op, str(error.get("text", ""))) if isinstance(error, dict) else ""
        if code:
            return Finding(rule.id, code, case.ran, values={"where": where})
        return ending_finding(self.exercise, rule.id, case, seen, (), where)

    def _rows(self, found: Difference, looked_at: Sequence[str]) -> list[Row]:
        same = [each for each in looked_at if found.now.get(each) == found.right.get(each)]
        yours, other = (self._fields(fields, [found.field, *same]) for fields in (found.now, found.right))
        if max(len(yours), len(other)) > _MOST_OF_A_ROW:
            yours, other = (self._fields(fields, [found.field]) for fields in (found.now, found.right))
        column = next((at for at, pair in enumerate(zip(yours, other, strict=False)) if pair[0] != pair[1]), 0)
        caret = Row("", "", " " * column + "^^ " + phrase("first_difference"))
        head, label = [], self._call(str(found.op[0]))
        if found.before:
            number = sum(bool(self._tell_op(op)) for op in found.before) + 1
            head, label = [Row(phrase("step_number", number=number), "", self._tell_op(found.op))], ""
        return [*head, Row(label, phrase("yours"), yours), Row("", phrase("flink"), other), caret]

    def _fields(self, fields: Mapping[str, Any], shown: Sequence[str]) -> str:
        return "   ".join(filter(None, (self._tell_field(each, fields[each]) for each in shown if each in fields)))

    def tell(self, event: list[Any]) -> str:
        """An event in words: the operation, and its fields."""
        call = self._call(str(event[0]))
        if len(event) < 2 or not isinstance(event[1], dict):
            return phrase("no_return", call=call)
        shown = [name for name, value in event[1].items() if self._shown(name, value)]
        return f"{call}   {self._fields(event[1], shown)}".rstrip()


def _alone(value: Any) -> str:
    """A value as text; of a list with one member, the member."""
    return str(value[0] if isinstance(value, list) and len(value) == 1 else value)
