"""Exercise 11.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_credit
from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from refimpl.exchange.producer_credit import SubpartitionReader

__all__ = ["CHECK"]


_SENDER = {
    "A": ["2 / credit 5", "0 / credit 1 / credit 1", "1 / credit 4 / credit 2", "2 / credit 200 / credit 100"],
    "B": ["2 / data / available", "2 / available", "1 / data / available", "3 / data / data / available"],
    "C": ["0 / data / available", "0 / data / data / credit 1 / available"],
    "D": [
        "0 / event / available", "0 / data / event / available", "1 / event / available",
        "0 / event / data / available",
    ],
    "E": ["2 / data / next", "4 / data / next / data / next", "4 / data / data / data / next / next / next"],
    "F": ["1 / event / next", "0 / event / next", "2 / event / event / data / next / next / next"],
    "G": [
        "0 / event / data / next", "1 / data / data / next", "2 / data / data / data / next / next",
        "1 / data / data / next / available / credit 1 / available / next",
    ],
    "H": [
        "1 / data / event / next", "0 / event / event / next", "1 / event / data / next / next",
        "1 / data / event / data / next / next",
    ],
    "I": ["1 / next", "1 / data / next / credit 1 / next"],
}  # fmt: skip


def _mixed_sender(seed: int) -> Iterator[list[Any]]:
    """What a task, a consumer and a connection could do, in random order."""
    generator = random.Random(f"sluice 11.2 {seed}")
    for _ in range(30):
        credit = generator.randint(0, 3)
        ops: list[Any] = [["reader", credit]]
        end = drive_credit.Reader(SubpartitionReader, credit)
        for _ in range(generator.randint(3, 20)):
            op: list[Any] = [generator.choice(("data", "data", "event", "available"))]
            if generator.random() < 0.2:
                op = ["credit", generator.randint(1, 3)]
            elif end.reader.is_available and generator.random() < 0.6:
                op = ["next"]
            end.do(op)
            ops.append(op)
        yield ops


def _simpler_sender(op: list[Any]) -> Iterator[list[Any]]:
    if op[0] == "credit" and op[1] > 1:
        yield ["credit", 1]


def _queue(ops: Any) -> list[str]:
    """What is queued after these operations."""
    queue: list[str] = []
    for op in ops:
        if op[0] in ("data", "event"):
            queue.append(op[0])
        elif op[0] == "next" and queue:
            queue.pop(0)
    return queue


def _sender_belief(found: Difference) -> Belief:
    name = found.op[0]
    credit, before = found.got.get("reader", {}).get("credit"), found.was.get("reader", {}).get("credit", 0)
    want = found.want["reader"]["credit"]
    values = {"got": str(credit), "want": str(want)}
    if name in ("reader", "data", "event"):
        return "different", values
    if name == "credit":
        beliefs = [("credit_replaced", found.op[1]), ("credit_ignored", before), ("credit_counts_calls", before + 1),
                   ("credit_shrinks", before - found.op[1])]  # fmt: skip
        return next((code for code, value in beliefs if value == credit), "credit_wrong"), values
    got, right = found.got.get("answer", {}), found.want["answer"]
    queue = _queue(found.ops[:-1])
    if name == "available":
        if got != right:
            if got.get("may") is False and ["available"] in list(found.ops[:-1]):
                return "old_answer", values
            return _about_may(got.get("may"), queue, before), {"got": str(got.get("may")), "want": str(right["may"])}
        return "asking_costs", values
    if got.get("out") != right["out"]:
        out = str(got.get("out"))
        return _about_out(out, queue, before), {"got": out.removeprefix("? ")}
    if got.get("asked") != right.get("asked"):
        return "asks_often", values
    if credit != want:
        return _about_cost(credit, before, want), values
    more = got.get("more")
    return _about_more(more, queue[1:], before, want), {"got": str(more)}


def _about_may(may: Any, queue: list[str], credit: int) -> str:
    if may == "a method":
        return "is_a_method"
    if not isinstance(may, bool):
        return "no_truth"
    if may:
        if not queue:
            return "may_with_nothing"
        return "data_without_credit" if "event" not in queue else "event_behind_data"
    if queue[0] == "event":
        return "event_needs_credit" if credit == 0 else "event_waits"
    return "needs_two" if credit == 1 else "never_speaks"


def _about_out(out: str, queue: list[str], credit: int) -> str:
    if out == "nothing":
        return "refuses_event" if queue[0] == "event" and credit == 0 else "says_nothing"
    if out.startswith("? what the view gave"):
        return "only_taken"
    if out == "? a pair with None in it":
        return "pair_of_nothing"
    if out in ("with a reference more", "given back"):
        return "retains" if out == "with a reference more" else "recycles"
    return "only_buffer" if out == "? a buffer" else "wrong_answer"


def _about_cost(credit: Any, before: int, want: int) -> str:
    if not isinstance(credit, int):
        return "credit_wrong"
    if want == before:
        return "event_costs" if credit == before - 1 else "credit_wrong"
    return {before: "data_is_free", 0: "spends_all", before + 1: "credit_grows"}.get(credit, "credit_wrong")


def _about_more(more: Any, left: list[str], before: int, credit: int) -> str:
    if not isinstance(more, bool):
        return "no_truth"
    if more:
        if not left:
            return "goes_on_with_nothing"
        return "asks_before_paying" if before else "goes_on_without_credit"
    if left[0] == "event":
        return "stops_before_event" if credit == 0 else "stops_with_credit"
    return "stops_with_credit"


CHECK = TranscriptCheck(
    "11.2", SubpartitionReader, drive_credit, scripts("reader", _SENDER), _sender_belief,
    Seeded("J", _mixed_sender, _simpler_sender, setup="reader"), words=StateWords("11.2"),
)  # fmt: skip
