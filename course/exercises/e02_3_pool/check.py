"""Exercise 2.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_pools
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import TextWords
from refimpl.memory import LocalBufferPool

__all__ = ["CHECK"]


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
        _pool(200, 1, 150, *[_TAKE] * 150, *_back(*[0] * 150), ["size", 2]),
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
        drive_pools.run_case(LocalBufferPool, list(ops), events)
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
    return int(found.got[what]) - int(found.want[what])


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


CHECK = TranscriptCheck(
    "2.3",
    LocalBufferPool,
    drive_pools,
    _POOLS,
    _about_pool,
    Seeded("K", _pools_of, is_valid=makes_sense),
    words=TextWords("2.3", drive_pools.label),
)
