"""Exercise 10.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_before_credit
from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from refimpl.exchange.before_credit.pool_buffers import PoolBuffers

__all__ = ["CHECK"]


_WAITS = {
    "A": ["1 2 / ask 0", "1 2 / ask 0 / ask 0", "2 3 / ask 0 / ask 1 / ask 0"],
    "B": ["1 1 / ask 0 / ask 0", "2 1 / ask 0 / ask 1", "1 2 / ask 0 / ask 0 / ask 0"],
    "C": ["1 1 / ask 0 / ask 0 / ask 0", "2 1 / ask 0 / ask 1 / ask 1 / ask 1"],
    "D": [
        "1 1 / ask 0 / ask 0 / read 0 / ask 0", "2 1 / ask 0 / ask 1 / read 0 / ask 1",
        "1 2 / ask 0 / ask 0 / ask 0 / read 0 / ask 0",
    ],
    "E": [
        "1 1 / ask 0 / ask 0 / read 0 / ask 0 / ask 0", "1 1 / ask 0 / ask 0 / read 0 / ask 0 / ask 0 / read 0 / ask 0",
        "2 1 / ask 0 / ask 1 / read 0 / ask 1 / read 1 / ask 0 / ask 1",
    ],
    "F": [
        "3 1 / ask 0 / ask 1 / ask 2 / read 0 / ask 1 / read 1 / ask 2",
        "2 2 / ask 0 / ask 0 / ask 1 / ask 0 / read 0 / ask 1",
        "3 2 / ask 0 / ask 1 / ask 2 / ask 0 / read 1 / ask 2 / read 0 / ask 0",
        "1 1 2 / ask 0 / ask 0 / grow 2 / ask 0 / read 0 / read 0 / ask 0",
        "2 1 3 / ask 0 / ask 1 / grow 2 / ask 1 / ask 1 / read 0 / grow 3 / ask 1 / read 1 / ask 0 / ask 0",
    ],
}  # fmt: skip


def _mixed_waits(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 10.2 {seed}")
    for _ in range(30):
        num_channels, num_buffers = generator.randint(1, 3), generator.randint(1, 3)
        most = num_buffers + generator.randint(0, 2)
        ops: list[Any] = [["gate", num_channels, num_buffers, most]]
        gate = drive_before_credit.Gate(PoolBuffers, num_channels, num_buffers, most)
        for _ in range(generator.randint(3, 16)):
            channel = generator.randrange(num_channels)
            is_read = gate.held[channel] and generator.random() < 0.5
            can_grow = gate.pool.size < most and generator.random() < 0.2
            ops.append(["grow", gate.pool.size + 1] if can_grow else ["read" if is_read else "ask", channel])
            gate.do(ops[-1])
        yield ops


def _waits_belief(found: Difference) -> Belief:
    if found.op[0] == "gate":
        return "different", {}
    got, want = (str(state.get("answer", {}).get("gave", "")) for state in (found.got, found.want))
    values = {"got": got.removeprefix("? "), "want": want}
    line, right = found.got.get("pool", {}).get("line", 0), found.want["pool"]["line"]
    if got != want:
        return _about_gift(found, got, want), values
    if found.op[0] == "read" and found.got["pool"]["lent"] > found.want["pool"]["lent"]:
        return "keeps_its_place", values
    if line != right:
        return ("in_line_again" if line > right else "not_in_line"), values
    return "buffer_lost", values


def _about_gift(found: Difference, got: str, want: str) -> str:
    if got.startswith("?"):
        return "gives_something_else"
    if got == "nothing":
        return "drops" if want == "a wait" else "gives_nothing"
    if got == "a new place in the line" and want == "a wait":
        return "gives_up_its_place"
    if got == "an old buffer":
        return "gives_twice"
    if want == "a buffer":
        if found.op[0] == "ask" and any(op[0] == "grow" for op in found.ops):
            return "asks_the_place_only"
        was_read = any(op[0] == "read" for op in found.ops)
        return "forgets_what_came" if was_read else "does_not_ask"
    return "old_wait" if got == "a wait that is over" else "takes_too_many"


CHECK = TranscriptCheck(
    "10.2", PoolBuffers, drive_before_credit, scripts("gate", _WAITS), _waits_belief,
    Seeded("G", _mixed_waits, setup="gate"), words=StateWords("10.2"),
)  # fmt: skip
