"""Lesson 10, one slow reader: the water marks at the sending end, and where data waits at the receiving one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_c10
from course.checks.scripts import Difference, ScriptCheck
from refimpl.exchange.before_credit.pool_buffers import PoolBuffers
from refimpl.exchange.before_credit.water_marks import WaterMarks

__all__ = ["CHECKS"]

_Found = tuple[str, dict[str, str]]


def _cases(first: str, rules: dict[str, list[str]]) -> dict[str, list[list[Any]]]:
    """Cases in short: `10 20 / hand 7 / written 3`."""
    found: dict[str, list[list[Any]]] = {}
    for rule, every in rules.items():
        scripts = [[each.split() for each in f"{first} {words}".split("/")] for words in every]
        found[rule] = [[[name, *map(int, rest)] for name, *rest in script] for script in scripts]
    return found


# -- 10.1: the water marks -------------------------------------------------------------------------------

_MARKS = {
    "A": [
        "10 20 / hand 7", "10 20 / hand 3 / hand 5", "10 20 / hand 9 / written 4",
        "5 9 / hand 6 / written 2 / written 3",
    ],
    "B": ["10 20 / hand 25", "10 20 / hand 15 / hand 6", "5 9 / hand 4 / hand 4 / hand 4", "10 20 / hand 25 / hand 5"],
    "C": [
        "10 20 / hand 12", "10 20 / hand 20", "10 20 / hand 10", "10 20 / hand 15 / hand 5", "10 20 / hand 20 / hand 1",
    ],
    "D": ["10 20 / hand 25 / written 8", "10 20 / hand 25 / written 5", "5 9 / hand 12 / written 4 / written 2"],
    "E": ["10 20 / hand 25 / written 15", "5 9 / hand 12 / written 7", "10 20 / hand 30 / written 10 / written 10"],
    "F": ["10 20 / hand 25 / written 25", "10 20 / hand 25 / written 16", "5 9 / hand 12 / written 4 / written 4"],
    "G": [
        "10 20 / hand 25 / written 16 / hand 5", "10 20 / hand 25 / written 20 / hand 18 / written 10 / hand 2",
        "10 20 / hand 15 / written 15 / hand 15 / hand 8", "10 20 / hand 25 / written 8 / hand 1",
        "10 20 / hand 15 / written 2", "10 20 / hand 15 / written 5", "5 9 / hand 9 / written 1 / written 2 / hand 3",
        "10 20 / hand 25 / hand 7 / written 22 / written 1", "10 10 / hand 10 / hand 1 / written 1 / written 1",
        f"10 20 / hand 12 / hand {2**32 + 5} / written {2**32 + 5} / written 3",
        "10 20 / hand 25 / written 6 / hand 3 / written 12 / written 1",
    ],
}  # fmt: skip


def _mixed_marks(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 10.1 {seed}")
    for _ in range(30):
        low = generator.randint(1, 12)
        ops: list[Any] = [["marks", low, low + generator.randint(1, 12)]]
        pending = 0
        for _ in range(generator.randint(3, 16)):
            if pending and generator.random() < 0.5:
                ops.append(["written", generator.randint(0, pending)])
                pending -= ops[-1][1]
            else:
                ops.append(["hand", generator.randint(1, 15)])
                pending += ops[-1][1]
        yield ops


def _simpler_marks(op: list[Any]) -> Iterator[list[Any]]:
    if op[1] > 1:
        yield [op[0], op[1] // 2]


def _marks_belief(found: Difference) -> _Found:
    name, number = found.op[0], found.op[1]
    _, low, high = found.ops[0]
    got, want, before = (state.get("marks", {}) for state in (found.got, found.want, found.before))
    if name == "marks" or any(not isinstance(each, int) for each in got.values()):
        return "no_number", {"got": ", ".join(map(str, got.values()))}
    pending = want["out"] - want["written"]
    values = {"left": str(pending), "got": str(got["out"]), "want": str(want["out"])}
    mine, other = ("out", "written") if name == "hand" else ("written", "out")
    if got[other] != want[other]:
        return ("counts_backwards" if name == "written" else "wrong_counter"), values
    if got[mine] != want[mine]:
        values |= {"got": str(got[mine]), "want": str(want[mine])}
        if name == "hand" and got[mine] == before[mine] and before["may"] is False:
            return "stopped_not_counted", values
        beliefs = [("not_counted", before[mine]), ("counts_frames", before[mine] + 1), ("count_replaced", number),
                   ("counts_backwards", before[mine] - number)]  # fmt: skip
        return next((code for code, value in beliefs if value == got[mine]), "count_wrong"), values
    if name == "hand":
        return _about_stopping(got["may"], before["may"], pending, low, high), values
    if before["may"]:
        return "written_stops", values
    if got["may"]:
        return ("resumes_at_the_mark" if pending == low else "resumes_at_high"), values
    return ("never_resumes" if pending == 0 else "resumes_when_empty"), values


def _about_stopping(may: Any, might: Any, pending: int, low: int, high: int) -> str:
    if may:
        return "never_stops" if might or pending > high else "hand_out_reopens"
    if pending == high:
        return "stops_at_the_mark"
    return "stops_at_low" if pending >= low else "stops_always"


# -- 10.2: where data waits --------------------------------------------------------------------------------

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
        gate = drive_c10.Gate(PoolBuffers, num_channels, num_buffers, most)
        for _ in range(generator.randint(3, 16)):
            channel = generator.randrange(num_channels)
            is_read = gate.held[channel] and generator.random() < 0.5
            can_grow = gate.pool.size < most and generator.random() < 0.2
            ops.append(["grow", gate.pool.size + 1] if can_grow else ["read" if is_read else "ask", channel])
            gate.do(ops[-1])
        yield ops


def _waits_belief(found: Difference) -> _Found:
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
        was_read = any(op[0] == "read" for op in found.ops)
        return "forgets_what_came" if was_read else "does_not_ask"
    return "old_wait" if got == "a wait that is over" else "takes_too_many"


CHECKS = {
    "10.1": ScriptCheck(
        "10.1", WaterMarks, drive_c10.run_case, _cases("marks", _MARKS), _marks_belief, ("H", _mixed_marks),
        simpler=_simpler_marks,
    ),
    "10.2": ScriptCheck(
        "10.2", PoolBuffers, drive_c10.run_case, _cases("gate", _WAITS), _waits_belief, ("G", _mixed_waits),
    ),
}  # fmt: skip
