"""Exercise 5.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_writer
from course.checks.common import letters
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import Words, pair
from course.curriculum.messages import phrase
from course.grading.rules import Finding, Row
from refimpl.producer.channel_copy import ChannelCopy

__all__ = ["CHECK"]

_MOST_CHANNELS = 2


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


_SEEN = ("answer", "queues", "free", "blocked")
_LOOKS_AT = {
    **dict.fromkeys("ABCDEF", _SEEN), "G": (*_SEEN, "told", "after"), "H": (*_SEEN, "pruned"),
    "I": (*_SEEN, "told", "after", "pruned"),
}  # fmt: skip
"""Announcements are for G and I, and what is kept for H and I; the rest is for all."""


class CopyCheck(TranscriptCheck):
    """The check of 5.2: to prune more often does no harm."""

    def agree(self, name: str, got: Any, want: Any) -> bool:
        return super().agree(name, got, want) or (name == "pruned" and not want)


def _ending(found: Finding, op: Sequence[Any]) -> Finding:
    is_of_serializer = found.values["error"] == "LocalUsageError" and found.line is None
    return dataclasses.replace(found, code="reset_at_the_end") if is_of_serializer and op[0] != "writer" else found


def _about(found: Difference) -> str:
    """The belief behind the first difference."""
    rule, op, event, want = found.rule, found.op, found.got, found.want
    got, right = event["queues"], want["queues"]
    is_kept = want["pruned"] and not event["pruned"]
    if event["answer"] != want["answer"] and op[0] == "take":
        return "not_closed"
    if got == right:
        if op[0] == "resume" and event["answer"] != want["answer"]:
            return "wrong_return"
        if event["blocked"] != want["blocked"]:
            return "not_blocked" if want["blocked"] else "blocked_for_nothing"
        if rule in "GI" and event["after"] > want["after"]:
            return "announced_in_the_middle"
        if rule in "GI" and (event["told"], event["after"]) != (want["told"], want["after"]):
            return "not_announced"
        return "not_pruned" if is_kept else "different"
    channel = next(n for n, (mine, theirs) in enumerate(zip(got, right, strict=True)) if mine != theirs)
    mine, theirs = got[channel], right[channel]
    data, wanted = ("".join(each).replace("|", "") for each in (mine, theirs))
    if data == wanted:
        return _about_edges(mine, theirs)
    if op[0] == "broadcast" and event["pruned"] and not want["pruned"]:
        return "pruned_too_early"
    if op[0] == "emit" and rule == "B" and event["pruned"] and len(mine) > 1 and not mine[-1]:
        return "pruned_in_the_loop"
    if op[0] == "resume":
        return "begins_again" if len(data) > len(wanted) or not wanted.startswith(data) else "not_resumed"
    if op[0] == "take":
        return "not_closed"
    if op[0] == "emit" and channel != op[1]:
        return "wrong_channel"
    earlier = found.was["queues"][channel] if found.was else []
    if op[0] == "broadcast" and channel and data == "".join(earlier).replace("|", ""):
        has_opened = any("".join(each) for each in got[:channel]) and mine != earlier
        return "no_reset" if has_opened else "not_to_all"
    if len(data) > len(wanted):
        return "copied_twice"
    return "rest_missing" if wanted.startswith(data) else "wrong_bytes"


def _about_edges(mine: Sequence[str], theirs: Sequence[str]) -> str:
    """The bytes of a queue are right, and the buffers they are in are not."""
    if len(mine) > len(theirs) and not mine[-1]:
        return "opens_for_nothing"
    num_closed, right = (sum(map(_closed, each)) for each in (mine, theirs))
    if len(mine) == len(theirs) and num_closed < right:
        return "not_closed"
    return "closes_too_early" if num_closed else "different"


def _closed(entry: str) -> bool:
    return entry.endswith("|")


def _queue(entries: Sequence[str]) -> str:
    shown = [_bytes(each.removesuffix("|")) + (" |" if _closed(each) else " …") for each in entries[-3:]]
    return ("… " if len(entries) > 3 else "") + "  ".join(shown) if entries else phrase("no_buffer", "5.2")


def _bytes(text: str) -> str:
    raw = bytes.fromhex(text)
    return (raw[:6].hex(" ") + f" +{len(raw) - 6}" if len(raw) > 8 else raw.hex(" ")) or phrase("empty", "5.2")


class _Words(Words):
    """The queues of all channels."""

    def call(self, _event: Sequence[Any]) -> str:
        return "copy_to_channels"

    def told(self, ops: Sequence[Any]) -> str:
        (_, channels, segment, buffers, _), *rest = ops
        told = ", ".join(_call(op) for op in rest[:6]) + (", …" if len(rest) > 6 else "")
        return phrase("ran", "5.2", channels=channels, segment=segment, buffers=buffers, ops=told)

    def tell(self, event: Sequence[Any]) -> str:
        return f"{event[0]}  " + "   ".join(f"{n}: {_queue(entries)}" for n, entries in enumerate(event[1]["queues"]))

    def rows(self, found: Difference) -> list[Row]:
        """The queues of the channels that differ, or what else does."""
        got, want = found.got, found.want
        rows = []
        sides = (zip(each["queues"], each["told"], strict=True) for each in (got, want))
        for number, ((mine, told), (theirs, right)) in enumerate(zip(*sides, strict=True)):
            label = phrase("channel", "5.2", number=number)
            if mine != theirs:
                rows += pair(label, _queue(mine), _queue(theirs))
            elif told != right:
                rows += pair(label, *(phrase("told" if each else "not_told", "5.2") for each in (told, right)))
        if not rows and found.op[0] == "resume" and got["answer"] != want["answer"]:
            rows += pair(phrase("answer", "5.2"), str(got["answer"]), str(want["answer"]))
        if not rows and got["blocked"] != want["blocked"]:
            words = (phrase("blocked" if each["blocked"] else "going_on", "5.2") for each in (got, want))
            rows += pair(phrase("writer", "5.2"), *words)
        return [Row(phrase("after", "5.2"), "", _call(found.op)), *rows[: 2 * _MOST_CHANNELS]]


CHECK = CopyCheck(
    "5.2", ChannelCopy, drive_writer, _WRITER_CASES, _about, Seeded("I", _seeded_writing, setup="writer"), _LOOKS_AT,
    _Words("5.2"), _ending,
)  # fmt: skip
