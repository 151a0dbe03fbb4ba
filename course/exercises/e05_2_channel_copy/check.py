"""Exercise 5.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_writer
from course.checks.common import ending_finding, letters
from course.checks.driven import DrivenCheck
from course.curriculum.messages import phrase
from course.grading.rules import Case, Finding, Row, Rule, Seen
from refimpl.producer.channel_copy import ChannelCopy

__all__ = ["CHECK"]


def _data(length: int, start: int = 0x61) -> str:
    return letters(length, start).hex()


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
          _ops(2, 7, 20, _TWO, _emit(0, 30), _emit(1, 2)), _ops(1, 16, 1500, _emit(0, 20_000))],
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
    if op[0] == "emit" and rule == "B" and event[5] and len(mine) > 1 and not mine[-1]:
        return "pruned_in_the_loop"
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


CHECK = CopyCheck("5.2", ChannelCopy, drive_writer.run_case, _WRITER_CASES, ("I", _seeded_writing))
