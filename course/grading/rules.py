"""What a check is made of: cases to run, rules to hold, findings to tell.

A rule exists for one misconception or a family of them. Its cases go from small to large, and the
first one that differs is what the learner sees; so the order of cases is part of the teaching.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

__all__ = ["Case", "Check", "Finding", "Row", "Rule", "RuleStatus", "Seen", "Status"]


class Status(Enum):
    """How a whole check ended."""

    NOT_STARTED = "not_started"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"
    PASSED = "passed"


class RuleStatus(Enum):
    """How one rule ended. NOT_TRIED: the code could not be loaded, or the run did not get there."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of an exercise. `id` is a letter; the texts are in the message catalogue."""

    id: str


@dataclass(frozen=True, slots=True)
class Case:
    """One input: operations as plain lists, what to call it, and recorded answers if there are any."""

    rule: str
    ops: list[Any]
    ran: str
    recorded: Mapping[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the child saw in one case: the events, and how it ended if not by itself.

    `ending` is {"problem": raised | timeout | fenced | reference_part | not_plain, "error": …}.
    """

    events: list[Any]
    ending: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the comparison: a label, whose it is, the text, and a note at the end."""

    label: str
    who: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a rule failed: the code names the misconception, `values` fill the message's blanks."""

    rule: str
    code: str
    ran: str
    rows: Sequence[Row] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    status: Status = Status.FAILED
    line: int | None = None


class Check(Protocol):
    """What the judge needs from an exercise."""

    exercise: str
    rules: Sequence[Rule]
    driver: str

    def cases(self, seed: int) -> list[Case]:
        """All cases, in the order of the rules."""
        ...

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """What the reference part does in each case, as events."""
        ...

    def smaller(self, case: Case) -> Iterable[Case]:
        """Smaller inputs like this one, for `shrink`; none where cases were chosen by hand."""
        ...

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The finding where `seen` breaks the rule, or None where it holds."""
        ...

    def tell(self, event: list[Any]) -> str:
        """One event in words, for the step-by-step comparison."""
        ...
