"""From the first differing copy to the misconception behind it.

Each belief predicts bytes or an answer; the first belief whose prediction is what was seen names
the message. The order matters: specific beliefs stand before general ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from course.checks.hexdump import raw_start

__all__ = ["diagnose"]

_PARTIAL, _EDGE, _DONE = "PARTIAL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD"
_ANSWERS = {
    (_DONE, _PARTIAL): "room_called_partial",
    (_DONE, _EDGE): "room_called_full",
    (_EDGE, _PARTIAL): "edge_called_partial",
    (_EDGE, _DONE): "edge_called_done",
    (_PARTIAL, _DONE): "unfinished_called_done",
    (_PARTIAL, _EDGE): "unfinished_called_edge",
}


class _Step(Protocol):
    op: str
    want: Mapping[str, Any]
    record: bytes
    sent: int
    capacity: int
    used: int
    earlier: bytes
    was_reset: bool
    was_pruned: bool
    was_asked: bool

    @property
    def room(self) -> int: ...


def diagnose(step: _Step, seen: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The code of the message and the values its text needs."""
    if step.op == "revive":
        return "prune_keeps_record", {}
    if step.op != "copy":
        return "different", {"got": step.op}
    result, shown, uncommitted, flags = (seen[each] for each in ("result", "bytes", "uncommitted", "flags"))
    got, length = raw_start(shown)
    want, want_length = raw_start(step.want["bytes"])
    values = {
        "got": str(result).removeprefix("?"), "want": str(step.want["result"]), "room": str(step.room),
        "left": str(len(step.record) - step.sent), "uncommitted": str(uncommitted), "sent": str(step.sent),
        "size": f"{max(0, len(step.record) - 4):,}",
    }  # fmt: skip
    if str(result).startswith("?"):
        return ("returns_none" if result == "?None" else "returns_other"), values
    if flags:
        return flags, values
    if uncommitted and length < want_length:
        return ("commit_forgotten" if not length else "commit_too_early"), values
    if shown != step.want["bytes"]:
        return _about_bytes(step, got, length, want, want_length), values
    if not want_length and step.sent == len(step.record) and step.want["result"] == _EDGE:
        return "full_and_nothing_left", values
    if step.used and result == _as_if_empty(step):
        return "assumes_empty", values
    return _ANSWERS.get((step.want["result"], result), "different"), values


def _as_if_empty(step: _Step) -> str:
    """The answer of somebody who takes the builder's capacity for its room."""
    left = len(step.record) - step.sent
    if left > step.capacity:
        return _PARTIAL
    return _EDGE if left == step.capacity else _DONE


def _about_bytes(step: _Step, got: bytes, length: int, want: bytes, want_length: int) -> str:
    left = step.record[step.sent : step.sent + 64]
    if not step.record or step.sent >= len(step.record):
        return _nothing_pending(step, got)
    if step.earlier and length and got[:1] != want[:1] and _starts(got, step.earlier):
        return "old_record"
    if step.sent == 0:
        return _start_of_record(step, got, length, want, want_length)
    if not length:
        return "rest_dropped" if step.room else "different"
    if step.sent < 4:
        return _inside_header(step, got)
    if _starts(got, step.record[:4] + step.record[step.sent :][:60], at_least=5):
        return "header_again"
    remaining = len(step.record) - step.sent
    if _starts(got, remaining.to_bytes(4, "big") + left, at_least=4):
        return "length_of_the_rest"
    if _starts(got, step.record[:64], at_least=1):
        return "record_restarts"
    if _starts(got, step.record[4:68]):
        return "payload_restarts"
    if length < want_length and want.startswith(got):
        return "stops_short"
    if length > want_length and got.startswith(want):
        return "too_much"
    return "wrong_place"


def _starts(got: bytes, belief: bytes, at_least: int = 1) -> bool:
    """Whether the bytes are the beginning of what a belief predicts."""
    common = min(len(got), len(belief), 24)
    return common >= at_least and got[:common] == belief[:common]


def _nothing_pending(step: _Step, got: bytes) -> str:
    if not any(got):
        return "empty_header"
    return "prune_keeps_pending" if step.was_pruned else "sends_again"


def _start_of_record(step: _Step, got: bytes, length: int, want: bytes, want_length: int) -> str:
    payload, size = step.record[4:68], len(step.record) - 4
    if not length:
        if step.was_reset:
            return "reset_clears"
        if not size:
            return "empty_record_skipped"
        return "header_postponed" if step.room < 4 else "nothing_written"
    if step.was_reset:
        return "reset_forgets_header" if _starts(got, payload) else "reset_wrong_place"
    if step.was_asked and any(_starts(got, step.record[k : k + 64]) for k in range(1, min(9, len(step.record)))):
        return "wrong_place"
    for code, header in _headers(size):
        belief = header + payload
        predicted = min(step.room, len(header) + size)
        # A belief that predicts right bytes here explains nothing.
        if length == predicted and belief[: len(want)] != want and _starts(got, belief):
            return code
    if 0 < length < want_length and want.startswith(got):
        return "stops_short"
    if length > want_length and got.startswith(want):
        return "too_much"
    if (of_the_whole := _whole_record(step.record, got, length, step.room)) is not None:
        return of_the_whole
    if got[4:] == want[4:]:
        return "length_of_this_buffer" if int.from_bytes(got[:4], "big") == length - 4 else "length_wrong"
    if got[:4] == want[:4]:
        return "payload_wrong"
    return "bytes_wrong"


def _whole_record(record: bytes, got: bytes, length: int, room: int) -> str | None:
    """A belief about the record as a whole; None if there is none."""
    header, payload = record[:4], record[4:]
    for code, belief in (("length_behind", payload + header), ("payload_reversed", header + payload[::-1])):
        if belief != record and length == min(room, len(belief)) and _starts(got, belief[:64]):
            return code
    claimed = int.from_bytes(got[:4], "big")
    if 4 <= length == min(room, 4 + claimed) and claimed < len(payload) and payload[:60].startswith(got[4:64]):
        return "record_shortened"
    return None


def _inside_header(step: _Step, got: bytes) -> str:
    if _starts(got, step.record[:64], at_least=1) and not _starts(got, step.record[step.sent : step.sent + 64]):
        return "header_not_split"
    if _starts(got, step.record[4:68]):
        return "header_rest_dropped"
    return "header_wrong_place"


def _headers(size: int) -> list[tuple[str, bytes]]:
    """What somebody might put in front of a payload of `size` bytes, and the belief behind it."""
    return [
        ("little_endian", size.to_bytes(4, "little")),
        ("length_counts_header", (size + 4).to_bytes(4, "big")),
        ("length_in_bits", (8 * size).to_bytes(5, "big")[1:]),
        ("length_missing", b""),
        ("length_truncated", (size & 0xFFFF).to_bytes(4, "big")),
        ("length_truncated", (size & 0xFFFFFF).to_bytes(4, "big")),
        ("length_truncated", (size & 0xFF).to_bytes(4, "big")),
        ("length_two_bytes", (size & 0xFFFF).to_bytes(2, "big")),
        ("length_two_bytes", (size & 0xFFFF).to_bytes(2, "little")),
        ("length_other_width", bytes([size & 0xFF])),
        ("length_other_width", (size & 0xFFFFFF).to_bytes(3, "big")),
        ("length_other_width", size.to_bytes(8, "big")),
        ("length_as_text", str(size).encode()),
        ("length_as_text", str(size).zfill(4).encode()),
    ]
