"""Exercise 3.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course.checks.common import ending_finding
from course.checks.hexdump import first_difference, hex_row
from course.curriculum.messages import phrase
from course.exercises.e03_1_serializer import cases, driver
from course.exercises.e03_1_serializer.diagnosis import diagnose
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.runner import GraderError
from refimpl.errors import LocalUsageError

__all__ = ["CHECK"]


_RULES = (
    Rule("A", "kind"), Rule("B", "data"), Rule("C", "result"), Rule("D"), Rule("E"), Rule("F"), Rule("G"), Rule("H"),
    Rule("I"), Rule("J"), Rule("K"), Rule("L"), Rule("M"), Rule("N"), Rule("O"),
)  # fmt: skip


@dataclass(slots=True)
class Step:
    """One expected event, with all that is known about the moment it belongs to.

    `record` is length and payload of the record at hand, `sent` how much of it was copied before;
    `used` the bytes already in the builder. `capacity` and `used` are 0 where nothing is copied.
    `was_asked` is set when this record met a builder before, with room or without.
    """

    op_index: int
    op: str
    want: list[Any]
    label: str
    record: bytes = b""
    sent: int = 0
    capacity: int = 0
    used: int = 0
    earlier: bytes = b""
    was_reset: bool = False
    was_pruned: bool = False
    was_asked: bool = False

    @property
    def room(self) -> int:
        return self.capacity - self.used


class _Pen:
    """What one serializer should be doing: the record it holds and how far it came."""

    def __init__(self) -> None:
        self.record = b""
        self.earlier = b""
        self.sent = 0
        self.was_reset = self.was_pruned = self.was_asked = False

    def take(self, payload: bytes) -> None:
        self.earlier = self.record or self.earlier
        self.record = len(payload).to_bytes(4, "big") + payload
        self.sent, self.was_reset, self.was_pruned, self.was_asked = 0, False, False, False


def walk(case: Case, expected: Sequence[list[Any]]) -> Iterator[Step]:
    """The expected events of a case with their context."""
    events = iter(expected)
    pens: dict[int, _Pen] = {}
    builders: dict[Any, list[int]] = {}  # builder -> [capacity, used]
    num_buffers = 0
    current = -1
    for index, op in enumerate(case.ops):
        name, pen = op[0], pens.setdefault(op[1], _Pen())
        if name in ("serialize", "emit"):
            data = driver.payload(op[2] if name == "serialize" else op[3])
            pen.take(data)
            yield Step(index, "serialize", next(events), "serialize_record", pen.record)
        elif name in ("new", "reset", "prune", "revive"):
            label = {"new": "__init__", "revive": "reset"}.get(name, name)
            yield Step(index, name, next(events), label, pen.record, pen.sent)
            if name in ("prune", "revive"):
                pen.earlier, pen.record, pen.sent, pen.was_pruned = pen.record or pen.earlier, b"", 0, True
            elif name == "reset":
                pen.sent, pen.was_reset, pen.was_asked = 0, True, False
        if name not in ("copy", "drain", "emit", "probe"):
            continue
        for attempt in range(10_000):
            current = current if current >= 0 else num_buffers
            key, size = _builder_of(op, index, attempt, current)
            if key not in builders:
                num_buffers += 1
                builders[key] = [*size, num_buffers]
            capacity, used, number = builders[key]
            want = next(events)
            label = phrase("buffer", "3.1", number=number)
            yield Step(
                index,
                "copy",
                want,
                label,
                pen.record,
                pen.sent,
                capacity,
                used,
                pen.earlier,
                pen.was_reset,
                pen.was_pruned,
                pen.was_asked,
            )
            taken = min(capacity - used, len(pen.record) - pen.sent)
            pen.sent, pen.was_asked = pen.sent + taken, True
            builders[key][1] += taken
            current = current if name == "emit" and want[1] == "FULL_RECORD" else -1
            if name == "copy" or want[1] != "PARTIAL_RECORD_MEMORY_SEGMENT_FULL":
                break


def _builder_of(op: list[Any], index: int, attempt: int, current: int) -> tuple[Any, tuple[int, int]]:
    """Which builder a copy goes into, and the capacity and used bytes it is opened with."""
    match op[0]:
        case "copy":
            return op[2], (op[3], op[4])
        case "emit":
            return ("emit", current), (op[2], 0)
        case "drain":
            return (index, attempt), (op[2], 0 if attempt else op[3])
    return (index, attempt), (min(64 << attempt, 1 << 19), 0)


class SpanningCheck:
    """The check of 3.1, as the judge needs it."""

    exercise = "3.1"
    rules: Sequence[Rule] = _RULES

    def cases(self, seed: int) -> list[Case]:
        """All cases; see cases."""
        return cases.cases(seed)

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """The reference part's events, which must agree with the recorded Flink where there is one: in their
        answers always, in their bytes where the recording holds them whole.

        Raises:
            GraderError: they do not agree; the engine's own file has been changed.
        """
        from refimpl.records.spanning import SpanningRecordSerializer

        found: list[list[Any]] = []
        for case in cases:
            events: list[Any] = []
            driver.run_case(SpanningRecordSerializer, case.ops, events, math.inf)
            if case.recorded is not None and not _agrees(events, case.recorded):
                raise GraderError(
                    f"refimpl's SpanningRecordSerializer differs from the recorded Flink in {case.ran}; "
                    "restore refimpl/records/spanning.py"
                )
            found.append(events)
        return found

    def smaller(self, case: Case) -> Iterator[Case]:
        """Of the mixtures made from the seed: fewer operations, shorter records."""
        for smaller in cases.smaller(case) if case.rule == "O" else ():
            with contextlib.suppress(LocalUsageError):  # left out too much: the engine would never do that
                self.expected([smaller])
                yield smaller

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The first event that breaks `rule`, diagnosed; None if there is none."""
        steps = list(walk(case, expected))
        same: list[Step] = []
        position = 0
        for step in steps:
            if position < len(seen.events) and seen.events[position] == ["stopped"]:
                if step.op_index == steps[max(0, len(same) - 1)].op_index:
                    continue
                position += 1
            event = seen.events[position] if position < len(seen.events) else None
            if event is None or len(event) != len(step.want):
                where = "copy_to_buffer_builder" if step.op == "copy" else step.label
                finding = ending_finding("3.1", rule.id, case, seen, _rows(same[-2:], step, None), where)
                return _about_ending(finding, step)
            if not _holds(rule.aspect, event, step.want):
                code, values = diagnose(step, event)
                return Finding(rule.id, code, case.ran, _rows(same[-2:], step, event), values)
            same.append(step)
            position += 1
        if seen.ending is not None:
            return ending_finding("3.1", rule.id, case, seen, _rows(same[-2:], None, None), phrase("the_end"))
        return None

    def tell(self, event: list[Any]) -> str:
        """An event as bytes and answer, or what the call did."""
        if event[0] == "copy" and len(event) == 5:
            lost = ", " + phrase("not_committed", "3.1", number=event[3]) if event[3] else ""
            return f"copy  {hex_row(event[2], 0)}  {str(event[1]).removeprefix('?')}{lost}"
        return " ".join(str(each) for each in event) if len(event) > 1 else phrase("no_return", call=event[0])


