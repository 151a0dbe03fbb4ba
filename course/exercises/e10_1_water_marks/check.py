"""Exercise 10.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_before_credit
from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from refimpl.exchange.before_credit.water_marks import WaterMarks

__all__ = ["CHECK"]


_MARKS = {
    "A": [
        "10 20 / hand 7", "10 20 / hand 3 / hand 5", "10 20 / hand 9 / written 4",
        "5 9 / hand 6 / written 2 / written 3",
    ],
    "B": ["10 20 / hand 25", "10 20 / hand 15 / hand 6", "5 9 / hand 4 / hand 4 / hand 4", "10 20 / hand 25 / hand 5"],
    "C": [
        "10 20 / hand 12", "10 20 / hand 20", "10 20 / hand 10", "10 20 / hand 15 / hand 5", "10 20 / hand 20 / hand 1",
    ],
    "D": ["10 20 / hand 25 / written 8", "10 20 / hand 25 / written 5", "5 9 / hand 12 / written 4 / written 2"],
    "E": ["10 20 / hand 25 / written 15", "5 9 / hand 12 / written 7", "10 20 / hand 30 / written 10 / written 10"],
    "F": ["10 20 / hand 25 / written 25", "10 20 / hand 25 / written 16", "5 9 / hand 12 / written 4 / written 4"],
    "G": [
        "10 20 / hand 25 / written 16 / hand 5", "10 20 / hand 25 / written 20 / hand 18 / written 10 / hand 2",
        "10 20 / hand 15 / written 15 / hand 15 / hand 8", "10 20 / hand 25 / written 8 / hand 1",
        "10 20 / hand 15 / written 2", "10 20 / hand 15 / written 5", "5 9 / hand 9 / written 1 / written 2 / hand 3",
        "10 20 / hand 25 / hand 7 / written 22 / written 1", "10 10 / hand 10 / hand 1 / written 1 / written 1",
        f"10 20 / hand 12 / hand {2**32 + 5} / written {2**32 + 5} / written 3",
        "10 20 / hand 25 / written 6 / hand 3 / written 12 / written 1",
    ],
}  # fmt: skip


def _mixed_marks(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 10.1 {seed}")
    for _ in range(30):
        low = generator.randint(1, 12)
        ops: list[Any] = [["marks", low, low + generator.randint(1, 12)]]
        pending = 0
        for _ in range(generator.randint(3, 16)):
            if pending and generator.random() < 0.5:
                ops.append(["written", generator.randint(0, pending)])
                pending -= ops[-1][1]
            else:
                ops.append(["hand", generator.randint(1, 15)])
                pending += ops[-1][1]
        yield ops


def _simpler_marks(op: list[Any]) -> Iterator[list[Any]]:
    if op[1] > 1:
        yield [op[0], op[1] // 2]


def _marks_belief(found: Difference) -> Belief:
    name, number = found.op[0], found.op[1]
    _, low, high = found.ops[0]
    got, want, before = (state.get("marks", {}) for state in (found.got, found.want, found.was))
    if name == "marks" or any(not isinstance(each, int) for each in got.values()):
        return "no_number", {"got": ", ".join(map(str, got.values()))}
    pending = want["out"] - want["written"]
    values = {"left": str(pending), "got": str(got["out"]), "want": str(want["out"])}
    mine, other = ("out", "written") if name == "hand" else ("written", "out")
    if got[other] != want[other]:
        return ("counts_backwards" if name == "written" else "wrong_counter"), values
    if got[mine] != want[mine]:
        values |= {"got": str(got[mine]), "want": str(want[mine])}
        if name == "hand" and got[mine] == before[mine] and before["may"] is False:
            return "stopped_not_counted", values
        beliefs = [("not_counted", before[mine]), ("counts_frames", before[mine] + 1), ("count_replaced", number),
                   ("counts_backwards", before[mine] - number)]  # fmt: skip
        return next((code for code, value in beliefs if value == got[mine]), "count_wrong"), values
    if name == "hand":
        return _about_stopping(got["may"], before["may"], pending, low, high), values
    if before["may"]:
        return "written_stops", values
    if got["may"]:
        return ("resumes_at_the_mark" if pending == low else "resumes_at_high"), values
    return ("never_resumes" if pending == 0 else "resumes_when_empty"), values


def _about_stopping(may: Any, might: Any, pending: int, low: int, high: int) -> str:
    if may:
        return "never_stops" if might or pending > high else "hand_out_reopens"
    if pending == high:
        return "stops_at_the_mark"
    return "stops_at_low" if pending >= low else "stops_always"


CHECK = TranscriptCheck(
    "10.1", WaterMarks, drive_before_credit, scripts("marks", _MARKS), _marks_belief,
    Seeded("H", _mixed_marks, _simpler_marks, setup="marks"), words=StateWords("10.1"),
)  # fmt: skip
