"""Exercise 5.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e05_3_flush_policy import driver
from refimpl.producer.output_flusher import OutputFlusher

__all__ = ["CHECK"]

_NOON_MS = 1_357_035_300_000

_CASES = {
    "A": ["100 / waits 12", "1 / waits 0", "30000 / waits 7", f"100 / waits {_NOON_MS}"],
    "B": [
        "100 / waits 12 / waits 40 / waits 111", "10 / waits 3 / waits 4 / waits 12", "5 / waits 0 / waits 3 / waits 4",
        "100 / waits 12 / waits 112 / waits 300",
    ],
    "C": [
        "100 / quiet 12", "100 / quiet 0 / waits 30", "100 / waits 12 / quiet 50 / waits 70 / waits 90",
        "7 / waits 1 / quiet 2 / quiet 3 / waits 30 / quiet 31 / waits 32",
        "7 / waits 1 / quiet 2 / look 8 / look 900",
    ],
    "D": [
        "100 / look 400", "100 / waits 12 / look 111", "100 / waits 12 / look 112", "100 / waits 12 / look 500",
        "100 / waits 12 / look 60 / waits 61 / look 112", "100 / waits 12 / look 112 / look 113",
        "100 / waits 12 / look 115 / waits 140 / look 212 / look 240", "3 / waits 0 / look 2 / look 3 / look 6",
        "9 / waits -30 / look -22 / look -21", "5 / waits -5 / look -1 / look 0 / look 0 / waits 1",
    ],
    "E": [
        "0 / record", "100 / record", "-1 / record", "1 / record / record", "0 / record / waits 5 / record",
        "0 / waits 12 / look 12 / look 400", "-1 / waits 12 / look 12 / look 400", "-1 / quiet 12 / waits 40",
    ],
    "F": [
        "100 / look 99 0", "100 / look 260 150 / look 400 260", "100 / look 100 0", "100 / look 240 150",
        "8 / look 7 -1 / look 8 0 / look 16 8", "0 / look 50 0", "-1 / look 500 0",
        "100 / waits 12 / look 120 50", "100 / waits 90 / look 110 10 / waits 115", "100 / look 100 0 / look 101",
    ],
    "G": [
        "100 / waits 12 / set 10 / waits 20 / look 30 / look 112 / waits 120", "10 / set 100 / waits 5",
        "100 / set 8 / look 8 0 / look 15 8", "5 / waits 1 / quiet 2 / set 50 / waits 3 / look 52 / look 53",
        "100 / waits 12 / set -1 / waits 40 / look 500", "-1 / set 100 / waits 12 / look 112",
        "100 / set 7 / record", "100 / set -1 / record / look 900 0",
    ],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 5.3 {seed}")
    for _ in range(40):
        timeout = generator.choice((-1, 0, 1, 5, 5, 20, 100))
        ops: list[Any] = [["timeout", timeout]]
        looked = now = generator.choice((0, -40, 1_000, _NOON_MS))
        for _ in range(generator.randint(3, 16)):
            now += generator.choice((0, 1, 2, 5, generator.randint(3, 120)))
            name = generator.choice(("waits", "waits", "quiet", "look", "look", "since", "record", "set"))
            if name == "since":
                ops.append(["look", now, looked])
                looked = now
            elif name == "set" and timeout > 0:
                ops.append(["set", generator.choice((1, 5, 20, 100))])
            elif name != "set":
                ops.append([name] if name == "record" else [name, now])
        yield ops


# -- beliefs -----------------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = found.got.get("said"), found.want["said"]
    timeout = [op[1] for op in found.before if op[0] in ("timeout", "set")][-1]
    values = {"got": str(got).removeprefix("? "), "want": str(want), "timeout": str(timeout), "now": _now(found)}
    if found.op[0] == "record":
        return ("not_always" if want == "yes" else "never_is_always" if timeout < 0 else "always"), values
    if found.op[0] == "look":
        return _of_look(found, str(got), timeout), values
    if isinstance(got, str) and got.startswith("?"):
        return "no_time", values
    if want == "never":
        return ("by_time_anyway" if timeout <= 0 else "nothing_waits"), values
    if got == "never":
        return ("only_once" if _deadlines(found) else "no_deadline"), values
    now, earlier = found.op[1], _deadlines(found)
    codes = [
        ("put_off" if want in earlier else "no_deadline", now + timeout), ("no_clock", timeout), ("at_once", now),
        ("old_timeout", now + found.ops[0][1]),
    ]  # fmt: skip
    if got in earlier and want not in earlier:
        return "old_deadline", values
    return next((code for code, time in codes if time == got), "old_deadline" if got in earlier else "other"), values


def _of_look(found: Difference, got: str, timeout: int) -> str:
    _, now, *since = found.op
    if got == "no":
        at = since[0] + timeout if since else _deadlines(found)[-1]
        return "one_late" if at == now else "since_ignored" if since else "not_due"
    if timeout <= 0:
        return "by_time_anyway"
    if since:
        return "deadline_and_since" if any(each <= now for each in _deadlines(found)[-1:]) else "too_early"
    said = [event[1]["said"] for event in found.expected[: found.index]]
    asked = [n for n, op in enumerate(found.before) if op[0] in ("waits", "quiet")]
    if any(op[0] == "look" and said[n] == "yes" for n, op in enumerate(found.before) if n > max(asked, default=0)):
        return "twice"
    if not asked or said[asked[-1]] == "never":
        return "flushes_nothing"
    return "too_early"


def _deadlines(found: Difference) -> list[int]:
    """The deadlines that were right before this operation."""
    events = found.expected[: found.index]
    answers = [event[1]["said"] for event in events if event[0] == "next_deadline"]
    return [each for each in answers if isinstance(each, int)]


def _now(found: Difference) -> str:
    return str(found.op[1]) if len(found.op) > 1 else ""


def _op(op: Sequence[Any]) -> str:
    name = "since" if len(op) == 3 else op[0]
    return phrase(f"op_{name}", "5.3", **dict(zip("ab", op[1:], strict=False)))


def _field(_name: str, value: Any) -> str:
    if value in ("yes", "no", "never"):
        return phrase(f"says_{value}", "5.3")
    return "" if value == "" else phrase("says_time", "5.3", a=str(value).removeprefix("? "))


CHECK = TranscriptCheck(
    "5.3", OutputFlusher, driver, scripts("timeout", _CASES), _belief,
    Seeded("H", _seeded, setup="timeout"), words=FieldWords("5.3", _op, _field),
)  # fmt: skip
