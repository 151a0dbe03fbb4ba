"""Exercise 4.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.checks.hexdump import first_difference, hex_row
from course.checks.transcript import Belief, Difference, TranscriptCheck
from course.checks.words import Words, pair
from course.curriculum.messages import phrase
from course.curriculum.wrapping import pad
from course.exercises.e04_1_deserializer import cases, driver
from course.exercises.e04_1_deserializer.diagnosis import diagnose
from course.grading.rules import Case, Row, Rule, Seen
from refimpl.records.spanning import SpillingAdaptiveSpanningRecordDeserializer

__all__ = ["CHECK"]


_RECORDS = ("result", "record", "flags")
_LOOKS_AT = {"A": ("is_answer",), "B": ("record",), **dict.fromkeys("CDEFG", _RECORDS)}

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
    want: Mapping[str, Any]
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


def walk(ops: Sequence[Any], expected: Sequence[list[Any]]) -> Iterator[Step]:
    """The expected events of a case with their context."""
    events = (fields for _, fields in expected)
    readers: dict[int, _Reader] = {}
    number = 0
    for name, channel, *rest in ops:
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


def _buffer(reader: _Reader, events: Iterator[Mapping[str, Any]], label: str, others: list[bytes]) -> Iterator[Step]:
    """The events of one buffer."""
    piece = reader.coming.pop(0)
    before, left = reader.begun, piece
    yield Step("set", next(events), label, piece)
    index = 0
    while True:
        want = next(events)
        yield Step("get", want, label, piece, before, left, index, list(reader.delivered), others)
        if want["result"] == "PARTIAL_RECORD":
            reader.begun = (before if not index else b"") + left
            break
        record = reader.records[len(reader.delivered)]
        left = left[4 + len(record) - (len(before) if not index else 0) :]
        reader.delivered.append(record)
        index += 1
        if want["result"] == "LAST_RECORD_FROM_BUFFER":
            reader.begun = b""
            break
    yield Step("back", next(events), label, piece)


_METHODS = {
    "new": "__init__", "set": "set_next_buffer", "get": "get_next_record", "back": "get_current_buffer",
    "again": "get_current_buffer",
}  # fmt: skip


class _Words(Words):
    """Buffers and the answers about them."""

    def told(self, ops: Sequence[Any]) -> str:
        return next(cases.told(records, sizes) for name, _, records, sizes in ops if name == "stream")

    def where(self, event: Sequence[Any]) -> str:
        return _METHODS[event[0]]

    def tell(self, event: Sequence[Any]) -> str:
        """An event as result and record, or what the call did."""
        name, fields = event
        if name == "get":
            return f"get   {_short(fields['result'])}  {_record(fields['record'], 0)}"
        return f"get_current_buffer  {_given(fields['buffer'])}" if "buffer" in fields else f"{name} {fields['done']}"

    def before(self, case: Case, expected: Sequence[Any], index: int) -> list[Row]:
        return _same(list(walk(case.ops, expected))[:index])

    def rows(self, found: Difference) -> list[Row]:
        """What came last and was the same, in its order, and then the answer that differs."""
        *before, step = list(walk(found.every_op, found.expected))[: found.index + 1]
        if step.op != "get":
            label = "get_current_…" if step.op in ("back", "again") else step.label
            yours, right = (_given(str(next(iter(each.values())))) for each in (found.got, step.want))
            return [*_same(before), *pair(label, yours, right)]
        around, records = 0, (found.got["record"], step.want["record"])
        if all(isinstance(each, str) and not each.startswith("?") for each in records):
            around = first_difference(*records) or 0
        return [*_same(before), *pair(_call(step), *(_line(each, around) for each in (found.got, step.want)))]


def _same(steps: Sequence[Step]) -> list[Row]:
    """The last of the steps that were the same."""
    return [
        Row(each.label, "", hex_row(each.piece.hex(), 0))
        if each.op == "set"
        else Row(_call(each), phrase("yours"), _line(each.want), phrase("same"))
        for each in steps
        if each.op in ("set", "get")
    ][-4:]


def _belief(found: Difference) -> Belief:
    step = list(walk(found.every_op, found.expected))[found.index]
    code, values = diagnose(step, found.got)
    return _ONLY_CAUSE.get(found.rule, code) if step.op == "get" else code, values


class DeserializerCheck(TranscriptCheck):
    """The check of 4.1, whose first rules look at a part of an answer, after which a part may go another way."""

    def is_as_recorded(self, events: list[Any], case: Case) -> bool:
        """Whether the reference part read each recorded buffer as Flink did: the same results, the same records."""
        assert case.recorded is not None, "asked for a recorded case only"
        records = [driver.shown(driver.payload(each)) for each in case.ops[1][2]]
        reads: list[dict[str, list[Any]]] = []
        for name, fields in events:
            if name == "set":
                reads.append({"results": [], "records": []})
            elif name == "get":
                reads[-1]["results"].append(fields["result"])
                reads[-1]["records"] += [fields["record"]] if fields["record"] is not None else []
        wanted = [
            {"results": each["results"], "records": [records[i] for i in each["records"]]}
            for each in case.recorded["reads"]
        ]
        return reads == wanted

    def aligned(self, rule: Rule, seen: Seen, expected: list[Any]) -> tuple[Seen, int]:
        """For rule B up to the first answer; for both as far as the part goes the way of the right one."""
        num = len(expected)
        if rule.id not in "AB":
            return seen, num
        pairs = zip(seen.events, expected, strict=False)
        num = next((number for number, (mine, want) in enumerate(pairs) if mine[0] != want[0]), num)
        first = next((number for number, want in enumerate(expected, 1) if want[0] == "get"), num)
        if rule.id == "A" or first > num:
            return seen, num
        has_answered = len(seen.events) >= first and len(seen.events[first - 1]) > 1
        return Seen(seen.events, None) if has_answered else seen, first


def _given(what: str) -> str:
    """What get_current_buffer gave, in words."""
    return phrase(what.replace(" ", "_"), "4.1")


def _call(step: Step) -> str:
    return phrase("call", "4.1", number=step.index + 1)


def _line(fields: Mapping[str, Any], around: int = 0) -> str:
    return f"{pad(_short(fields['result']), 13)} {_record(fields['record'], around)}"


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


CHECK = DeserializerCheck(
    "4.1", SpillingAdaptiveSpanningRecordDeserializer, driver, cases.CASES, _belief, cases.SEEDED, _LOOKS_AT,
    _Words("4.1"),
)  # fmt: skip
