"""Exercise 3.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.checks.hexdump import first_difference, hex_row
from course.checks.transcript import Belief, Difference, TranscriptCheck
from course.checks.words import Words, pair
from course.curriculum.messages import phrase
from course.curriculum.wrapping import pad
from course.exercises.e03_1_serializer import cases, driver
from course.exercises.e03_1_serializer.diagnosis import diagnose
from course.grading.rules import Case, Finding, Row, Rule, Seen
from refimpl.records.spanning import SpanningRecordSerializer

__all__ = ["CHECK"]

_LOOKS_AT = {
    "A": ("is_result", "done"), "B": ("bytes", "uncommitted", "flags", "done"), "C": ("result", "done"),
}  # fmt: skip


@dataclass(slots=True)
class Step:
    """One expected event, with all that is known about the moment it belongs to.

    `record` is length and payload of the record at hand, `sent` how much of it was copied before;
    `used` the bytes already in the builder. `capacity` and `used` are 0 where nothing is copied.
    `was_asked` is set when this record met a builder before, with room or without.
    """

    op_index: int
    op: str
    want: Mapping[str, Any]
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


def walk(ops: Sequence[Any], expected: Sequence[list[Any]]) -> Iterator[Step]:
    """The expected events of a case with their context."""
    events = (fields for _, fields in expected)
    pens: dict[int, _Pen] = {}
    builders: dict[Any, list[int]] = {}  # builder -> [capacity, used]
    num_buffers = 0
    current = -1
    for index, op in enumerate(ops):
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
            current = current if name == "emit" and want["result"] == "FULL_RECORD" else -1
            if name == "copy" or want["result"] != "PARTIAL_RECORD_MEMORY_SEGMENT_FULL":
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


class _Words(Words):
    """Buffers with the bytes that were copied into them."""

    def told(self, ops: Sequence[Any]) -> str:
        return cases.told(ops)

    def where(self, event: Sequence[Any]) -> str:
        methods = {
            "copy": "copy_to_buffer_builder",
            "serialize": "serialize_record",
            "new": "__init__",
            "revive": "reset",
        }
        return methods.get(event[0], str(event[0]))

    def tell(self, event: Sequence[Any]) -> str:
        """An event as bytes and answer, or what the call did."""
        name, fields = event
        if name != "copy":
            return f"{name} {fields['done']}" if fields else phrase("no_return", call=name)
        lost = ", " + phrase("not_committed", "3.1", number=fields["uncommitted"]) if fields["uncommitted"] else ""
        return f"copy  {hex_row(fields['bytes'], 0)}  {str(fields['result']).removeprefix('?')}{lost}"

    def before(self, case: Case, expected: Sequence[Any], index: int) -> list[Row]:
        return _same(list(walk(case.ops, expected))[:index])

    def rows(self, found: Difference) -> list[Row]:
        """At most two copies that were the same, then the one that differs, with a caret."""
        *before, step = list(walk(found.every_op, found.expected))[: found.index + 1]
        if step.op != "copy":
            yours, flink = (str(each["done"] or phrase("nothing")) for each in (found.got, step.want))
            return [*_same(before), *pair(step.label, yours, flink)]
        yours, flink, result, right = (each[name] for name in ("bytes", "result") for each in (found.got, step.want))
        at = first_difference(yours, flink)
        caret = []
        if at is not None:
            column = 3 * (at - max(0, at - 6)) + (2 if at > 6 else 0)
            caret = [Row("", "", " " * column + "^^ " + phrase("first_byte", "3.1", number=at + 1))]
        elif result != right:
            caret = [Row("", "", " " * 31 + "^^ " + phrase("only_answer", "3.1"))]
        result = result.removeprefix("?")
        if result == right:
            result = right = _short(right)
        rows = pair(step.label, *(f"{pad(hex_row(a, at or 0), 29)}  {b}" for a, b in ((yours, result), (flink, right))))
        return [*_same(before), *rows, *caret]


def _same(steps: Sequence[Step]) -> list[Row]:
    """The copies among the last two steps, which were the same."""
    return [
        Row(each.label, phrase("yours"), f"{pad(hex_row(each.want['bytes'], 0), 29)}  {_short(each.want['result'])}",
            phrase("same"))
        for each in steps[-2:]
        if each.op == "copy"
    ]  # fmt: skip


def _belief(found: Difference) -> Belief:
    return diagnose(list(walk(found.every_op, found.expected))[found.index], found.got)


class SpanningCheck(TranscriptCheck):
    """The check of 3.1, whose driver stops at a copy that is slow in itself: that is not wrong."""

    def run(self, ops: list[Any]) -> list[Any]:
        events: list[Any] = []
        driver.run_case(self.part, ops, events, math.inf)
        return events

    def is_as_recorded(self, events: list[Any], case: Case) -> bool:
        """Whether the answers are those of Flink, and the bytes where the recording holds them whole."""
        assert case.recorded is not None, "asked for a recorded case only"
        results: list[list[str]] = []
        for name, fields in events:
            if name == "serialize":
                results.append([])
            elif name == "copy":
                results[-1].append(fields["result"])
        copied = "".join(fields["bytes"] for name, fields in events if name == "copy")
        buffers = case.recorded["buffers"]
        return results == case.recorded["copies"] and (buffers is None or copied == "".join(buffers))

    def ended(self, rule: Rule, case: Case, seen: Seen, expected: list[Any], index: int) -> Finding:
        """A copy that never came back from a buffer too small for what was left waits for room."""
        found = super().ended(rule, case, seen, expected, index)
        step = list(walk(case.ops, expected))[index]
        left = len(step.record) - step.sent
        if found.code != "endless" or step.op != "copy" or step.room >= left:
            return found
        values = {**found.values, "room": str(step.room), "left": f"{left:,}"}
        return dataclasses.replace(found, code="waits_for_room", values=values)

    def aligned(self, rule: Rule, seen: Seen, expected: list[Any]) -> tuple[Seen, int]:
        """Where the driver has stopped, the copies that were not made count as right."""
        events: list[Any] = []
        for event in seen.events:
            if event[:1] != ["stopped"]:
                events.append(event)
                continue
            while len(events) < len(expected) and expected[len(events)][0] == "copy":
                events.append(expected[len(events)])
        return dataclasses.replace(seen, events=events), len(expected)


def _short(result: str) -> str:
    """PARTIAL for the longest of the three names; the other two only make sense in full."""
    return "PARTIAL" if result.startswith("PARTIAL") else result


CHECK = SpanningCheck(
    "3.1", SpanningRecordSerializer, driver, cases.CASES, _belief, cases.SEEDED, _LOOKS_AT, _Words("3.1")
)
