"""Exercise 9.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_calls
from course.checks.common import letters
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from refimpl.exchange.framing import to_frame

__all__ = ["CHECK"]


def _framed(*messages: tuple[int, bytes]) -> list[list[Any]]:
    return [[["call", "", frame_id, {"hex": body.hex()}]] for frame_id, body in messages]


_FRAMES = {
    "A": _framed((6, b"hi"), (2, b"hello"), (4, letters(16))),
    "B": _framed((5, b""), (7, b"")),
    "C": [
        *_framed((6, letters(20)), (3, letters(247)), (0, letters(248)), (1, letters(300, 3)), (0, b"\0\1\2")),
        *_framed((3, letters(2**15)), (2, letters(2**16 - 10)), (1, letters(70_000)), (7, letters(2**16 - 9))),
        *_framed(*((frame_id, b"hi") for frame_id in (9, 10, 16, 99, 100, 127, 128, 200, 255))),
        [*_framed((6, b"hi"))[0], *_framed((2, b"hello"))[0], ["look", 1]],
        [*_framed((6, letters(300)))[0], *_framed((2, letters(4, 9)))[0], ["look", 1], ["look", 2]],
    ],
}


def _mixed_frames(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 9.1 {seed}")
    for _ in range(20):
        body = generator.randbytes(generator.randint(0, 400))
        yield [["call", "", generator.randint(0, 255), {"hex": body.hex()}]]


def _frame_belief(found: Difference) -> str:
    if found.op[0] == "look":
        return "overwrites_earlier"
    frame_id, body = found.op[2], bytes.fromhex(found.op[3]["hex"])
    answer, _ = found.answers
    kind = answer[0]
    if kind == "NoneType":
        return "returns_nothing"
    if kind != "bytes":
        return "returns_text" if kind == "str" else "no_bytes"
    size = len(body)
    length, magic, one = (9 + size).to_bytes(4, "big"), bytes.fromhex("badc0ffe"), bytes([frame_id])
    beliefs = [
        ("length_of_body", size.to_bytes(4, "big") + magic + one + body),
        ("length_without_itself", (5 + size).to_bytes(4, "big") + magic + one + body),
        ("length_and_body", (4 + size).to_bytes(4, "big") + magic + one + body),
        ("length_without_id", (8 + size).to_bytes(4, "big") + magic + one + body),
        ("length_of_header", (9).to_bytes(4, "big") + magic + one + body),
        ("length_turned", length[::-1] + magic + one + body),
        ("all_turned", length[::-1] + magic[::-1] + one + body),
        ("magic_turned", length + magic[::-1] + one + body),
        ("magic_as_text", length + b"BADC0FFE" + one + body),
        ("magic_missing", length + one + body), ("magic_missing", (5 + size).to_bytes(4, "big") + one + body),
        ("id_before_magic", length + one + magic + body), ("magic_first", magic + length + one + body),
        ("id_too_wide", length + magic + bytes(3) + one + body),
        ("id_too_wide", (12 + size).to_bytes(4, "big") + magic + bytes(3) + one + body),
        ("id_as_text", length + magic + str(frame_id).encode() + body), ("id_missing", length + magic + body),
        ("body_missing", length + magic + one), ("header_behind", body + length + magic + one),
        ("id_zeros", length + magic + bytes(frame_id) + body),
        ("id_zeros", (8 + frame_id + size).to_bytes(4, "big") + magic + bytes(frame_id) + body),
        ("body_as_text", length + magic + one + str(body).encode()),
        ("length_two_bytes", length[2:] + magic + one + body),
        ("length_two_bytes", (7 + size & 0xFFFF).to_bytes(2, "big") + magic + one + body),
        ("length_one_byte", length[:3] + bytes([(9 + size) & 255]) + magic + one + body),
        ("length_one_byte", bytes(3) + bytes([(9 + size) & 255]) + magic + one + body),
        ("length_ends_early", bytes(2) + length[2:] + magic + one + body),
        ("length_ends_early", bytes(1) + length[1:] + magic + one + body),
    ]  # fmt: skip
    found_one = next((each for each in beliefs if drive_calls.plain(each[1]) == answer), None)
    if found_one is None:
        got = answer[1]
        is_id = len(got) == 2 * (9 + size) and got[:16] == (length + magic).hex() and got[18:] == body.hex()
        return "id_other" if is_id else "bytes_wrong"
    return found_one[0]


CHECK = TranscriptCheck("9.1", to_frame, drive_calls, _FRAMES, _frame_belief, Seeded("D", _mixed_frames))