def _about_ending(finding: Finding, step: Step) -> Finding:
    """A copy that never came back from a buffer too small for what was left waits for room."""
    left = len(step.record) - step.sent
    if finding.code != "endless" or step.op != "copy" or step.room >= left:
        return finding
    values = {**finding.values, "room": str(step.room), "left": f"{left:,}"}
    return dataclasses.replace(finding, code="waits_for_room", values=values)


def _holds(aspect: str, event: list[Any], want: list[Any]) -> bool:
    if event[0] != "copy" or want[0] != "copy":
        return event == want
    if aspect == "kind":
        return isinstance(event[1], str) and not event[1].startswith("?")
    if aspect == "data":
        return event[2:] == want[2:]
    if aspect == "result":
        return bool(event[1] == want[1])
    return event[1:] == want[1:]


def _rows(before: Sequence[Step], step: Step | None, event: list[Any] | None) -> list[Row]:
    """At most two copies that were the same, then the one that differs, with a caret."""
    rows = [
        Row(each.label, phrase("yours"), f"{hex_row(each.want[2], 0):<29}  {_short(each.want[1])}", phrase("same"))
        for each in before
        if each.op == "copy"
    ]
    if step is None or event is None:
        return rows
    if step.op != "copy":
        yours, flink = (str(each[1] or phrase("nothing")) for each in (event, step.want))
        return [*rows, Row(step.label, phrase("yours"), yours), Row("", phrase("flink"), flink)]
    yours, flink = event[2], step.want[2]
    at = first_difference(yours, flink)
    shown_at = at or 0
    result, right = event[1].removeprefix("?"), step.want[1]
    if result == right:
        result = right = _short(right)
    rows.append(Row(step.label, phrase("yours"), f"{hex_row(yours, shown_at):<29}  {result}"))
    rows.append(Row("", phrase("flink"), f"{hex_row(flink, shown_at):<29}  {right}"))
    if at is not None:
        column = 3 * (at - max(0, at - 6)) + (2 if at > 6 else 0)
        rows.append(Row("", "", " " * column + "^^ " + phrase("first_byte", "3.1", number=at + 1)))
    elif event[1] != step.want[1]:
        rows.append(Row("", "", " " * 31 + "^^ " + phrase("only_answer", "3.1")))
    return rows


def _short(result: str) -> str:
    """PARTIAL for the longest of the three names; the other two only make sense in full."""
    return "PARTIAL" if result.startswith("PARTIAL") else result


def _agrees(events: Sequence[list[Any]], recorded: Any) -> bool:
    results: list[list[str]] = []
    for event in events:
        if event[0] == "serialize":
            results.append([])
        elif event[0] == "copy":
            results[-1].append(event[1])
    if results != recorded["copies"]:
        return False
    if recorded["buffers"] is None:
        return True
    return "".join(e[2] for e in events if e[0] == "copy") == "".join(recorded["buffers"])


CHECK = SpanningCheck()
