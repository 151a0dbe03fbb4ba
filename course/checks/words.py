"""How a check tells what was done and seen: operations, events, and a difference between two events.

`StateWords` takes all words from the catalogue of the exercise. The others are for parts whose operations and answers
are written as Python writes them, and for operations that need more than a phrase with blanks.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from course.checks import drive_calls
from course.checks.difference import Difference
from course.curriculum.messages import phrase, word
from course.curriculum.wrapping import cut, width
from course.grading.rules import Case, Row

__all__ = ["CallWords", "FieldWords", "StateWords", "TextWords", "Words", "caret", "joined", "pair", "value"]

_MOST_FIELDS = 2
_BEFORE = 24
_BYTES = re.compile(r"[0-9a-f]{2}(?: (?:\| )?[0-9a-f]{2})*")


def joined(told: Sequence[str], most: int) -> str:
    """Operations in a line of at most `most` columns; of more, the first ones and dots."""
    between = phrase("between_steps")
    line = between.join(told)
    if width(line) <= most:
        return line
    whole = cut(line, most).rpartition(between)[0]
    return f"{whole}{between}…" if whole else cut(line, most - 1) + "…"


def pair(label: str, yours: str, right: str, whose: str = "flink") -> list[Row]:
    """Two texts, one above the other."""
    return [Row(label, phrase("yours"), yours), Row("", phrase(whose), right)]


def around(yours: str, right: str, columns: int, fits: int) -> tuple[str, str, int]:
    """Two texts and where a caret stands below them; if one takes more than `fits`, so many columns near to it.

    It stands below the first difference; of bytes below a whole one, not below one of its digits.
    """
    at = next((i for i, (a, b) in enumerate(zip(yours, right, strict=False)) if a != b), min(len(yours), len(right)))
    place = at - at % 3 if _BYTES.fullmatch(right) else at
    if max(width(yours), width(right)) <= fits:
        return yours, right, width(right[:place])
    start = max(0, at - _BEFORE)
    dots = "…" if start else ""
    shown, other = (dots + cut(each[start:], columns) for each in (yours, right))
    return shown, other, width(dots + right[start:place])


def caret(column: int) -> Row:
    """A line that points at the first difference."""
    return Row("", "", " " * column + "^^ " + phrase("first_difference"))


class Words(ABC):
    """How the check of one exercise tells things; this is what all ways have in common."""

    longest = 150

    def __init__(self, exercise: str) -> None:
        self.exercise = exercise

    def told(self, ops: Sequence[Any]) -> str:
        """The operations of a case, short enough for a line."""
        return joined([" ".join(map(str, op)) for op in ops], self.longest)

    @abstractmethod
    def tell(self, event: Sequence[Any]) -> str:
        """A finished event."""

    @abstractmethod
    def rows(self, found: Difference) -> list[Row]:
        """What differs, yours above the right one."""

    def values(self, found: Difference) -> dict[str, str]:
        """What fills the blanks of any message: `where`, and often `got` and `want`."""
        return {"where": self.where(found.expected[found.index])}

    def call(self, event: Sequence[Any]) -> str:
        """What an event called."""
        return word(str(event[0]), self.exercise) or phrase("your_function")

    def where(self, event: Sequence[Any]) -> str:
        """What of the part that was, as a learner knows it."""
        return self.call(event)

    def ran(self, case: Case, _found: Difference) -> str:
        """What was run until the difference was seen."""
        return case.ran

    def before(self, _case: Case, _expected: Sequence[Any], _index: int) -> list[Row]:
        """What came right before an operation that did not come back."""
        return []


# -- calls of a part, as Python writes them ----------------------------------------------------------------


class CallWords(Words):
    """Calls, and answers in the plain form of `drive_calls.py`."""

    width = 60

    def told(self, ops: Sequence[Any]) -> str:
        return joined([written(op) for op in ops], self.longest)

    def tell(self, event: Sequence[Any]) -> str:
        return f"{event[0]}  {value(event[1]['answer'])}"

    def rows(self, found: Difference) -> list[Row]:
        if found.is_unasked_refusal:
            return []
        yours, right, _ = around(*self._texts(found), self.width, fits=0)
        return pair(self.label(found), yours, right)

    def label(self, found: Difference) -> str:
        """What stands before the rows."""
        return self.call(found.expected[found.index])[:14]

    def values(self, found: Difference) -> dict[str, str]:
        got, want = self._texts(found)
        return {**super().values(found), "got": got, "want": want}

    def _texts(self, found: Difference) -> tuple[str, str]:
        yours, right = found.values
        as_told = (lambda given: value(["tuple", given])) if found.field == "given" else value
        return as_told(yours), as_told(right)


def written(op: Sequence[Any]) -> str:
    """One operation of `drive_calls.py` as Python writes it."""
    kind, *rest = op
    if kind in ("get", "set", "look"):
        shown = f"#{rest[0]}" if kind == "look" else rest[0]
        return f"{shown} = {rest[1]!r}" if kind == "set" else shown
    name, given = (phrase("new"), rest) if kind == "new" else (rest[0] or phrase("your_function"), rest[1:])
    return f"{name}({', '.join(value(drive_calls.plain(drive_calls.argument(each))) for each in given)})"


def value(plain: Sequence[Any]) -> str:
    """A plain value as Python writes it."""
    kind, content = plain[0], plain[1]
    if kind == "bytes":
        more = f" … ({plain[2]})" if len(plain) > 2 else ""
        return bytes.fromhex(content).hex(" ") + more or phrase("nothing")
    if kind in ("list", "tuple", "set", "frozenset"):
        inner = ", ".join(map(value, content))
        return f"[{inner}]" if kind == "list" else f"({inner})" if kind == "tuple" else f"{{{inner}}}"
    if kind == "dict":
        return "{" + ", ".join(f"{value(key)}: {value(each)}" for key, each in content) + "}"
    if kind == "raises":
        return phrase("raises", error=content)
    return repr(content) if kind == "str" else str(content)


# -- how things stand, as short texts of the driver --------------------------------------------------------


class TextWords(Words):
    """Fields that are texts: "" is nothing, and "!" stands before the name of an exception.

    `label` is an operation as Python writes it, which is also what the driver calls it.
    """

    longest = 112
    width = 62

    def __init__(self, exercise: str, label: Callable[[list[Any]], str]) -> None:
        super().__init__(exercise)
        self._label = label

    def call(self, event: Sequence[Any]) -> str:
        return str(event[0])

    def told(self, ops: Sequence[Any]) -> str:
        runs = [(call, len(list(each))) for call, each in groupby(map(self._label, ops))]
        return joined([f"{number} × {call}" if number > 1 else call for call, number in runs], self.longest)

    def tell(self, event: Sequence[Any]) -> str:
        shown = [
            f"{self._name(name)} {text(each)}"
            for name, each in event[1].items()
            if name != "raised" and each not in ("", "0")
        ]
        return f"{event[0]}   " + ", ".join(shown)

    def values(self, found: Difference) -> dict[str, str]:
        got, want = (str(each).removeprefix("!") for each in found.answers)
        return {**super().values(found), "got": got, "want": want}

    def rows(self, found: Difference) -> list[Row]:
        rows: list[Row] = []
        for name in [each for each in found.names if each in found.want][:_MOST_FIELDS]:
            texts = text(found.got.get(name, "")), text(found.want[name])
            yours, right, column = around(*texts, self.width, fits=self.width)
            rows += [*pair(self._name(name), yours, right, "right"), *([] if rows else [caret(column)])]
        return rows

    def _name(self, field: str) -> str:
        try:
            return phrase(field, self.exercise)
        except KeyError:
            return field[:14]


def text(written_down: object) -> str:
    """A text of a driver as people read it."""
    shown = str(written_down)
    return phrase("raises", error=shown[1:]) if shown.startswith("!") else shown or phrase("nothing")


# -- all that can be seen, group by group ------------------------------------------------------------------


class StateWords(Words):
    """Operations and groups of fields, in phrases of the exercise: `op_…`, `group_…`, `field_…`, and `value_…`.

    `blanks` gives what stands in the blanks of an operation's words, from the operation and the first one of its case;
    by default what it was given, in order, as a, b, c, d.
    """

    width = 73

    def __init__(
        self, exercise: str, blanks: Callable[[Sequence[Any], Sequence[Any]], Mapping[str, Any]] | None = None
    ) -> None:
        super().__init__(exercise)
        self._blanks = blanks or (lambda op, _first: dict(zip("abcd", op[1:], strict=False)))

    def told(self, ops: Sequence[Any]) -> str:
        """Equal ones that follow each other are told once; of many the first one, and the last ones."""
        every = [phrase(f"op_{op[0]}", self.exercise, **self._blanks(op, ops[0])) for op in ops]
        runs = [(each, len(list(same))) for each, same in groupby(every)]
        shown = [f"{each} (× {number})" if number > 1 else each for each, number in runs]
        between = phrase("between_steps")
        line = between.join(shown)
        if width(line) <= self.longest:
            return line
        end = cut(line[::-1], max(1, self.longest - 10 - width(shown[0])))[::-1]
        return f"{shown[0]}{between}… {end}"

    def ran(self, _case: Case, found: Difference) -> str:
        return self.told(found.ops)

    def tell(self, event: Sequence[Any]) -> str:
        groups = [f"{self._group(group)}: {self._fields(fields)}" for group, fields in event[1].items()]
        return f"{self.call(event)}  {phrase('between_steps').join(groups)}"

    def rows(self, found: Difference) -> list[Row]:
        rows: list[Row] = []
        for group in [each for each in found.names if each in found.want][:_MOST_FIELDS]:
            yours, right = (self._fields(each.get(group, {}))[: self.width] for each in (found.got, found.want))
            rows += pair(self._group(group)[:13], yours, right)
        return rows

    def _group(self, group: str) -> str:
        name, _, number = group.partition(" ")
        return phrase(f"group_{name}", self.exercise, number=number)

    def _fields(self, fields: object) -> str:
        if not isinstance(fields, Mapping):  # not of a driver of ours
            return str(fields)
        return " · ".join(
            f"{phrase(f'field_{name}', self.exercise)} {word(str(each), self.exercise)}"
            for name, each in fields.items()
        )


# -- fields in a line, for operations that need words of their own -----------------------------------------


class FieldWords(Words):
    """Operations and fields told by functions of the exercise; an empty text leaves one out.

    `is_shown` says whether a field belongs into the short form of an event.
    """

    longest = 158
    width = 72

    def __init__(
        self,
        exercise: str,
        op: Callable[[Sequence[Any]], str],
        field: Callable[[str, Any], str],
        is_shown: Callable[[str, Any], bool] = lambda _name, _value: True,
    ) -> None:
        super().__init__(exercise)
        self._op, self._field, self._is_shown = op, field, is_shown

    def told(self, ops: Sequence[Any]) -> str:
        return joined([each for each in map(self._op, ops) if each], self.longest)

    def tell(self, event: Sequence[Any]) -> str:
        shown = [name for name, each in event[1].items() if self._is_shown(name, each)]
        return f"{self.call(event)}   {self._line(event[1], shown)}".rstrip()

    def values(self, found: Difference) -> dict[str, str]:
        got, want = found.values
        told = self._field(found.field, got) if str(got).startswith("?") else _alone(got)
        return {**super().values(found), "got": told, "want": _alone(want)}

    def rows(self, found: Difference) -> list[Row]:
        yours, right = (self._line(each, [found.field, *found.same]) for each in (found.got, found.want))
        if max(width(yours), width(right)) > self.width:
            yours, right = (self._line(each, [found.field]) for each in (found.got, found.want))
        *_, column = around(yours, right, self.width, fits=width(yours + right))
        label = "" if found.before else self.call(found.expected[found.index])
        return [*self._step(found), *pair(label, yours, right), caret(column)]

    def _step(self, found: Difference) -> list[Row]:
        """Which operation it was, where it was not the first."""
        if not found.before:
            return []
        number = sum(bool(self._op(op)) for op in found.before) + 1
        return [Row(phrase("step_number", number=number), "", self._op(found.op))]

    def _line(self, fields: Mapping[str, Any], shown: Sequence[str]) -> str:
        return "   ".join(filter(None, (self._field(each, fields[each]) for each in shown if each in fields)))


def _alone(found: Any) -> str:
    """A value as text; of a list with one member, the member."""
    return str(found[0] if isinstance(found, list) and len(found) == 1 else found)
