"""Exercise 13.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e13_1_bounded_watermarks import driver
from refimpl.records import MIN_TIMESTAMP
from refimpl.task.watermarks import BoundedOutOfOrderness

__all__ = ["CHECK"]

_DAY_MS = 86_400_000

_CASES = {
    "A": ["7 / event 40", "7 / event 40 / event 60", "0 / event 5"],
    "B": ["5 / event 12 / probe", "30 / event 100 / probe", "1000 / event 1357035300000 / probe"],
    "C": ["0 / event 12 / probe", "1 / event 12 / probe"],
    "D": [
        "5 / event 30 / event 40 / event 12 / event 35 / probe",
        "5 / event 30 / event 40 / probe / event 12 / event 31 / event 20 / probe",
        "3 / event 10 / event 90 / event 50 / event 70 / probe / event 95 / probe",
        "5 / event 40 / event 23 / event 23 / event 24 / probe",
    ],
    "E": ["5 / probe", "0 / probe", "86400000 / probe / probe / event 3 / probe"],
    "F": [
        "4 / event -30 / probe", "4 / event 0 / probe", "0 / event -1 / probe / event 0 / probe",
        "3 / event 0 / event -40 / probe",
        f"0 / event {-(2**61)} / probe", f"9 / event {2**61} / probe",
    ],
    "G": [
        "5 / event 40 / probe / probe / event 41 / probe", "2 / event 8 / probe / probe / probe / event 8 / probe",
        "2 / event 70 / probe / event 30 / probe / event 20 / probe / event 71 / probe",
        f"{_DAY_MS} / " + " / ".join(f"event {1357035300000 + 60_000 * (n * 7 % 50)} / probe" for n in range(60)),
    ],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 13.1 {seed}")
    for _ in range(40):
        ops: list[Any] = [["bound", generator.choice((0, 1, 3, 10, 60_000))]]
        start = generator.choice((-50, 0, 1_000, 1_357_035_300_000))
        for number in range(generator.randint(2, 20)):
            time = start + 5 * number + generator.randint(-30, 30)
            ops.append(["probe"] if generator.random() < 0.35 else ["event", time])
        yield ops


def _simpler(op: Sequence[Any]) -> Iterator[list[Any]]:
    if op[0] == "event" and op[1]:
        yield from (["event", less] for less in {0, int(op[1] / 2)})


def _belief(found: Difference) -> Belief:
    got, want = found.got.get("said"), found.want["said"]
    bound = found.ops[0][1]
    times = [op[1] for op in found.before if op[0] == "event"]
    values = {"got": str(got).removeprefix("? "), "want": str(want), "bound": str(bound)}
    if isinstance(got, str) and got:
        return ("says_idle" if got == "? idle" else "no_watermark"), values
    if found.op[0] == "event":
        return "speaks_at_once", values
    if got == "":
        return ("silent" if not any(op[0] == "probe" for op in found.before) else "silent_later"), values
    if not times:
        return ("below_the_least" if isinstance(got, int) and got < MIN_TIMESTAMP else "speaks_of_nothing"), values
    largest = max(times)
    values["want"] = str(largest - bound - 1)  # where it has been said already nothing is wanted
    since = _since_the_last_probe(found.before)
    if largest == 0 and got == times[-1] - bound - 1:
        return "zero_is_none", values
    beliefs = [
        ("no_bound", largest - 1), ("no_bound", largest), ("forgets_the_one", largest - bound),
        ("adds_bound", largest + bound - 1), ("adds_bound", largest + bound), ("one_too_many", largest - bound - 2),
        ("adds_the_one", largest - bound + 1), ("latest", times[-1] - bound - 1), ("least", min(times) - bound - 1),
        ("first", times[0] - bound - 1), ("starts_again", max(since or [0]) - bound - 1),
        ("starts_at_zero", max(0, largest) - bound - 1), ("seconds", largest - bound * 1_000 - 1),
    ]  # fmt: skip
    return next((code for code, value in beliefs if value == got), "wrong_time"), values


def _since_the_last_probe(ops: Sequence[Any]) -> list[int]:
    probes = [place for place, op in enumerate(ops) if op[0] == "probe"]
    return [op[1] for op in ops[probes[-1] if probes else 0 :] if op[0] == "event"]


def _op(op: Sequence[Any]) -> str:
    return phrase(f"op_{op[0]}", "13.1", a=op[1] if len(op) > 1 else "")


def _field(_name: str, value: Any) -> str:
    if value == "":
        return phrase("says_nothing", "13.1")
    if value == "? idle":
        return phrase("says_idle", "13.1")
    return phrase("says_time" if isinstance(value, int) else "says_else", "13.1", a=str(value).removeprefix("? "))


CHECK = TranscriptCheck(
    "13.1", BoundedOutOfOrderness, driver, scripts("bound", _CASES), _belief,
    Seeded("H", _seeded, _simpler, setup="bound"), words=FieldWords("13.1", _op, _field),
)  # fmt: skip
