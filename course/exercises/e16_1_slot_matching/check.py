"""Exercise 16.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e16_1_slot_matching import driver
from refimpl.cluster.slot_matching import SlotMatching

__all__ = ["CHECK"]

_FAR = 70_000


def _case(words: str) -> list[Any]:
    """Operations in short: `request 3 before 1 near 0 2 / offer 3 at 0 / release 3`."""
    return [_op_of(each.split()) for each in words.split("/")]


def _op_of(words: Sequence[str]) -> list[Any]:
    name, number, *rest = words
    if name == "request":
        before = int(rest[1]) if rest[:1] == ["before"] else 0
        near = rest[rest.index("near") + 1 :] if "near" in rest else []
        return [name, int(number), before, [int(each) for each in near]]
    return [name, int(number), *map(int, rest[1:])]


def _row(name: str, numbers: Sequence[int], rest: str = "") -> str:
    return " / ".join(f"{name} {number} {rest}" for number in numbers)


_BY_RULE = {
    "A": [
        "request 1 / offer 1 at 0", "offer 7 at 0 / request 1", "request 1", "offer 7 at 2",
        "request 1 / request 2 / offer 1 at 0 / offer 2 at 1 / offer 7 at 1 / request 3",
        "offer 7 at 0 / offer 8 at 0 / request 1 / request 2",
    ],
    "B": [
        "request 1 / request 2 / offer 2 at 0", "request 1 / request 2 / request 3 / offer 3 at 0 / offer 2 at 0",
        "request 1 / request 2 / offer 9 at 0", "request 5 / request 3 / request 4 / offer 9 at 1 / offer 8 at 0",
        "request 1 / request 2 / offer 9 at 0 / offer 1 at 0 / offer 2 at 0 / request 3",
        "request 3 / request 1 / offer 9 at 0 / offer 3 at 0 / request 2",
    ],
    "C": [
        "offer 7 at 0 / request 1 / request 2", "request 1 / offer 1 at 0 / request 2",
        "offer 7 at 0 / request 1 / request 2 before 7", "request 1 / offer 1 at 0 / request 2 near 0",
        "offer 7 at 0 / request 1 / request 2 / offer 7 at 0",
        "request 1 / offer 1 at 0 / request 2 / offer 1 at 0 / offer 2 at 0",
        "offer 7 at 0 / offer 7 at 0 / request 1 / request 2",
        "offer 7 at 0 / request 1 / offer 7 at 0 / request 2",
    ],
    "D": [
        "request 1 / offer 1 at 0 / release 1 / request 2", "offer 7 at 0 / request 1 / release 7 / request 2",
        "request 1 / offer 1 at 0 / request 2 / request 3 / release 1 / offer 8 at 0",
        "request 1 / offer 1 at 0 / request 3 / request 2 / release 1 / release 1",
        "offer 7 at 0 / release 7 / request 1 / request 2",
        "offer 7 at 0 / request 1 / release 7 / release 7 / request 2 / request 3",
        "request 1 / request 2 / offer 9 at 0 / offer 2 at 0 / request 3 / request 4 / release 9 / release 2",
        "request 1 / release 7", "release 7 / request 1",
    ],
    "E": [
        "offer 7 at 0 / offer 8 at 1 / request 1 before 8", "offer 7 at 0 / offer 8 at 1 / request 1 near 1",
        "offer 8 at 0 / offer 7 at 1 / request 1",
        "offer 7 at 0 / offer 8 at 1 / offer 9 at 2 / request 1 before 9 near 1",
        "offer 7 at 0 / offer 8 at 1 / offer 9 at 2 / request 1 before 5 near 3 2",
        "offer 9 at 0 / offer 8 at 2 / offer 7 at 2 / request 1 near 2 / request 2 near 2 / request 3 near 2",
        "offer 7 at 0 / offer 8 at 1 / offer 9 at 2 / request 1 near 2 1",
        "offer 9 at 0 / offer 8 at 0 / request 1 / request 2 / release 8 / release 9 / request 3 / request 4",
        "offer 7 at 0 / offer 8 at 1 / request 1 before 7 / request 2 before 7 near 0 / request 3 before 7",
        "offer 7 at 0 / offer 8 at 0 / request 1 before 5 near 4",
    ],
    "F": [
        "request 1 / withdraw 1 / offer 1 at 0", "request 1 / request 2 / withdraw 1 / offer 1 at 0 / offer 2 at 0",
        "offer 7 at 0 / remove 7 / request 1", "offer 7 at 0 / request 1 / remove 7 / request 2",
        "offer 7 at 0 / request 1 / remove 7 / release 7 / request 2", "request 1 / withdraw 2 / offer 9 at 0",
        "offer 7 at 0 / request 1 / withdraw 1 / request 2 / release 7", "remove 7 / offer 7 at 0 / request 1",
        "offer 7 at 0 / request 1 / remove 7 / offer 7 at 1 / request 2 near 1 / request 3",
        "offer 7 at 0 / offer 8 at 1 / remove 7 / offer 7 at 1 / request 1",
        "request 1 / request 2 / request 3 / withdraw 2 / withdraw 2 / offer 2 at 0 / offer 9 at 0 / offer 8 at 0",
        "offer 7 at 0 / remove 7 / offer 7 at 1 / offer 8 at 0 / request 1 near 0 / request 2",
    ],
    "G": [
        f"offer {_FAR} at {_FAR} / offer {_FAR + 1} at 1 / request 1 before {_FAR + 1} / request 2 near {_FAR}",
        f"{_row('request', range(1, 61))} / {_row('offer', range(60, 0, -1), 'at 0')}",
        f"{_row('offer', range(300, 260, -1), 'at 3')} / {_row('request', range(1, 42))} / release 280",
    ],
}  # fmt: skip
_CASES = {rule: [_case(each) for each in cases] for rule, cases in _BY_RULE.items()}


# -- what stands when an operation begins ----------------------------------------------------------------


@dataclass
class _Standing:
    """What a pool knows: where each slot is and whom it serves, who waits, and what was."""

    at: dict[int, int] = field(default_factory=dict)
    serves: dict[int, int | None] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    asked: set[int] = field(default_factory=set)
    withdrawn: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    lost_in_use: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)

    @classmethod
    def after(cls, ops: Sequence[Any], events: Sequence[Any]) -> _Standing:
        """What is known after these operations, of which the reference part said this."""
        found = cls()
        for op, event in zip(ops, events, strict=False):
            found.do(op, event[1].get("out", "none"))
        return found

    def do(self, op: Sequence[Any], out: str) -> None:
        name, number, *rest = op
        other = None if out == "none" else int(out)
        match name:
            case "request":
                self.asked.add(number)
                if other is None:
                    self.waiting.append(number)
                else:
                    self.serves[other] = number
            case "offer" if number not in self.at:
                self.at[number] = rest[0]
                self.removed.discard(number)
                self._give(number, other)
            case "release" if self.serves.get(number) is not None:
                self.released.add(number)
                self._give(number, other)
            case "withdraw" if number in self.waiting:
                self.waiting.remove(number)
                self.withdrawn.add(number)
            case "remove" if number in self.at:
                if self.serves[number] is not None:
                    self.lost_in_use.add(number)
                del self.at[number], self.serves[number]
                self.removed.add(number)

    def _give(self, slot: int, request: int | None) -> None:
        self.serves[slot] = request
        if request is not None:
            self.waiting.remove(request)


def _is_valid(ops: list[Any]) -> bool:
    """Whether a job could do that: each request has an id of its own, and no slot is anywhere else than before."""
    asked = [op[1] for op in ops if op[0] == "request"]
    where: dict[int, int] = {}
    for op in ops:
        if op[0] == "remove":
            where.pop(op[1], None)
        if op[0] == "offer" and where.setdefault(op[1], op[2]) != op[2]:
            return False
    return bool(ops) and len(asked) == len(set(asked))


def _seeded(seed: int) -> Iterator[list[Any]]:
    """What a job could do with few slots and many requests; slots come under the ids of requests, and older ones."""
    generator = random.Random(f"sluice 16.1 {seed}")
    for _ in range(80):
        matching, standing = SlotMatching(), _Standing()
        ops: list[Any] = []
        for _ in range(generator.randint(3, 28)):
            op = _any_op(generator, standing)
            events: list[Any] = []
            driver.run_case(lambda matching=matching: matching, [op], events)
            standing.do(op, events[0][1].get("out", "none"))
            ops.append(op)
        yield ops


def _any_op(generator: random.Random, standing: _Standing) -> list[Any]:
    slots = list(standing.at)
    name = generator.choice(("request", "request", "request", "offer", "offer", "release", "release", "rare"))
    if name == "rare":
        name = generator.choice(("withdraw", "remove", "again"))
    if name == "request":
        before = generator.choice([0, *slots, *standing.removed])
        near = generator.sample(range(4), generator.choice((0, 0, 1, 2)))
        return [name, len(standing.asked) + 1, before, near]
    if name == "again" and slots:
        slot = generator.choice(slots)
        return ["offer", slot, standing.at[slot]]
    if name == "withdraw" and standing.asked:
        return [name, generator.choice(sorted(standing.asked))]
    if name in ("release", "remove") and slots:
        return [name, generator.choice(slots)]
    new = [each for each in [*standing.waiting, *standing.removed, *standing.asked] if each not in standing.at]
    unheard = next(number for number in count(101) if number not in standing.at)
    return ["offer", generator.choice([*new, unheard]), generator.randrange(4)]


# -- beliefs -----------------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = str(found.got.get("out", "none")), str(found.want["out"])
    standing = _Standing.after(found.before, found.expected)
    values = {"got": _field("out", got), "want": _field("out", want), "number": str(found.op[1]),
              "waiting": ", ".join(map(str, standing.waiting)) or phrase("nobody", "16.1")}  # fmt: skip
    if got.startswith("?"):
        return ("true_or_false" if got in ("? True", "? False") else "no_id"), values
    if found.op[0] == "request":
        return _on_request(found.op, got, want, standing), values
    return _on_slot(found.op, got, want, standing), values


def _on_request(op: Sequence[Any], got: str, want: str, standing: _Standing) -> str:
    if got == "none":
        if int(want) in standing.removed | standing.released:
            return "never_free_again"
        if op[2] and op[2] not in standing.at:
            return "waits_for_its_own"
        return "used_for_nobody" if any(each for each in standing.serves.values()) else "waits_for_nothing"
    number = int(got)
    if number == op[1] and number not in standing.at:
        return "gives_the_request"
    if number in standing.removed:
        return "lost_in_use" if number in standing.lost_in_use else "hands_out_the_lost"
    if number not in standing.at:
        return "unknown_slot"
    if standing.serves[number] is not None:
        return "handed_out_twice"
    near, wanted = op[3], int(want)
    if wanted == op[2]:
        return "near_before_own" if standing.at[number] in near else "forgets_before"
    if standing.at[wanted] in near and standing.at[number] not in near:
        return "forgets_near" if standing.at[wanted] == near[0] else "near_is_one"
    return "smallest_slot" if number < wanted else "not_the_first"


def _on_slot(op: Sequence[Any], got: str, want: str, standing: _Standing) -> str:
    name, slot = op[0], op[1]
    is_repeated = name == "offer" and slot in standing.at
    if got == "none":
        return "leaves_waiting" if name == "offer" else "release_serves_nobody"
    number = int(got)
    if number == slot and number not in standing.asked:
        return "gives_the_slot"
    if number in standing.waiting:
        if is_repeated:
            return "offered_again" if standing.serves[slot] is not None else "unknown_request"
        if name == "release" and want == "none":
            return "released_twice"
        if int(want) == slot:
            return "forgets_own_id"
        return "smallest_request" if number == min(standing.waiting) else "not_the_oldest"
    if number in standing.withdrawn:
        return "serves_the_withdrawn"
    return "serves_twice" if number in standing.asked else "unknown_request"


# -- words -------------------------------------------------------------------------------------------------


def _op(op: Sequence[Any]) -> str:
    name, number, *rest = op
    if name != "request":
        return phrase(f"op_{name}", "16.1", a=number, b=rest[0] if rest else "")
    words = [phrase("op_request", "16.1", a=number)]
    if rest[0]:
        words.append(phrase("op_before", "16.1", a=rest[0]))
    if rest[1]:
        words.append(phrase("op_near", "16.1", a=", ".join(f"tm-{each}" for each in rest[1])))
    return " ".join(words)


def _field(_name: str, value: Any) -> str:
    told = str(value)
    return phrase("told_none", "16.1") if told == "none" else told.removeprefix("? ")


CHECK = TranscriptCheck(
    "16.1", SlotMatching, driver, _CASES, _belief, Seeded("H", _seeded, is_valid=_is_valid, setup=""),
    words=FieldWords("16.1", _op, _field),
)  # fmt: skip
