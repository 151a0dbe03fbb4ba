"""From the first differing answer to the misconception behind it.

Each belief predicts a record or a result; the first belief whose prediction is what was seen names the message.
The order matters: specific beliefs stand before general ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from course.checks.hexdump import raw_start

__all__ = ["diagnose"]

_PARTIAL, _MORE, _LAST = "PARTIAL_RECORD", "INTERMEDIATE_RECORD_FROM_BUFFER", "LAST_RECORD_FROM_BUFFER"
_RESULTS = {
    (_LAST, _MORE): "last_called_more",
    (_LAST, _PARTIAL): "record_called_partial",
    (_MORE, _PARTIAL): "record_called_partial",
    (_MORE, _LAST): "more_called_last",
    (_PARTIAL, _LAST): "partial_called_last",
    (_PARTIAL, _MORE): "partial_called_more",
}
_BACK = {"nothing": "buffer_kept", "another": "other_buffer", "retained": "buffer_retained",
         "recycled": "recycled_by_itself"}  # fmt: skip


class _Step(Protocol):
    op: str
    want: Mapping[str, Any]
    piece: bytes
    begun: bytes
    rest: bytes
    index: int
    came_before: list[bytes]
    others: list[bytes]

    @property
    def is_joined(self) -> bool: ...

    @property
    def follows_joined(self) -> bool: ...


def diagnose(step: _Step, seen: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The code of the message and the values its text needs."""
    if step.op != "get":
        given = str(seen.get("buffer"))
        return ("given_twice" if step.op == "again" else _BACK.get(given, "different")), {"got": given}
    result, shown, flags = str(seen["result"]), seen["record"], seen["flags"]
    values = {
        "got": result.removeprefix("?").removeprefix("alone "), "want": str(step.want["result"]),
        "left": str(len(step.rest)), "begun": str(len(step.begun)),
        "here": str(min(len(step.rest), 4)), "kind": str(shown or "").removeprefix("?"),
        "little": f"{int.from_bytes(step.rest[:4], 'little'):,}", "missing": str(max(0, 4 - len(step.begun))),
    }  # fmt: skip
    if flags:
        return "shared_by_all" if flags == "changed" else "recycled_by_itself", values
    if result.startswith("?"):
        kinds = {"?None": "returns_nothing", "?turned": "pair_turned"}
        return kinds.get(result, "returns_one" if result.startswith("?alone") else "other_result"), values
    if isinstance(shown, str) and shown.startswith("?"):
        return "other_record", values
    if shown != step.want["record"]:
        return _about_record(step, shown, step.want["record"]), values
    if (step.want["result"], result) == (_MORE, _LAST) and step.is_joined:
        return "rest_called_last", values
    return _RESULTS.get((step.want["result"], result), "different"), values


def _about_record(step: _Step, shown: str | None, right: str | None) -> str:
    if shown is None:
        assert right is not None, "the two differ"
        return _missed(step, raw_start(right))
    got, length = raw_start(shown)
    if right is None:
        return _too_early(step, got, length)
    return _other(step, (got, length), raw_start(right))


def _missed(step: _Step, right: tuple[bytes, int]) -> str:
    """There was a record, and the answer was that there is none."""
    length = right[1]
    if step.follows_joined:
        return "rest_dropped"
    if step.is_joined:
        return "begun_length_lost" if len(step.begun) < 4 else "begun_record_lost"
    if not length:
        return "empty_skipped"
    if step.index:
        return "second_not_read"
    if 4 + length == len(step.rest):
        return "end_of_buffer_waits"
    return "little_endian" if int.from_bytes(step.rest[:4], "little") > len(step.rest) else "not_found"


def _too_early(step: _Step, got: bytes, length: int) -> str:
    """There was no whole record, and the answer was one."""
    at_hand = step.begun + step.rest
    if b"\xee" in got and b"\xee" not in at_hand:
        return "beyond_the_window"
    if len(at_hand) < 4:
        return "length_from_pieces"
    if not length:
        return "empty_made_up"
    if step.is_joined:
        return "two_pieces_at_most"
    if any(at_hand[start : start + 24] == got[:24] and length == len(at_hand) - start for start in range(len(at_hand))):
        return "piece_handed_out"
    return "made_up"


def _other(step: _Step, given: tuple[bytes, int], right: tuple[bytes, int]) -> str:
    (got, length), (want, want_length) = given, right
    at_hand = step.begun + step.rest
    if b"\xdd" in got and b"\xdd" not in want:
        return "view_kept"
    if b"\xee" in got and b"\xee" not in want:
        return "beyond_the_window"
    if got[:24] == at_hand[: min(24, length)] and length == want_length + 4:
        return "length_in_record"
    if any(got == each[: len(got)] and length == len(each) for each in step.others):
        return "shared_by_all"
    if length == want_length + 4 and got[:24] == at_hand[4 : 4 + min(24, length)]:
        return "length_counts_less"
    if length == want_length - 4 and want[:20].startswith(got[:20]):
        return "length_counts_itself"
    if got in step.came_before:
        return "old_record"
    if step.is_joined:
        return _badly_joined(step, got, length, want, want_length)
    return "bytes_left_out" if length < want_length and got in want else "record_wrong"


def _badly_joined(step: _Step, got: bytes, length: int, want: bytes, want_length: int) -> str:
    if len(step.begun) < 4:
        return "length_joined_wrong"
    first = step.begun[4:]
    if length == want_length - len(first) and want[len(first) :].startswith(got[:12]):
        return "first_piece_lost"
    if length > want_length and want[:24] == got[: len(want[:24])]:
        return "takes_too_much"
    if length < want_length and want.startswith(got[:24]):
        return "last_piece_lost"
    if length == want_length and sorted(got) == sorted(want):
        return "pieces_in_wrong_order"
    return "badly_joined"
