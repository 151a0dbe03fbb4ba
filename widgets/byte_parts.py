"""What bytes mean: the parts of records, or the numbers somebody says are there.

A part is `{"kind", "start_byte", "num_bytes", "words"}`. Bytes after the last part mean nothing that is known.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from refimpl.errors import LocalUsageError
from refimpl.memory import ByteOrder
from refimpl.records import LENGTH_BYTES
from widgets.base import what_was_meant
from widgets.view_models import Model

__all__ = ["KINDS", "TypeNames", "hex_rows", "kind_of_each_byte", "parts_of_record_bytes", "parts_of_types"]

KINDS = {
    "absent": "not there",
    "free": "not written",
    "plain": "a byte",
    "partial": "rest of a record",
    "length": "length",
    "tag": "kind of element",
    "time": "event time",
    "value": "value",
    "other": "next value",
    "event": "event",
}
"""Every kind of byte, and what it is called."""

TypeNames = Mapping[int, str] | str

_TAGS = {0: "record with a time", 1: "record", 2: "watermark", 3: "latency marker", 4: "stream status"}
_TIMED = (0, 2, 3)
_TIME_BYTES = 8
_CODES = {"byte": "b", "short": "h", "int": "i", "long": "q", "double": "d"}
_ORDERS = {"big": ByteOrder.BIG_ENDIAN, "little": ByteOrder.LITTLE_ENDIAN}
_RECORDS, _ELEMENTS = "records", "elements"


def parts_of_record_bytes(data: bytes, partial_bytes: int, *, has_tags: bool = True) -> list[Model]:
    """The parts of records in `data`, of which the first `partial_bytes` end a record; -1: all that is known.

    With `has_tags` a payload is an element of a stream, else whatever it is.
    """
    if partial_bytes < 0 or partial_bytes > len(data):
        return [_part("partial", 0, len(data), "goes on with a record that began before")] if data else []
    parts = [_part("partial", 0, partial_bytes, "end of a record that began before")] if partial_bytes else []
    at, number = partial_bytes, 0
    while at < len(data):
        head = data[at : at + LENGTH_BYTES]
        length = int.from_bytes(head, "big")
        is_whole = len(head) == LENGTH_BYTES
        parts.append(_part("length", at, len(head), f"length {length}" if is_whole else "length, cut"))
        at += len(head)
        if not is_whole:
            break
        payload = data[at : at + length]
        parts += _payload(payload, length, at, number, has_tags)
        at += len(payload)
        number += 1
    return parts


def _payload(payload: bytes, length: int, at: int, number: int, has_tags: bool) -> list[Model]:
    """The parts of one payload of `length` bytes, of which `payload` is here, at byte `at`."""
    parts, used = [], 0
    if has_tags and payload:
        parts.append(_part("tag", at, 1, _TAGS.get(payload[0], f"tag {payload[0]}")))
        used = 1
        if payload[0] in _TIMED and len(payload) > 1:
            time = payload[1 : 1 + _TIME_BYTES]
            is_whole = len(time) == _TIME_BYTES
            words = f"time {int.from_bytes(time, 'big', signed=True)} ms" if is_whole else "time, cut"
            parts.append(_part("time", at + 1, len(time), words))
            used += len(time)
    if len(payload) > used:
        words = f"value of {length - used} B" + (", cut" if len(payload) < length else "")
        parts.append(_part("other" if number % 2 else "value", at + used, len(payload) - used, words))
    return parts


def parts_of_types(types: TypeNames | None, data: bytes) -> list[Model]:
    """The parts that `types` says are there: `{0: "int", 4: "long big", 12: "text 5"}`, "records" or "elements".

    Numbers stand in the machine's own order, as `MemorySegment` writes them, unless `big` or `little` is said.

    Raises:
        LocalUsageError: there is no such type, or it does not fit where it is said to be.
    """
    if types is None:
        return []
    if isinstance(types, str):
        if types not in (_RECORDS, _ELEMENTS):
            raise LocalUsageError(_no_type(types, [_RECORDS, _ELEMENTS]))
        return parts_of_record_bytes(data, 0, has_tags=types == _ELEMENTS)
    if not isinstance(types, Mapping) or not all(isinstance(each, int) for each in types):
        raise LocalUsageError(f'types={types!r} cannot work: {{0: "int", 4: "text 5"}}, "records" or "elements"')
    parts = []
    for number, (at, name) in enumerate(sorted(types.items())):
        length, words = _typed(name, data, at)
        parts.append(_part("other" if number % 2 else "value", at, length, words))
    return parts


def _typed(name: str, data: bytes, at: int) -> tuple[int, str]:
    """How many bytes something takes, and what it is."""
    word, _, rest = name.partition(" ") if isinstance(name, str) else (name, "", "")
    if word == "text" and rest.isdigit():
        return int(rest), f"text {_within(name, data, at, int(rest)).decode('utf-8', 'replace')!r}"
    order = _ORDERS.get(rest, None if rest else ByteOrder.NATIVE)
    if word not in _CODES or order is None:
        raise LocalUsageError(_no_type(name, [*_CODES, *(f"{each} big" for each in _CODES), "text 5"]))
    layout = struct.Struct(order.value + _CODES[word])
    value = layout.unpack(_within(name, data, at, layout.size))[0]
    return layout.size, f"{name} {value}"


def _within(name: str, data: bytes, at: int, length: int) -> bytes:
    if isinstance(at, bool) or not isinstance(at, int) or at < 0 or at + length > len(data):
        raise LocalUsageError(f"{name!r} at byte {at} does not fit: there are {len(data)} bytes")
    return data[at : at + length]


def _no_type(name: str, known: Sequence[str]) -> str:
    meant = what_was_meant(name, known)
    return f"no type {name!r}{meant} Types: {', '.join(_CODES)}, each also with ' big' or ' little', and 'text N'"


def _part(kind: str, start: int, length: int, words: str) -> Model:
    return {"kind": kind, "start_byte": start, "num_bytes": length, "words": words}


def kind_of_each_byte(parts: Sequence[Model], num_bytes: int, written: int) -> list[str]:
    """For each of the first `num_bytes` its kind; from `written` on there is nothing."""
    kinds = ["plain"] * num_bytes
    for part in parts:
        for place in range(part["start_byte"], min(num_bytes, part["start_byte"] + part["num_bytes"])):
            kinds[place] = part["kind"]
    return [kind if place < written else "free" for place, kind in enumerate(kinds)]


def hex_rows(data: bytes, kinds: Sequence[str], start: int = 0, per_row: int = 16) -> list[str]:
    """Bytes in rows with their offset before them, lengths in brackets, what is not written as dots."""
    rows = []
    for first in range(0, len(data), per_row):
        words = ""
        for place in range(first, min(len(data), first + per_row)):
            is_length = kinds[place] == "length"
            opens = is_length and (place == first or kinds[place - 1] != "length")
            last = place + 1 == min(len(data), first + per_row)
            closes = is_length and (last or kinds[place + 1] != "length")
            value = ".." if kinds[place] == "free" else f"{data[place]:02x}"
            words += f"{' ' if place > first else ''}{'[' if opens else ''}{value}{']' if closes else ''}"
        rows.append(f"{start + first:>6}  {words}")
    return rows
