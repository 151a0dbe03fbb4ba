"""Exercise 12.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase, word
from course.exercises.e12_2_storm_queue import driver
from refimpl.rivals.storm import HIGH_WATER, LOW_WATER, DisruptorQueue

__all__ = ["CHECK"]

_CASES = {
    "A": ["10 / add 3 / take 2", "10 / add 2 / take 4", "10 / take 1 / add 1 / take 2",
          "20 / add 17 / take 17 / take 1"],
    "B": ["10 / add 8", "10 / add 9", "10 / add 6 / add 3", "20 / add 17 / add 1", "10 / add 13"],
    "C": [
        "10 / add 9 / add 1 / add 4", "10 / add 9 / add 3000 / take 1", "10 / add 10 / take 1 / add 1",
        "10 / add 9 / take 2 / add 2", "10 / add 9 / take 1 / add 1 / take 1 / add 1",
    ],
    "D": ["10 / add 9 / take 1", "10 / add 9 / take 4", "20 / add 18 / take 9", "10 / add 9 / take 3 / add 1 / take 1"],
    "E": ["10 / add 9 / take 9", "10 / add 9 / take 6", "10 / add 9 / take 5",
          "20 / add 18 / take 9 / take 1", "10 / add 12 / take 7 / take 1 / take 1",
          "10 / add 9 / take 12", "7 / add 6 / take 4 / take 1"],
    "F": [
        "10 / add 9 / take 5 / add 4 / add 1", "10 / add 9 / take 5 / add 5 / take 5 / add 5",
        "10 / add 5 / take 3 / add 2", "10 / add 9 / take 6 / take 1 / take 1",
    ],
    "G": [
        "10 / publish / looked 9", "10 / add 8 / publish / take 9 / looked 9 / take 1",
        "10 / add 8 / publish / take 9 / looked 9 / take 2 / add 1 / take 1",
        "10 / add 8 / publish / publish / looked 9 / looked 10", "10 / add 12 / looked 3",
        "10 / add 8 / publish / looked 8", "10 / add 9 / publish / looked 10 / take 6",
    ],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 12.2 {seed}")
    for _ in range(40):
        size = generator.choice((5, 7, 10, 16, 33))
        ops: list[Any] = [["queue", size]]
        for _ in range(generator.randint(2, 14)):
            name = generator.choice(("add", "add", "take", "take", "late"))
            if name == "late":
                ops += [["publish"], ["take", generator.randint(1, size)], ["looked", generator.randint(1, size + 2)]]
            else:
                ops.append([name, generator.randint(1, size)])
        yield ops


def _simpler(op: Sequence[Any]) -> Iterator[list[Any]]:
    if len(op) > 1 and op[1] > 1:
        yield [op[0], op[1] // 2]
        yield [op[0], op[1] - 1]


def _belief(found: Difference) -> Belief:
    size = found.ops[0][1]
    high, low = int(size * HIGH_WATER), int(size * LOW_WATER)
    got, want = found.got, found.want
    values = {"high": str(high), "low": str(low), "got": _in_words(got[found.field]),
              "want": _in_words(want[found.field]),
              "holds": str(want["holds"])}  # fmt: skip
    if "taken" in found.names:
        return _of_records(got["taken"], want["taken"]), values
    if str(got["throttling"]).startswith("?"):
        return "no_truth", values
    name = found.op[0]
    if got["holds"] != want["holds"]:
        return ("drops_records" if int(got["holds"]) < int(want["holds"]) else "leaves_records"), values
    if "throttling" not in found.names:
        return _of_telling(name, got["told"].split(), want["told"].split()), values
    if name in ("add", "looked"):
        return _of_coming(found, high, low), values
    return _of_taking(found, low), values


def _of_records(got: str, want: str) -> str:
    if got.startswith("? list") or "?" in got:
        return "no_record"
    if "none" in want and "none" not in got:
        return "no_record"
    if set(got.split()) == {"none"}:
        return "gives_nothing"
    return "newest_first" if got.split() != sorted(got.split(), key=_as_number) else "other_records"


def _as_number(text: str) -> int:
    return int(text) if text.isdecimal() else 1_000_000


def _of_telling(name: str, got: Sequence[str], want: Sequence[str]) -> str:
    if len(got) > len(want):
        if len(set(got)) > 1:
            return "flutters"
        return "tells_at_each_low" if name == "take" else "tells_each_time"
    if len(got) < len(want):
        return "tells_nobody"
    return "tells_too_early"


def _of_coming(found: Difference, high: int, low: int) -> str:
    if found.want["throttling"] == "yes":
        if found.op[0] == "looked" and int(found.want["holds"]) < high <= found.op[1]:
            return "looks_again"
        if found.was["throttling"] == "yes":
            return "opens_when_one_comes"
        reached = found.op[1] if found.op[0] == "looked" else int(found.want["holds"])
        return "above_the_mark" if reached == high else "never_stops"
    if found.op[0] == "looked" and found.op[1] < high:
        return "looks_again"
    return "stops_at_low" if int(found.want["holds"]) > low else "stops_at_once"


def _of_taking(found: Difference, low: int) -> str:
    if found.want["throttling"] == "yes":
        if found.want["holds"] == "0" and "none" in found.want["taken"]:
            return "ends_when_empty"
        return "one_too_early" if int(found.want["holds"]) == low + 1 else "one_mark"
    if found.got["throttling"] == "yes":
        if found.was["throttling"] == "no":
            return "stops_while_taking"
        left = int(found.want["holds"])
        return "below_the_mark" if left == low else "only_when_empty" if left else "never_goes_on"
    return "never_goes_on"


def _op(op: Sequence[Any]) -> str:
    return phrase(f"op_{op[0]}", "12.2", a=op[1] if len(op) > 1 else "")


def _in_words(value: object) -> str:
    return " ".join(word(each, "12.2") for each in str(value).removeprefix("? ").split())


def _field(name: str, value: Any) -> str:
    if value == "" and name in ("taken", "told"):
        return ""
    text = _in_words(value)
    if name == "taken" and len(text) > 24:
        text = f"{text[:10]} … {text[-10:]}"
    return phrase(f"field_{name}", "12.2", a=text)


CHECK = TranscriptCheck(
    "12.2", DisruptorQueue, driver, scripts("queue", _CASES), _belief,
    Seeded("H", _seeded, _simpler, setup="queue"), words=FieldWords("12.2", _op, _field),
)  # fmt: skip
