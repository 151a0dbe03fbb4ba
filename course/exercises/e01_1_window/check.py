"""Exercise 1.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_segments
from course.checks.segments import (
    EIGHT,
    HUNDREDS,
    LARGE,
    THIRTEEN,
    about_freed,
    about_outside,
    alone,
    has_calls,
    is_large,
    memory_after,
    memory_before,
    on,
    was_freed,
)
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import TextWords
from refimpl.memory import MemorySegment

__all__ = ["CHECK"]


_WINDOWS = {
    "A": [*alone(EIGHT, ["window", 0, 3], ["window", 2, 3], ["window", 4, 1]), *alone(THIRTEEN, ["window", 5, 7])],
    "B": [*alone(EIGHT, ["write", 2, "a1a2a3"], ["write", 0, "b1"]), *alone(THIRTEEN, ["write", 9, "c1c2"]),
          on(HUNDREDS, ["write", 300, "d1d2d3"])],
    "C": [
        *alone(EIGHT, ["window", 5, 3], ["window", 0, 8], ["window", 3, 0], ["window", 8, 0], ["window", 0, 0]),
        *alone(THIRTEEN, ["window", 12, 1], ["window", 0, 13]), *alone("40", ["window", 0, 1]),
        *alone("", ["window", 0, 0]), *alone(HUNDREDS, ["window", 300, 290], ["window", 599, 1], ["window", 0, 600]),
        on(EIGHT, ["window", 3, 0], ["window", 2, 5], ["window", 8, 0], ["window", 0, 8], ["window", 5, 3]),
        on(LARGE, ["window", 69_990, 10], ["window", 32_768, 3], ["window", 2, 69_998], ["window", 4_000, 65_537]),
    ],
    "D": [
        *alone(EIGHT, ["window", 12, 1], ["window", 2, 9], ["window", 5, 4], ["window", 8, 1], ["window", 9, 0]),
        *alone(THIRTEEN, ["window", 10, 4], ["window", 0, 14], ["window", 2**31, 4]), *alone("40", ["window", 1, 1]),
        *alone("", ["window", 0, 1]), *alone(HUNDREDS, ["window", 301, 300], ["window", 600, 1]),
    ],
    "E": alone(
        EIGHT, ["window", -3, 2], ["window", -1, 1], ["window", 4, -2], ["window", 0, -1], ["window", -8, 8],
        ["window", -1, 0], ["window", -4, 6],
    ),
    "F": [
        on(EIGHT, ["free"], ["window", 0, 4]), on(EIGHT, ["window", 0, 1], ["free"], ["window", 0, 1]),
        on(EIGHT, ["free"], ["window", 99, 1]), on(EIGHT, ["free"], ["window", -1, 1]),
        on(EIGHT, ["free"], ["free"], ["window", 0, 0]),
    ],
}  # fmt: skip


def _windows_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 1.1 {seed}")
    for _ in range(30):
        size = generator.randint(1, 20)
        ops: list[list[Any]] = []
        for _ in range(generator.randint(1, 5)):
            index, length = generator.randint(-2, size + 2), generator.randint(-1, size + 2)
            if generator.random() < 0.3 and length > 0:
                ops.append(["write", index, generator.randbytes(length).hex()])
            else:
                ops.append(["window", index, length])
        ops[-1:] = [["free"], ops[-1]] if generator.random() < 0.2 else ops[-1:]
        yield on(generator.randbytes(size).hex(" "), *ops)


def _about_window(found: Difference) -> str:
    got, want = found.answers
    memory = memory_before(found)
    if "earlier" in found.got and got == want:
        return "window_lost"
    if was_freed(found) and want == "!LocalUsageError":
        return about_freed(got)
    index, length = found.op[2], found.op[3] if found.op[0] == "window" else len(found.op[3]) // 2
    if want == "!IndexError":
        return about_outside(got, index, length, len(memory))
    if got == "!IndexError":
        return "refuses_the_end" if index == len(memory) else "refuses_no_bytes" if not length else "refuses_the_last"
    if got == "None":
        return "returns_nothing"
    if got.startswith("!") and got != "!TypeError":
        return "raised"
    if is_large(found):
        return "only_small"
    if found.op[0] == "write":
        is_elsewhere = got != "!TypeError" and memory_after(found)[0] != memory
        return "other_bytes" if is_elsewhere else "cannot_be_written" if got == "!TypeError" else "a_copy"
    beliefs = {
        "length_is_end": memory[index:length], "end_included": memory[index : index + length + 1],
        "starts_at_0": memory[:length], "length_ignored": memory[index:],
    }  # fmt: skip
    return next((code for code, belief in beliefs.items() if belief.hex(" ") == got), "other_bytes")


CHECK = TranscriptCheck(
    "1.1",
    MemorySegment,
    drive_segments,
    _WINDOWS,
    _about_window,
    Seeded("G", _windows_of, is_valid=has_calls),
    words=TextWords("1.1", drive_segments.label),
)
