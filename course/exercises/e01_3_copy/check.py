"""Exercise 1.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_segments
from course.checks.segments import (
    EIGHT,
    HUNDREDS,
    LARGE,
    LONG,
    THIRTEEN,
    about_freed,
    alone,
    has_calls,
    is_large,
    memory_after,
    memory_before,
    on,
    put,
    was_freed,
)
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import TextWords
from refimpl.memory import MemorySegment

__all__ = ["CHECK"]

_OTHER = "20 21 22 23 24 25 26 27"


def _between(*ops: list[Any], source: str = EIGHT, target: str = _OTHER) -> list[list[Any]]:
    """Each a copy from a to b."""
    return [[["new", 0, source], ["new", 1, target], ["copy_to", 0, op[0], 1, *op[1:]]] for op in ops]


def _freed(which: int, *copy: int) -> list[Any]:
    start, target_index, length = copy
    return [["new", 0, EIGHT], ["new", 1, _OTHER], ["free", which], ["copy_to", 0, start, 1, target_index, length]]


_COPIES = {
    "A": _between([0, 0, 3], [0, 0, 8], [0, 0, 1]),
    "B": [*_between([2, 0, 3], [5, 0, 2]), *_between([2, 0, 20], source=LONG, target=LONG[::-1])],
    "C": _between([0, 4, 2], [2, 4, 3], [5, 1, 2]),
    "D": [
        *_between([5, 0, 3], [0, 5, 3], [8, 8, 0], [3, 3, 0]),
        *_between([9, 0, 4], [2, 1, 3], source=THIRTEEN, target="50 51 52 53"),
        *_between([0, 9, 4], source="50 51 52 53", target=THIRTEEN),
        *_between([10, 300, 290], [300, 0, 300], source=HUNDREDS, target=HUNDREDS[::-1]),
        *_between([2, 4_000, 65_537], source=LARGE, target=LARGE[::-1]),
    ],
    "E": [
        *_between([6, 0, 3], [0, 6, 3], [9, 0, 1], [0, 9, 1]),
        *_between([0, 0, 5], source=THIRTEEN, target="50 51 52 53"),
        *_between([0, 0, 5], source="50 51 52 53", target=THIRTEEN),
        *_between([-3, 0, 2], [0, -3, 2], [0, 0, -1], [3, 3, -2]),
    ],
    "F": [
        on(EIGHT, ["copy_to", 0, 0, 2, 5]), on(EIGHT, ["copy_to", 2, 0, 0, 5]),
        on(EIGHT, ["copy_to", 1, 0, 1, 4]), on(THIRTEEN, ["copy_to", 0, 0, 1, 12]),
        *alone(HUNDREDS, ["copy_to", 0, 0, 100, 500], ["copy_to", 5, 0, 0, 595], ["copy_to", 0, 0, 300, 300]),
    ],
    "G": [
        _freed(0, 0, 0, 4), _freed(1, 0, 0, 4), _freed(0, 99, 0, 4), _freed(1, 0, 99, 4), _freed(0, 0, 0, 0),
    ],
}  # fmt: skip


def _copies_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 1.3 {seed}")
    for _ in range(30):
        sizes = [generator.randint(1, 14) for _ in range(2)]
        case: list[Any] = [["new", each, generator.randbytes(size).hex(" ")] for each, size in enumerate(sizes)]
        for _ in range(generator.randint(1, 5)):
            source, target = generator.randrange(2), generator.randrange(2)
            length = generator.randint(-1, min(sizes) + 1)
            start, at = (generator.randint(-1, max(0, sizes[each] - length)) for each in (source, target))
            case.append(["copy_to", source, start, target, at, length])
        yield case


def _about_copy(found: Difference) -> str:
    (got, want), (_, source, index, target, at, length) = found.answers, found.op
    if was_freed(found):
        return about_freed(got) if got != want else "partly_written"
    from_, to = memory_before(found, source), memory_before(found, target)
    if want == "!IndexError":
        if got == want:
            return "partly_written"
        if got:
            return "other_error"
        if min(index, at, length) < 0:
            return "before_the_start"
        return "source_not_checked" if index + length > len(from_) else "target_not_checked"
    if got == "!IndexError":
        return "refuses_the_end"
    if got:
        return "lengths_differ" if got == "!ValueError" else "raised"
    if is_large(found):
        return "only_small"
    yours, _ = memory_after(found, target)
    if source == target:
        return "overlap_smeared"
    if memory_after(found, source)[0] != memory_after(found, source)[1]:
        return "other_direction"
    beliefs = {
        "nothing_copied": to,
        "index_ignored": put(to, at, from_[:length]), "target_index_ignored": put(to, 0, from_[index:][:length]),
        "indexes_swapped": put(to, index, from_[at:][:length]),
        "same_index": put(to, index, from_[index:][:length]),
        "length_ignored": put(to, at, from_[index:])[: len(to)], "length_is_end": put(to, at, from_[index:length]),
        "one_more": put(to, at, from_[index : index + length + 1])[: len(to)],
    }  # fmt: skip
    return next((code for code, belief in beliefs.items() if belief == yours), "other_bytes")


CHECK = TranscriptCheck(
    "1.3",
    MemorySegment,
    drive_segments,
    _COPIES,
    _about_copy,
    Seeded("H", _copies_of, is_valid=has_calls),
    words=TextWords("1.3", drive_segments.label),
)
