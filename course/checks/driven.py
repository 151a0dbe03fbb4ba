"""What checks have in common whose driver leaves one event for each operation of a case.

The first event that breaks a rule is the finding. A check that derives from this one brings the words of a case, what
makes a case from the seed smaller, and what a difference between two events means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from course.checks.common import ending_finding
from course.curriculum.messages import phrase
from course.grading.rules import Case, Finding, Rule, Seen

__all__ = ["DrivenCheck"]


class DrivenCheck(ABC):
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part.
        run_case: the driver, which appends an event to its last argument for each operation.
        cases: for each rule, in order, its cases, lists of operations, from the smallest on.
        seeded: the last rule and what makes its cases from a seed, if there is one.
    """

    rules: Sequence[Rule]

    def __init__(
        self,
        exercise: str,
        part: Any,
        run_case: Callable[[Any, list[Any], list[Any]], None],
        cases: Mapping[str, Sequence[list[Any]]],
        seeded: tuple[str, Callable[[int], Iterable[list[Any]]]] | None = None,
    ) -> None:
        self.exercise = exercise
        self.rules = tuple(Rule(each) for each in (*cases, *((seeded[0],) if seeded else ())))
        self._part, self._run_case, self._cases, self._seeded = part, run_case, cases, seeded

    # -- what a check brings -------------------------------------------------------------------------------

    @abstractmethod
    def _told(self, ops: Sequence[Any]) -> str:
        """The operations of a case in words, short enough for a line."""

    @abstractmethod
    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Smaller lists of operations than this one, those that still make sense."""

    @abstractmethod
    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        """The finding if event number `index` breaks the rule; all before it kept it."""

    @abstractmethod
    def tell(self, event: list[Any]) -> str:
        """An event in words."""

    def _is_whole(self, event: list[Any], want: list[Any]) -> bool:
        """Whether the operation came back."""
        return len(event) == len(want)

    def _ended(self, rule: Rule, case: Case, seen: Seen, index: int, want: list[Any]) -> Finding:
        """The finding for operation number `index`, which did not come back."""
        return ending_finding(self.exercise, rule.id, case, seen, (), str(want[0]))

    # -- what the judge asks -------------------------------------------------------------------------------

    def cases(self, seed: int) -> list[Case]:
        """All cases, in the order of the rules."""
        found = [Case(rule, ops, self._told(ops)) for rule, every in self._cases.items() for ops in every]
        if self._seeded is not None:
            rule, make = self._seeded
            found += [Case(rule, ops, self._told(ops)) for ops in sorted(make(seed), key=len)]
        return found

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """What the reference part does in each case."""
        found: list[list[Any]] = []
        for case in cases:
            events: list[Any] = []
            self._run_case(self._part, case.ops, events)
            found.append(events)
        return found

    def smaller(self, case: Case) -> Iterator[Case]:
        """Of cases made from the seed: smaller ones."""
        if self._seeded is not None and case.rule == self._seeded[0]:
            for ops in self._shorter(case.ops):
                yield Case(case.rule, ops, self._told(ops))

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The first operation that breaks the rule, and the belief behind it."""
        for index, want in enumerate(expected):
            event = seen.events[index] if index < len(seen.events) else None
            if event is None or not self._is_whole(event, want):
                return self._ended(rule, case, seen, index, want)
            finding = self._difference(rule, case, index, event, expected)
            if finding is not None:
                return finding
        if seen.ending is not None:
            return ending_finding(self.exercise, rule.id, case, seen, (), phrase("the_end"))
        return None
