"""Exercise 6.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_chains
from course.checks.common import without_error
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.grading.rules import Finding
from refimpl.task.outputs import CopyingChainingOutput

__all__ = ["CHECK"]


_FLIGHT = {"origin": "JFK", "delays": [4, -2]}


def _sent(*ops: list[Any], tag: str = "") -> list[list[Any]]:
    return [["new", {"tag": tag} if tag else {}], *ops]


_LOOKS_AT = {
    "A": ("given", "answer", "passed"),
    "B": ("kept", "first"),
    "C": ("time",),
    "D": ("given", "kept", "answer", "passed"),
    "E": ("time",),
    "F": ("copies",),
}
_SEND_RULES: dict[str, list[list[Any]]] = {
    "A": [
        _sent(["collect", 5, None]), _sent(["collect", {"a": 1}, 7], ["collect", [2], 8]),
        _sent(["watermark", 7]), _sent(["idle"], ["watermark", 9], ["active"], ["watermark", 12]),
        _sent(["watermark", 7], ["idle"], tag="late"),
        _sent(["another", {}], ["collect", 5, 7], ["watermark", 8]),
        _sent(["another", {"tag": "late"}], ["collect", 5, 7])],
    "B": [_sent(["collect", {"a": 1}, 7], ["change"]), _sent(["collect", _FLIGHT, 7], ["change"]),
          _sent(["collect", [[1], [2]], None], ["change"]),
          _sent(["collect", 5, 1], ["collect", 6, 2]),
          _sent(["collect", [], 7], ["change"]), _sent(["collect", {}, 7], ["change"])],
    "C": [_sent(["collect", 5, 1000]), _sent(["collect", 5, None]), _sent(["collect", 5, 0]),
          _sent(["collect", 5, 1], ["collect", 6, None], ["collect", 7, 3]),
          _sent(["collect", 5, -1])],
    "D": [
        _sent(["side", "late", 5, 1]), _sent(["collect", 5, 1], tag="late"),
        _sent(["own_side", 5, 1], tag="late"),
        _sent(["side", "late", [5], 1], tag="late"),
        _sent(["side", "early", 5, 1], tag="late"), _sent(["side", "later", 5, 1], tag="late"),
        _sent(["side", "late", _FLIGHT, 1], ["change"], tag="late"),
        _sent(["side", "late", [1], 1], ["side", "early", [2], 2], ["side", "late", [3], 3], tag="late"),
        _sent(["another", {"tag": "early"}], ["side", "late", 5, 1], tag="late"),
        _sent(["another", {}], ["side", "late", 5, 1], ["collect", 5, 1], tag="late")],
    "E": [_sent(["side", "late", 5, 44], tag="late"), _sent(["side", "late", 5, 0], tag="late"),
          _sent(["side", "late", 5, None], tag="late"), _sent(["side", "late", 5, -1], tag="late")],
    "F": [_sent(["collect", [1], 1]), _sent(["collect", 1, 1], ["collect", "a", 1]),
          _sent(["side", "late", [1], 1], tag="late"), _sent(["side", "early", [1], 1], tag="late"),
          _sent(["side", "later", [1], 1], tag="late"), _sent(["collect", [1], 1], tag="late"),
          _sent(["side", "late", [1], 1]),
          _sent(["another", {}], ["collect", [1], 1]),
          _sent(["another", {}], ["side", "late", [1], 1], tag="late")],
}  # fmt: skip


def _sent_at_random(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 6.3 {seed}")
    values = [5, "JFK", [1, [2]], {"a": 1}, _FLIGHT, None]
    for _ in range(40):
        ops: list[list[Any]] = []
        for _ in range(generator.randint(1, 8)):
            name = generator.choice(["collect", "collect", "side", "change"])
            time = generator.choice([None, 0, 7, 1_357_034_400_000])
            given = [generator.choice(values), time]
            made: dict[str, list[Any]] = {
                "collect": ["collect", *given],
                "side": ["side", generator.choice(["late", "early"]), *given],
                "change": ["change"],
            }
            ops.append(made[name])
        yield _sent(*ops, tag=generator.choice(["", "late"]))


_SIDES = ("side", "own_side")
_OF_THE_BASE = ("watermark", "idle", "active")


def _ending_sent(found: Finding, op: Sequence[Any]) -> Finding:
    """The base class does these; where it stops, it was not made ready."""
    is_base = op[0] in _OF_THE_BASE and found.values["error"] and found.values["text"] != "6.3"
    return without_error(found, "base_not_ready") if is_base else found


def _about_sent(found: Difference) -> str:
    (got, want), name = found.values, found.op[0]
    if any(op[0] == "another" for op in found.before):
        return "kept_in_the_class"
    if found.field == "answer":
        return "collect_answers"
    if found.field == "passed":
        return "passes_nothing_else_on"
    if found.field == "given":
        return _about_given(found)
    if found.field == "first":
        return "record_used_again"
    if found.field == "time":
        if name in _SIDES:
            return "side_time_lost"
        zero = any(each == 0 for each in want)
        return "zero_time_lost" if zero and None in got else "time_lost"
    if found.field == "copies":
        if got < want:
            return "copies_itself"
        return "copies_twice" if want else "copies_in_vain"
    return _about_kept(found)


def _about_given(found: Difference) -> str:
    (got, want), is_side = found.values, found.op[0] in _SIDES
    if not want:
        if not is_side:
            return "main_into_side"
        return "side_into_main" if not found.before[0][1].get("tag") else "other_side_delivered"
    if not got:
        if found.op[0] == "own_side":  # with the tag it was made with it is no matter of comparing
            return "side_by_collect"
        return "side_dropped" if is_side else "nothing_given"
    if len(got) > len(want):
        return "given_twice"
    return "value_without_record" if str(got[0]).startswith("?") else "value_differs"


def _about_kept(found: Difference) -> str:
    """The sender's own record has changed: at the hand-over, or when the one behind changed what it was given."""
    got, want = found.values
    if got[:2] == want[:2]:
        return "values_exchanged"
    if found.op[0] != "change":
        return "changes_what_was_sent"
    if got[1] != want[1]:
        return "record_shared"
    side = "side_" if found.before[-1][0] in _SIDES else ""
    is_outermost = str(got[0]).endswith(("'changed': True}", "'changed']"))
    return f"{side}value_shared" if is_outermost else f"{side}copy_too_shallow"


