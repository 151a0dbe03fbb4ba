"""Exercise 2.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import ceil
from typing import Any

from course.checks import drive_pools
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import TextWords
from refimpl.config import UNBOUNDED
from refimpl.memory import share_out

__all__ = ["CHECK"]


def _shares(*cases: tuple[int, list[int]]) -> list[list[Any]]:
    return [[["share", free, appetites]] for free, appetites in cases]


_SHARES = {
    "A": _shares((10, [4, 4]), (10, [3]), (9, [2, 0, 5]), (6, [1, 2, 3])),
    "B": _shares((5, [0, 0]), (0, [3, 4]), (4, []), (0, [])),
    "C": _shares((10, [10, 10]), (6, [2, 4, 6]), (8, [3, 4, 6]), (9, [3, 6, 9]), (8, [8])),
    "D": [*_shares(
        (10, [10, 10, 10]), (7, [5, 5, 5]), (5, [2, 3, 4]), (3, [2, 2, 2, 2]), (2, [1, 1, 1]), (49, [2, 48, 48]),
        (40, [5, 1, 4, 2, 7, 3, 6, 9, 1, 8, 2, 5]), (77, [3] * 30), (777, [3] * 400),
    ), [["share", 7, [5, 5, 5]], ["share", 5, [2, 3, 4]], ["share", 9, [0, 0]], ["share", 9, [3, 3, 3, 0]],
        ["share", 0, [1]]]],
    "E": _shares((12, [UNBOUNDED, 6]), (8, [2, UNBOUNDED, UNBOUNDED]), (1024, [10, 10, UNBOUNDED]), (4, [9, 9])),
    # In the first of these a quotient of floats, the best there is, is rounded up to the next whole number.
    "F": _shares((2**31 - 1, [1_878_420_257, 1_083_169_922, 1_083_169_922]), (2**31 - 1, [UNBOUNDED] * 3)),
}  # fmt: skip


def _shares_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 2.2 {seed}")
    for _ in range(40):
        free = generator.choice([0, 1, generator.randint(2, 12), generator.randint(10, 3000)])
        most = generator.choice([2, 8, 40, 2000])
        appetites = [
            generator.choice([0, UNBOUNDED, *(generator.randint(0, most) for _ in range(4))])
            for _ in range(generator.randint(1, 6))
        ]
        yield [["share", free, appetites]]


def _rest_to_the_first(free: int, limits: Sequence[int], total: int) -> list[int]:
    shares = [free * limit // total for limit in limits]
    for number in range(free - sum(shares)):
        shares[number % len(shares)] += 1
    return shares


def _rest_to_the_last(free: int, limits: Sequence[int], total: int) -> list[int]:
    shares = [free * limit // total for limit in limits]
    return [*shares[:-1], shares[-1] + free - sum(shares)]


def _cut(free: int, limits: Sequence[int], total: int) -> list[int]:
    ends = [0, *(free * so_far // total for so_far in accumulate(limits))]
    return [right - left for left, right in pairwise(ends)]


def _greedy(free: int, limits: Sequence[int], _total: int) -> list[int]:
    shares = []
    for limit in limits:
        shares.append(min(limit, free))
        free -= shares[-1]
    return shares


# What somebody might share out with: of so many, to pools that want so much, who want so much together.
_WAYS: dict[str, Callable[[int, Sequence[int], int], Sequence[int]]] = {
    "first_come": _greedy,
    "all_alike": lambda free, limits, _: [free // len(limits)] * len(limits),
    "running_sums": lambda free, limits, total: [free * each // total for each in accumulate(limits)],
    "pool_by_pool": lambda free, limits, total: [free * limit // total for limit in limits],
    "rest_to_the_last": _rest_to_the_last,
    "rest_to_the_first": _rest_to_the_first,
    "rounded_up": lambda free, limits, total: [ceil(free * limit / total) for limit in limits],
    "rounded": lambda free, limits, total: [round(free * limit / total) for limit in limits],
    "whole_appetites": lambda _, limits, _total: list(limits),
}


def _about_shares(found: Difference) -> str:
    (got, want), (_, free, appetites) = found.answers, found.op
    if "earlier" in found.got:
        return "overwrites_earlier"
    if got == want:
        return "changes_the_list"
    if got.startswith("!"):
        return "divides_by_zero" if got == "!ZeroDivisionError" else "raised"
    if got == "None" or (got and not got[0].isdecimal() and got[0] != "-"):
        return "returns_nothing" if got == "None" else "no_list"
    if "(" in got:
        return "no_whole_numbers"
    yours = [int(each) for each in got.split(", ")] if got else []
    right = [int(each) for each in want.split(", ")] if want else []
    if len(yours) != len(right):
        return "not_one_for_each"
    limits = [min(free, each) for each in appetites]
    total = sum(limits)
    if not total:
        return "from_nothing"
    if total <= free:
        return "more_than_wanted" if any(a > b for a, b in zip(yours, right, strict=True)) else "not_all_satisfied"
    for code, way in _WAYS.items():
        if list(way(free, limits, total)) == yours:
            return code
    if max(appetites) > free and _cut(free, appetites, sum(appetites)) == yours:
        return "endless_appetite"
    if sum(yours) == sum(right):
        return "nearly" if max(abs(a - b) for a, b in zip(yours, right, strict=True)) < 1000 else "other_shares"
    return "loses" if sum(yours) < sum(right) else "invents"


CHECK = TranscriptCheck(
    "2.2",
    share_out,
    drive_pools,
    _SHARES,
    _about_shares,
    Seeded("G", _shares_of),
    words=TextWords("2.2", drive_pools.label),
)
