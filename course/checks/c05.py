"""Exercises 5.1, which channel a key goes to, and 5.2, a record on its way to its channels: rules and beliefs."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_c05
from course.checks.calls import CallsCheck, Difference
from course.checks.common import ending_finding
from course.checks.driven import DrivenCheck
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.messages import phrase
from refimpl.producer.channel_copy import ChannelCopy
from refimpl.producer.key_groups import java_hash_code, murmur_hash
from refimpl.producer.selector import KeyGroupSelector
from refimpl.records.types import INT

__all__ = ["CHECKS", "CopyCheck"]

# -- 5.1 -----------------------------------------------------------------------------------------------

_METHOD = "channel_of_key"


def _keys(max_parallelism: int, channels: int, *keys: Any, of_type: str | None = None) -> list[list[Any]]:
    return [["new", max_parallelism, channels, of_type], *(["call", _METHOD, key] for key in keys)]


_AIRPORTS = ("JFK", "EWR", "LGA", "LAX", "ORD", "ATL", "BOS", "SFO", "MIA", "DFW")
_SELECTOR_CASES = {
    "A": [_keys(128, 4, 1, 2, 3, 42)],
    "B": [_keys(128, 4, 1, 2, 3, 5, 7), _keys(128, 2, *range(10, 30)), _keys(128, 8, *range(100))],
    "C": [
        _keys(128, 4, *_AIRPORTS),
        _keys(128, 2, "", "a", "Ω", "N14228"),
        _keys(128, 64, "JFK ", " LAX", "jfk", "Straße", "𝄞", "Newark Liberty International", "0042"),
    ],
    "D": [
        _keys(128, 3, *range(1, 12)),
        _keys(128, 5, *range(60)),
        _keys(128, 7, *range(200)),
        _keys(128, 7, *_AIRPORTS),
    ],
    "E": [
        _keys(256, 2, *_AIRPORTS),
        _keys(4096, 10, *_AIRPORTS),
        _keys(130, 7, *_AIRPORTS),
        _keys(7, 2, *range(9)),
        _keys(1, 1, "JFK", 3),
        _keys(200, 8, -1, -2, 2**40 + 7),
        _keys(98, 2, *range(300)),
    ],
    "F": [
        _keys(128, 4, -1, -2, of_type="INT"),
        _keys(4096, 64, -1, -7, -(2**31), 5, of_type="INT"),
        _keys(4096, 512, 1, 1.0, True),
        _keys(4096, 512, False, 0, 0.0, -0.0),
        _keys(128, 64, 2.5, -1e300, 7.0),
        _keys(128, 64, ["JFK", 1], ["JFK", 2], [1, 1], [[1], 1]),
    ],
}


def _seeded_keys(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 5.1 {seed}")
    for _ in range(30):
        groups = generator.choice((128, 200, 256, 1024, generator.randint(1, 32_768)))
        channels = generator.randint(1, min(groups, 40))
        keys = [
            generator.choice((generator.randint(-(2**63), 2**63 - 1), f"N{generator.randint(100, 99_999)}"))
            for _ in range(6)
        ]
        yield _keys(groups, channels, *keys)


def _belief(found: Difference) -> str:
    """What is no whole number; a channel is named by all answers of its case, see `_named`."""
    kind = found.got[0]
    if kind != "int":
        return {"NoneType": "returns_nothing", "float": "a_fraction"}.get(kind, "no_number")
    return "different"


def _named(rule: str, got: int, ops: Sequence[Any], events: Sequence[Any]) -> str:
    """The belief that fits every answer of a case; if none does, what can be seen."""
    _, groups, channels, key_type = ops[0]
    keys = [drive_c05.key_of(op[2]) for op in ops[1:]]
    answers = [int(event[1][1]) if event[1][0] == "int" else None for event in events[1:] if len(event) > 1]
    if rule == "F":
        as_long = [_group(key, groups, None) * channels // groups for key in keys]
        return "not_as_it_is" if not key_type else "type_ignored" if _fits(as_long, answers) else "different"
    if rule == "G":  # no belief gets here, and a case that was made small has too few keys to tell them apart
        return "different" if 0 <= got < channels else "no_such_channel"
    every = [_beliefs(key, groups, channels, key_type) for key in keys]
    fitting = [each[0][0] for each in zip(*every, strict=True) if _fits([channel for _, channel in each], answers)]
    chosen = fitting[0] if fitting else ""
    if not 0 <= got < channels:
        return chosen if chosen == "group_for_channel" or (rule == "A" and chosen) else "no_such_channel"
    if rule == "C" and keys[0] not in _AIRPORTS:
        return "text_changed"
    if rule == "C":  # whole numbers were right: only the code of a text can be another, if it is not a single text
        right = [_group(key, groups, key_type) * channels // groups for key in keys]
        num_wrong = sum(answer != channel for answer, channel in zip(answers, right, strict=False))
        return "own_hash" if num_wrong > 1 else "different"
    return chosen or "different"


def _fits(channels: Sequence[int], answers: Sequence[int | None]) -> bool:
    return all(answer == channel for answer, channel in zip(answers, channels, strict=False))


def _group(key: object, groups: int, key_type: str | None) -> int:
    return murmur_hash(java_hash_code(key, INT if key_type else None)) % groups


def _beliefs(key: object, groups: int, channels: int, key_type: str | None) -> list[tuple[str, int]]:
    """What somebody might believe, and the channel that would be the key's."""
    code = java_hash_code(key, INT if key_type else None)
    stirred = murmur_hash(code)
    group, width = stirred % groups, max(1, groups // channels)
    return [
        ("group_for_channel", group),
        ("plain_modulo", code % channels),
        ("plain_modulo", abs(code) % channels),
        ("hash_modulo", stirred % channels),
        ("group_modulo", group % channels),
        ("widths_rounded", group // width),
        ("widths_rounded", min(group // width, channels - 1)),
        ("widths_rounded_up", group // -(-groups // channels)),
        ("not_stirred", code % groups * channels // groups),
        ("always_128", stirred % 128 * channels // 128),
        ("always_128", stirred % 128 * channels // groups),
        ("rounded_to_nearest", round(group * channels / groups)),
        ("larger_first", _with_larger_first(group, groups, channels)),
        ("fraction_first", int(group * (channels / groups))),
    ]


def _with_larger_first(group: int, groups: int, channels: int) -> int:
    """Whose group it is if the first channels had one more than the others."""
    width, num_larger = divmod(groups, channels)
    in_larger = num_larger * (width + 1)
    return group // (width + 1) if group < in_larger else num_larger + (group - in_larger) // width


class SelectorCheck(CallsCheck):
    """The check of 5.1: a selector is made for each case, and asked key by key."""

    def _told(self, ops: Sequence[Any]) -> str:
        _, groups, channels, key_type = ops[0]
        keys = ", ".join(repr(drive_c05.key_of(op[2])) for op in ops[1:6]) + (", …" if len(ops) > 6 else "")
        words = phrase("asked", "5.1", keys=keys, groups=groups, channels=channels)
        return words + (phrase("as_int", "5.1") if key_type else "")

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        found = super().compare(rule, case, seen, expected)
        if found is None or len(found.rows) != 2:
            return found
        got, index = found.values["got"], next(i for i, want in enumerate(expected) if seen.events[i][:3] != want)
        key = repr(drive_c05.key_of(case.ops[index][2]))
        key = key if len(key) <= 16 else f"{key[:15]}…"
        code = found.code
        if code == "different" and got.removeprefix("-").isdecimal():
            code = _named(rule.id, int(got), case.ops, seen.events)
        rows = [dataclasses.replace(found.rows[0], label=phrase("answer", "5.1", asked=key)[:13]), found.rows[1]]
        return dataclasses.replace(found, code=code, rows=rows, values={**found.values, "key": key})


# -- 5.2 -----------------------------------------------------------------------------------------------


def _data(length: int, start: int = 0x61) -> str:
    return bytes((start + 7 * i) & 255 for i in range(length)).hex()


def _ops(channels: int, segment: int, buffers: int, *ops: list[Any], timeout: int = -1) -> list[Any]:
    return [["writer", channels, segment, buffers, timeout], *ops]


def _call(op: list[Any]) -> str:
    match op:
        case ["emit", channel, data]:
            return phrase("emit", "5.2", size=len(data) // 2, channel=channel)
        case ["broadcast", data]:
            return phrase("broadcast", "5.2", size=len(data) // 2)
        case ["take", channel]:
            return phrase("take", "5.2", channel=channel)
    return "resume()"


def _emit(channel: int, size: int, start: int = 0x61) -> list[Any]:
    return ["emit", channel, _data(size, start)]


def _broadcast(size: int, start: int = 0x41) -> list[Any]:
    return ["broadcast", _data(size, start)]


_ONE, _TWO, _EMPTY = _emit(0, 5), _emit(1, 9), (["take", 0], ["resume"])
_WRITER_CASES = {
    "A": [_ops(1, 32, 8, _ONE), _ops(2, 32, 8, _TWO), _ops(3, 32, 8, _ONE, _emit(2, 3), _emit(0, 7))],
    "B": [_ops(1, 16, 8, _emit(0, 20), ["take", 0]), _ops(1, 8, 8, _emit(0, 31)), _ops(2, 16, 8, _ONE, _emit(0, 9)),
          _ops(2, 7, 20, _TWO, _emit(0, 30), _emit(1, 2))],
    "C": [_ops(1, 16, 8, _emit(0, 12), ["take", 0]), _ops(1, 9, 8, _ONE, _emit(0, 5, 0x31)),
          _ops(2, 8, 8, _emit(1, 12))],
    "D": [*(_ops(channels, 32, 8, _broadcast(5)) for channels in (2, 1, 4)),
          _ops(2, 16, 9, _broadcast(5), _broadcast(4, 0x31)), _ops(3, 9, 9, _broadcast(5))],
    "E": [_ops(2, 16, 9, _ONE, _broadcast(8)), _ops(2, 16, 9, _TWO, _broadcast(8)),
          _ops(3, 12, 20, _ONE, _emit(2, 2), _broadcast(20), _emit(1, 3))],
    "F": [_ops(1, 16, 1, _emit(0, 20), *_EMPTY, ["take", 0]), _ops(2, 16, 1, _broadcast(5), *_EMPTY),
          _ops(2, 16, 2, _broadcast(20), *_EMPTY, ["take", 1], ["resume"], *_EMPTY),
          _ops(2, 9, 2, _broadcast(14), _ONE, *_EMPTY, *_EMPTY, ["take", 1], ["resume"], *_EMPTY, *_EMPTY)],
    "G": [_ops(1, 32, 8, _ONE, timeout=0), _ops(3, 32, 8, _broadcast(5), timeout=0),
          _ops(1, 16, 8, _emit(0, 20), timeout=0), _ops(2, 16, 12, _broadcast(40), _emit(1, 3), timeout=0)],
    "H": [_ops(1, 16, 8, _emit(0, 20)), *(_ops(2, size, 8, _broadcast(5)) for size in (9, 32))],
}  # fmt: skip


def _seeded_writing(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 5.2 {seed}")
    for _ in range(40):
        channels = generator.randint(1, 4)
        ops: list[list[Any]] = []
        for _ in range(generator.randint(1, 8)):
            size, start = generator.choice((1, 3, 5, 8, 12, generator.randint(1, 40))), generator.randint(0, 255)
            ops.append(
                _broadcast(size, start)
                if generator.random() < 0.4
                else _emit(generator.randrange(channels), size, start)
            )
            if generator.random() < 0.3:
                ops += [["take", generator.randrange(channels)], ["resume"]]
        yield _ops(channels, generator.randint(5, 24), generator.randint(2, 12), *ops)


class CopyCheck(DrivenCheck):
    """The check of 5.2: after each operation, all that stands in the queues."""

    def _told(self, ops: Sequence[Any]) -> str:
        (_, channels, segment, buffers, _), *rest = ops
        told = ", ".join(_call(op) for op in rest[:6]) + (", …" if len(rest) > 6 else "")
        return phrase("ran", "5.2", channels=channels, segment=segment, buffers=buffers, ops=told)

    def _shorter(self, ops: list[Any]) -> Iterator[list[Any]]:
        """One operation fewer."""
        first, *rest = ops
        return ([first, *rest[:index], *rest[index + 1 :]] for index in range(len(rest)) if len(rest) > 1)

    def _ended(self, rule: Rule, case: Case, seen: Seen, index: int, want: list[Any]) -> Finding:
        found = ending_finding(self.exercise, rule.id, case, seen, (), "copy_to_channels")
        is_of_serializer = found.values["error"] == "LocalUsageError" and found.line is None
        return dataclasses.replace(found, code="reset_at_the_end") if is_of_serializer and index else found

    def _difference(
        self, rule: Rule, case: Case, index: int, event: list[Any], expected: Sequence[list[Any]]
    ) -> Finding | None:
        want, op = expected[index], case.ops[index]
        is_kept = rule.id in "HI" and want[5] and not event[5]
        if not is_kept and _seen_by(rule.id, event) == _seen_by(rule.id, want):
            return None
        code = _about(rule.id, op, event, want, expected[index - 1] if index else [])
        return Finding(rule.id, code, case.ran, _rows(op, event, want), {"where": "copy_to_channels"})

    def tell(self, event: list[Any]) -> str:
        """The queues, channel by channel."""
        if len(event) < 7:
            return phrase("no_return", call="copy_to_channels")
        return f"{event[0]}  " + "   ".join(f"{n}: {_queue(entries)}" for n, (entries, _) in enumerate(event[2]))


def _seen_by(rule: str, event: list[Any]) -> Any:
    """What a rule looks at: announcements are for G and I; the rest is for all. To prune more often does no harm."""
    name, answer, channels, free, is_blocked, _, num_after = event
    told = [num_after, *[told for _, told in channels]] if rule in "GI" else None
    return [name, answer, [entries for entries, _ in channels], free, is_blocked, told]


def _about(rule: str, op: list[Any], event: list[Any], want: list[Any], before: list[Any]) -> str:
    """The belief behind the first difference."""
    got, right = ([entries for entries, _ in each[2]] for each in (event, want))
    if event[1] != want[1] and op[0] == "take":
        return "not_closed"
    if got == right:
        if op[0] == "resume" and event[1] != want[1]:
            return "wrong_return"
        if event[4] != want[4]:
            return "not_blocked" if want[4] else "blocked_for_nothing"
        if rule in "GI" and event[6] > want[6]:
            return "announced_in_the_middle"
        if rule in "GI" and event[2:3] + event[6:] != want[2:3] + want[6:]:
            return "not_announced"
        return "not_pruned" if want[5] and not event[5] else "different"
    channel = next(n for n, (mine, theirs) in enumerate(zip(got, right, strict=True)) if mine != theirs)
    mine, theirs = got[channel], right[channel]
    data, wanted = ("".join(each).replace("|", "") for each in (mine, theirs))
    if data == wanted:
        if len(mine) > len(theirs) and not mine[-1]:
            return "opens_for_nothing"
        return (
            "not_closed"
            if len(mine) == len(theirs) and sum(map(_closed, mine)) < sum(map(_closed, theirs))
            else ("closes_too_early" if any(map(_closed, mine)) else "different")
        )
    if op[0] == "broadcast" and event[5] and not want[5]:
        return "pruned_too_early"
    earlier = "".join(before[2][channel][0]).replace("|", "") if before else ""
    if op[0] == "resume":
        return "begins_again" if len(data) > len(wanted) or not wanted.startswith(data) else "not_resumed"
    if op[0] == "take":
        return "not_closed"
    if op[0] == "emit" and channel != op[1]:
        return "wrong_channel"
    if op[0] == "broadcast" and channel and data == earlier:
        has_opened = any("".join(each) for each in got[:channel]) and mine != before[2][channel][0]
        return "no_reset" if has_opened else "not_to_all"
    if len(data) > len(wanted):
        return "copied_twice"
    return "rest_missing" if wanted.startswith(data) else "wrong_bytes"


def _closed(entry: str) -> bool:
    return entry.endswith("|")


def _queue(entries: Sequence[str]) -> str:
    shown = [_bytes(each.removesuffix("|")) + (" |" if _closed(each) else " …") for each in entries[-3:]]
    return ("… " if len(entries) > 3 else "") + "  ".join(shown) if entries else phrase("no_buffer", "5.2")


def _bytes(text: str) -> str:
    raw = bytes.fromhex(text)
    return (raw[:6].hex(" ") + f" +{len(raw) - 6}" if len(raw) > 8 else raw.hex(" ")) or phrase("empty", "5.2")


def _rows(op: list[Any], event: list[Any], want: list[Any]) -> list[Row]:
    """The queues of the channels that differ, or what else does."""
    rows = [Row(phrase("after", "5.2"), "", _call(op))]
    for number, ((mine, told), (theirs, right)) in enumerate(zip(event[2], want[2], strict=True)):
        if mine != theirs:
            rows += [
                Row(phrase("channel", "5.2", number=number), phrase("yours"), _queue(mine)),
                Row("", phrase("flink"), _queue(theirs)),
            ]
        elif told != right:
            words = [phrase("told" if each else "not_told", "5.2") for each in (told, right)]
            rows += [
                Row(phrase("channel", "5.2", number=number), phrase("yours"), words[0]),
                Row("", phrase("flink"), words[1]),
            ]
    if len(rows) == 1 and op[0] == "resume" and event[1] != want[1]:
        rows += [Row(phrase("answer", "5.2"), phrase("yours"), str(event[1])), Row("", phrase("flink"), str(want[1]))]
    if len(rows) == 1 and event[4] != want[4]:
        words = [phrase("blocked" if each else "going_on", "5.2") for each in (event[4], want[4])]
        rows += [Row(phrase("writer", "5.2"), phrase("yours"), words[0]), Row("", phrase("flink"), words[1])]
    return rows[:5]


CHECKS = {
    "5.1": SelectorCheck("5.1", KeyGroupSelector, _SELECTOR_CASES, _belief, ("G", _seeded_keys), drive_c05.run_case),
    "5.2": CopyCheck("5.2", ChannelCopy, drive_c05.run_case, _WRITER_CASES, ("I", _seeded_writing)),
}