def _tell_sent(op: Sequence[Any]) -> str:
    name = op[0]
    if name == "new":
        return phrase("side_output", "6.3", tag=op[1]["tag"]) if op[1].get("tag") else ""
    if name in ("change", "idle", "active"):
        return phrase(name, "6.3")
    if name == "watermark":
        return phrase("watermark", "6.3", time=op[1])
    if name == "another":
        return phrase("another_side", "6.3", tag=op[1]["tag"]) if op[1].get("tag") else phrase("another", "6.3")
    if name == "own_side":
        return phrase("own_side", "6.3", value=repr(op[1]), time=op[2])
    if name == "side":
        return phrase("side", "6.3", tag=op[1], value=repr(op[2]), time=op[3])
    return phrase("collect", "6.3", value=repr(op[1]), time=op[2])


def _tell_given(name: str, value: Any) -> str:
    if name == "answer":
        return "" if value is None else phrase("answer", "6.3", kind=str(value)[1:])
    if name == "kept":
        told = "" if value is None else phrase("kept", "6.3", value=value[0], time=value[1])
        return told + phrase("exchanged", "6.3") if value is not None and len(value) > 2 else told
    if name == "passed":
        return phrase("passed", "6.3", value=", ".join(map(str, value))) if value else ""
    if isinstance(value, list):
        parts = [phrase("of_type", "6.3", kind=each[1:]) if str(each).startswith("?") else str(each) for each in value]
        value = ", ".join(parts) or phrase("no_value", "6.3")
    return phrase(name, "6.3", value=value)


CHECK = TranscriptCheck(
    "6.3", CopyingChainingOutput, drive_chains, _SEND_RULES, _about_sent, Seeded("G", _sent_at_random), _LOOKS_AT,
    FieldWords("6.3", _tell_sent, _tell_given), _ending_sent,
)  # fmt: skip
