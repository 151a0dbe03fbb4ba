"""Where a part came to something else than the reference part, before it is said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["RAISED", "Difference", "error_of", "fields_of"]

RAISED = "raised"
"""The field of an exception that is an answer; and the code of the message where that is all there is to say."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event that came to something else than the reference part's.

    Fields:
        rule: the letter of the rule.
        every_op: all operations of the case.
        index: the number of the event, from 0.
        names: the fields that differ, of those that the rule looks at; never empty.
        same: those that do not.
        events, expected: all events, the part's and the reference part's.
    """

    rule: str
    every_op: Sequence[Any]
    index: int
    names: Sequence[str]
    same: Sequence[str]
    events: Sequence[Any]
    expected: Sequence[Any]

    @property
    def ops(self) -> Sequence[Any]:
        """The operations up to this one, where each leaves one event."""
        return self.every_op[: self.index + 1]

    @property
    def before(self) -> Sequence[Any]:
        """The operations before this one."""
        return self.every_op[: self.index]

    @property
    def op(self) -> Any:
        """The operation."""
        return self.every_op[self.index]

    @property
    def call(self) -> str:
        """What of the part it calls."""
        return str(self.expected[self.index][0])

    @property
    def got(self) -> Mapping[str, Any]:
        """What was seen after it, field by field."""
        return fields_of(self.events[self.index])

    @property
    def want(self) -> Mapping[str, Any]:
        """What should have been."""
        return fields_of(self.expected[self.index])

    @property
    def was(self) -> Mapping[str, Any]:
        """What could be seen before it, when all was still right."""
        return fields_of(self.expected[self.index - 1]) if self.index else {}

    @property
    def field(self) -> str:
        """The first field that differs."""
        return self.names[0]

    @property
    def values(self) -> tuple[Any, Any]:
        """The values of that field: the part's and the right one."""
        return self.got.get(self.field), self.want.get(self.field)

    @property
    def answers(self) -> tuple[Any, Any]:
        """What the call gave, and should have."""
        return self.got.get("answer", ""), self.want.get("answer", "")

    @property
    def is_unasked_refusal(self) -> bool:
        """Whether the answer is an exception, in the plain form of `drive_calls.py`, and should be none."""
        got, want = (isinstance(each, list) and each[:1] == ["raises"] for each in self.answers)
        return got and not want

    @property
    def raised(self) -> str:
        """The text of the exception, if the answer is one."""
        error = error_of(self.events[self.index])
        return "" if error is None else str(error.get("text"))


def fields_of(event: Sequence[Any]) -> Mapping[str, Any]:
    """What an event shows."""
    found: Mapping[str, Any] = event[1]
    return found


def error_of(event: Sequence[Any]) -> Mapping[str, Any] | None:
    """The exception of an event, if its answer is one."""
    error = event[1].get(RAISED)
    return error if isinstance(error, dict) else None
