"""What the checks of lesson 1 share: memories, and what is said of a call that leaves one or comes too late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.checks.transcript import Difference

__all__ = [
    "EIGHT", "HUNDREDS", "LARGE", "LONG", "THIRTEEN", "about_freed", "about_outside", "alone", "has_calls", "is_large",
    "memory_after", "memory_before", "on", "put", "was_freed",
]  # fmt: skip


EIGHT = "10 11 12 13 14 15 16 17"
THIRTEEN = "30 31 32 33 34 35 36 37 38 39 3a 3b 3c"
LONG = "60 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f 70 71 72 73 74 75 76 77"
HUNDREDS = bytes((7 * i + i // 256) & 255 for i in range(600)).hex(" ")
LARGE = bytes((7 * i + i // 256 + 5 * (i >> 16)) & 255 for i in range(70_000)).hex(" ")
"""More than two bytes can count; a segment of Flink has 32768."""


def on(memory: str, *ops: list[Any]) -> list[Any]:
    """Operations on segment a over this memory; their segment is left out."""
    return [["new", 0, memory], *([op[0], 0, *op[1:]] for op in ops)]


def alone(memory: str, *ops: list[Any]) -> list[list[Any]]:
    """Cases of one operation each, over the same memory."""
    return [on(memory, op) for op in ops]


def memory_after(found: Difference, segment: int = 0) -> tuple[bytes, bytes]:
    """The memory of one segment after the call: yours and the right one."""
    yours, right = (each["memory"].split(" | ")[segment] for each in (found.got, found.want))
    return bytes.fromhex(yours), bytes.fromhex(right)


def memory_before(found: Difference, segment: int = 0) -> bytes:
    """The memory of a segment as the case made it, with what was poked and written rightly ignored."""
    for op in found.before:
        if op[:2] == ["new", segment]:
            return bytes.fromhex(op[2])
    raise LookupError(f"segment {segment} was not made before")


def is_large(found: Difference) -> bool:
    """Whether the memory is one of which a driver writes down the beginning only."""
    return "…" in found.want["memory"] or "…" in found.want["answer"]


def about_freed(got: str) -> str:
    """A call on a freed segment that did not say so."""
    if got == "!IndexError":
        return "index_first"
    return "freed_unasked" if got in ("!TypeError", "!AttributeError") else "freed_unnoticed"


def was_freed(found: Difference) -> bool:
    """Whether the case freed its segment before the call."""
    return any(op[0] == "free" for op in found.before)


def about_outside(got: str, index: int, length: int, size: int) -> str:
    """Something was answered where the access leaves the segment."""
    if got.startswith("!"):
        return "other_error"
    if index < 0 or length < 0:
        return "negative_length" if index >= 0 else "counts_from_the_end" if got else "before_the_start"
    if index > size + 1:
        return "never_refuses"
    return "one_too_many" if index + length == size + 1 else "length_not_checked"


def put(memory: bytes, index: int, data: bytes) -> bytes:
    """This memory with other data in it at an index."""
    return memory[:index] + data + memory[index + len(data) :]


def has_calls(ops: Sequence[Any]) -> bool:
    """Whether a case has a call that may be wrong."""
    return any(op[0] not in ("new", "free", "poke") for op in ops)
