"""Exercise 4.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.checks.common import ending_finding
from course.checks.hexdump import first_difference, hex_row
from course.curriculum.messages import phrase
from course.exercises.e04_1_deserializer import cases, driver
from course.exercises.e04_1_deserializer.diagnosis import diagnose
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.runner import GraderError

__all__ = ["CHECK"]


_RULES = (
    Rule("A", "kind"), Rule("B", "first"), Rule("C", "records"), Rule("D", "records"), Rule("E", "records"),
    Rule("F", "records"), Rule("G", "records"), Rule("H"), Rule("I"), Rule("J"), Rule("K"), Rule("L"), Rule("M"),
)  # fmt: skip

_ONLY_CAUSE = {"I": "beyond_the_window", "J": "shared_by_all", "K": "long_record"}
"""What it must be if the rules before hold: these cases are like earlier ones but for one thing."""


@dataclass(slots=True)
class Step:
    """One expected event, with all that is known about the moment it belongs to.

    `piece` is the buffer being read, `begun` what of the record at hand came in buffers before it, `rest` what of
    `piece` has not been handed out; `index` counts the calls for this buffer. `came_before` are the records that this
    channel has delivered, `others` those that other channels carry.
    """

    op: str
    want: list[Any]
    label: str
    piece: bytes = b""
    begun: bytes = b""
    rest: bytes = b""
    index: int = 0
    came_before: list[bytes] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)

    @property
    def is_joined(self) -> bool:
        """Whether the record at hand began in an earlier buffer."""
        return bool(self.begun) and not self.index

    @property
    def follows_joined(self) -> bool:
        """Whether the record before, in the same buffer, began in an earlier one."""
        return bool(self.begun) and self.index > 0


class _Reader:
    """What one channel has been given and has handed out."""

    def __init__(self) -> None:
        self.coming: list[bytes] = []
        self.records: list[bytes] = []
        self.begun = b""
        self.delivered: list[bytes] = []


def walk(case: Case, expected: Sequence[list[Any]]) -> Iterator[Step]:
    """The expected events of a case with their context."""
    events = iter(expected)
    readers: dict[int, _Reader] = {}
    number = 0
    for name, channel, *rest in case.ops:
        reader = readers.setdefault(channel, _Reader())
        if name in ("new", "again"):
            yield Step(name, next(events), "__init__" if name == "new" else "get_current_buffer")
        elif name == "stream":
            reader.coming = driver.pieces(*rest)
            reader.records = [driver.payload(each) for each in rest[0]]
        elif name == "begin":
            reader.coming = [driver.payload(rest[0])]
        else:
            for _ in range(1 if name == "around" else rest[0]):
                number += 1
                steps = _buffer(reader, events, phrase("buffer", "4.1", number=number), _others(readers, channel))
                if name == "around":
                    yield from (next(steps), next(steps))  # set_next_buffer, and the first answer
                    number += 1
                    label = phrase("buffer", "4.1", number=number)
                    yield from _buffer(readers[rest[0]], events, label, _others(readers, rest[0]))
                yield from steps


def _others(readers: Mapping[int, _Reader], channel: int) -> list[bytes]:
    """The records of all other channels, without the empty ones."""
    return [each for s, other in readers.items() if s != channel for each in other.records if each]


def _buffer(reader: _Reader, events: Iterator[list[Any]], label: str, others: list[bytes]) -> Iterator[Step]:
    """The events of one buffer."""
    piece = reader.coming.pop(0)
    before, left = reader.begun, piece
    yield Step("set", next(events), label, piece)
    index = 0
    while True:
        want = next(events)
        yield Step("get", want, label, piece, before, left, index, list(reader.delivered), others)
        if want[1] == "PARTIAL_RECORD":
            reader.begun = (before if not index else b"") + left
            break
        record = reader.records[len(reader.delivered)]
        left = left[4 + len(record) - (len(before) if not index else 0) :]
        reader.delivered.append(record)
        index += 1
        if want[1] == "LAST_RECORD_FROM_BUFFER":
            reader.begun = b""
            break
    yield Step("back", next(events), label, piece)


class DeserializerCheck:
    """The check of 4.1, as the judge needs it."""

    exercise = "4.1"
    rules: Sequence[Rule] = _RULES

    def cases(self, seed: int) -> list[Case]:
        """All cases; see cases."""
        return cases.cases(seed)

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """The reference part's events, which must agree with the recorded Flink where there is one.

        Raises:
            GraderError: they do not agree; the engine's own file has been changed.
        """
        from refimpl.records.spanning import SpillingAdaptiveSpanningRecordDeserializer

        found: list[list[Any]] = []
        for case in cases:
            events: list[Any] = []
            driver.run_case(SpillingAdaptiveSpanningRecordDeserializer, case.ops, events)
            if case.recorded is not None and not _agrees(events, case):
                raise GraderError(
                    f"refimpl's deserializer differs from the recorded Flink in {case.ran}; "
                    "restore refimpl/records/spanning.py"
                )
            found.append(events)
        return found

    def smaller(self, case: Case) -> Iterator[Case]:
        """Of the mixtures made from the seed: fewer and shorter records, simpler buffers."""
        return cases.smaller(case) if case.rule == "M" else iter(())

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The first event that breaks `rule`, diagnosed; None if there is none."""
        same: list[Step] = []
        for position, step in enumerate(walk(case, expected)):
            event = seen.events[position] if position < len(seen.events) else None
            if event is None or len(event) != len(step.want) or event[0] != step.want[0]:
                if event is not None and event[0] != step.want[0]:
                    break  # it went another way before, which this rule does not look at
                where = {"get": "get_next_record", "set": "set_next_buffer", "new": "__init__"}
                name = where.get(step.op, "get_current_buffer")
                return ending_finding("4.1", rule.id, case, seen, _rows(same, step, None), name)
            if not _holds(rule.aspect, step, event):
                code, values = diagnose(step, event)
                code = _ONLY_CAUSE.get(rule.id, code) if step.op == "get" else code
                return Finding(rule.id, code, case.ran, _rows(same, step, event), values)
            same.append(step)
            if rule.aspect == "first" and step.op == "get":
                return None
        if seen.ending is not None:
            return ending_finding("4.1", rule.id, case, seen, _rows(same, None, None), phrase("the_end"))
        return None

    def tell(self, event: list[Any]) -> str:
        """An event as result and record, or what the call did."""
        if event[0] == "get" and len(event) == 4:
            return f"get   {_short(event[1])}  {_record(event[2], 0)}"
        if event[0] in ("back", "again") and len(event) > 1:
            return f"get_current_buffer  {_given(event[1])}"
        return " ".join(str(each) for each in event) if len(event) > 1 else phrase("no_return", call=event[0])


