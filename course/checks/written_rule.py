"""The check of every "write the rule" exercise: a learner's rule, graded as our own graders are, by what it kills.

A rule passes if it turns down two of three wrong parts that the learner has not seen and spares two right ones. The
seed chooses them: the right ones from those of the exercise that asks for such a part, the wrong ones, each with the
belief behind it, from the `unseen.toml` of its own. `harness.py` beside that defines `under_test(part)`, which makes
what the rule is given, and `tried(given)`, words for what the rule has tried.

A rule that kills too little is told what it never tried, in the order of `worth_trying`: the message is "never_" and
the word. The belief of a wrong part is a phrase of the exercise, under the part's name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from course.checks.common import ending_finding
from course.curriculum.messages import phrase
from course.curriculum.specimens import Specimen, harness, right_answers, unseen
from course.curriculum.wrapping import pad
from course.grading.rules import Case, Finding, Row, Rule, Seen

__all__ = ["NUM_RIGHT", "NUM_TO_KILL", "NUM_WRONG", "WrittenRuleCheck", "rule_case"]

NUM_RIGHT, NUM_WRONG, NUM_TO_KILL = 2, 3, 2
_KEEPS, _BREAKS = ["rule", "keeps"], ["rule", "breaks"]


def rule_case(exercise: str, member: str, parts: Sequence[Specimen], rule: str = "A", ran: str = "") -> Case:
    """A case that asks the rule about these parts."""
    asked = [["part", each.source, member] for each in parts]
    return Case(rule, [["harness", harness(exercise)], *asked], ran or phrase("asked", exercise, number=len(parts)))


def _mixed(some: Sequence[Specimen], others: Sequence[Specimen], generator: random.Random) -> list[Specimen]:
    """All of both, each kind in its order."""
    are_some = [True] * len(some) + [False] * len(others)
    generator.shuffle(are_some)
    left = {True: iter(some), False: iter(others)}
    return [next(left[is_some]) for is_some in are_some]


def _parts(case: Case) -> list[list[Any]]:
    """The operations that ask about a part."""
    return [op for op in case.ops if op[0] == "part"]


class WrittenRuleCheck:
    """The check of one exercise.

    `parts` is the exercise that asks for the parts the rule is about; `member` is what such a part must have, such as
    "get_next_record".
    """

    rules: Sequence[Rule] = (Rule("A"), Rule("B"), Rule("C"))

    def __init__(self, exercise: str, parts: str, member: str, worth_trying: Sequence[str]) -> None:
        self.exercise = exercise
        self.parts = parts
        self.member = member
        self.worth_trying = worth_trying

    def chosen(self, seed: int) -> tuple[list[Specimen], list[Specimen]]:
        """The right and the wrong parts of this seed."""
        generator = random.Random(f"sluice {self.exercise} {seed}")
        return generator.sample(right_answers(self.parts), NUM_RIGHT), generator.sample(
            unseen(self.exercise), NUM_WRONG
        )

    def cases(self, seed: int) -> list[Case]:
        """A part that is right, one that is wrong, and each again behind the other: a verdict is about one part.

        Then all together, once for each of the two other rules. Where they stand says nothing of them: for rule B a
        wrong one comes first, for rule C the seed mixes them.
        """
        right, wrong = self.chosen(seed)
        all_of_them = phrase("all_parts", self.exercise, right=NUM_RIGHT, wrong=NUM_WRONG)
        one = phrase("one_part", self.exercise)
        first = [rule_case(self.exercise, self.member, each[:1], "A", one) for each in (right, wrong)]
        for each, other in ((right[0], wrong[0]), (wrong[0], right[0])):
            among = rule_case(self.exercise, self.member, [each, other, each, other])
            first.append(replace(among, ops=[*among.ops[:4], ["forget"], among.ops[4]]))
        generator = random.Random(f"sluice {self.exercise} order {seed}")
        orders = {"B": [*wrong[:1], *_mixed(right, wrong[1:], generator)], "C": _mixed(right, wrong, generator)}
        return [*first, *(rule_case(self.exercise, self.member, orders[each], each, all_of_them) for each in "BC")]

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """What a rule that misses nothing says; no rule has to be that good."""
        return [[_KEEPS if self._is_right(op[1]) else _BREAKS for op in _parts(case)] for case in cases]

    def _is_right(self, source: str) -> bool:
        return any(each.source == source for each in right_answers(self.parts))

    def smaller(self, case: Case) -> Iterator[Case]:
        """There is nothing smaller than a part."""
        return iter(())

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """What is wrong with the verdicts under this rule."""
        said: list[Any] = [event[1] if len(event) == 4 else None for event in seen.events]
        if seen.ending is not None or len(said) < len(expected) or None in said:
            return ending_finding(self.exercise, rule.id, case, seen, (), phrase("your_rule", self.exercise))
        verdicts = {(op[1], verdict) for op, verdict in zip(_parts(case), said, strict=True)}
        has_changed = len(verdicts) > len({source for source, _ in verdicts})
        code = "remembers" if has_changed else self._broken(rule.id, said, expected)
        if code is None:
            return None
        if code.startswith("kills"):
            words = {word for event in seen.events for word in event[2]}
            code = next((f"never_{word}" for word in self.worth_trying if word not in words), code)
        killed = sum(verdict != "keeps" for verdict, want in zip(said, expected, strict=True) if want == _BREAKS)
        values = {"got": said[0].removeprefix("?"), "killed": str(killed), "of": str(NUM_WRONG),
                  "least": str(NUM_TO_KILL)}  # fmt: skip
        lines = [event[3] for event, want in zip(seen.events, expected, strict=False) if want == _KEEPS]
        line = next((each for each in lines if isinstance(each, int)), None) if rule.id == "B" else None
        return Finding(rule.id, code, case.ran, self._rows(rule.id, case, said, expected), values, line=line)

    def _broken(self, rule: str, said: Sequence[str], expected: Sequence[Any]) -> str | None:
        if rule == "A":
            return None if said[0] in ("keeps", "breaks") else "no_verdict" if said[0] == "nothing" else "other_verdict"
        spared = [verdict == "keeps" for verdict in said]
        right = [is_spared for is_spared, want in zip(spared, expected, strict=True) if want == _KEEPS]
        wrong = [is_spared for is_spared, want in zip(spared, expected, strict=True) if want == _BREAKS]
        if rule == "B":
            if all(right):
                return None
            if not any(spared):
                return "turns_all_down"
            return "turned_round" if not any(right) and all(wrong) else "turns_right_down"
        killed = wrong.count(False)
        if killed >= NUM_TO_KILL:
            return None
        return "kills_some" if killed else "kills_none"

    def _rows(self, rule: str, case: Case, said: Sequence[str], expected: Sequence[Any]) -> list[Row]:
        """The parts that this rule is about, each on a line: what was said of it, and what it is."""
        about = [
            each
            for each in zip(said, expected, _parts(case), strict=True)
            if rule == "A" or each[1] == (_KEEPS if rule == "B" else _BREAKS)
        ]
        rows = []
        for number, (verdict, want, op) in enumerate(about, 1):
            what = phrase("right_part" if want == _KEEPS else "wrong_part", self.exercise)
            text = pad(self._told(verdict), 13) + what
            rows.append(Row(phrase("part", self.exercise, number=number), phrase("yours"), text))
            if rule == "C" and verdict == "keeps":
                name = next(each.name for each in unseen(self.exercise) if each.source == op[1])
                rows.append(Row("", "", phrase("belief", self.exercise, belief=phrase(name, self.exercise))))
        return rows

    def _told(self, verdict: str) -> str:
        is_known = verdict in ("keeps", "breaks", "nothing")
        return phrase(f"says_{verdict}", self.exercise) if is_known else verdict.removeprefix("?")

    def tell(self, event: list[Any]) -> str:
        """A verdict in words."""
        if len(event) != 4:
            return phrase("no_return", call=phrase("your_rule", self.exercise))
        return self._told(str(event[1]))
