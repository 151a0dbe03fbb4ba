"""The inputs of exercise 3.1: for each rule, cases from the smallest on.

Sizes and contents are chosen so that no two misconceptions give the same bytes by accident:
payload bytes are distinct, lengths are odd, builders come empty, part-filled and full.
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
from course.grading.rules import Case

__all__ = ["CASES", "SEEDED", "told", "vector_cases"]

_VECTORS = VECTORS / "spanning.json"
_LARGEST_VECTOR_BYTES = 300_000


def _say(key: str, **values: object) -> str:
    return phrase(key, "3.1", **values)


def _data(length: int, start: int = 0x61) -> str:
    return bytes((start + 7 * i) & 255 for i in range(length)).hex()


def _text(data: str | list[int]) -> str:
    """How a payload is written in a message: as bytes while it is short and readable."""
    if isinstance(data, list):
        return _say("payload", size=f"{data[0]:,}")
    raw = bytes.fromhex(data)
    if len(raw) <= 8 and all(32 <= byte < 127 for byte in raw):
        return repr(raw)
    return f'bytes.fromhex("{data}")' if len(raw) <= 8 else _say("payload", size=len(raw))


def _copies(length: int, capacity: int, used: int = 0) -> int:
    """More copies than a right serializer can need."""
    return (length + 4 + used) // capacity + 4


def _one(rule: str, data: str, capacity: int, used: int = 0) -> Case:
    ops = [["new", 0], ["serialize", 0, data], ["copy", 0, 0, capacity, used]]
    return Case(rule, ops, _say("one_used" if used else "one", data=_text(data), capacity=capacity, used=used))


def _drained(rule: str, data: str, capacity: int, used: int = 0) -> Case:
    length = len(data) // 2
    ops = [["new", 0], ["serialize", 0, data], ["drain", 0, capacity, used, _copies(length, capacity, used)]]
    key = "drained_used" if used else "drained"
    return Case(rule, ops, _say(key, data=_text(data), capacity=capacity, used=used))


def _emitted(rule: str, sizes: list[int], capacity: int) -> Case:
    ops: list[Any] = [["new", 0]]
    for index, size in enumerate(sizes):
        ops.append(["emit", 0, capacity, _data(size, 0x61 + 29 * index), _copies(size, capacity, capacity)])
    listed = ", ".join(str(size) for size in sizes)
    return Case(rule, ops, _say("emitted", sizes=listed, capacity=capacity))


_HELLO, _HI = b"hello".hex(), b"hi".hex()


def _simple() -> list[Case]:
    found = [_one("A", _HELLO, 32)]
    found += [_one("B", data, len(data) // 2 + 11) for data in (_HELLO, _HI, "00", "ff0001", _data(300), _data(256))]
    found += [_one("C", _HELLO, capacity) for capacity in (10, 11, 32, 4096)]
    found += [_one("C", data, 400) for data in (_HI, "00", _data(255), _data(256))]
    found += [_one("D", data, len(data) // 2 + 4) for data in (_HELLO, _HI, "00", _data(16), _data(300))]
    found += [_drained("E", _HELLO, capacity) for capacity in (8, 7, 6, 5, 4)]
    found += [_drained("E", _data(size), capacity) for size in (6, 11, 16, 47, 300) for capacity in (4, 5, 7, 10)]
    found += [_drained("F", _HI, 8, used) for used in (6, 7, 5)]
    found += [_drained("F", data, capacity) for data in (_HI, _HELLO, _data(17)) for capacity in (3, 2, 1)]
    found += [_drained("F", _data(size), 12, used) for size in (9, 300) for used in (9, 10, 11)]
    return found


def _full_buffers() -> list[Case]:
    found = []
    for capacity in (4, 1, 32):
        ops = [["new", 0], ["serialize", 0, _HELLO], ["copy", 0, 0, capacity, capacity], ["drain", 0, 32, 0, 3]]
        found.append(Case("G", ops, _say("full", data=_text(_HELLO), capacity=capacity)))
    for capacity in (2, 4, 6, 8):
        ops = [["new", 0], ["serialize", 0, _HELLO]]
        ops += [["copy", 0, 0, capacity, 0], ["copy", 0, 0, capacity, 0], ["drain", 0, 32, 0, 3]]
        found.append(Case("G", ops, _say("same_twice", data=_text(_HELLO), capacity=capacity)))
    return found


def _empty_records() -> list[Case]:
    found = [_one("H", "", capacity) for capacity in (8, 4, 5)]
    found += [_drained("H", "", capacity) for capacity in (3, 2, 1)]
    found += [_drained("H", "", 8, used) for used in (5, 4, 6, 7)]
    return found


def _many_records() -> list[Case]:
    found = [_emitted("I", [1, 2], 32), _emitted("I", [2, 1], 16), _emitted("I", [5, 5], 18)]
    found += [_one("I", _HELLO, 9 + used, used) for used in (1, 4, 9, 30)]
    found += [_one("I", _HELLO, 32, used) for used in (1, 9, 22)]
    found += [_drained("I", _HELLO, 12, used) for used in (4, 5, 6, 7)]
    found += [_emitted("I", sizes, 11) for sizes in ([0, 0, 0], [0, 3, 0], [7, 0, 0, 1])]
    found += [_emitted("I", [a, b], capacity) for capacity in range(1, 13) for a in range(7) for b in range(7)]
    found += [_emitted("I", [3, 0, 9, 1, 30, 2, 2], capacity) for capacity in (1, 2, 3, 5, 8, 13, 64)]
    return found


def _instances() -> list[Case]:
    other = b"world!".hex()
    ops: list[Any] = [["new", 0], ["new", 1], ["serialize", 0, _HELLO], ["serialize", 1, other]]
    apart = Case("J", [*ops, ["drain", 0, 32, 0, 3], ["drain", 1, 32, 0, 3]], _say("two_apart"))
    mixed = [["copy", s, 10 * s + b, 6, 0] for b in range(2) for s in (0, 1)]
    turns = Case("J", [*ops, *mixed], _say("two_turns"))
    later = [["new", 0], ["serialize", 0, _HELLO], ["copy", 0, 0, 6, 0], ["new", 1], ["drain", 0, 32, 0, 3]]
    born = Case("J", later, _say("two_born"))
    ops = [*ops, ["prune", 1], ["drain", 0, 6, 0, 4]]
    return [apart, turns, born, Case("J", ops, _say("two_pruned"))]


def _resets() -> list[Case]:
    found = []
    start: list[Any] = [["new", 0], ["serialize", 0, _HELLO]]
    for first in (32, 9, 6, 4, 2):
        ops = [*start, ["copy", 0, 0, first, 0], ["reset", 0], ["drain", 0, 32, 0, 3]]
        found.append(Case("K", ops, _say("reset_after", data=_text(_HELLO), first=first)))
    for first, second in ((32, 5), (5, 32), (5, 3), (3, 5), (1, 9)):
        ops = [*start, ["drain", 0, first, 0, 12], ["reset", 0], ["drain", 0, second, 0, 12], ["reset", 0]]
        found.append(Case("K", [*ops, ["drain", 0, first, 0, 12]], _say("three_channels", first=first, second=second)))
    ops = [["new", 0], ["serialize", 0, ""], ["drain", 0, 3, 0, 3], ["reset", 0], ["drain", 0, 9, 0, 3]]
    found.append(Case("K", ops, _say("empty_twice")))
    ops = [*start, ["reset", 0], ["reset", 0], ["drain", 0, 32, 0, 3], ["serialize", 0, _HI], ["drain", 0, 5, 0, 4]]
    found.append(Case("K", ops, _say("reset_twice")))
    ops = [*start, ["drain", 0, 32, 0, 3], ["reset", 0], ["drain", 0, 32, 0, 3]]
    ops += [["serialize", 0, _HI], ["drain", 0, 32, 0, 3], ["reset", 0], ["drain", 0, 32, 0, 3]]
    found.append(Case("K", ops, _say("two_channels_twice")))
    return found


def _prunes() -> list[Case]:
    start: list[Any] = [["new", 0], ["serialize", 0, _HELLO]]
    done: list[Any] = [*start, ["drain", 0, 32, 0, 3]]
    after = [["serialize", 0, _HI], ["drain", 0, 32, 0, 3]]
    return [
        Case("L", [*done, ["copy", 0, 1, 32, 0]], _say("prune_1")),
        Case("L", [*start, ["copy", 0, 0, 6, 0], ["prune", 0], ["copy", 0, 1, 32, 0]], _say("prune_2")),
        Case("L", [*start, ["prune", 0], ["copy", 0, 1, 32, 0]], _say("prune_3")),
        Case("L", [*start, ["copy", 0, 0, 2, 0], ["prune", 0], ["copy", 0, 1, 32, 0], *after], _say("prune_4")),
        Case("L", [*done, ["prune", 0], *after], _say("prune_5")),
        Case("L", [*start, ["copy", 0, 0, 6, 0], ["prune", 0], *after], _say("prune_6")),
        Case("L", [*done, ["prune", 0], ["prune", 0], *after, ["reset", 0], ["drain", 0, 5, 0, 4]], _say("prune_7")),
        Case("L", [*done, ["prune", 0], ["revive", 0]], _say("prune_8")),
        Case("L", [*done, ["copy", 0, 1, 4, 4]], _say("prune_9")),
        Case("L", [*done, ["prune", 0], ["copy", 0, 1, 4, 4], *after], _say("prune_10")),
    ]


def _long_records() -> list[Case]:
    found = []
    half, whole = 32_768, 80_000
    for length, capacity in ((255, 64), (256, 64), (65_535, half), (65_536, half), (70_001, half), (70_001, whole)):
        ops = [["new", 0], ["serialize", 0, [length, 3]], ["drain", 0, capacity, 0, _copies(length, capacity)]]
        found.append(Case("M", ops, _say("long", size=f"{length:,}", capacity=f"{capacity:,}")))
    ops = [["new", 0], ["serialize", 0, [16_777_300, 5]], ["copy", 0, 0, 64, 0], ["prune", 0]]
    found.append(Case("M", ops, _say("longer")))
    ops = [["new", 0], ["serialize", 0, [5_400_000, 9]], ["copy", 0, 0, 32, 0], ["prune", 0], ["copy", 0, 1, 32, 0]]
    ops += [["serialize", 0, _HI], ["drain", 0, 32, 0, 3]]
    found.append(Case("M", ops, _say("long_pruned")))
    length = 5_242_893
    ops = [["new", 0], ["serialize", 0, [length, 2]], ["probe", 0, 30], ["prune", 0], ["serialize", 0, _HI]]
    ops.append(["drain", 0, 32, 0, 3])
    found.append(Case("M", ops, _say("long_probed", size=f"{length:,}")))
    return found


def _random(seed: int) -> list[Case]:
    """Seeded mixtures: one or two serializers, several channels, resets and prunes in between."""
    generator = random.Random(f"sluice 3.1 {seed}")
    found = []
    for _ in range(60):
        ops: list[Any] = [["new", s] for s in range(generator.choice((1, 1, 2)))]
        number = len(ops)
        for index in range(generator.randint(1, 6)):
            s = generator.randrange(number)
            size = generator.choice((0, 1, 2, 3, 5, 8, 13, 40, generator.randint(0, 90)))
            ops.append(["serialize", s, generator.randbytes(size).hex()])
            if generator.random() < 0.3:
                capacity = generator.randint(1, 12)
                used = generator.randint(0, capacity)
                ops += [["copy", s, 1000 + index, capacity, used], ["reset", s]]
            for channel in range(generator.choice((1, 1, 2, 3))):
                capacity = generator.randint(1, 24)
                used = generator.randint(0, capacity)
                ops += [["reset", s]] * bool(channel) + [["drain", s, capacity, used, _copies(size, capacity, used)]]
            if generator.random() < 0.4:
                ops.append(["prune", s])
        found.append(Case("O", ops, _say("mixture")))
    return sorted(found, key=lambda case: len(json.dumps(case.ops)))


def _is_whole(ops: list[Any]) -> bool:
    """Whether each serializer of a case is made in it."""
    made = {op[1] for op in ops if op[0] == "new"}
    return all(op[0] == "new" or op[1] in made for op in ops)


def _simpler(op: list[Any]) -> Iterator[list[Any]]:
    match op:
        case ["serialize", s, str(data)]:
            for shorter in {"", _HI, _HELLO, data[: len(data) // 4 * 2], data[:-2]} - {data}:
                yield ["serialize", s, shorter]
        case ["copy", s, b, capacity, used] if used:
            yield ["copy", s, b, capacity, 0]
        case ["drain", s, capacity, used, most] if used:
            yield ["drain", s, capacity, 0, most]


def told(ops: Sequence[Any]) -> str:
    """Operations in words, in their order."""
    several = len({op[1] for op in ops if op[0] == "new"}) > 1
    found = []
    for op in ops:
        whose = _say(("first", "second")[op[1]]) + "." if several else ""
        match op:
            case ["serialize", _, data]:
                found.append(f"{whose}serialize({_text(data)})")
            case ["copy", _, _, capacity, used]:
                found.append(whose + _say("copy_used" if used else "copy", capacity=capacity, used=used))
            case ["drain", _, capacity, used, _]:
                found.append(whose + _say("drain_used" if used else "drain", capacity=capacity, used=used))
            case [("reset" | "prune") as name, _]:
                found.append(f"{whose}{name}()")
    return phrase("between_steps").join(found)


@cache
def vector_cases() -> tuple[Case, ...]:
    """The cases recorded from a real Flink that are small enough for a check, with its answers; see `recorded`."""
    return recorded(_read_vectors)


def _read_vectors() -> Iterator[Case]:
    for number, case in enumerate(json.loads(_VECTORS.read_text(encoding="utf-8"))["cases"]):
        records = [[r["gen_len"], r["gen_seed"]] if isinstance(r, dict) else r for r in case["records"]]
        sizes = [r[0] if isinstance(r, list) else len(r) // 2 for r in records]
        if sum(sizes) > _LARGEST_VECTOR_BYTES:
            continue
        capacity = case["segment_size"]
        ops: list[Any] = [["new", 0]]
        ops += [["emit", 0, capacity, r, _copies(n, capacity, capacity)] for r, n in zip(records, sizes, strict=True)]
        recorded = {"copies": case["copies"], "buffers": case.get("buffers")}
        yield Case("N", ops, _say("recorded", name=case["name"], number=number + 1), recorded)


CASES: dict[str, Cases | Callable[[], Cases]] = {
    **by_rule([
        *_simple(), *_full_buffers(), *_empty_records(), *_many_records(), *_instances(), *_resets(), *_prunes(),
        *_long_records(),
    ]),
    "N": vector_cases,
}  # fmt: skip
SEEDED = Seeded("O", _random, _simpler, _is_whole, setup="")
