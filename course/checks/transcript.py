"""The check of an exercise: operations, the events they lead to, the first difference, and the belief behind it.

A driver runs the operations of a case with a part, the learner's or the reference part, and appends events to a list:

    [CALL]                          before an operation: what of the part it calls, as a learner knows it
    [CALL, {FIELD: VALUE, …}]       after it: what came back and what can be seen, in plain values

so that an event without fields is a call that did not come back. A driver that takes an exception for an answer leaves
the exception itself in the field "raised". Nearly every driver leaves one event for each operation.

What an exercise brings: a driver, for each rule its cases, from the smallest on, and a function that names the belief
behind a difference. `words.py` says all in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from course.checks.common import ending_finding
from course.checks.difference import RAISED, Difference, error_of
from course.checks.words import CallWords, Words
from course.curriculum.messages import phrase, word
from course.grading.rules import Case, Finding, Rule, Seen
from course.grading.runner import GraderError
from course.grading.shrink import smaller_lists

__all__ = ["Belief", "Difference", "Driver", "Seeded", "TranscriptCheck"]

_NOT_OF_A_DRIVER = (ValueError, LookupError, ArithmeticError, TypeError, AttributeError)


class Driver(Protocol):
    """A module that runs cases."""

    def run_case(self, part: Any, case: list[Any], events: list[Any], /) -> None:
        """Run the operations of a case, appending what is seen to `events`."""
        ...


def _nothing_simpler(_op: Any) -> Iterable[Any]:
    return ()


Cases = Sequence[list[Any] | Case]

Belief = str | tuple[str, Mapping[str, str]]
"""The code of a message; and what else than `got`, `want` and `where` fills its blanks."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """The last rule, whose cases are made from the seed, and how one that fails is made smaller.

    Fields:
        rule: its letter.
        make: its cases, lists of operations; or `Case`s, which stay in their order.
        simpler: simpler forms of one operation.
        is_valid: whether a smaller case makes sense; that the reference part gets through it is asked of all.
        setup: operations of this name at the beginning of a case stay.
    """

    rule: str
    make: Callable[[int], Iterable[list[Any] | Case]]
    simpler: Callable[[Any], Iterable[Any]] = _nothing_simpler
    is_valid: Callable[[list[Any]], bool] = bool
    setup: str = "new"

    def smaller(self, ops: list[Any]) -> Iterator[list[Any]]:
        """Operations left out, or made simpler."""
        num_first = next((number for number, op in enumerate(ops) if op[0] != self.setup), len(ops))
        first, rest = ops[:num_first], ops[num_first:]
        for fewer in smaller_lists(rest, self.simpler):
            if fewer and self.is_valid([*first, *fewer]):
                yield [*first, *fewer]


def _as_it_is(_found: Finding, _op: Any) -> Finding:
    return _found


@dataclass
class TranscriptCheck:
    """The check of one exercise.

    Args:
        exercise: its id.
        part: the reference part.
        driver: the module that runs a case; a child gets the same text.
        by_rule: for each rule, in order, its cases: lists of operations; or `Case`s, which bring their own words. Or
            what reads them from a recording.
        belief: the code of the message for a difference.
        seeded: the last rule, if there is one whose cases are made from the seed.
        looks_at: the fields that a rule looks at; none: all.
        words: how all that is told.
        ending: the finding for an operation that did not come back, from the usual one.
    """

    exercise: str
    part: Any
    driver: Driver
    by_rule: Mapping[str, Cases | Callable[[], Cases]]
    belief: Callable[[Difference], Belief]
    seeded: Seeded | None = None
    looks_at: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: Words = None  # type: ignore[assignment]  # set below, since it needs the exercise
    ending: Callable[[Finding, Any], Finding] = _as_it_is

    def __post_init__(self) -> None:
        self.words = self.words or CallWords(self.exercise)
        letters = [*self.by_rule, *([self.seeded.rule] if self.seeded else [])]
        self.rules: Sequence[Rule] = tuple(map(Rule, letters))

    # -- what the judge asks -------------------------------------------------------------------------------

    def cases(self, seed: int) -> list[Case]:
        """All cases, in the order of the rules."""
        every = {rule: made() if callable(made) else made for rule, made in self.by_rule.items()}
        found = [self._case(rule, each) for rule, made in every.items() for each in made]
        if self.seeded is not None:
            made = list(self.seeded.make(seed))
            made.sort(key=lambda each: 0 if isinstance(each, Case) else len(each))
            found += [self._case(self.seeded.rule, each) for each in made]
        return found

    def _case(self, rule: str, made: list[Any] | Case) -> Case:
        return made if isinstance(made, Case) else Case(rule, made, self.words.told(made))

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """What the reference part does in each case; that it refuses is in its answer.

        Raises:
            GraderError: it does something else than a recorded Flink; the engine's own file has been changed.
        """
        found = [self.run(case.ops) for case in cases]
        for case, events in zip(cases, found, strict=True):
            if case.recorded is not None and not self.is_as_recorded(events, case):
                file = self.part.__module__.replace(".", "/")
                raise GraderError(
                    f"refimpl's {self.part.__name__} differs from the recorded Flink in {case.ran}; restore {file}.py"
                )
        return found

    def is_as_recorded(self, _events: list[Any], _case: Case) -> bool:
        """Whether the reference part did what Flink did."""
        return True

    def run(self, ops: list[Any]) -> list[Any]:
        """The events of the reference part."""
        events: list[Any] = []
        self.driver.run_case(self.part, ops, events)
        for event in events:
            event[-1].pop(RAISED, None)
        return events

    def smaller(self, case: Case) -> Iterator[Case]:
        """Of cases made from the seed: smaller ones, where the reference part gets through them."""
        if self.seeded is None or case.rule != self.seeded.rule:
            return
        for ops in self.seeded.smaller(case.ops):
            try:
                self.run(ops)
            except Exception:  # noqa: BLE001, S112 - too much was left out: an engine would never do that
                continue
            yield self._case(case.rule, ops)

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The first operation that breaks the rule, and the belief behind it."""
        seen, num_compared = self.aligned(rule, seen, expected)
        for index, want in enumerate(expected[:num_compared]):
            event = seen.events[index] if index < len(seen.events) else None
            if event is None or len(event) != len(want) or not isinstance(event[1], dict):
                return self.ended(rule, case, seen, expected, index)
            names, same = self._compared(rule.id, event[1], want[1])
            if names:
                return self._found(case, Difference(rule.id, case.ops, index, names, same, seen.events, expected))
        if seen.ending is not None:
            rows = self.words.before(case, expected, num_compared)
            return ending_finding(self.exercise, rule.id, case, seen, rows, phrase("the_end"))
        return None

    def aligned(self, _rule: Rule, seen: Seen, expected: list[Any]) -> tuple[Seen, int]:
        """What was seen, event by event beside what is expected, and how many of them count for the rule."""
        return seen, len(expected)

    def ended(self, rule: Rule, case: Case, seen: Seen, expected: list[Any], index: int) -> Finding:
        """The finding for an event that is missing, or not finished."""
        rows = self.words.before(case, expected, index)
        found = ending_finding(self.exercise, rule.id, case, seen, rows, self.words.where(expected[index]))
        return self.ending(found, case.ops[index] if index < len(case.ops) else None)

    def tell(self, event: list[Any]) -> str:
        """An event in words."""
        call = self.words.call(event)
        if len(event) < 2:
            return phrase("no_return", call=call)
        return self.words.tell(event) if isinstance(event[1], dict) else f"{call}   {str(event[1])[:60]}"

    # -- how it is found -----------------------------------------------------------------------------------

    def _compared(self, rule: str, got: Mapping[str, Any], want: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The fields that differ, and those that do not."""
        found: tuple[list[str], list[str]] = ([], [])
        for each in self.looks_at.get(rule) or [name for name in {**want, **got} if name != RAISED]:
            found[self.agree(each, got.get(each), want.get(each))].append(each)
        return found

    def agree(self, name: str, got: Any, want: Any) -> bool:
        """Whether one value of a field is as good as another."""
        return bool(got == want)

    def _found(self, case: Case, found: Difference) -> Finding:
        values = self.words.values(found)
        code = self._believed(found)
        if not isinstance(code, str):
            code, own = code
            values |= {name: word(value, self.exercise) for name, value in own.items()}
        rows = self.words.rows(found)
        if code == RAISED:
            raised = Seen([], {"problem": "raised", "error": error_of(found.events[found.index])})
            return ending_finding(self.exercise, found.rule, case, raised, rows, values["where"])
        return Finding(found.rule, code, self.words.ran(case, found), rows, values)

    def _believed(self, found: Difference) -> Belief:
        if found.is_unasked_refusal:
            return RAISED
        try:  # what a child says need not be what a driver writes
            return self.belief(found)
        except _NOT_OF_A_DRIVER:
            return "different"
