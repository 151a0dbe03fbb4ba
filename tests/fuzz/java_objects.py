"""Java object streams that are nearly right: an ErrorResponse holds one, and its reader must find the end."""

from __future__ import annotations

import struct
from random import Random

__all__ = ["java_stream"]

_STREAM = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS_DESC, _OBJECT, _STRING, _ARRAY, _CLASS = b"p", b"q", b"r", b"s", b"t", b"u", b"v"
_BLOCK, _END_BLOCK, _LONG_BLOCK, _LONG_STRING, _ENUM = b"w", b"x", b"z", b"|", b"~"
_NAMELESS_CLASS = _CLASS_DESC + bytes(10) + b"\x02\x00\x00"
_TEXTS = (
    b"", b"a", b"java.lang.Error", b"detailMessage", b"cause", b"\xc0\x80", b"\xed\xa0\x80", b"\xff\xfe", b"\xe2\x82",
)  # fmt: skip
_LENGTHS = (0, 1, 2, 3, 40, 0x7FFFFFFF, -1, -(2**31))
_DEEP_ENOUGH = 5


def java_stream(rng: Random) -> bytes:
    """An exception, or what could be one up to some byte."""
    kind = rng.random()
    if kind < 0.15:
        part = rng.choice((_OBJECT, _NAMELESS_CLASS, _NAMELESS_CLASS + _END_BLOCK, _ARRAY, _CLASS, _ENUM))
        return _STREAM + part * rng.randrange(1, rng.choice((130, 400))) + _content(rng, 3)
    if kind < 0.25:
        return _STREAM + _content(rng, 0)
    return _STREAM + _object(rng, 0)


def _content(rng: Random, depth: int) -> bytes:
    kind = rng.randrange(6 if depth > _DEEP_ENOUGH else 12)
    if kind < 1:
        return _NULL
    if kind < 3:
        return _STRING + _text(rng)
    if kind < 4:
        return _reference(rng)
    if kind < 5:
        return _LONG_STRING + struct.pack(">q", rng.choice((3, 3, 0, -1, 2**62))) + b"abc"
    if kind < 6:
        return bytes((rng.randrange(0x6E, 0x80),)) if rng.random() < 0.2 else _NULL
    if kind < 7:
        return _class(rng, depth + 1)
    if kind < 8:
        name = _STRING + _text(rng) if rng.random() < 0.5 else _content(rng, depth + 1)
        return _ENUM + _class(rng, depth + 1) + name
    if kind < 9:
        return _CLASS + _class(rng, depth + 1)
    return _array(rng, depth + 1) if kind < 10 else _object(rng, depth + 1)


def _object(rng: Random, depth: int) -> bytes:
    """With values as its class wants them, more or less."""
    codes = bytes(rng.choice(b"IIIJJBBLLLL[[[?") for _ in range(rng.randrange(4)))
    has_annotations = rng.random() < 0.2
    head = _described(rng, codes, 3 if has_annotations else 2, depth) if rng.random() < 0.8 else _class(rng, depth)
    values = b"".join(_value(rng, code, depth) for code in codes)
    return _OBJECT + head + values + (_annotations(rng, depth) if has_annotations else b"")


def _value(rng: Random, code: int, depth: int) -> bytes:
    size = {ord("I"): 4, ord("J"): 8, ord("B"): 1}.get(code)
    return _content(rng, depth + 1) if size is None else rng.randbytes(size)


def _array(rng: Random, depth: int) -> bytes:
    code = rng.choice(b"IBL[")
    length = rng.randrange(4)
    values = b"".join(_value(rng, code, depth) for _ in range(length))
    announced = length if rng.random() < 0.8 else rng.choice(_LENGTHS)
    return _ARRAY + _described(rng, b"", 2, depth, b"[" + bytes((code,))) + struct.pack(">i", announced) + values


def _class(rng: Random, depth: int) -> bytes:
    kind = rng.random()
    if kind < 0.3 or depth > _DEEP_ENOUGH:
        return _NULL if rng.random() < 0.3 else _reference(rng)
    if kind < 0.4:
        return _content(rng, depth + 1)
    codes = bytes(rng.choice(b"BCDFIJSZ[L?") for _ in range(rng.randrange(3)))
    return _described(rng, codes, rng.choice((2, 2, 3, 4, 0, 12, rng.randrange(256))), depth)


def _described(rng: Random, codes: bytes, flags: int, depth: int, name: bytes = b"") -> bytes:
    """A class description: name, version, flags, fields, annotations, and the class above it."""
    head = _CLASS_DESC + (struct.pack(">H", len(name)) + name if name else _text(rng)) + bytes(8)
    fields = b""
    for code in codes:
        fields += bytes((code,)) + _text(rng)
        if code in b"[L":
            fields += _STRING + b"\x00\x01L" if rng.random() < 0.8 else _content(rng, depth + 1)
    above = rng.choice((_NULL, _NULL, _NULL, _reference(rng))) if rng.random() < 0.8 else _class(rng, depth + 1)
    return head + struct.pack(">BH", flags, len(codes)) + fields + _annotations(rng, depth) + above


def _annotations(rng: Random, depth: int) -> bytes:
    blocks = (_BLOCK + b"\x02ab", _LONG_BLOCK + b"\x00\x00\x00\x01a", _LONG_BLOCK + b"\xff" * 4)
    found = rng.choice(blocks) if rng.random() < 0.3 else b""
    return found + (_content(rng, depth + 1) if rng.random() < 0.1 else b"") + _END_BLOCK


def _reference(rng: Random) -> bytes:
    return _REFERENCE + struct.pack(">i", 0x7E0000 + rng.choice((0, 0, 1, 2, 3, 5, 8, -1)))


def _text(rng: Random) -> bytes:
    text = rng.choice(_TEXTS)
    return struct.pack(">H", len(text) if rng.random() < 0.98 else rng.randrange(0x10000)) + text
