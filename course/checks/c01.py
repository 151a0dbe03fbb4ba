"""Exercises 1.1 to 1.3, a memory segment: their rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_c01
from course.checks.steps import Difference, StepsCheck
from refimpl.memory import MemorySegment

__all__ = ["CHECKS"]

_EIGHT = "10 11 12 13 14 15 16 17"
_OTHER = "20 21 22 23 24 25 26 27"
_THIRTEEN = "30 31 32 33 34 35 36 37 38 39 3a 3b 3c"
_LONG = "60 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f 70 71 72 73 74 75 76 77"
_HUNDREDS = bytes((7 * i + i // 256) & 255 for i in range(600)).hex(" ")
_BIG, _LITTLE = "BIG_ENDIAN", "LITTLE_ENDIAN"


def _on(memory: str, *ops: list[Any]) -> list[Any]:
    """Operations on segment a over this memory; their segment is left out."""
    return [["new", 0, memory], *([op[0], 0, *op[1:]] for op in ops)]


def _each(memory: str, *ops: list[Any]) -> list[list[Any]]:
    return [_on(memory, op) for op in ops]


def _memory(found: Difference, segment: int = 0) -> tuple[bytes, bytes]:
    """The memory of one segment after the call: yours and the right one."""
    yours, right = (each["memory"].split(" | ")[segment] for each in (found.got, found.want))
    return bytes.fromhex(yours), bytes.fromhex(right)


def _before(found: Difference, segment: int = 0) -> bytes:
    """The memory of a segment as the case made it, with what was poked and written rightly ignored."""
    return next(bytes.fromhex(op[2]) for op in found.before if op[:2] == ["new", segment])


def _about_freed(got: str) -> str:
    """A call on a freed segment that did not say so."""
    if got == "!IndexError":
        return "index_first"
    return "freed_unasked" if got in ("!TypeError", "!AttributeError") else "freed_unnoticed"


def _was_freed(found: Difference) -> bool:
    return any(op[0] == "free" for op in found.before)


# -- 1.1: a window on the memory -----------------------------------------------------------------------

_WINDOWS = {
    "A": [*_each(_EIGHT, ["window", 0, 3], ["window", 2, 3], ["window", 4, 1]), *_each(_THIRTEEN, ["window", 5, 7])],
    "B": [*_each(_EIGHT, ["write", 2, "a1a2a3"], ["write", 0, "b1"]), *_each(_THIRTEEN, ["write", 9, "c1c2"]),
          _on(_HUNDREDS, ["write", 300, "d1d2d3"])],
    "C": [
        *_each(_EIGHT, ["window", 5, 3], ["window", 0, 8], ["window", 3, 0], ["window", 8, 0], ["window", 0, 0]),
        *_each(_THIRTEEN, ["window", 12, 1], ["window", 0, 13]), *_each("40", ["window", 0, 1]),
        *_each("", ["window", 0, 0]), *_each(_HUNDREDS, ["window", 300, 290], ["window", 599, 1], ["window", 0, 600]),
        _on(_EIGHT, ["window", 3, 0], ["window", 2, 5], ["window", 8, 0], ["window", 0, 8], ["window", 5, 3]),
    ],
    "D": [
        *_each(_EIGHT, ["window", 12, 1], ["window", 2, 9], ["window", 5, 4], ["window", 8, 1], ["window", 9, 0]),
        *_each(_THIRTEEN, ["window", 10, 4], ["window", 0, 14], ["window", 2**31, 4]), *_each("40", ["window", 1, 1]),
        *_each("", ["window", 0, 1]), *_each(_HUNDREDS, ["window", 301, 300], ["window", 600, 1]),
    ],
    "E": _each(
        _EIGHT, ["window", -3, 2], ["window", -1, 1], ["window", 4, -2], ["window", 0, -1], ["window", -8, 8],
        ["window", -1, 0], ["window", -4, 6],
    ),
    "F": [
        _on(_EIGHT, ["free"], ["window", 0, 4]), _on(_EIGHT, ["window", 0, 1], ["free"], ["window", 0, 1]),
        _on(_EIGHT, ["free"], ["window", 99, 1]), _on(_EIGHT, ["free"], ["window", -1, 1]),
        _on(_EIGHT, ["free"], ["free"], ["window", 0, 0]),
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
        yield _on(generator.randbytes(size).hex(" "), *ops)


def _about_window(found: Difference) -> str:
    got, want = found.answers
    memory = _before(found)
    if _was_freed(found) and want == "!LocalUsageError":
        return _about_freed(got)
    index, length = found.op[2], found.op[3] if found.op[0] == "window" else len(found.op[3]) // 2
    if want == "!IndexError":
        return _about_outside(got, index, length, len(memory))
    if got == "!IndexError":
        return "refuses_the_end" if index == len(memory) else "refuses_no_bytes" if not length else "refuses_the_last"
    if got == "None":
        return "returns_nothing"
    if got.startswith("!") and got != "!TypeError":
        return "raised"
    if found.op[0] == "write":
        is_elsewhere = got != "!TypeError" and _memory(found)[0] != memory
        return "other_bytes" if is_elsewhere else "cannot_be_written" if got == "!TypeError" else "a_copy"
    beliefs = {
        "length_is_end": memory[index:length], "end_included": memory[index : index + length + 1],
        "starts_at_0": memory[:length], "length_ignored": memory[index:],
    }  # fmt: skip
    return next((code for code, belief in beliefs.items() if belief.hex(" ") == got), "other_bytes")


def _about_outside(got: str, index: int, length: int, size: int) -> str:
    """Something was answered where the access leaves the segment."""
    if got.startswith("!"):
        return "other_error"
    if index < 0 or length < 0:
        return "negative_length" if index >= 0 else "counts_from_the_end" if got else "before_the_start"
    if index > size + 1:
        return "never_refuses"
    return "one_too_many" if index + length == size + 1 else "length_not_checked"


# -- 1.2: numbers --------------------------------------------------------------------------------------

_NUMBER = 0x01020304
_NUMBERS = {
    "A": [
        *_each(_LONG, ["put_int", 5, _NUMBER, _LITTLE]),
        *_each(_EIGHT, ["put_int", 0, 5, _LITTLE], ["put_int", 3, 70_000, _LITTLE]),
    ],
    "B": _each(_EIGHT, ["put_int", 2, _NUMBER, _BIG], ["put_int", 0, 5, _BIG], ["put_int", 1, 70_000, _BIG]),
    "C": _each(_EIGHT, ["put_int", 2, _NUMBER, ""], ["put_int", 0, 5, ""]),
    "D": _each(_EIGHT, ["get_int", 0, _BIG], ["get_int", 2, _BIG], ["get_int", 3, _LITTLE], ["get_int", 1, ""]),
    "E": [
        *_each(_EIGHT, ["put_int", 2, -2, _BIG], ["put_int", 2, -(2**31), _LITTLE], ["put_int", 1, 2**31 - 1, _BIG]),
        *_each("10 ff ff ff fe 15 80 00 00 00 16", ["get_int", 1, _BIG], ["get_int", 6, _LITTLE], ["get_int", 6, _BIG]),
        *_each("7f ff ff ff 00", ["get_int", 0, _BIG]),
    ],
    "F": [
        *_each(_EIGHT, ["put_int", 4, _NUMBER, _BIG], ["get_int", 4, _BIG]),
        *_each("50 51 52 53", ["put_int", 0, _NUMBER, _LITTLE], ["get_int", 0, _LITTLE]),
        *_each(_THIRTEEN, ["put_int", 9, _NUMBER, _BIG], ["put_int", 7, 0, _BIG], ["get_int", 9, _BIG]),
        *_each(_HUNDREDS, ["put_int", 300, _NUMBER, _BIG], ["get_int", 596, _LITTLE]),
    ],
    "G": [
        *_each(_EIGHT, ["put_int", 5, _NUMBER, _BIG], ["put_int", 8, 1, _LITTLE], ["put_int", -4, 1, _BIG]),
        *_each(_EIGHT, ["put_int", -1, 1, ""], ["get_int", 5, _BIG], ["get_int", -4, _BIG], ["get_int", 9, _LITTLE]),
        *_each("50 51 52", ["put_int", 0, 1, _BIG], ["get_int", 0, _LITTLE]),
    ],
    "H": [
        _on(_EIGHT, ["free"], ["put_int", 0, 1, _BIG]), _on(_EIGHT, ["free"], ["get_int", 0, _BIG]),
        _on(_EIGHT, ["free"], ["put_int", 99, 1, _BIG]), _on(_EIGHT, ["free"], ["get_int", -1, ""]),
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
        yield _on(generator.randbytes(size).hex(" "), *ops)


def _about_number(found: Difference) -> str:
    got, want = found.answers
    index = found.op[2]
    if _was_freed(found):
        return _about_freed(got)
    if want == "!IndexError":
        if got == want:
            return "partly_written"
        outside = _about_outside(got, index, 4, len(_before(found)))
        return outside if found.op[0] == "get_int" or got else "counts_from_the_end" if index < 0 else "never_refuses"
    if got == "!IndexError":
        return "refuses_the_last" if index + 4 == len(_before(found)) else "refuses_inside"
    return _about_put(found) if found.op[0] == "put_int" else _about_get(found)


def _about_put(found: Difference) -> str:
    index, value, order = found.op[2:]
    yours, right = _memory(found)
    if found.answers[0] in ("!OverflowError", "!error"):
        return "refuses_negative" if value < 0 else "refuses_the_number"
    if found.answers[0]:
        return "raised"
    start = _before(found)
    number = right[index : index + 4]
    beliefs = {
        "turned": _with(start, index, number[::-1]),
        "index_in_numbers": _with(start, 4 * index, number), "starts_at_0": _with(start, 0, number),
        "one_byte": _with(start, index, bytes([value & 255])), "aligned": _with(start, index // 4 * 4, number),
        "nothing_written": start,
    }  # fmt: skip
    code = next((code for code, belief in beliefs.items() if belief == yours), "other_bytes")
    if code == "turned":
        return {_LITTLE: "big_for_little", _BIG: "little_for_big", "": "default_not_native"}[order]
    if code == "other_bytes" and yours[: index + 4] == right[: index + 4]:
        return "eight_bytes"
    return code


def _with(memory: bytes, index: int, data: bytes) -> bytes:
    return memory[:index] + data + memory[index + len(data) :]


def _about_get(found: Difference) -> str:
    (got, want), (index, order) = found.answers, found.op[2:]
    memory = _before(found)
    if got == "None":
        return "returns_nothing"
    if got.startswith("!"):
        return "raised"
    if not got.lstrip("-").isdecimal():
        return "no_number"
    if int(got) == int(want) + 2**32:
        return "unsigned"
    four = memory[index : index + 4]
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


# -- 1.3: a copy ---------------------------------------------------------------------------------------


def _between(*ops: list[Any], source: str = _EIGHT, target: str = _OTHER) -> list[list[Any]]:
    """Each a copy from a to b."""
    return [[["new", 0, source], ["new", 1, target], ["copy_to", 0, op[0], 1, *op[1:]]] for op in ops]


def _freed(which: int, *copy: int) -> list[Any]:
    start, target_index, length = copy
    return [["new", 0, _EIGHT], ["new", 1, _OTHER], ["free", which], ["copy_to", 0, start, 1, target_index, length]]


_COPIES = {
    "A": _between([0, 0, 3], [0, 0, 8], [0, 0, 1]),
    "B": [*_between([2, 0, 3], [5, 0, 2]), *_between([2, 0, 20], source=_LONG, target=_LONG[::-1])],
    "C": _between([0, 4, 2], [2, 4, 3], [5, 1, 2]),
    "D": [
        *_between([5, 0, 3], [0, 5, 3], [8, 8, 0], [3, 3, 0]),
        *_between([9, 0, 4], [2, 1, 3], source=_THIRTEEN, target="50 51 52 53"),
        *_between([0, 9, 4], source="50 51 52 53", target=_THIRTEEN),
        *_between([10, 300, 290], [300, 0, 300], source=_HUNDREDS, target=_HUNDREDS[::-1]),
    ],
    "E": [
        *_between([6, 0, 3], [0, 6, 3], [9, 0, 1], [0, 9, 1]),
        *_between([0, 0, 5], source=_THIRTEEN, target="50 51 52 53"),
        *_between([0, 0, 5], source="50 51 52 53", target=_THIRTEEN),
        *_between([-3, 0, 2], [0, -3, 2], [0, 0, -1], [3, 3, -2]),
    ],
    "F": [
        _on(_EIGHT, ["copy_to", 0, 0, 2, 5]), _on(_EIGHT, ["copy_to", 2, 0, 0, 5]),
        _on(_EIGHT, ["copy_to", 1, 0, 1, 4]), _on(_THIRTEEN, ["copy_to", 0, 0, 1, 12]),
        *_each(_HUNDREDS, ["copy_to", 0, 0, 100, 500], ["copy_to", 5, 0, 0, 595], ["copy_to", 0, 0, 300, 300]),
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
    if _was_freed(found):
        return _about_freed(got) if got != want else "partly_written"
    from_, to = _before(found, source), _before(found, target)
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
    yours, _ = _memory(found, target)
    if source == target:
        return "overlap_smeared"
    if _memory(found, source)[0] != _memory(found, source)[1]:
        return "other_direction"
    beliefs = {
        "nothing_copied": to,
        "index_ignored": _with(to, at, from_[:length]), "target_index_ignored": _with(to, 0, from_[index:][:length]),
        "indexes_swapped": _with(to, index, from_[at:][:length]),
        "same_index": _with(to, index, from_[index:][:length]),
        "length_ignored": _with(to, at, from_[index:])[: len(to)], "length_is_end": _with(to, at, from_[index:length]),
        "one_more": _with(to, at, from_[index : index + length + 1])[: len(to)],
    }  # fmt: skip
    return next((code for code, belief in beliefs.items() if belief == yours), "other_bytes")


def _has_calls(ops: Sequence[Any]) -> bool:
    return any(op[0] not in ("new", "free", "poke") for op in ops)


CHECKS = {
    "1.1": StepsCheck(
        "1.1", MemorySegment, drive_c01, _WINDOWS, _about_window, seeded=("G", _windows_of), valid=_has_calls
    ),
    "1.2": StepsCheck(
        "1.2", MemorySegment, drive_c01, _NUMBERS, _about_number, seeded=("I", _numbers_of), valid=_has_calls
    ),
    "1.3": StepsCheck(
        "1.3", MemorySegment, drive_c01, _COPIES, _about_copy, seeded=("H", _copies_of), valid=_has_calls
    ),
}
