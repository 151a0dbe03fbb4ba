"""Exercise 18.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from course.checks import drive_calls
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.curriculum.messages import word
from refimpl.exchange.framing import to_frame
from refimpl.exchange.wire_format import WireFormat

__all__ = ["CHECK"]

_REQUEST, _CREDIT, _RESUME, _READ = "request", "add_credit", "resume", "read_response"
_MESSAGE_IDS = {_REQUEST: 2, _CREDIT: 6, _RESUME: 7}
_FIELDS = ("the receiver", "the sequence number", "the backlog", "the kind", "the compression", "the size")
_LARGEST = 2**31 - 1


def _id(first: int) -> bytes:
    return bytes((first + place) & 255 for place in range(16))


_DATA_SET, _PRODUCER, _RECEIVER = _id(0x10), _id(0x50), _id(0xA0)


def _hex(raw: bytes) -> dict[str, str]:
    return {"hex": raw.hex()}


def _request(partition: int, subpartition: int, credit: int, ids: tuple[bytes, ...] = ()) -> list[Any]:
    data_set, producer, receiver = map(_hex, ids or (_DATA_SET, _PRODUCER, _RECEIVER))
    return ["call", _REQUEST, data_set, partition, producer, subpartition, receiver, credit]


def _credit(credit: int, receiver: bytes = _RECEIVER) -> list[Any]:
    return ["call", _CREDIT, credit, _hex(receiver)]


def _resume(receiver: bytes = _RECEIVER) -> list[Any]:
    return ["call", _RESUME, _hex(receiver)]


def _read(number: int, backlog: int, kind: int, compressed: int, size: int, receiver: bytes = _RECEIVER) -> list[Any]:
    return ["call", _READ, _hex(struct.pack(">16siiBBi", receiver, number, backlog, kind, compressed, size))]


def _cases(*calls: list[Any]) -> list[list[Any]]:
    return [[["new"], call] for call in calls]


_ZEROS, _ONES, _MAGIC = bytes(16), b"\xff" * 16, bytes.fromhex("badc0ffe") * 4
_CASES: dict[str, list[list[Any]]] = {
    "A": _cases(_credit(3), _credit(258), _credit(70_000, _ZEROS), _credit(1, _ONES), _credit(_LARGEST, _MAGIC)),
    "B": _cases(_resume(), _resume(_ZEROS), _resume(_MAGIC)),
    "C": _cases(
        _request(3, 7, 2), _request(0, 0, 1), _request(258, 515, 1_029), _request(70_000, 65_536, 10),
        _request(1, 2, 3, (_ZEROS, _ONES, _MAGIC)), _request(_LARGEST, 1, _LARGEST),
    ),
    "D": _cases(
        _read(3, 5, 0, 0, 32), _read(0, 0, 1, 0, 4), _read(258, 2_561, 0, 1, 32_768), _read(1, 0, 3, 0, 30),
        _read(70_000, 1, 4, 0, 0, _ZEROS), _read(_LARGEST, 9, 0, 0, 70_001, _ONES),
    ),
    "E": _cases(_read(-2, 5, 0, 0, 32), _read(-(2**31), 1, 0, 0, 1), _read(7, -1, 0, 0, 32)),
    "F": [
        [["new"], _request(3, 7, 2), _credit(3), _resume(), _read(3, 5, 0, 0, 32), _request(4, 8, 1),
         *[["look", each] for each in (1, 2, 3, 4)]],
    ],
}  # fmt: skip


def _mixed(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 18.1 {seed}")

    def number(least: int = 0) -> int:
        return generator.choice((generator.randint(least, 300), generator.randint(least, _LARGEST)))

    for _ in range(20):
        ids = [generator.randbytes(16) for _ in range(3)]
        yield [
            ["new"], _request(number(), number(), number(), tuple(ids)), _credit(number(1), ids[0]), _resume(ids[1]),
            _read(number(-5), number(), generator.randint(0, 9), generator.randint(0, 1), number(), ids[2]),
        ]  # fmt: skip


# -- beliefs ---------------------------------------------------------------------------------------------------


def _parts(op: list[Any]) -> list[bytes | int]:
    """What a message consists of: ids and numbers, in the order in which they are given."""
    return [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each for each in op[2:]]


def _body(parts: Sequence[bytes | int], order: Literal["big", "little"] = "big", width: int = 4) -> bytes:
    return b"".join(
        each if isinstance(each, bytes) else (each & (1 << 8 * width) - 1).to_bytes(width, order) for each in parts
    )


_ORDERS: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    _REQUEST: [("credit_before_receiver", (0, 1, 2, 3, 5, 4)), ("producer_before_partition", (0, 2, 1, 3, 4, 5))],
    _CREDIT: [("receiver_first", (1, 0))],
    _RESUME: [],
}


def _in_text(part: bytes | int) -> bytes:
    return part.hex().encode() if isinstance(part, bytes) else part.to_bytes(4)


def _written_belief(call: str, parts: list[bytes | int], raw: bytes, right: bytes) -> str:
    """What is wrong with a frame."""
    frame_id, body = _MESSAGE_IDS[call], right[9:]
    if raw == body or raw == right[8:]:
        return "no_frame"
    if raw[9:] == body:
        return _header_belief(raw, right)
    bodies = [
        ("little_endian", _body(parts, "little")), ("eight_bytes", _body(parts, width=8)),
        ("two_bytes", _body(parts, width=2)), ("one_byte", _body(parts, width=1)),
        ("ids_as_text", b"".join(map(_in_text, parts))),
        *[("something_missing", _body(some)) for some in itertools.combinations(parts, len(parts) - 1)],
        *[(code, _body([parts[place] for place in places])) for code, places in _ORDERS[call]],
        *[("number_too_many", each) for each in (bytes(4) + body, body + bytes(4)) if call == _RESUME],
        *[("order", _body(list(some))) for some in itertools.permutations(parts)],
    ]  # fmt: skip
    for code, wrong in bodies:
        if wrong != body and raw == to_frame(frame_id, wrong):
            return code
    return "body_wrong" if raw[4:9] == right[4:9] else "bytes_wrong"


def _header_belief(raw: bytes, right: bytes) -> str:
    if raw[:8] == right[:8]:
        return "message_id"
    return "length_wrong" if raw[4:9] == right[4:9] else "header_wrong"


def _read_belief(got: list[list[Any]], want: list[list[Any]]) -> tuple[str, str]:
    """What is wrong with what was read, and in which field."""
    if len(got) != len(want):
        return ("reads_too_few" if len(got) < len(want) else "reads_too_many"), ""
    place = next(number for number, pair in enumerate(zip(got, want, strict=True)) if pair[0] != pair[1])
    kind, content = got[place][:2]
    if sorted(map(str, got)) == sorted(map(str, want)):
        return "reads_in_other_order", _FIELDS[place]
    if kind != want[place][0]:
        return ("reads_truth" if kind == "bool" else "reads_other_kind"), _FIELDS[place]
    if place == 0:
        return "reads_other_receiver", _FIELDS[0]
    number, right = int(content), int(want[place][1])
    if right < 0 and number == right + 2**32:
        return "reads_unsigned", _FIELDS[place]
    turned = int.from_bytes((right & (2**32 - 1)).to_bytes(4, "big"), "little")
    if place not in (3, 4) and number in (turned, turned - 2**32):
        return "reads_little_endian", _FIELDS[place]
    return "reads_other_place", _FIELDS[place]


def _belief(found: Difference) -> Belief:
    if found.op[0] == "look":
        return "overwrites_earlier"
    call = found.op[1]
    answer, right = found.answers
    kind = answer[0]
    if kind == "NoneType":
        return "returns_nothing", {"call": call}
    if call == _READ:
        if kind != "list":
            return "no_values"
        code, name = _read_belief(answer[1], right[1])
        return code, {"field": word(name, "18.1")}
    if kind != "bytes":
        return ("returns_text" if kind == "str" else "no_bytes"), {"call": call}
    code = _written_belief(call, _parts(found.op), bytes.fromhex(answer[1]), bytes.fromhex(right[1]))
    return code, {"call": call, "id": str(_MESSAGE_IDS[call])}


CHECK = TranscriptCheck("18.1", WireFormat, drive_calls, _CASES, _belief, Seeded("G", _mixed))
