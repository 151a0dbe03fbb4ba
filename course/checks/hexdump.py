"""Bytes as a learner reads them: pairs of hex digits, ten at a time, around the place that matters.

Texts of bytes are those the drivers write: plain hex, or "sha256:digest:length:first bytes".
"""

from __future__ import annotations

from course.curriculum.messages import phrase

__all__ = ["first_difference", "hex_row", "raw_start"]

_WIDTH = 9
_BEFORE = 6


def raw_start(shown: str) -> tuple[bytes, int]:
    """The bytes that are known (all of them, or the first 24), and the whole length."""
    if shown.startswith("sha256:"):
        _, _, length, start = shown.split(":")
        return bytes.fromhex(start), int(length)
    raw = bytes.fromhex(shown)
    return raw, len(raw)


def first_difference(yours: str, flink: str) -> int | None:
    """Index of the first byte that differs or is missing on one side; None if all are equal."""
    if yours == flink:
        return None
    (left, left_length), (right, right_length) = raw_start(yours), raw_start(flink)
    for index in range(min(len(left), len(right))):
        if left[index] != right[index]:
            return index
    return min(len(left), len(right)) if left_length != right_length else None


def hex_row(shown: str, around: int) -> str:
    """At most nine bytes around index `around`; cut ends are marked with dots."""
    raw, length = raw_start(shown)
    if not length:
        return f"({phrase('nothing')})"
    start = max(0, around - _BEFORE)
    part = raw[start : start + _WIDTH]
    more = "…" if start + len(part) < length else ""
    return (("… " if start else "") + part.hex(" ") + more) if part else f"({phrase('bytes', number=length)})"
