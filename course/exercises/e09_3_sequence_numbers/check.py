"""Exercise 9.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_calls
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from refimpl.consumer.sequence import SequenceNumbers

__all__ = ["CHECK"]


_ASK, _GO, _KEPT = "is_next", "advance", "expected"


def _numbers(words: str, start: int | None = None) -> list[Any]:
    """Calls in short: `?3` asks for 3, `+` advances, `=` reads what is expected."""
    ops: list[Any] = [["new"]]
    if start is not None:
        ops.append(["set", _KEPT, start])
    meant: dict[str, list[Any]] = {"+": ["call", _GO], "=": ["get", _KEPT]}
    return ops + [meant.get(word) or ["call", _ASK, int(word[1:])] for word in words.split()]


_LARGEST = 2**31 - 1
_SEQUENCES = {
    "A": [_numbers("?0"), _numbers("+"), _numbers("?1")],
    "B": [_numbers("+ + +"), _numbers("+ ?1"), _numbers("?0 + ?1 + ?2 +"), _numbers("= + = + =")],
    "C": [_numbers("+ ?2"), _numbers("+ + ?7 ?2"), _numbers("?3 ?0 +")],
    "D": [_numbers("+ + ?1"), _numbers("+ ?0 ?1"), _numbers("+ + + ?-1 ?3")],
    "E": [
        _numbers(f"?{_LARGEST} + +", _LARGEST),
        _numbers(f"+ ?{-_LARGEST - 1} ?{_LARGEST + 1} +", _LARGEST),
        _numbers("+ + +", -2),
        _numbers(f"+ + ?{-_LARGEST}", _LARGEST),
        _numbers("+ + + + + =", _LARGEST - 2),
        _numbers("+ + + =", -_LARGEST - 1),
        _numbers("+ =", _LARGEST),
        *[_numbers("+ + + + +", 2**bits - 3) for bits in (7, 8, 15, 16, 20, 24, 30)],
        *[_numbers("+ + + + +", -(2**bits) - 3) for bits in (7, 8, 15, 16, 30)],
        *[_numbers("+ + +", 10**digits - 2) for digits in (2, 3, 4, 5, 6, 9)],
    ],
}


def _mixed_numbers(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 9.3 {seed}")
    for _ in range(20):
        start = generator.choice((None, generator.randint(-_LARGEST, _LARGEST - 20)))
        expected, words = start or 0, []
        for _ in range(generator.randint(2, 12)):
            if generator.random() < 0.5:
                words.append("+")
                expected += 1
            else:
                words.append(f"?{expected + generator.choice((0, 0, 1, -1, 2, 10))}")
        yield _numbers(" ".join(words), start)


def _number_belief(found: Difference) -> str:
    (kind, content), right = found.answers
    steps = sum(1 for op in found.before if op[1:2] == [_GO])
    started = next((op[2] for op in found.before if op[0] == "set"), 0)
    if found.call == _KEPT:
        return "kept_elsewhere"
    if found.call == _ASK:
        if kind != "bool":
            return "no_truth"
        asked = found.op[2]
        if content == "False":
            if any(op[1:2] == [_ASK] for op in found.before) and not steps:
                return "asking_moves"
            if started > 256 and not steps:
                return "same_object"
            return "first_is_refused" if not steps and not started else "next_is_refused"
        if asked > started + steps:
            return "gap_accepted"
        return "old_accepted" if asked < started + steps else "wrap_accepted"
    if kind == "NoneType":
        return "advance_gives_nothing"
    if kind != "int":
        return "advance_no_number"
    got, want = int(content), int(right[1])
    if any(op[1:2] == [_ASK] for op in found.before) and not started:
        return "asking_moves"  # without a question it gave the right number, or it would have failed before
    if started and steps:
        return _about_wrap(got, want)
    beliefs = [("gives_the_next", want + 1), ("stands_still", started if steps else want)]
    return next((code for code, value in beliefs if value == got), "advance_wrong")


def _about_wrap(got: int, want: int) -> str:
    """What is wrong after other numbers from a start that was set, when the first numbers from 0 are right."""
    if want > 0:
        return "wraps_early" if got < 0 else "advance_wrong"
    if got == want + 2**32:
        return "wraps_not"
    if want > -_LARGEST + 20:
        return "advance_wrong"  # far from the end
    return "wraps_to_zero" if got == 0 else "wraps_wrong"


CHECK = TranscriptCheck("9.3", SequenceNumbers, drive_calls, _SEQUENCES, _number_belief, Seeded("F", _mixed_numbers))
