"""Exercise 17.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.curriculum.parts import CountingWindows
from course.exercises.e17_1_window_operator import driver
from refimpl.records import MIN_TIMESTAMP

__all__ = ["CHECK"]

_MOST_TOLD = 4
_FAR = 2**61


def _script(words: str) -> list[Any]:
    """`10 / JFK 4 @ 12 / mark 19`: the size, a record of key, number and time, a watermark."""
    size, *rest = words.split(" / ")
    return [["size", int(size)], *map(_operation, rest)]


def _operation(words: str) -> list[Any]:
    name, *rest = words.split()
    if name == "mark":
        return ["watermark", int(rest[0])]
    if name == "others":
        return ["others", *([_row(row) for row in each.split(",")] for each in rest)]
    return [name] if not rest else ["record", name, int(rest[0]), int(rest[2])]


def _row(text: str) -> list[Any]:
    key, *numbers = text.split(":")
    return [key, *map(int, numbers)]


_CASES = {
    "A": [
        "10 / JFK 4 @ 12 / mark 40",
        "10 / JFK 4 @ 12 / mark 19",
        "10 / JFK 4 @ 12 / JFK 7 @ 15 / mark 40",
        "7 / LGA 3 @ 23 / LGA 0 @ 21 / LGA 5 @ 27 / mark 27"
    ],
    "B": [
        "10 / JFK 4 @ 12 / mark 18",
        "10 / JFK 4 @ 12 / mark 18 / JFK 6 @ 11 / mark 19",
        "10 / JFK 4 @ 12 / JFK 9 @ 35 / JFK 6 @ 13 / mark 19",
        "10 / JFK 4 @ 19 / JFK 6 @ 20 / mark 19 / mark 29", "10 / JFK 4 @ 12 / JFK 9 @ 95 / LGA 6 @ 95",
    ],
    "C": [
        "10 / JFK 4 @ 12 / LGA 6 @ 12 / mark 19",
        "10 / JFK 4 @ 12 / LGA 6 @ 31 / JFK 5 @ 33 / JFK 2 @ 14 / mark 19 / mark 39",
        "10 / JFK 4 @ 31 / LGA 6 @ 12 / JFK 5 @ 22 / mark 50",
    ],
    "D": [
        "10 / JFK 4 @ 12 / mark 19 / mark 29",
        "10 / JFK 4 @ 12 / mark 19 / JFK 5 @ 21 / mark 29",
        "10 / JFK 4 @ 12 / mark 19 / JFK 6 @ 13 / mark 29",
        "10 / mark 5 / mark 5 / JFK 3 @ 8 / mark 9 / mark 9",
        "10 / JFK 4 @ 25 / mark 19 / mark 12 / JFK 3 @ 15 / mark 29",
    ],
    "E": [
        "10 / mark 19 / JFK 4 @ 12",
        "10 / mark 18 / JFK 4 @ 12 / mark 19",
        "10 / JFK 4 @ 12 / mark 19 / JFK 6 @ 13 / mark 29",
        "10 / mark 15 / JFK 4 @ 13 / JFK 5 @ 9 / mark 19", "10 / mark 40 / LGA 4 @ 40 / LGA 5 @ 39 / mark 49",
    ],
    "F": [
        "10 / JFK 4 @ -12 / mark -11",
        "10 / JFK 4 @ -1 / JFK 5 @ 0 / mark -1 / mark 9",
        "10 / JFK -4 @ -10 / JFK 4 @ -3 / mark -1",
        f"1000 / JFK {_FAR} @ {_FAR} / JFK {_FAR} @ {_FAR} / mark {_FAR + 1000}",
        "1 / JFK 4 @ 5 / JFK 5 @ 6 / mark 5 / mark 6",
        f"10 / JFK 0 @ 12 / mark {2**63 - 1}",
    ],
    "G": [
        "10 / snapshot",
        "10 / JFK 4 @ 12 / JFK 3 @ 17 / LGA 6 @ 25 / snapshot",
        "10 / JFK 4 @ 12 / LGA 6 @ 25 / mark 19 / snapshot",
        "10 / JFK 4 @ 12 / snapshot / mark 19 / snapshot",
    ],
    "H": [
        "10 / JFK 4 @ 12 / snapshot / JFK 3 @ 13",
        "10 / JFK 4 @ 12 / snapshot / LGA 3 @ 13 / snapshot",
        "10 / JFK 4 @ 12 / LGA 6 @ 25 / snapshot / mark 19",
    ],
    "I": [
        "10 / JFK 4 @ 12 / snapshot / JFK 9 @ 13 / restore / JFK 5 @ 14 / mark 19",
        "10 / JFK 4 @ 12 / LGA 6 @ 25 / mark 19 / snapshot / restore / mark 29",
        "10 / JFK 4 @ 12 / snapshot / restore / mark 19 / snapshot",
        "10 / others JFK:10:2:7,JFK:20:1:3 LGA:10:4:9 / LGA 5 @ 14 / mark 19 / mark 29",
        "10 / mark 25 / JFK 4 @ 30 / snapshot / restore / LGA 5 @ 14 / mark 19 / mark 39",
        "10 / others JFK:20:2:7 LGA:10:4:9 EWR:30:1:1 / mark 60",
        "10 / restore / JFK 4 @ 12 / mark 19",
    ],
}  # fmt: skip

_FIELDS = {**dict.fromkeys("ABCDEFG", ("out", "late", "state")), "D": ("out",)}


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 17.1 {seed}")
    for _ in range(40):
        size = generator.choice((1, 7, 10, 3_600_000))
        ops: list[Any] = [["size", size]]
        time = generator.choice((-3, 0, 40)) * size
        mark = MIN_TIMESTAMP
        for _ in range(generator.randint(3, 24)):
            time += generator.randint(0, size)
            kind = generator.random()
            if kind < 0.6:
                key, number = generator.choice(("EWR", "JFK", "LGA")), generator.randint(-9, 30)
                ops.append(["record", key, number, time - generator.randint(0, 2 * size)])
            elif kind < 0.82:
                mark = max(mark, time - generator.randint(0, 2 * size))
                ops.append(["watermark", mark])
            elif kind < 0.92:
                ops.append(["snapshot"])
            elif ["snapshot"] in ops:
                ops.append(["restore"])
        yield ops


def _belief(found: Difference) -> Belief:
    got, want = found.values
    values = {
        "got": _field(found.field, got) or phrase("nothing"),
        "want": _field(found.field, want) or phrase("nothing"),
    }
    if found.field in ("kept", "given"):
        return {"kept": "state_changes", "given": "changes_what_is_given"}[found.field], values
    if found.field == "state":
        return _of_state(got, want), values
    if found.field == "late":
        return _of_late(found, got, want), values
    return _of_out(found, got, want), values


def _of_late(found: Difference, got: list[Any], want: list[Any]) -> str:
    if found.op[0] != "record":
        return "late_at_a_watermark"
    if not got:
        return "late_taken"
    if want:
        return "late_is_another"
    marks = [op[1] for op in _since_restore(found.before) if op[0] == "watermark"]
    size = found.ops[0][1]
    if any(op[0] in ("restore", "others") for op in found.before) and not marks:
        return "watermark_restored"
    end = found.op[3] - found.op[3] % size + size
    return "late_by_records" if not marks or max(marks) < end - 1 - size else "late_too_early"


def _since_restore(ops: Sequence[Any]) -> list[Any]:
    last = max((place for place, op in enumerate(ops) if op[0] in ("restore", "others")), default=0)
    return list(ops[last:])


def _of_out(found: Difference, got: list[Any], want: list[Any]) -> str:
    if found.op[0] == "record":
        return "fires_for_late" if found.want["late"] else "fires_at_a_record"
    if found.op[0] != "watermark":
        return "fires_otherwise"
    if any(isinstance(each, str) and each.startswith("?") for row in got for each in row):
        return "strange_result"
    windows, wanted = [tuple(row[:3]) for row in got], [tuple(row[:3]) for row in want]
    if sorted(map(repr, windows)) == sorted(map(repr, wanted)):
        return _of_numbers(found, got, want) if windows == wanted else "in_another_order"
    if any(abs(op[3]) >= 2**53 for op in found.before if op[0] == "record"):
        return "as_a_float"
    if any(op[3] < 0 for op in found.before if op[0] == "record"):
        return "towards_zero"
    if got and len(got) == len(want) and {row[0] for row in got} == {row[0] for row in want}:
        return "end_is_the_last_ms" if [row[:2] for row in got] == [row[:2] for row in want] else "other_bounds"
    return _of_windows(found, windows, wanted, {row[3] for row in got} <= {row[3] for row in want})


def _of_windows(found: Difference, windows: list[Any], wanted: list[Any], is_counted: bool) -> str:
    """What went out too much or too little; the numbers of what is right are right if `is_counted`."""
    names = [op[0] for op in found.before]
    marks = [op[1] for op in _since_restore(found.before) if op[0] == "watermark"]
    fired = [tuple(row[:3]) for event in found.expected[: found.index] for row in event[1]["out"]]
    if len(windows) > len(wanted):
        if marks != sorted(marks):
            return "watermark_back"
        if any(each in fired for each in windows):
            return (
                "late_opens_again"
                if any(each[1].get("late") for each in found.expected[: found.index])
                else "fires_twice"
            )
        return "fires_too_early"
    if "restore" in names or "others" in names:
        return "not_restored"
    if "snapshot" in names:
        return "snapshot_ends_it"
    return "fires_not" if not windows else "fires_some" if is_counted else "mixes_keys"


def _of_numbers(found: Difference, got: list[Any], want: list[Any]) -> str:
    if any(op[0] == "others" for op in found.before):
        return "restores_not_all"
    if any(op[0] == "restore" for op in found.before):
        return "restored_wrong"
    if [row[4] for row in got] == [row[4] for row in want]:
        return "wrong_count"
    return "wrong_total" if [row[3] for row in got] == [row[3] for row in want] else "wrong_numbers"


def _of_state(got: list[Any], want: list[Any]) -> str:
    if any(isinstance(each, str) for each in got):
        return "state_by_other_keys" if str(got[0]).startswith("? key") else "no_state"
    windows, wanted = [row[:2] for row in got], [row[:2] for row in want]
    if any(each not in wanted for each in windows):
        return "state_never_dropped" if len(windows) > len(wanted) else "state_of_other_windows"
    return "state_lacks" if windows != wanted else "state_has_other_numbers"


# -- words -------------------------------------------------------------------------------------------------


def _op(op: Sequence[Any]) -> str:
    name, *given = op
    if name == "others":
        return phrase("op_others", "17.1", a=" + ".join(_told_rows("state", each) for each in given))
    return phrase(f"op_{name}", "17.1", **dict(zip("abc", given, strict=False)))


def _field(name: str, value: Any) -> str:
    if name == "given":
        return phrase("told_given", "17.1", a=" + ".join(_told_rows("state", each) for each in value or ()))
    if not value:
        return phrase("told_empty", "17.1") if name in ("state", "kept") and value is not None else ""
    return phrase(f"told_{name}", "17.1", a=_told_rows("state" if name == "kept" else name, value))


def _told_rows(name: str, rows: Sequence[Any]) -> str:
    told = [_row_of(name, row) for row in rows[:_MOST_TOLD]]
    return ", ".join(
        [*told, *([phrase("told_more", "17.1", a=len(rows) - _MOST_TOLD)] if len(rows) > _MOST_TOLD else [])]
    )


def _row_of(name: str, row: Any) -> str:
    if isinstance(row, str):
        return row.removeprefix("? ")
    return phrase(f"row_{name}", "17.1", **dict(zip("abcde", row, strict=False)))


CHECK = TranscriptCheck(
    "17.1", CountingWindows, driver, {rule: [_script(each) for each in every] for rule, every in _CASES.items()},
    _belief, Seeded("J", _seeded, setup="size"), looks_at=_FIELDS, words=FieldWords("17.1", _op, _field),
)  # fmt: skip
