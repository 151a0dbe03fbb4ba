"""Exercises 2.1 to 2.3, buffers and pools: their rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import ceil
from typing import Any

from course.checks import drive_c02
from course.checks.steps import Difference, StepsCheck
from refimpl.config import UNBOUNDED
from refimpl.memory import Buffer, LocalBufferPool, share_out

__all__ = ["CHECKS"]


# -- 2.1: a count --------------------------------------------------------------------------------------


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


# -- 2.2: shares ---------------------------------------------------------------------------------------


def _shares(*cases: tuple[int, list[int]]) -> list[list[Any]]:
    return [[["share", free, appetites]] for free, appetites in cases]


_SHARES = {
    "A": _shares((10, [4, 4]), (10, [3]), (9, [2, 0, 5]), (6, [1, 2, 3])),
    "B": _shares((5, [0, 0]), (0, [3, 4]), (4, []), (0, [])),
    "C": _shares((10, [10, 10]), (6, [2, 4, 6]), (9, [3, 6, 9]), (8, [8])),
    "D": _shares(
        (10, [10, 10, 10]), (7, [5, 5, 5]), (5, [2, 3, 4]), (3, [2, 2, 2, 2]), (2, [1, 1, 1]), (49, [2, 48, 48]),
        (40, [5, 1, 4, 2, 7, 3, 6, 9, 1, 8, 2, 5]), (77, [3] * 30),
    ),
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


# -- 2.3: a local pool ---------------------------------------------------------------------------------


def _pool(total: int, required: int, most: int, *ops: list[Any]) -> list[Any]:
    return [["new", total, required, most], *ops]


_TAKE, _LOOK = ["request"], ["look"]


def _back(*places: int) -> list[list[Any]]:
    return [["back", place] for place in places]


_POOLS = {
    "A": [
        _pool(10, 2, 6), _pool(10, 2, 6, ["size", 4]), _pool(10, 2, 6, ["size", 9]), _pool(10, 2, 6, ["size", 1]),
        _pool(10, 3, 8, ["size", 3], ["size", 8]), _pool(5, 2, 2),
    ],
    "B": [_pool(10, 1, 4, _TAKE), _pool(10, 1, 4, _TAKE, _TAKE, _TAKE), _pool(40, 1, 30, *[_TAKE] * 30)],
    "C": [_pool(10, 1, 4, *[_TAKE] * 5), _pool(10, 1, 4, ["size", 2], *[_TAKE] * 3), _pool(9, 1, 1, _TAKE, _TAKE)],
    "D": [
        _pool(6, 1, 6, ["borrow", 5], _TAKE, _TAKE), _pool(6, 1, 6, ["borrow", 6], _TAKE, ["return", 2], _TAKE),
        _pool(6, 1, 3, ["borrow", 5], _TAKE, _TAKE, ["return", 5], _TAKE, _TAKE, _TAKE),
    ],
    "E": [
        _pool(10, 1, 4, _TAKE, *_back(0)), _pool(10, 1, 4, _TAKE, *_back(0), _TAKE),
        _pool(10, 1, 2, _TAKE, _TAKE, *_back(1, 0), _TAKE, _TAKE, _TAKE),
        _pool(3, 3, 3, _TAKE, _TAKE, *_back(0), _TAKE),
    ],
    "F": [
        _pool(1, 1, 1, _TAKE, ["wait", "takes"], *_back(0)),
        _pool(2, 2, 2, _TAKE, _TAKE, ["wait", "takes"], ["wait", "takes"], *_back(0, 0)),
        _pool(2, 2, 2, _TAKE, _TAKE, ["wait", "takes"], *_back(0, 0)),
        _pool(1, 1, 1, _TAKE, ["wait", "refuses"], *_back(0)),
        _pool(1, 1, 1, _TAKE, ["wait", "refuses"], ["wait", "takes"], *_back(0)),
        _pool(2, 2, 2, _TAKE, _TAKE, ["wait", "wants_more"], ["wait", "takes"], *_back(0, 0, 0)),
        _pool(1, 1, 1, _TAKE, *[["wait", "refuses"]] * 4, ["wait", "takes"], *_back(0)),
        _pool(1, 1, 1, _TAKE, *[["wait", "refuses"]] * 12, ["wait", "takes"], *_back(0)),
    ],
    "G": [
        _pool(10, 1, 4, *[_TAKE] * 4, *_back(0, 0, 0, 0), ["size", 2]),
        _pool(10, 1, 4, *[_TAKE] * 3, *_back(0, 0), ["size", 3]),
        _pool(10, 1, 4, *[_TAKE] * 4, *_back(0, 0), ["size", 3]),
        _pool(16, 1, 14, *[_TAKE] * 14, *_back(*[0] * 14), ["size", 2]),
    ],
    "H": [
        _pool(10, 1, 4, *[_TAKE] * 4, ["size", 2]), _pool(10, 1, 4, *[_TAKE] * 4, ["size", 2], *_back(0, 0, 0, 0)),
        _pool(10, 1, 4, *[_TAKE] * 4, *_back(0), ["size", 2], *_back(0, 0)),
        _pool(10, 1, 3, *[_TAKE] * 3, ["wait", "takes"], ["size", 1], *_back(0, 0, 0)),
        _pool(10, 1, 4, *[_TAKE] * 4, ["size", 2], _TAKE, *_back(0), _TAKE),
    ],
    "I": [
        _pool(10, 1, 4, ["size", 1], _TAKE, _TAKE, _LOOK, ["size", 3]),
        _pool(10, 1, 4, ["size", 1], _TAKE, ["size", 2], _TAKE, _TAKE),
        _pool(10, 1, 4, *[_TAKE] * 4, ["size", 2], ["size", 4], *_back(0, 0), _TAKE),
    ],
    "J": [
        _pool(10, 1, 4, _TAKE, ["destroy"], *_back(0)),
        _pool(10, 1, 4, _TAKE, _TAKE, *_back(0), ["destroy"], *_back(0)),
        _pool(1, 1, 1, _TAKE, ["wait", "takes"], ["destroy"], *_back(0)),
    ],
}  # fmt: skip


def _pools_of(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 2.3 {seed}")
    for _ in range(40):
        total = generator.randint(2, 9)
        required = generator.randint(1, min(3, total))
        most = generator.randint(required, total + 2)
        case, ops = _pool(total, required, most), []
        for _ in range(generator.randint(3, 14)):
            kind = generator.choice(["request"] * 4 + ["back"] * 3 + ["size", "wait", "look"])
            if kind == "size":
                ops.append(["size", generator.randint(required, most)])
            elif kind == "wait":
                ops.append(["wait", generator.choice(["takes", "wants_more", "refuses"])])
            else:
                made: dict[str, list[Any]] = {"request": _TAKE, "back": ["back", 0], "look": _LOOK}
                ops.append(made[kind])
            if not makes_sense([*case, *ops]):
                ops.pop()
        if ops:
            yield [*case, *ops]


def makes_sense(ops: Sequence[Any]) -> bool:
    """Whether no buffer is given back that is not out; what the reference part does decides."""
    events: list[Any] = []
    try:
        drive_c02.run_case(LocalBufferPool, list(ops), events)
    except IndexError:
        return False
    return len(ops) > 1 and all(event[1]["answer"] != "!IndexError" for event in events)


def _about_pool(found: Difference) -> str:
    got, want = found.answers
    if "twice" in found.got:
        return "twice"
    if _more(found, "told_in_vain") > 0:
        return "told_too_soon"
    if got.startswith("!") or want.startswith("!"):
        return _about_refusal(found)
    return {"new": _about_size, "size": _about_size, "request": _about_request, "back": _about_return}.get(
        found.op[0], lambda _: "other_place"
    )(found)


def _about_refusal(found: Difference) -> str:
    got, want = found.answers
    if not want.startswith("!"):
        if got != "!LocalUsageError":
            return "raised"
        if found.op[0] == "size" and found.op[1] > found.before[0][3]:
            return "refuses_to_grow"
        is_out = found.op[0] == "size" and int(found.want["out"]) > found.op[1]
        return "refuses_to_shrink" if is_out else "raises_instead"
    if got == want:
        return "changed_before_it_refused"
    return "other_error" if got else "below_required"


def _more(found: Difference, what: str) -> int:
    """How much more of it there is than there should be."""
    yours, right = found.number(what)
    return yours - right


def _about_size(found: Difference) -> str:
    if _more(found, "size"):
        too_large = found.op[0] == "size" and _more(found, "size") > 0
        return "not_clamped" if too_large else "size_not_kept"
    if _more(found, "idle") > 0:
        return "fetches_all_at_once" if found.op[0] == "new" else "keeps_idle"
    if _more(found, "idle") < 0:
        if _more(found, "free") > 0:
            return "gives_back_too_much"
        return "lost" if _more(found, "free") == 0 else "other_place"
    if _more(found, "requested"):
        return "count_not_lowered" if _more(found, "requested") > 0 else "count_lowered_twice"
    if _more(found, "free"):
        return "lost" if _more(found, "free") < 0 else "other_place"
    return "told_nobody" if _more(found, "told") else "other_place"


def _about_request(found: Difference) -> str:
    got, want = found.answers
    if got != want:
        return "beyond_size" if got == "Buffer" else "refuses_a_buffer"
    requested, idle = _more(found, "requested"), _more(found, "idle")
    if got == "None" and requested > 0:
        return "counts_what_it_did_not_get"
    if idle > 0:
        return "fetches_all_at_once" if not any(op[0] == "back" for op in found.before) else "idle_unused"
    return "count_not_raised" if requested < 0 else "other_place"


def _about_return(found: Difference) -> str:
    idle, free = _more(found, "idle"), _more(found, "free")
    offered, right = (sum(map(int, each["offered"].split())) for each in (found.got, found.want))
    waits = any(op[0] == "wait" for op in found.before)
    if any(op == ["destroy"] for op in found.before):
        return "kept_after_the_end" if idle > 0 or offered > right else "lost"
    if offered > right:
        return "offered_although_too_large" if free < 0 else "asked_again"
    if offered < right:
        return "wakes_nobody" if idle > 0 or free > 0 else "lost"
    if idle > 0 and free < 0:
        return "forgets_to_shrink"
    if idle < 0 and free > 0:
        return "refused_goes_back" if waits else "all_to_the_global"
    if idle < 0 or free < 0:
        return "refused_is_lost" if waits else "lost"
    if _more(found, "requested"):
        return "count_not_lowered" if _more(found, "requested") > 0 else "count_lowered_twice"
    return "other_place"


CHECKS = {
    "2.1": StepsCheck("2.1", Buffer, drive_c02, _COUNTS, _about_count, seeded=("G", _counts_of)),
    "2.2": StepsCheck("2.2", share_out, drive_c02, _SHARES, _about_shares, seeded=("G", _shares_of)),
    "2.3": StepsCheck(
        "2.3", LocalBufferPool, drive_c02, _POOLS, _about_pool, seeded=("K", _pools_of), valid=makes_sense
    ),
}
