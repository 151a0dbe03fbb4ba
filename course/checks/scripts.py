"""A check for parts that keep a state: each operation is followed by a look at everything that can be seen of it.

What an exercise brings: a driver (see `drive_credit.py`), for each rule its cases, and a function that names the belief
behind a difference. A driver appends one event for each operation of a case,

    [WHERE]                                       before it: the method it calls
    [WHERE, [[GROUP, [[FIELD, VALUE], …]], …]]    after it: what can be seen now, in plain values

so that all the rest is the same for all such exercises. What the operations, groups and fields are called stands in the
lesson's catalogue, under "phrases": `op_…`, `group_…`, `field_…`; and `value_…` what stands for a value in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.checks.driven import DrivenCheck
from course.curriculum.messages import phrase, word
from course.grading.rules import Case, Finding, Row, Rule
from course.grading.shrink import smaller_lists

__all__ = ["Difference", "Found", "ScriptCheck", "script", "scripts"]

Found = tuple[str, dict[str, str]]
"""What is said of a difference: the code of its message, and what fills the blanks."""

_MOST_GROUPS = 2
_WIDTH = 73

State = dict[str, dict[str, Any]]
"""What can be seen after an operation: group -> field -> value."""


def script(words: str) -> list[Any]:
    """A case in short: `10 20 / hand 7 / written 3`."""
    ops = [each.split() for each in words.split("/")]
    return [[name, *map(int, rest)] for name, *rest in ops]


def scripts(first: str, rules: Mapping[str, Sequence[str]]) -> dict[str, list[list[Any]]]:
    """The cases of each rule, written in short; all begin with the operation `first`."""
    return {rule: [script(f"{first} {words}") for words in every] for rule, every in rules.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation after which something else is seen: what was there before, what is, what should be.

    `ops` are those up to it.
    """

    rule: str
    ops: Sequence[Sequence[Any]]
    before: State
    got: State
    want: State

    @property
    def op(self) -> Sequence[Any]:
        """The operation it was."""
        return self.ops[-1]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Where the two differ, in their order."""
        return [
            (group, field)
            for group, fields in self.want.items()
            for field, value in fields.items()
            if self.got.get(group, {}).get(field) != value
        ]


class ScriptCheck(DrivenCheck):
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part, from which the driver makes what it needs.
        run_case: the driver.
        cases: for each rule, in order, its cases: lists of operations.
        belief: the code of the message for a difference, and the values for its blanks.
        seeded: the last rule and what makes its cases, if there is one.
        num_first: so many operations of a case set it up, and stay when it is made smaller.
        simpler: simpler forms of one operation.
        values: what stands in the blanks of an operation's words, from the operation and the first one of its case;
            by default what it was given, in order, as a, b, c, d.
    """

    def __init__(
        self,
        exercise: str,
        part: Any,
        run_case: Callable[[Any, list[Any], list[Any]], None],
        cases: Mapping[str, Sequence[list[Any]]],
        belief: Callable[[Difference], tuple[str, dict[str, str]]],
        seeded: tuple[str, Callable[[int], Iterable[list[Any]]]] | None = None,
        num_first: int = 1,
        simpler: Callable[[Any], Iterable[Any]] = lambda _: (),
        values: Callable[[Sequence[Any], Sequence[Any]], Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(exercise, part, run_case, cases, seeded)
        self._belief, self._num_first, self._simpler = belief, num_first, simpler
        self._values = values or (lambda op, _: dict(zip("abcd", op[1:], strict=False)))

    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Operations left out or made simpler, where the reference part allows it."""
        first, rest = ops[: self._num_first], ops[self._num_first :]
        for fewer in smaller_lists(rest, self._simpler):
            try:
                self._run_case(self._part, [*first, *fewer], [])
            except Exception:  # noqa: BLE001, S112 - too much was left out: an engine would never do that
                continue
            yield [*first, *fewer]

    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        if event == expected[index]:
            return None
        before = _state(expected[index - 1]) if index else {}
        found = Difference(rule.id, case.ops[: index + 1], before, _state(event), _state(expected[index]))
        code, values = self._belief(found)
        values = {name: word(value, self.exercise) for name, value in values.items()}
        return Finding(rule.id, code, self._told(found.ops), self._rows(found), values)

    def tell(self, event: list[Any]) -> str:
        """What can be seen after an operation, in one line."""
        if len(event) != 2:
            return phrase("no_return", call=word(event[0], self.exercise))
        groups = [f"{self._group(group)}: {self._fields(fields)}" for group, fields in _state(event).items()]
        return f"{word(event[0], self.exercise)}  {'; '.join(groups)}"

    # -- words ---------------------------------------------------------------------------------------------

    def _told(self, ops: Sequence[Any]) -> str:
        """Operations in words, in their order; equal ones that follow each other are told once."""
        words: list[str] = []
        counts: list[int] = []
        for op in ops:
            told = phrase(f"op_{op[0]}", self.exercise, **self._values(op, ops[0]))
            if words and words[-1] == told:
                counts[-1] += 1
            else:
                words.append(told)
                counts.append(1)
        shown = [f"{told} (× {count})" if count > 1 else told for told, count in zip(words, counts, strict=True)]
        text = "; ".join(shown)
        return text if len(text) <= 150 else f"{shown[0]}; … {text[-(140 - len(shown[0])) :]}"

    def _group(self, group: str) -> str:
        name, _, number = group.partition(" ")
        return phrase(f"group_{name}", self.exercise, number=number)

    def _fields(self, fields: Mapping[str, Any]) -> str:
        return " · ".join(
            f"{phrase(f'field_{name}', self.exercise)} {word(str(value), self.exercise)}"
            for name, value in fields.items()
        )

    def _rows(self, found: Difference) -> list[Row]:
        """What differs, yours above Flink's."""
        rows: list[Row] = []
        for group in list(dict.fromkeys(group for group, _ in found.fields))[:_MOST_GROUPS]:
            for who, state in (("yours", found.got), ("flink", found.want)):
                text = self._fields(state.get(group, {}))
                rows.append(Row(self._group(group)[:13] if who == "yours" else "", phrase(who), text[:_WIDTH]))
        return rows


def _state(event: list[Any]) -> State:
    """The groups of a finished event; those of something else are empty."""
    try:
        return {str(group): {str(field): value for field, value in fields} for group, fields in event[1]}
    except (IndexError, TypeError, ValueError):
        return {}
