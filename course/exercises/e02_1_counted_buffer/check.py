"""Exercise 2.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_pools
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import TextWords
from refimpl.memory import Buffer

__all__ = ["CHECK"]


def _on_a(*names: str) -> list[Any]:
    """Operations on one buffer."""
    return [["new", 0], *([name, 0] for name in names)]


_COUNTS = {
    "A": [_on_a("recycle")],
    "B": [
        _on_a("retain"), _on_a("retain", "retain", "recycle"), _on_a("retain", "recycle"),
        _on_a("retain", "recycle", "recycle"),
    ],
    "C": [
        _on_a("retain", "retain", "recycle", "retain", "recycle", "recycle", "recycle"), _on_a("slice", "recycle"),
        _on_a("retain", "slice", "recycle", "slice", "recycle"), _on_a(*["retain"] * 300, *["recycle"] * 301),
    ],
    "D": [
        _on_a("recycle", "recycle"), _on_a("retain", "recycle", "recycle", "recycle"),
        _on_a("recycle", "recycle", "recycle"),
    ],
    "E": [_on_a("recycle", "retain"), _on_a("retain", "recycle", "recycle", "retain"), _on_a("recycle", "slice")],
    "F": [
        [["new", 0], ["new", 1], ["retain", 0], ["recycle", 1], ["recycle", 0], ["recycle", 0]],
        [["new", 0], ["recycle", 0], ["new", 1], ["retain", 1], ["recycle", 1], ["recycle", 1]],
        [["new", 0], ["new", 1], ["new", 2], ["recycle", 2], ["recycle", 0], ["recycle", 1]],
    ],
}  # fmt: skip


def _counts_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 2.1 {seed}")
    for _ in range(30):
        num = generator.randint(1, 3)
        calls = [
            [generator.choice(["retain", "recycle", "recycle", "slice"]), generator.randrange(num)]
            for _ in range(generator.randint(2, 10))
        ]
        yield [*(["new", each] for each in range(num)), *calls]


def _about_count(found: Difference) -> str:
    got, want = found.answers
    name, b = found.op
    counts, right = ([int(n) for n in each["references"].split(", ")] for each in (found.got, found.want))
    home, right_home = (each["home"].split() for each in (found.got, found.want))
    if want == "!LocalUsageError":
        if got and not got.startswith("!"):
            return "revived"
        if got != want:
            return "other_error" if got else _about_the_end(str(name), home, right_home)
        return "home_twice" if home != right_home else "counted_anyway"
    if got.startswith("!"):
        return "refuses" if got == "!LocalUsageError" else "raised"
    if found.got["changed"] != found.want["changed"]:
        return "changes_what_is_read"
    if got != want:
        return "retain_gives_nothing" if got == "None" else "retain_gives_another"
    if any("freed" in each for each in home):
        return "freed"
    if name == "new":
        return "shared_by_all" if b else "born_wrong"
    if any(counts[each] != right[each] for each in range(len(right)) if each != b):
        return "shared_by_all"
    if name == "retain":
        return "home_too_early" if home != right_home else _about_retain(counts[b], right[b])
    if found.rule == "F" and counts[b] > right[b]:
        return "shared_by_all"
    if len(home) == len(right_home):
        return "wrong_thing_home" if home != right_home else "count_stays" if counts != right else "other_order"
    if len(home) > len(right_home):
        return "home_every_time" if counts == right and counts[b] > 1 else "home_too_early"
    return "never_home" if counts == right else "count_stays"


def _about_retain(count: int, right: int) -> str:
    return "retain_counts_nothing" if count < right else "retain_counts_too_much"


def _about_the_end(name: str, home: list[str], right_home: list[str]) -> str:
    """Something was done with a buffer that was gone, and nothing was said."""
    if name == "retain":
        return "revived"
    return "home_twice" if len(home) > len(right_home) else "twice_unnoticed"


CHECK = TranscriptCheck(
    "2.1",
    Buffer,
    drive_pools,
    _COUNTS,
    _about_count,
    Seeded("G", _counts_of),
    words=TextWords("2.1", drive_pools.label),
)
