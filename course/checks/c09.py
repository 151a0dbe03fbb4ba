"""Lesson 9, remote channels: a frame, frames out of a stream of bytes, and the numbers of a channel's buffers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks import drive_c09, drive_calls
from course.checks.calls import CallsCheck
from course.checks.calls import Difference as CallDifference
from course.checks.drive_c09 import MAX_FRAME_BYTES, frame
from course.checks.scripts import Difference, ScriptCheck
from refimpl.consumer.sequence import SequenceNumbers
from refimpl.exchange.framing import to_frame
from refimpl.exchange.request_decoder import RequestDecoder

__all__ = ["CHECKS"]

# -- 9.1: a frame --------------------------------------------------------------------------------------


def _bytes(length: int, start: int = 0x61) -> bytes:
    return bytes((start + 7 * i) & 255 for i in range(length))


def _framed(*messages: tuple[int, bytes]) -> list[list[Any]]:
    return [[["call", "", frame_id, {"hex": body.hex()}]] for frame_id, body in messages]


_FRAMES = {
    "A": _framed((6, b"hi"), (2, b"hello"), (4, _bytes(16))),
    "B": _framed((5, b""), (7, b"")),
    "C": [
        *_framed((6, _bytes(20)), (3, _bytes(247)), (0, _bytes(248)), (1, _bytes(300, 3)), (0, b"\0\1\2")),
        *_framed((3, _bytes(2**15)), (2, _bytes(2**16 - 10)), (1, _bytes(70_000)), (7, _bytes(2**16 - 9))),
        [*_framed((6, b"hi"))[0], *_framed((2, b"hello"))[0], ["look", 1]],
        [*_framed((6, _bytes(300)))[0], *_framed((2, _bytes(4, 9)))[0], ["look", 1], ["look", 2]],
    ],
}


def _mixed_frames(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 9.1 {seed}")
    for _ in range(20):
        body = generator.randbytes(generator.randint(0, 400))
        yield [["call", "", generator.randint(0, 11), {"hex": body.hex()}]]


def _frame_belief(found: CallDifference) -> str:
    if not found.arguments:
        return "overwrites_earlier"
    frame_id, body = found.arguments[0], bytes.fromhex(found.arguments[1]["hex"])
    kind = found.got[0]
    if kind == "NoneType":
        return "returns_nothing"
    if kind != "bytes":
        return "returns_text" if kind == "str" else "no_bytes"
    size = len(body)
    length, magic, one = (9 + size).to_bytes(4, "big"), bytes.fromhex("badc0ffe"), bytes([frame_id])
    beliefs = [
        ("length_of_body", size.to_bytes(4, "big") + magic + one + body),
        ("length_without_itself", (5 + size).to_bytes(4, "big") + magic + one + body),
        ("length_and_body", (4 + size).to_bytes(4, "big") + magic + one + body),
        ("length_without_id", (8 + size).to_bytes(4, "big") + magic + one + body),
        ("length_of_header", (9).to_bytes(4, "big") + magic + one + body),
        ("length_turned", length[::-1] + magic + one + body),
        ("all_turned", length[::-1] + magic[::-1] + one + body),
        ("magic_turned", length + magic[::-1] + one + body),
        ("magic_as_text", length + b"BADC0FFE" + one + body),
        ("magic_missing", length + one + body), ("magic_missing", (5 + size).to_bytes(4, "big") + one + body),
        ("id_before_magic", length + one + magic + body), ("magic_first", magic + length + one + body),
        ("id_too_wide", length + magic + bytes(3) + one + body),
        ("id_too_wide", (12 + size).to_bytes(4, "big") + magic + bytes(3) + one + body),
        ("id_as_text", length + magic + str(frame_id).encode() + body), ("id_missing", length + magic + body),
        ("body_missing", length + magic + one), ("header_behind", body + length + magic + one),
        ("length_two_bytes", length[2:] + magic + one + body),
        ("length_two_bytes", (7 + size & 0xFFFF).to_bytes(2, "big") + magic + one + body),
        ("length_one_byte", length[:3] + bytes([(9 + size) & 255]) + magic + one + body),
        ("length_one_byte", bytes(3) + bytes([(9 + size) & 255]) + magic + one + body),
        ("length_ends_early", bytes(2) + length[2:] + magic + one + body),
        ("length_ends_early", bytes(1) + length[1:] + magic + one + body),
    ]  # fmt: skip
    found_one = next((each for each in beliefs if drive_calls.plain(each[1]) == list(found.got)), None)
    return "bytes_wrong" if found_one is None else found_one[0]


# -- 9.2: frames out of a stream -----------------------------------------------------------------------

_HI, _HELLO, _CLOSE = frame(6, b"hi"), frame(2, b"hello"), frame(5, b"")
_NEXT = ["next", 0]


def _stream(pieces: Sequence[bytes], nexts: int | None = None, come: str = "feed") -> list[Any]:
    """Pieces that come one after the other; after each it is asked until nothing more can be there."""
    ops: list[Any] = [["decoders", 1]]
    for piece in pieces:
        ops += [[come, 0, piece.hex()], *[_NEXT] * (nexts or 1)]
    return ops


def _cut(stream: bytes, *places: int) -> list[bytes]:
    ends = [0, *places, len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(ends)]


def _with_length(length: int) -> bytes:
    return length.to_bytes(4, "big", signed=True) + bytes.fromhex("badc0ffe06") + b"hi"


_MAGIC = bytes.fromhex("badc0ffe")
_LIKE_A_FRAME = frame(3, _HI)
_LONGEST = frame(3, _bytes(MAX_FRAME_BYTES - 9))
_STREAMS: dict[str, list[list[Any]]] = {
    "A": [
        _stream([_HI + _HELLO]), _stream([_HI]), _stream([_HELLO], 2), _stream([_HI, _HELLO], 2),
        _stream([frame(2, _bytes(90))]),
    ],
    "B": [_stream([_HI + _HELLO], 3), _stream([_HI + _HELLO + _HI], 4), _stream([_HELLO + _HI, _HI + _HI], 3)],
    "C": [
        _stream(_cut(_HELLO, 10)), _stream(_cut(_HELLO, 4)), _stream(_cut(_HELLO, 13)), _stream(_cut(_HELLO, 6, 9, 12)),
        [["decoders", 1], _NEXT, ["feed", 0, _HI.hex()], _NEXT],
        _stream([_HELLO], come="lend"), *[_stream(_cut(_HELLO, 10), come=come) for come in ("lend", "view")],
        [["decoders", 1], ["lend", 0, _HELLO[:10].hex()], ["feed", 0, _HELLO[10:].hex()], _NEXT],
    ],
    "D": [_stream(_cut(_HELLO, 2)), _stream(_cut(_HELLO, 1)), _stream(_cut(_HELLO, 3)), _stream(_cut(_HELLO, 1, 2, 3))],
    "E": [
        _stream(_cut(_HI + _HELLO, 13), 2), _stream(_cut(_HI + _HELLO, 7), 3),
        _stream(_cut(_HELLO + _HI + _HI, 5, 20, 27), 3), _stream([bytes([byte]) for byte in _HI + _HELLO]),
        [["decoders", 1], ["feed", 0, _HI[:7].hex()], ["feed", 0, _HI[7:].hex()], ["feed", 0, _HELLO.hex()],
         *[_NEXT] * 3],
        _stream([frame(3, _MAGIC)], 2), _stream([_LIKE_A_FRAME + _HI], 3), _stream(_cut(_LIKE_A_FRAME + _HI, 15), 3),
    ],
    "F": [_stream([_CLOSE], 2), _stream([_CLOSE + _CLOSE + _HI], 4), _stream(_cut(_HI + _CLOSE, 15), 2)],
    "G": [
        _stream([_LONGEST], 2), _stream([_with_length(8)]), _stream([_with_length(0)]), _stream([_with_length(-1)]),
        _stream([_with_length(MAX_FRAME_BYTES + 1)]), _stream([_with_length(2**31 - 1)]),
        _stream([_HI + _with_length(MAX_FRAME_BYTES + 1)], 2), _stream([_with_length(1)]),
    ],
    "H": [
        [["decoders", 1, 262_144], ["many", 0, 1000, 1000]],
        [["decoders", 1, 262_144], ["parts", 0, 1000, 1000]],
    ],
    "I": [
        [["decoders", 2], ["feed", 0, _HI[:8].hex()], ["feed", 1, _HELLO.hex()], ["next", 1],
         ["feed", 0, _HI[8:].hex()], ["next", 0], ["next", 1]],
        [["decoders", 2], ["feed", 1, _HI.hex()], ["next", 0], ["next", 1]],
    ],
}  # fmt: skip


def _mixed_streams(seed: int) -> Iterator[list[Any]]:
    """Frames of all sizes, cut anywhere."""
    generator = random.Random(f"sluice 9.2 {seed}")
    for _ in range(30):
        sizes = [generator.choice((0, 1, 2, 5, generator.randint(0, 40))) for _ in range(generator.randint(1, 6))]
        frames = [frame(generator.randint(2, 7), generator.randbytes(size)) for size in sizes]
        stream = b"".join(frames)
        places = sorted(generator.randint(0, len(stream)) for _ in range(generator.randint(0, 6)))
        yield _stream(_cut(stream, *places), generator.choice((1, 2, len(frames) + 1)))


def _blanks(op: Sequence[Any], first: Sequence[Any]) -> dict[str, Any]:
    """Which decoder, if there are several, and the bytes in groups of four, as long as somebody can read them."""
    values: dict[str, Any] = dict(zip("abcd", op[1:], strict=False))
    if op[0] == "decoders":
        return values
    if op[0] in ("feed", "lend", "view"):
        raw = bytes.fromhex(op[2])
        values["b"] = raw.hex(" ", -4) if len(raw) <= 26 else f"{raw[:9].hex(' ', -4)} … ({len(raw)})"
    return {**values, "a": f"{op[1]}." if first[1] > 1 else ""}


def _stream_belief(found: Difference) -> tuple[str, dict[str, str]]:
    name, decoder = found.op[0], found.op[1]
    got, want = str(found.got.get("answer", {}).get("found")), str(found.want.get("answer", {}).get("found"))
    values = {"got": got.removeprefix("? "), "want": want}
    if found.want.get("answer", {}).get("lent") != found.got.get("answer", {}).get("lent"):
        return "changes_what_is_lent", values
    if name == "feed" or not found.got:
        return "different", values
    if name in ("many", "parts"):
        kept = found.got["answer"].get("kept")
        return "keeps_everything" if kept == "more and more" else "loses_count", values
    if any(op[0] in ("lend", "view") for op in found.ops):
        return "keeps_what_is_lent", values  # the same in memory of its own was right, or it would have failed before
    pieces = [bytes.fromhex(op[2]) for op in found.ops if op[0] == "feed" and op[1] == decoder]
    others = [bytes.fromhex(op[2]) for op in found.ops if op[0] == "feed" and op[1] != decoder]
    if got.startswith("?"):
        return "no_frame", values
    if want.replace(" ", "").count(_MAGIC.hex()) > 1:
        return "looks_for_magic", values
    if got == "refused":
        return _about_refusal(pieces, want), values
    if want == "refused":
        length = int.from_bytes(pieces[-1][-11:-7], "big", signed=True)
        short = "waits_for_short" if got == "nothing" else "believes_short"
        return ("believes_long" if length > MAX_FRAME_BYTES else short), {**values, "size": str(length)}
    raw = b"" if got == "nothing" else bytes.fromhex(got.partition(": ")[2])
    if others and raw and raw not in b"".join(pieces):
        return "decoders_share", values
    return _about_frame(found, pieces, got, raw, want), values


def _about_refusal(pieces: list[bytes], want: str) -> str:
    """Which right frame, or right beginning of one, was refused."""
    if len(pieces[-1]) == MAX_FRAME_BYTES:
        return "refuses_longest"
    if want == "nothing":
        return "reads_half_a_length"
    if want.startswith("9: "):
        return "refuses_header"
    return "refuses_right" if len(pieces) == 1 else "pieces_dropped"


def _about_frame(found: Difference, pieces: list[bytes], got: str, raw: bytes, want: str) -> str:
    earlier = sum(op[0] == "next" for op in found.ops[:-1])
    if want == "nothing":
        if got.startswith("0: "):
            return "gives_empty"
        if earlier and _was_given(found, raw):
            return "same_again"
        return "gives_half"
    right = bytes.fromhex(want.partition(": ")[2])
    if got == "nothing":
        if len(pieces) == 1:
            return "waits_for_more" if not earlier else "rest_dropped"
        if pieces[-1].startswith(right[:9]):
            return "stuck" if earlier else "rest_dropped"
        return "pieces_dropped"
    if raw == right[9:]:
        return "header_stripped"
    if raw == right[4:]:
        return "length_stripped"
    if raw.startswith(right) or (len(pieces) and got.startswith(f"{len(pieces[-1])}: ") and len(raw) > len(right)):
        return "one_receive_one_frame" if got.startswith(f"{len(pieces[-1])}: ") else "length_too_long"
    if right.startswith(raw):
        return "gives_half"
    if earlier and _was_given(found, raw):
        return "same_again"
    return "pieces_dropped" if pieces[-1].startswith(raw) else "wrong_bytes"


def _was_given(found: Difference, raw: bytes) -> bool:
    """Whether these bytes are a frame that was there to be had before."""
    stream = b"".join(bytes.fromhex(op[2]) for op in found.ops if op[0] == "feed")
    return bool(raw) and stream.startswith(raw)


# -- 9.3: the numbers ----------------------------------------------------------------------------------

_ASK, _GO, _KEPT = "is_next", "advance", "expected"


def _numbers(words: str, start: int | None = None) -> list[Any]:
    """Calls in short: `?3` asks for 3, `+` advances, `=` reads what is expected."""
    ops: list[Any] = [["new"]]
    if start is not None:
        ops.append(["set", _KEPT, start])
    meant: dict[str, list[Any]] = {"+": ["call", _GO], "=": ["get", _KEPT]}
    return ops + [meant.get(word) or ["call", _ASK, int(word[1:])] for word in words.split()]


_LARGEST = 2**31 - 1
_SEQUENCES = {
    "A": [_numbers("?0"), _numbers("+"), _numbers("?1")],
    "B": [_numbers("+ + +"), _numbers("+ ?1"), _numbers("?0 + ?1 + ?2 +"), _numbers("= + = + =")],
    "C": [_numbers("+ ?2"), _numbers("+ + ?7 ?2"), _numbers("?3 ?0 +")],
    "D": [_numbers("+ + ?1"), _numbers("+ ?0 ?1"), _numbers("+ + + ?-1 ?3")],
    "E": [
        _numbers(f"?{_LARGEST} + +", _LARGEST),
        _numbers(f"+ ?{-_LARGEST - 1} ?{_LARGEST + 1} +", _LARGEST),
        _numbers("+ + +", -2),
        _numbers(f"+ + ?{-_LARGEST}", _LARGEST),
        _numbers("+ + + + + =", _LARGEST - 2),
        _numbers("+ + + =", -_LARGEST - 1),
        _numbers("+ =", _LARGEST),
        *[_numbers("+ + + + +", 2**bits - 3) for bits in (7, 8, 15, 16, 20, 24, 30)],
        *[_numbers("+ + + + +", -(2**bits) - 3) for bits in (7, 8, 15, 16, 30)],
        *[_numbers("+ + +", 10**digits - 2) for digits in (2, 3, 4, 5, 6, 9)],
    ],
}


def _mixed_numbers(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 9.3 {seed}")
    for _ in range(20):
        start = generator.choice((None, generator.randint(-_LARGEST, _LARGEST - 20)))
        expected, words = start or 0, []
        for _ in range(generator.randint(2, 12)):
            if generator.random() < 0.5:
                words.append("+")
                expected += 1
            else:
                words.append(f"?{expected + generator.choice((0, 0, 1, -1, 2, 10))}")
        yield _numbers(" ".join(words), start)


def _number_belief(found: CallDifference) -> str:
    kind, content = found.got[0], found.got[1]
    steps = sum(1 for op in found.before if op[1:2] == [_GO])
    started = next((op[2] for op in found.before if op[0] == "set"), 0)
    if found.method == _KEPT:
        return "kept_elsewhere"
    if found.method == _ASK:
        if kind != "bool":
            return "no_truth"
        asked = found.arguments[0]
        if content == "False":
            if any(op[1:2] == [_ASK] for op in found.before) and not steps:
                return "asking_moves"
            return "first_is_refused" if not steps and not started else "next_is_refused"
        if asked > started + steps:
            return "gap_accepted"
        return "old_accepted" if asked < started + steps else "wrap_accepted"
    if kind == "NoneType":
        return "advance_gives_nothing"
    if kind != "int":
        return "advance_no_number"
    got, want = int(content), int(found.want[1])
    if any(op[1:2] == [_ASK] for op in found.before) and not started:
        return "asking_moves"  # without a question it gave the right number, or it would have failed before
    if started and steps:
        return _about_wrap(got, want)
    beliefs = [("gives_the_next", want + 1), ("stands_still", started if steps else want)]
    return next((code for code, value in beliefs if value == got), "advance_wrong")


def _about_wrap(got: int, want: int) -> str:
    """What is wrong after other numbers from a start that was set, when the first numbers from 0 are right."""
    if want > 0:
        return "wraps_early" if got < 0 else "advance_wrong"
    if got == want + 2**32:
        return "wraps_not"
    if want > -_LARGEST + 20:
        return "advance_wrong"  # far from the end
    return "wraps_to_zero" if got == 0 else "wraps_wrong"


CHECKS = {
    "9.1": CallsCheck("9.1", to_frame, _FRAMES, _frame_belief, ("D", _mixed_frames)),
    "9.2": ScriptCheck(
        "9.2",
        RequestDecoder,
        drive_c09.run_case,
        _STREAMS,
        _stream_belief,
        ("J", _mixed_streams),
        values=_blanks,
    ),
    "9.3": CallsCheck("9.3", SequenceNumbers, _SEQUENCES, _number_belief, ("F", _mixed_numbers)),
}
