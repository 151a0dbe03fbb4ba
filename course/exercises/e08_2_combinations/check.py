"""Exercise 8.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e08_2_combinations import driver
from refimpl.job.scheduling_modes import Boundedness, ConsumerStart, why_not
from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["CHECK"]

_ALL_STARTS = tuple(each.name for each in ConsumerStart)
_EARLY = ("AT_ONCE", "WITH_FIRST_OUTPUT")
_LATE = "AFTER_LAST_OUTPUT"


def _asked(results: Sequence[str], streams: Sequence[str], starts: Sequence[str]) -> list[list[Any]]:
    """All these, one after the other: a case."""
    return [["ask", result, stream, start] for result in results for stream in streams for start in starts]


_CASES = {
    "A": [_asked(["PIPELINED"], ["UNBOUNDED"], _EARLY)],
    "B": [_asked(["PIPELINED"], ["BOUNDED"], _EARLY)],
    "C": [_asked(["PIPELINED_BOUNDED", "PIPELINED"], ["BOUNDED", "UNBOUNDED"], [_LATE])],
    "D": [_asked(["BLOCKING"], ["BOUNDED"], [_LATE])],
    "E": [_asked(["BLOCKING"], ["BOUNDED"], _EARLY)],
    "F": [_asked(["BLOCKING"], ["UNBOUNDED"], [_LATE, *_EARLY])],
    "G": [
        _asked(["PIPELINED_BOUNDED"], ["UNBOUNDED", "BOUNDED"], _EARLY),
        _asked(["BLOCKING_PERSISTENT"], ["BOUNDED", "UNBOUNDED"], _ALL_STARTS),
    ],
}


def _seeded(seed: int) -> Iterator[list[Any]]:
    """All of them, one after the other, in an order of the seed: an answer depends on nothing but what is asked."""
    results, streams = ([each.name for each in kind] for kind in (ResultPartitionType, Boundedness))
    ops = _asked(results, streams, _ALL_STARTS)
    random.Random(f"sluice 8.2 {seed}").shuffle(ops)
    yield ops


# -- beliefs -----------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = (str(each) for each in found.values)
    values = {"got": got.removeprefix("? "), **_blanks(found.op)}
    if got.startswith("? "):
        return ("true_or_false" if got in ("? True", "? False") else "no_text"), values
    if got in ("empty", "raised"):
        return {"empty": "no_reason", "raised": "raises"}[got], values
    said = {tuple(op[1:]): event[1]["answer"] for op, event in zip(found.every_op, found.events, strict=False)}
    return (_refuses(said, *found.op[1:]) if want == "runs" else _allows(said, *found.op[1:])), values


_Said = Mapping[tuple[str, str, str], str]
"""All answers of the case."""


def _refuses(said: _Said, result: str, stream: str, start: str) -> str:
    if result == "PIPELINED_BOUNDED":
        return "bounded_by_name" if stream == "UNBOUNDED" else "bounded_pool_refused"
    if result.startswith("BLOCKING"):
        return "refuses_persistent" if result.endswith("PERSISTENT") else "refuses_blocking"
    if stream == "UNBOUNDED":
        return "refuses_streaming" if start == "AT_ONCE" else "refuses_the_useless"
    if start != "AT_ONCE":
        return "refuses_pipelined_batch"
    return "batch_must_block" if said.get((result, stream, "WITH_FIRST_OUTPUT")) == "refused" else "refuses_waiting"


def _allows(said: _Said, result: str, stream: str, start: str) -> str:
    if result == "BLOCKING_PERSISTENT":
        is_refused = said.get((result, "BOUNDED", _LATE)) == "refused"
        return "persistent_taken_for_pipelined" if is_refused else "forgets_persistent"
    if result == "BLOCKING":
        if stream == "UNBOUNDED":
            return "never_finished"
        return "reads_too_early" if start == "AT_ONCE" else "first_is_not_all"
    if stream == "UNBOUNDED":
        return "never_starts"
    if result == "PIPELINED":
        return "pool_without_end"
    if said.get(("PIPELINED", stream, start)) == "refused":
        return "bounded_taken_for_blocking"
    return "may_come_late" if said.get((result, "UNBOUNDED", start)) == "runs" else "wait_for_each_other"


# -- in words ----------------------------------------------------------------------------------------


def _blanks(op: Sequence[Any]) -> dict[str, str]:
    stream, start = Boundedness[op[2]], ConsumerStart[op[3]]
    return {
        "result": str(op[1]), "stream": phrase(f"stream_{stream.name}", "8.2"),
        "start": phrase(f"start_{start.name}", "8.2"),
    }  # fmt: skip


def _op(op: Sequence[Any]) -> str:
    return phrase("op_ask", "8.2", **_blanks(op))


def _field(_name: str, value: Any) -> str:
    key = str(value)
    if key.startswith("?"):
        return phrase("says_else", "8.2", value=key.removeprefix("? "))
    return phrase(f"says_{key}", "8.2")


CHECK = TranscriptCheck(
    "8.2", why_not, driver, _CASES, _belief, Seeded("H", _seeded), words=FieldWords("8.2", _op, _field),
)  # fmt: skip