def _holds(aspect: str, step: Step, event: list[Any]) -> bool:
    if step.op != "get":
        return aspect in ("kind", "first", "records") or event == step.want
    if aspect == "kind":
        is_record = event[2] is None or not event[2].startswith("?")
        return is_record and isinstance(event[1], str) and not event[1].startswith("?")
    if aspect == "first":
        return bool(event[2] == step.want[2])
    return event == step.want


def _rows(before: Sequence[Step], step: Step | None, event: list[Any] | None) -> list[Row]:
    """What came last and was the same, in its order, and then the answer that differs."""
    rows = [
        Row(each.label, "", hex_row(each.piece.hex(), 0))
        if each.op == "set"
        else Row(_call(each), phrase("yours"), _line(each.want), phrase("same"))
        for each in before
        if each.op in ("set", "get")
    ][-4:]
    if step is None or event is None:
        return rows
    if step.op != "get":
        label = "get_current_…" if step.op in ("back", "again") else step.label
        yours, right = (_given(str(each[1])) for each in (event, step.want))
        return [*rows, Row(label, phrase("yours"), yours), Row("", phrase("flink"), right)]
    around = 0
    if isinstance(event[2], str) and isinstance(step.want[2], str) and not event[2].startswith("?"):
        around = first_difference(event[2], step.want[2]) or 0
    return [
        *rows,
        Row(_call(step), phrase("yours"), _line(event, around)),
        Row("", phrase("flink"), _line(step.want, around)),
    ]


def _given(what: str) -> str:
    """What get_current_buffer gave, in words."""
    return phrase(what.replace(" ", "_"), "4.1")


def _call(step: Step) -> str:
    return phrase("call", "4.1", number=step.index + 1)


def _line(event: list[Any], around: int = 0) -> str:
    return f"{_short(event[1]):<13} {_record(event[2], around)}"


def _short(result: str) -> str:
    """PARTIAL, INTERMEDIATE or LAST; or what came instead."""
    if result == "?turned":
        return phrase("turned", "4.1")
    whole = ("PARTIAL_RECORD", "INTERMEDIATE_RECORD_FROM_BUFFER", "LAST_RECORD_FROM_BUFFER")
    return result.partition("_")[0] if result in whole else result.removeprefix("?").removeprefix("alone ")[:25]


def _record(shown: str | None, around: int) -> str:
    if shown is None:
        return phrase("no_record", "4.1")
    if shown.startswith("?"):
        return shown[1:]
    return hex_row(shown, around) if shown else phrase("empty_record", "4.1")


def _agrees(events: Sequence[list[Any]], case: Case) -> bool:
    """Whether the reference part read each recorded buffer as Flink did: the same results, the same records."""
    assert case.recorded is not None, "asked for a recorded case only"
    records = [driver.shown(driver.payload(each)) for each in case.ops[1][2]]
    reads: list[dict[str, list[Any]]] = []
    for event in events:
        if event[0] == "set":
            reads.append({"results": [], "records": []})
        elif event[0] == "get":
            reads[-1]["results"].append(event[1])
            reads[-1]["records"] += [event[2]] if event[2] is not None else []
    wanted = [
        {"results": each["results"], "records": [records[i] for i in each["records"]]}
        for each in case.recorded["reads"]
    ]
    return reads == wanted


CHECK = DeserializerCheck()
