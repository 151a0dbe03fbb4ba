"""Exercise 1.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
import re
import struct
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
    about_outside,
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

_BIG, _LITTLE = "BIG_ENDIAN", "LITTLE_ENDIAN"

_NUMBER = 0x01020304
_NUMBERS = {
    "A": [
        *alone(LONG, ["put_int", 5, _NUMBER, _LITTLE]),
        *alone(EIGHT, ["put_int", 0, 5, _LITTLE], ["put_int", 3, 70_000, _LITTLE]),
    ],
    "B": alone(EIGHT, ["put_int", 2, _NUMBER, _BIG], ["put_int", 0, 5, _BIG], ["put_int", 1, 70_000, _BIG]),
    "C": alone(EIGHT, ["put_int", 2, _NUMBER, ""], ["put_int", 0, 5, ""]),
    "D": alone(EIGHT, ["get_int", 0, _BIG], ["get_int", 2, _BIG], ["get_int", 3, _LITTLE], ["get_int", 1, ""]),
    "E": [
        *alone(EIGHT, ["put_int", 2, -2, _BIG], ["put_int", 2, -(2**31), _LITTLE], ["put_int", 1, 2**31 - 1, _BIG]),
        *alone("10 ff ff ff fe 15 80 00 00 00 16", ["get_int", 1, _BIG], ["get_int", 6, _LITTLE], ["get_int", 6, _BIG]),
        *alone("7f ff ff ff 00", ["get_int", 0, _BIG]),
    ],
    "F": [
        *alone(EIGHT, ["put_int", 4, _NUMBER, _BIG], ["get_int", 4, _BIG]),
        *alone("50 51 52 53", ["put_int", 0, _NUMBER, _LITTLE], ["get_int", 0, _LITTLE]),
        *alone(THIRTEEN, ["put_int", 9, _NUMBER, _BIG], ["put_int", 7, 0, _BIG], ["get_int", 9, _BIG]),
        *alone(HUNDREDS, ["put_int", 300, _NUMBER, _BIG], ["get_int", 596, _LITTLE]),
        on(LARGE, ["get_int", 69_996, _BIG], ["put_int", 65_535, _NUMBER, _BIG], ["get_int", 32_767, _LITTLE]),
    ],
    "G": [
        *alone(EIGHT, ["put_int", 5, _NUMBER, _BIG], ["put_int", 8, 1, _LITTLE], ["put_int", -4, 1, _BIG]),
        *alone(EIGHT, ["put_int", -1, 1, ""], ["get_int", 5, _BIG], ["get_int", -4, _BIG], ["get_int", 9, _LITTLE]),
        *alone("50 51 52", ["put_int", 0, 1, _BIG], ["get_int", 0, _LITTLE]),
    ],
    "H": [
        on(EIGHT, ["free"], ["put_int", 0, 1, _BIG]), on(EIGHT, ["free"], ["get_int", 0, _BIG]),
        on(EIGHT, ["free"], ["put_int", 99, 1, _BIG]), on(EIGHT, ["free"], ["get_int", -1, ""]),
    ],
}  # fmt: skip


def _numbers_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 1.2 {seed}")
    for _ in range(30):
        size = generator.randint(4, 16)
        ops: list[list[Any]] = []
        for _ in range(generator.randint(1, 5)):
            index, order = generator.randint(-1, size), generator.choice([_BIG, _LITTLE, ""])
            if generator.random() < 0.5:
                bits = generator.choice([7, 15, 31])
                ops.append(["put_int", index, generator.randint(-(2**bits), 2**bits - 1), order])
            else:
                ops.append(["get_int", index, order])
        yield on(generator.randbytes(size).hex(" "), *ops)


def _about_number(found: Difference) -> str:
    got, want = found.answers
    index = found.op[2]
    if was_freed(found):
        return about_freed(got)
    if want == "!IndexError":
        if got == want:
            return "partly_written"
        outside = about_outside(got, index, 4, len(memory_before(found)))
        return outside if found.op[0] == "get_int" or got else "counts_from_the_end" if index < 0 else "never_refuses"
    if got == "!IndexError":
        return "refuses_the_last" if index + 4 == len(memory_before(found)) else "refuses_inside"
    return _about_put(found) if found.op[0] == "put_int" else _about_get(found)


def _about_put(found: Difference) -> str:
    index, value, order = found.op[2:]
    yours, right = memory_after(found)
    if "buffer" in found.raised:  # struct had no room: of the number it says nothing
        return "raised"
    if found.answers[0] in ("!OverflowError", "!error"):
        return "refuses_negative" if value < 0 else "refuses_the_number"
    if found.answers[0]:
        return "raised"
    if is_large(found):
        return "only_small"
    start = memory_before(found)
    number = right[index : index + 4]
    beliefs = {
        "turned": put(start, index, number[::-1]),
        "index_in_numbers": put(start, 4 * index, number), "starts_at_0": put(start, 0, number),
        "one_byte": put(start, index, bytes([value & 255])), "aligned": put(start, index // 4 * 4, number),
        "nothing_written": start,
        "as_float": put(start, index, struct.pack((">" if order == _BIG else "<") + "f", value)),
    }  # fmt: skip
    code = next((code for code, belief in beliefs.items() if belief == yours), "other_bytes")
    if code == "turned":
        return {_LITTLE: "big_for_little", _BIG: "little_for_big", "": "default_not_native"}[order]
    if code == "other_bytes" and yours[: index + 4] == right[: index + 4]:
        return "eight_bytes"
    return code


def _about_get(found: Difference) -> str:
    (got, want), (index, order) = found.answers, found.op[2:]
    memory = memory_before(found)
    if got == "None":
        return "returns_nothing"
    if got.startswith("!"):
        return "raised"
    if found.got["memory"] != found.want["memory"]:
        return "reading_writes"
    if not got.lstrip("-").isdecimal():
        return "overflows" if re.fullmatch(r"u?int(8|16|32)", got) else "no_number"
    if is_large(found):
        return "only_small"
    if int(got) == int(want) + 2**32:
        return "unsigned"
    four = memory[index : index + 4]
    if int(want) < 0 and -int(got) == int(want) & 0x7FFF_FFFF:
        return "sign_and_size"
    is_big = int.from_bytes(four, "big", signed=True) == int(want)
    turned = int.from_bytes(four, "little" if is_big else "big", signed=True)
    if int(got) == turned:
        return {_LITTLE: "big_for_little", _BIG: "little_for_big", "": "default_not_native"}[order]
    other = {memory[0:4]: "starts_at_0", memory[4 * index : 4 * index + 4]: "index_in_numbers",
             memory[index // 4 * 4 :][:4]: "aligned", memory[index : index + 1]: "one_byte"}  # fmt: skip
    for bytes_there, code in other.items():
        if int(got) in (int.from_bytes(bytes_there, o, signed=s) for o in ("big", "little") for s in (True, False)):
            return code
    return "other_number"


CHECK = TranscriptCheck(
    "1.2",
    MemorySegment,
    drive_segments,
    _NUMBERS,
    _about_number,
    Seeded("I", _numbers_of, is_valid=has_calls),
    words=TextWords("1.2", drive_segments.label),
)
