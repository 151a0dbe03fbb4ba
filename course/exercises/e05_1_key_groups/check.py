"""Exercise 5.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_writer
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import CallWords
from course.curriculum.messages import phrase
from refimpl.producer.key_groups import java_hash_code, murmur_hash
from refimpl.producer.selector import KeyGroupSelector
from refimpl.records.types import INT

__all__ = ["CHECK"]


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
        _keys(22, 22, *range(16)),
        _keys(720, 45, 619, 620, 1657, 2013),
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


def _belief(found: Difference) -> Belief:
    """What is no whole number; a channel is named by all answers of its case, see `_named`."""
    kind, content = found.answers[0]
    code = {"NoneType": "returns_nothing", "float": "a_fraction"}.get(kind, "no_number")
    if kind == "int":
        code = _named(found.rule, int(content), found.every_op, found.events)
    return code, {"key": _key(found)}


def _key(found: Difference) -> str:
    key = repr(drive_writer.key_of(found.op[2]))
    return key if len(key) <= 16 else f"{key[:15]}…"


def _named(rule: str, got: int, ops: Sequence[Any], events: Sequence[Any]) -> str:
    """The belief that fits every answer of a case; if none does, what can be seen."""
    _, groups, channels, key_type = ops[0]
    keys = [drive_writer.key_of(op[2]) for op in ops[1:]]
    given = [event[1]["answer"] for event in events[1:] if len(event) > 1]
    answers = [int(content) if kind == "int" else None for kind, content in given]
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
        ("fraction_first", int(group / groups * channels)),
    ]


def _with_larger_first(group: int, groups: int, channels: int) -> int:
    """Whose group it is if the first channels had one more than the others."""
    width, num_larger = divmod(groups, channels)
    in_larger = num_larger * (width + 1)
    return group // (width + 1) if group < in_larger else num_larger + (group - in_larger) // width


class _Words(CallWords):
    """A selector is made for each case, and asked key by key."""

    def told(self, ops: Sequence[Any]) -> str:
        _, groups, channels, key_type = ops[0]
        keys = ", ".join(repr(drive_writer.key_of(op[2])) for op in ops[1:6]) + (", …" if len(ops) > 6 else "")
        words = phrase("asked", "5.1", keys=keys, groups=groups, channels=channels)
        return words + (phrase("as_int", "5.1") if key_type else "")

    def label(self, found: Difference) -> str:
        return phrase("answer", "5.1", asked=_key(found))[:13]


CHECK = TranscriptCheck(
    "5.1", KeyGroupSelector, drive_writer, _SELECTOR_CASES, _belief, Seeded("G", _seeded_keys), words=_Words("5.1")
)
