"""Exercise 18.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from course.exercises.e18_2_partition_reader import driver
from refimpl.exchange.partition_reader import PartitionReader

__all__ = ["CHECK"]

_TALKS = {
    "A": ["100 400 / broken", "100 400 / answer / broken", "70 900 / free 2 / broken"],
    "B": ["100 400 / absent", "70 900 / absent", "137 1001 / free 1 / absent"],
    "C": [
        "100 400 / absent / over", "100 1000 / absent / over / absent",
        "70 1000 / absent / over / absent / over / absent",
    ],
    "D": [
        "100 150 / absent / over / absent",
        "137 1001 / absent / over / absent / over / absent / over / absent",
        "100 400 / absent / over / absent / over / absent / over / absent",
        "100 100 / absent / over / absent", "0 400 / absent", "0 0 / absent",
        "70 100 / absent / over / absent / over / absent",
    ],
    "E": [
        "100 400 / absent / absent", "100 400 / absent / absent / over",
        "100 100 / absent / absent", "100 400 / absent / over / absent / absent / over",
        "100 400 / answer / absent", "100 400 / absent / over / answer / absent",
        "100 400 / absent / broken", "100 100 / absent / broken",
    ],
    "F": ["100 400 / news", "100 400 / free 3 / news", "100 400 / free 258 / news / news",
          "100 400 / free 1 / news / free 5 / news", "100 400 / absent / free 2 / news"],
    "G": ["100 400 / resume / news", "100 400 / resume / news / news", "100 400 / free 2 / resume / news",
          "100 400 / resume / free 4 / news / free 1 / news", "100 400 / free 2 / news / resume / news"],
}  # fmt: skip


def _mixed(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 18.2 {seed}")
    for _ in range(30):
        first = generator.choice((0, 10, 100, generator.randint(1, 500)))
        ops: list[Any] = [["reader", first, generator.choice((first, 3 * first, 5_000))]]
        is_waiting = has_failed = False
        talk = PartitionReaderAtHand(ops[0])
        for _ in range(generator.randint(3, 12)):
            op: list[Any] = generator.choice(
                (["absent"], ["absent"], ["free", generator.randint(1, 9)], ["resume"], ["news"], ["news"])
            )
            if is_waiting and generator.random() < 0.5:
                op = ["over"]
            elif generator.random() < 0.05:
                op = generator.choice((["broken"], ["answer"]))
            seen = talk.do(op)
            is_waiting, has_failed = seen["reader"]["waits"] == "True", seen["channel"]["told"] != "nothing"
            ops.append(op)
            if has_failed:
                break
        yield ops


class PartitionReaderAtHand:
    """The reference part, driven as the driver does, so that a case stays one that can happen."""

    def __init__(self, first: list[Any]) -> None:
        self._ops = [first]

    def do(self, op: list[Any]) -> dict[str, Any]:
        """What can be seen after one more operation."""
        self._ops.append(op)
        events: list[Any] = []
        driver.run_case(PartitionReader, self._ops, events)
        seen: dict[str, Any] = events[-1][1]
        return seen


def _simpler(op: list[Any]) -> Iterator[list[Any]]:
    if op[0] == "free" and op[1] > 1:
        yield ["free", 1]


# -- beliefs ---------------------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    name = found.op[0]
    got, want = ({key: dict(group) for key, group in state.items()} for state in (found.got, found.want))
    gave, right = (state.get("answer", {}).get("gave", "") for state in (got, want))
    values = {"got": gave.removeprefix("? "), "want": right}
    if name == "news":
        return _about_news(found, got, want), values
    if name == "over":
        return _about_asking(got, want), values
    if name not in ("absent", "broken"):
        return "different", values
    values |= {"wait": got["reader"]["wait"].removeprefix("? "), "right": want["reader"]["wait"]}
    return _about_error(found, got, want), values


def _about_error(found: Difference, got: dict[str, Any], want: dict[str, Any]) -> str:
    told, should = got["channel"]["told"], want["channel"]["told"]
    was_waiting = found.was["reader"]["waits"] == "True"
    if told != should:
        if should == "nothing":
            return "gives_up_while_waiting" if was_waiting else _gives_up(found)
        return "told_twice" if told != "nothing" else _tells_nothing(found, was_waiting=was_waiting)
    if got["reader"]["waits"] != want["reader"]["waits"]:
        return "not_waiting" if want["reader"]["waits"] == "True" else "waits_and_fails"
    if got["reader"]["wait"] != want["reader"]["wait"]:
        return "wait_grows_meanwhile" if was_waiting else _about_wait(found, got["reader"]["wait"])
    if (gave := got["answer"]["gave"]) != want["answer"]["gave"]:
        if gave not in ("True", "False"):
            return "no_truth"
        return "second_wait_begins" if was_waiting else "says_the_opposite"
    return "asks_the_channel"


def _gives_up(found: Difference) -> str:
    return "gives_up_at_once" if ["over"] not in found.before else "gives_up_early"


def _tells_nothing(found: Difference, *, was_waiting: bool) -> str:
    """A channel waits for ever, since nobody has told it."""
    if found.op[0] == "broken":
        if was_waiting:
            return "error_while_waiting"
        return "any_error_waits" if found.got["reader"]["waits"] == "True" else "error_ignored"
    if ["answer"] in found.before:
        return "waits_after_an_answer"
    return "waits_for_ever" if found.ops[0][1] else "waits_of_nothing"


def _about_wait(found: Difference, got: str) -> str:
    _, first, longest = found.ops[0]
    want = int(found.want["reader"]["wait"])
    waits = [event[1]["reader"]["wait"] for event in found.expected[: found.index]]
    before = max((int(each) for each in waits if each != "none"), default=0)
    beliefs = [
        ("first_doubled", 2 * first if not before else -1), ("never_doubled", first if before else -1),
        ("longer_than_longest", 2 * before if before else -1), ("added", before + first),
        ("longest_at_once", longest), ("wait_not_kept", before),
    ]  # fmt: skip
    return next((code for code, value in beliefs if str(value) == got and value != want), "wait_wrong")


def _about_asking(got: dict[str, Any], want: dict[str, Any]) -> str:
    if got["answer"] != want["answer"]:
        return {"nothing": "asks_nothing", "another request": "another_request"}.get(
            got["answer"]["gave"], "no_request"
        )
    if got["reader"]["waits"] != want["reader"]["waits"]:
        return "still_waiting"
    return "asks_the_channel"


def _about_news(found: Difference, got: dict[str, Any], want: dict[str, Any]) -> str:
    gave, right = got["answer"]["gave"], want["answer"]["gave"]
    if gave.startswith("? ") or gave == "nothing":
        return "no_list"
    if "for another" in gave:
        return "news_for_another"
    if gave != right:
        if "AddCredit 0" in gave:
            return "credit_of_nothing"
        if sorted(gave.split(", ")) == sorted(right.split(", ")):
            return "other_order"
        if right == "no messages":
            return "said_again"
        has, should = ({each.split()[0] for each in text.split(", ")} for text in (gave, right))
        if "AddCredit" in should - has:
            return "credit_never_announced"
        if "ResumeConsumption" in should - has:
            return "never_resumes" if "AddCredit" not in should else "one_or_the_other"
        if "ResumeConsumption" in has - should:
            return "resumes_unasked"
        return "credit_wrong"
    return "asks_twice" if got["channel"]["asked"] > want["channel"]["asked"] else "asks_never"


CHECK = TranscriptCheck(
    "18.2", PartitionReader, driver, scripts("reader", _TALKS), _belief,
    Seeded("H", _mixed, _simpler, setup="reader"), words=StateWords("18.2"),
)  # fmt: skip
