"""Exercise 12.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import Words, caret, pair
from course.curriculum.messages import phrase
from course.curriculum.wrapping import width
from course.exercises.e12_1_bottleneck import driver
from course.grading.rules import Case, Row
from refimpl.cluster.bottleneck import who_holds_back

__all__ = ["CHECK"]


def _job(rows: str, flows: str) -> list[list[Any]]:
    """A case written short: `0-0 20 0 80 3` is a place, its shares in percent and its queue; `0-0>1-0` who sends."""
    loads = [[_place(place), *map(int, numbers)] for place, *numbers in (each.split() for each in rows.split(","))]
    return [["find", loads, [[_place(end) for end in each.split(">")] for each in flows.split()]]]


def _place(text: str) -> list[int]:
    return [int(number) for number in text.split("-")]


_CHAIN = "0-0>1-0 1-0>2-0 2-0>3-0"
_TWO = "0-0>1-0 0-0>1-1"
_CASES = {
    "A": [
        _job("0-0 30 70 0 0, 1-0 20 80 0 1", "0-0>1-0"),
        _job("0-0 100 0 0 0, 1-0 40 60 0 2, 2-0 15 85 0 0", "0-0>1-0 1-0>2-0"),
        _job("1-0 90 10 0 4, 0-0 95 5 0 0", "0-0>1-0"),
        _job("0-0 30 60 10 0, 1-0 90 4 6 5, 2-0 70 30 0 1", "0-0>1-0 1-0>2-0"),
    ],
    "B": [
        _job("0-0 20 0 80 0, 1-0 96 4 0 9", "0-0>1-0"),
        _job("0-0 10 0 90 0, 1-0 97 3 0 5, 2-0 30 70 0 1", "0-0>1-0 1-0>2-0"),
        _job("0-0 5 0 95 0, 1-0 30 0 70 2, 2-0 92 8 0 6, 3-0 25 75 0 0", _CHAIN),
        _job("0-0 12 0 88 0, 1-0 30 0 70 7, 2-0 92 8 0 3, 3-0 25 75 0 1", _CHAIN),
        _job("0-0 12 0 88 0, 1-0 45 0 55 9, 2-0 40 0 60 2, 3-0 88 12 0 4", _CHAIN),
        _job("2-0 20 0 80 0, 1-0 94 6 0 4, 0-0 35 65 0 1", "2-0>1-0 1-0>0-0"),
    ],
    "C": [
        _job("0-0 20 0 80 0, 1-0 70 30 0 1, 1-1 55 45 0 2, 1-2 91 9 0 8", f"{_TWO} 0-0>1-2"),
        _job("0-0 20 0 80 0, 1-0 55 45 0 1, 1-1 91 9 0 8", _TWO),
        _job("0-0 20 0 80 0, 1-0 93 7 0 2, 1-1 64 36 0 8", _TWO),
        _job("0-0 30 0 70 0, 1-0 40 60 0 0, 2-0 90 10 0 5, 3-0 35 65 0 0", "0-0>1-0 0-0>2-0 1-0>3-0 2-0>3-0"),
        _job("0-0 80 20 0 0, 1-0 99 1 0 3, 2-0 25 0 75 0, 3-0 85 15 0 2, 4-0 20 80 0 1",
             "0-0>1-0 2-0>3-0 1-0>4-0 3-0>4-0"),
        _job("0-0 99 1 0 0, 1-0 90 10 0 2, 1-1 98 2 0 4, 0-1 40 0 60 0", "0-0>1-1 0-1>1-0"),
        _job("0-0 35 0 65 0, 1-0 15 0 85 4, 1-1 70 30 0 6, 2-0 88 12 0 3", "0-0>1-0 0-0>1-1 1-0>2-0"),
        _job("1-2 60 40 0 1, 1-0 75 25 0 2, 1-1 80 20 0 3, 0-0 30 0 70 0", "0-0>1-2 0-0>1-0 0-0>1-1"),
        _job("0-0 30 0 70 0, 1-0 45 55 0 9, 1-1 82 18 0 2, 2-0 97 3 0 4", "0-0>1-0 0-0>1-1 1-0>2-0 1-1>2-0"),
        _job("0-0 30 0 70 0, 1-1 80 20 0 2, 1-0 80 20 0 2", "0-0>1-1 0-0>1-0"),
    ],
    "D": [
        _job("0-0 25 0 75 0, 1-0 10 90 0 0", "0-0>1-0"),
        _job("0-0 25 0 75 0, 1-0 22 78 0 0, 2-0 20 80 0 0", "0-0>1-0 1-0>2-0"),
        _job("0-0 40 0 60 0, 0-1 15 0 85 0, 1-0 20 80 0 0, 1-1 30 70 0 1", "0-0>1-0 0-1>1-1"),
        _job("0-0 20 0 80 0, 1-0 30 70 0 0, 1-1 10 90 0 1, 1-2 20 80 0 3", "0-0>1-0 0-0>1-1 0-0>1-2"),
        _job("0-0 12 0 88 0, 1-0 45 0 55 1, 2-0 35 65 0 6", "0-0>1-0 1-0>2-0"),
        _job("0-0 95 5 0 0, 1-0 30 0 70 5, 2-0 14 86 0 0, 2-1 20 80 0 1", "0-0>1-0 1-0>2-0 1-0>2-1"),
        _job("0-0 20 0 80 0, 1-0 20 80 0 0, 1-1 30 70 0 0, 2-0 96 4 0 2", "0-0>1-0 0-0>1-1 1-0>2-0"),
    ],
    "E": [
        _job("0-0 50 40 10 0, 1-0 95 5 0 3", "0-0>1-0"), _job("0-0 50 39 11 0, 1-0 95 5 0 3", "0-0>1-0"),
        _job("0-0 20 0 80 0, 1-0 90 0 10 3, 2-0 60 40 0 1", "0-0>1-0 1-0>2-0"),
        _job("0-0 20 0 80 0, 1-0 89 0 11 3, 2-0 60 40 0 1", "0-0>1-0 1-0>2-0"),
        _job("0-0 20 0 80 0, 1-0 50 50 0 1", "0-0>1-0"), _job("0-0 20 0 80 0, 1-0 49 51 0 1", "0-0>1-0"),
        _job("0-0 55 0 45 0, 1-0 93 7 0 2", "0-0>1-0"), _job("0-0 50 0 50 0, 1-0 93 7 0 2", "0-0>1-0"),
        _job("0-0 20 0 80 0, 1-0 50 10 40 1, 2-0 60 40 0 1", "0-0>1-0 1-0>2-0"),
        _job("0-0 0 0 100 0, 1-0 100 0 0 3", "0-0>1-0"), _job("0-0 20 0 80 0, 1-0 55 45 0 1", "0-0>1-0"),
        _job("0-0 20 0 80 0, 1-0 74 26 0 1, 1-1 20 80 0 1", "0-0>1-0 0-0>1-1"),
    ],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 12.1 {seed}")
    for _ in range(60):
        places = [[stage, n] for stage in range(generator.randint(2, 4)) for n in range(generator.randint(1, 2))]
        busy = generator.sample(range(101), len(places))
        rows = []
        for place, share in zip(places, busy, strict=True):
            held = generator.choice((0, 0, generator.randint(0, 100 - share), 100 - share))
            rows.append([place, share, 100 - share - held, held, generator.randint(0, 9) if place[0] else 0])
        flows = [[a, b] for a in places for b in places if a[0] + 1 == b[0] and generator.random() < 0.8]
        generator.shuffle(rows)
        generator.shuffle(flows)
        if flows and not _has_ties(rows, flows):
            yield [["find", rows, flows]]


def _has_ties(rows: Sequence[Any], flows: Sequence[Any]) -> bool:
    shares = {tuple(place): (held, idle) for place, _, idle, held, _ in rows}
    of_flows = [(shares[tuple(a)][0], shares[tuple(b)][1]) for a, b in flows]
    return len(set(of_flows)) < len(of_flows)


def _simpler(op: Sequence[Any]) -> Iterator[list[Any]]:
    """A subtask less, or a flow less."""
    name, rows, flows = op
    for gone in rows:
        rest = [flow for flow in flows if gone[0] not in flow]
        if rest:
            yield [name, [row for row in rows if row is not gone], rest]
    if len(flows) > 1:
        for number in range(len(flows)):
            yield [name, rows, [*flows[:number], *flows[number + 1 :]]]


# -- beliefs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shares:
    busy: int
    idle: int
    held: int
    queued: int


Loads = dict[tuple[int, ...], _Shares]
Flows = list[tuple[tuple[int, ...], tuple[int, ...]]]


def _alike(
    loads: Loads, flows: Flows, is_held: Callable[[int], bool], is_busy: Callable[[int], bool] = lambda b: b >= 50
) -> str:
    """The reference rule with other limits."""
    pairs = [(a, b) for a, b in flows if is_held(loads[a].held) and not is_held(loads[b].held)]
    if not pairs:
        return "nobody"
    busiest = max(sorted({b for _, b in pairs}), key=lambda place: loads[place].busy)
    if is_busy(loads[busiest].busy):
        return str(busiest)
    return _told(max(pairs, key=lambda each: (loads[each[0]].held, loads[each[1]].idle)))


def _told(flow: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    return f"{flow[0]} → {flow[1]}"


_LIMITS: tuple[tuple[str, Callable[[int], bool], Callable[[int], bool]], ...] = (
    ("at_a_tenth", lambda held: held >= 10, lambda busy: busy >= 50),
    ("any_wait", lambda held: held > 0, lambda busy: busy >= 50),
    ("only_half_held", lambda held: held > 50, lambda busy: busy >= 50),
    ("only_half_held", lambda held: held >= 50, lambda busy: busy >= 50),
    ("more_than_half", lambda held: held > 10, lambda busy: busy > 50),
    ("nearly_always_busy", lambda held: held > 10, lambda busy: busy >= 75),
    ("any_work", lambda held: held > 10, lambda busy: True),
)


def _belief(found: Difference) -> Belief:
    got, want = str(found.got.get("named", "")), found.want["named"]
    _, rows, pairs = found.op
    loads: Loads = {tuple(place): _Shares(*numbers) for place, *numbers in rows}
    flows: Flows = [(tuple(a), tuple(b)) for a, b in pairs]
    values = {
        name: phrase("nobody", "12.1") if told == "nobody" else told.removeprefix("? ")
        for name, told in (("got", got), ("want", want))
    }
    if found.got.get("left"):
        return "changes_what_is_given", {**values, "what": str(found.got["left"])}
    if got.startswith("?"):
        return "no_place", values
    if found.rule in "AE":
        for code, is_held, is_busy in _LIMITS:
            if _alike(loads, flows, is_held, is_busy) == got:
                return code, values
    places = {str(place): place for place in loads}
    if want == "nobody":
        return _in_peace(got, loads, places), values
    if got == "nobody":
        return "nobody_at_all", values
    if got not in places:
        return _of_exchange(got, want, loads, flows), values
    return _of_subtask(places[got], want, loads, flows), values


def _in_peace(got: str, loads: Loads, places: dict[str, tuple[int, ...]]) -> str:
    if got not in places:
        return "exchange_in_peace"
    if got == str(max(loads, key=lambda place: loads[place].queued)) and loads[places[got]].busy < 50:
        return "queue_in_peace"
    return "busy_in_peace"


def _of_exchange(got: str, want: str, loads: Loads, flows: Flows) -> str:
    told = {_told(each): each for each in flows}
    if got in {_told((b, a)) for a, b in flows} - set(told):
        return "turned_round"
    if got not in told:
        return "no_exchange"
    if " → " not in want:
        return "exchange_too_soon"
    producer, consumer = told[got]
    if loads[producer].held <= 10:
        return "free_producer"
    return "into_a_victim" if loads[consumer].held > 10 else "another_exchange"


def _of_subtask(place: tuple[int, ...], want: str, loads: Loads, flows: Flows) -> str:
    below = [b for a, b in flows if loads[a].held > 10]
    readers = [each for each in below if loads[each].held <= 10]
    if loads[place].held > 10:
        most_queued = max(loads, key=lambda each: loads[each].queued)
        most_held = max(loads, key=lambda each: loads[each].held)
        return "by_the_queue" if place == most_queued != most_held else "blames_the_victim"
    if place not in below:
        busiest = max(loads, key=lambda each: loads[each].busy)
        return "busiest_anywhere" if place == busiest else "not_below"
    if " → " in want:
        return "blames_who_waits"
    if loads[place].busy == max(loads[each].busy for each in readers):
        return "of_two_alike"
    codes = [
        ("by_the_queue", max(readers, key=lambda each: loads[each].queued)), ("first_of_them", readers[0]),
        ("first_of_them", min(readers)), ("idlest", min(readers, key=lambda each: loads[each].busy)),
        ("last_of_them", readers[-1]), ("last_of_them", max(readers)),
    ]  # fmt: skip
    return next((code for code, each in codes if each == place), "not_the_busiest")


# -- words -------------------------------------------------------------------------------------------------


class _JobWords(Words):
    """A job as a table: how each subtask spent its time, and whom it reads."""

    def told(self, ops: Sequence[Any]) -> str:
        _, rows, flows = ops[-1]
        return phrase("job", self.exercise, subtasks=len(rows), exchanges=len(flows))

    def tell(self, event: Sequence[Any]) -> str:
        return self._named(event[1].get("named"))

    def where(self, event: Sequence[Any]) -> str:
        return phrase("your_function")

    def before(self, case: Case, _expected: Sequence[Any], index: int) -> list[Row]:
        return self._table(case.ops[min(index, len(case.ops) - 1)])

    def rows(self, found: Difference) -> list[Row]:
        yours, right = (self._named(each.get("named")) for each in (found.got, found.want))
        table = self._table(found.op)
        if yours == right:
            return table
        at = next((n for n, (a, b) in enumerate(zip(yours, right, strict=False)) if a != b), 0)
        return [*table, *pair("", yours, right, "right"), caret(width(right[:at]))]

    def _named(self, found: object) -> str:
        text = str(found)
        if text == "nobody":
            return phrase("nobody", self.exercise)
        return text.removeprefix("? ")

    def _table(self, op: Sequence[Any]) -> list[Row]:
        _, rows, flows = op
        lines = []
        for place, busy, idle, held, queued in rows:
            reads = ", ".join(str(tuple(a)) for a, b in flows if b == place)
            text = phrase("load", self.exercise, busy=f"{busy:>3}", idle=f"{idle:>3}", held=f"{held:>3}", queued=queued)
            from_whom = phrase("reads", self.exercise, places=reads) if reads else ""
            lines.append(Row(str(tuple(place)), "", f"{text}{from_whom}"))
        return lines


CHECK = TranscriptCheck(
    "12.1", who_holds_back, driver, _CASES, _belief, Seeded("F", _seeded, _simpler, setup="job"),
    words=_JobWords("12.1"),
)  # fmt: skip
