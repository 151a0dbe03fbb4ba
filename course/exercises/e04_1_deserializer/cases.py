"""The inputs of exercise 4.1: for each rule, cases from the smallest on.

Payload bytes are distinct and lengths odd, so that no two misconceptions give the same record by accident.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from course.checks.common import by_rule, recorded
from course.checks.transcript import Cases, Seeded
from course.curriculum.manifest import VECTORS
from course.curriculum.messages import phrase
from course.exercises.e04_1_deserializer.driver import pieces
from course.grading.rules import Case
from course.grading.shrink import smaller_lists

__all__ = ["CASES", "SEEDED", "told", "vector_cases"]

_VECTORS = VECTORS / "spanning.json"
_LARGEST_VECTOR_BYTES = 100_000
_HELLO, _TO, _HI = b"hello".hex(), b"to".hex(), b"hi".hex()
_Record = str | list[int]


def _say(key: str, **values: object) -> str:
    return phrase(key, "4.1", **values)


def _data(length: int, start: int = 0x61) -> str:
    return bytes((start + 7 * i) & 255 for i in range(length)).hex()


def _text(data: _Record) -> str:
    """How a record is written in a message: as bytes while it is short and readable."""
    if isinstance(data, list):
        return _say("payload", size=f"{data[0]:,}")
    raw = bytes.fromhex(data)
    if len(raw) <= 10 and all(32 <= byte < 127 for byte in raw):
        return repr(raw)
    return _say("payload", size=len(raw))


def told(records: Sequence[_Record], sizes: Sequence[int], lead: int = 0) -> str:
    """Records and buffers in words."""
    names = [_text(each) for each in records]
    listed = ", ".join(names[:4]) + (_say("and_more", number=len(names) - 4) if len(names) > 4 else "")
    cut = pieces(list(records), list(sizes))
    buffers = ", ".join(str(len(each)) for each in cut[:6]) + (", …" if len(cut) > 6 else "")
    key = "window" if lead else "whole" if len(cut) == 1 else "cut"
    return _say(key, records=listed, buffers=buffers, lead=lead)


def _ops(records: Sequence[_Record], sizes: Sequence[int], lead: int = 0, s: int = 0) -> list[Any]:
    number = len(pieces(list(records), list(sizes)))
    feed = ["feed", s, number, lead] if lead else ["feed", s, number]
    return [["new", s], ["stream", s, list(records), list(sizes)], feed]


def _read(rule: str, records: Sequence[_Record], *sizes: int, lead: int = 0) -> Case:
    return Case(rule, _ops(records, sizes, lead), told(records, sizes, lead))


def _cuts_a_length(records: Sequence[str], size: int) -> bool:
    """Whether a buffer of this size ends inside a length: that is a rule of its own."""
    start = 0
    for record in records:
        if any(cut % size == 0 for cut in range(start + 1, start + 4)):
            return True
        start += 4 + len(record) // 2
    return False


def _in_one_buffer() -> list[Case]:
    found = [_read("A", [_HELLO], 32), _read("A", [_HELLO, _TO], 32)]
    found += [_read("B", [_HELLO, _TO, _data(9)], 32), _read("B", [_data(11), _HELLO], 64)]
    found += [_read("B", ["00610020", _HELLO], 32), _read("B", ["ff800d0a", _HELLO], 32)]
    found += [_read("B", [_data(size), _data(30)], 900) for size in (1, 2, 255, 256, 300)]
    found += [_read("C", [_HELLO], 9), _read("C", [_HELLO, _TO], 32), _read("C", [_data(1), _data(3), _data(2)], 32)]
    found += [_read("C", [_data(n, 7 * n) for n in sizes], 400) for sizes in ([17, 1], [1, 1, 1, 1], [9, 30, 2, 5])]
    return found


def _over_buffers() -> list[Case]:
    found = [_read("D", [_HELLO], 7, 2), _read("D", [_HELLO], 8, 1), _read("D", [_HELLO], 4, 5)]
    found += [_read("D", [_data(9)], 6, 3, 4), _read("D", [_data(23)], 5), _read("D", [_data(300)], 64)]
    found += [_read("D", [_HELLO, _data(6)], 7, 2, 10), _read("D", [_HELLO, _data(9)], 7, 2, 8, 5)]
    found += [_read("E", [_HELLO, _TO], 7, 8), _read("E", [_HELLO, _TO, _data(9)], 7, 21)]
    found += [_read("E", [_data(20), _data(3), _data(20)], 12)]
    many = [_data(n, 5 * n) for n in (3, 14, 1, 8, 25, 2)]
    found += [_read("E", many, size) for size in range(8, 40) if not _cuts_a_length(many, size)]
    found += [_read("F", [_HELLO], cut, 9 - cut) for cut in (2, 1, 3)]
    found += [_read("F", [_TO, _HELLO], cut, 15 - cut) for cut in (8, 7, 9)]
    found += [_read("F", [_HELLO, _TO], size) for size in (1, 2, 3)]
    found += [_read("F", [_HELLO], 7, 0, 2), _read("F", [_HELLO, _TO], 2, 0, 0, 6, 0, 3, 0, 40)]
    found += [_read("F", [_data(300)], 2, 100), _read("F", [_data(300), _HI], 3, 303, 1, 1, 4)]
    return found


def _empty_records() -> list[Case]:
    found = [_read("G", ["", _HI], 32), _read("G", [""], 4), _read("G", ["", "", ""], 12)]
    found += [_read("G", ["", _HI], 2, 8), _read("G", [""], 1), _read("G", [_HELLO, "", _HI], 11, 8)]
    found += [_read("G", [""], 3, 1), _read("G", ["", ""], 2, 2, 4), _read("G", ["", "", _HELLO, ""], 5)]
    return found


def _buffers() -> list[Case]:
    again = [["again", 0]]
    found = [_read("H", [_HELLO], 32), _read("H", [_HELLO], 7, 2), _read("H", [_HELLO, _TO], 7, 8)]
    found.append(Case("H", [*_ops([_HELLO], [32]), *again], _say("twice", ran=told([_HELLO], [32]))))
    found.append(Case("H", [*_ops([_HELLO], [7, 2]), *again], _say("twice", ran=told([_HELLO], [7, 2]))))
    found += [_read("I", [_HELLO, _TO], 32, lead=3), _read("I", [_HELLO], 9, lead=5), _read("I", [_HELLO], 7, lead=6)]
    found += [_read("I", [_HELLO, _TO], size, lead=2) for size in (2, 3, 5, 8)]
    found += [_read("I", [_data(30), "", _data(9)], 13, lead=1)]
    return found


def _two_channels() -> list[Case]:
    first, second = [_data(12, 0x61), _data(5, 0x31)], [_data(12, 0x41), _data(4, 0x71)]
    found = []
    for size, turns in ((7, 4), (3, 9), (10, 3)):
        ops: list[Any] = [["new", 0], ["new", 1], ["stream", 0, first, [size]], ["stream", 1, second, [size]]]
        ops += [["feed", s, 1] for _ in range(turns - 1) for s in (0, 1)]
        found.append(Case("J", ops, _say("turns", size=size)))
    ops = [["new", 0], ["stream", 0, first, [9]], ["feed", 0, 1], ["new", 1], ["stream", 1, second, [50]],
           ["feed", 1, 1], ["feed", 0, 2]]  # fmt: skip
    found.append(Case("J", ops, _say("born")))
    ops = [["new", 0], ["new", 1], ["stream", 0, first, [50]], ["stream", 1, second, [50]], ["around", 0, 1]]
    found.append(Case("J", ops, _say("around")))
    return found


def _long_records() -> list[Case]:
    found = [_read("K", [[n, 3], _HI], size) for n, size in ((255, 64), (256, 64), (65_535, 8_192), (65_536, 8_192))]
    length = 1 << 24 | 2
    ops: list[Any] = [["new", 0], ["begin", 0, length.to_bytes(4, "big").hex() + _HELLO], ["feed", 0, 1]]
    found.append(Case("K", ops, _say("begins", size=f"{length:,}")))
    found.append(_read("K", [[2500, 3], _HI], 1))
    return [*found, _read("K", [[65_537, 3], [300, 5], _HI], 70_000), _read("K", [[200_001, 9], _HI], 32_768)]


def _random(seed: int) -> list[Case]:
    """Seeded mixtures: records of all lengths in buffers of all lengths, one channel or two in turns."""
    generator = random.Random(f"sluice 4.1 {seed}")
    found = []
    for number in range(50):
        channels = range(1 + (number % 5 == 4))
        ops: list[Any] = [["new", s] for s in channels]
        left = {}
        records: list[_Record] = []
        sizes: list[int] = []
        for s in channels:
            lengths = (0, 1, 2, 3, 5, 8, 13, 40, generator.randint(0, 90))
            records = [generator.randbytes(generator.choice(lengths)).hex() for _ in range(generator.randint(1, 6))]
            sizes = [generator.randint(1, 24) for _ in range(generator.randint(1, 5))]
            ops.append(["stream", s, records, sizes])
            left[s] = len(pieces(records, sizes))
        while any(left.values()):
            s = generator.choice([each for each in channels if left[each]])
            most = generator.randint(1, left[s])
            ops.append(["feed", s, most, generator.randint(1, 9)] if generator.random() < 0.3 else ["feed", s, most])
            left[s] -= most
        found.append(Case("M", ops, told(records, sizes) if len(channels) == 1 else _say("mixture")))
    return sorted(found, key=lambda case: len(json.dumps(case.ops)))


class _Streams(Seeded):
    """Cases with one channel are made smaller: with records left out or shorter, and simpler buffers."""

    def smaller(self, ops: list[Any]) -> Iterator[list[Any]]:
        streams = [op for op in ops if op[0] == "stream"]
        if len(streams) != 1:
            return
        _, _, records, sizes = streams[0]
        for fewer in smaller_lists(
            records, lambda text: {"", text[:2], text[: len(text) // 4 * 2], text[:-2]} - {text}
        ):
            if fewer:
                yield _ops(fewer, sizes)
        for other in smaller_lists(sizes, lambda size: {size // 2, 8} - {size, 0}):
            if other:
                yield _ops(records, other)


@cache
def vector_cases() -> tuple[Case, ...]:
    """The cases recorded from a real Flink that are small enough for a check, with its answers; see `recorded`."""
    return recorded(_read_vectors)


def _read_vectors() -> Iterator[Case]:
    for number, case in enumerate(json.loads(_VECTORS.read_text(encoding="utf-8"))["cases"]):
        records = [[r["gen_len"], r["gen_seed"]] if isinstance(r, dict) else r for r in case["records"]]
        if sum(case["buffer_sizes"]) > _LARGEST_VECTOR_BYTES:
            continue
        ran = _say("recorded", name=case["name"], number=number + 1)
        yield Case("L", _ops(records, [case["segment_size"]]), ran, {"reads": case["reads"]})


CASES: dict[str, Cases | Callable[[], Cases]] = {
    **by_rule([
        *_in_one_buffer(), *_over_buffers(), *_empty_records(), *_buffers(), *_two_channels(), *_long_records(),
    ]),
    "L": vector_cases,
}  # fmt: skip
SEEDED = _Streams("M", _random)
