"""Exercise 9.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import letters
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from course.exercises.e09_2_request_decoder import driver
from course.exercises.e09_2_request_decoder.driver import MAX_FRAME_BYTES, frame
from refimpl.exchange.request_decoder import RequestDecoder

__all__ = ["CHECK"]


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
_LONGEST = frame(3, letters(MAX_FRAME_BYTES - 9))
_STREAMS: dict[str, list[list[Any]]] = {
    "A": [
        _stream([_HI + _HELLO]), _stream([_HI]), _stream([_HELLO], 2), _stream([_HI, _HELLO], 2),
        _stream([frame(2, letters(90))]),
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
        _stream(_cut(_HELLO, 4, 4)), _stream(_cut(_HI, 9, 9)),
        _stream([frame(3, _MAGIC)], 2), _stream([_LIKE_A_FRAME + _HI], 3), _stream(_cut(_LIKE_A_FRAME + _HI, 15), 3),
    ],
    "F": [_stream([_CLOSE], 2), _stream([_CLOSE + _CLOSE + _HI], 4), _stream(_cut(_HI + _CLOSE, 15), 2)],
    "G": [
        _stream([_LONGEST], 2), _stream([_with_length(8)]), _stream([_with_length(0)]), _stream([_with_length(-1)]),
        _stream([_with_length(MAX_FRAME_BYTES + 1)]), _stream([_with_length(2**31 - 1)]),
        _stream([_HI + _with_length(MAX_FRAME_BYTES + 1)], 2), _stream([_with_length(1)]),
        *[_stream([_with_length(length)]) for length in (2**16 + 11, 2**24 + 11, 11 - 2**31)],
    ],
    "H": [
        [*_stream([_HI + _HELLO, _HI], 3), ["again", 0]],
        [["decoders", 1, 4096], *[["feed", 0, f"{byte:02x}"] for byte in frame(3, letters(3000))], _NEXT],
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


def _stream_belief(found: Difference) -> Belief:
    name, decoder = found.op[0], found.op[1]
    got, want = str(found.got.get("answer", {}).get("found")), str(found.want.get("answer", {}).get("found"))
    values = {"got": got.removeprefix("? "), "want": want}
    if found.want.get("answer", {}).get("lent") != found.got.get("answer", {}).get("lent"):
        return "changes_what_is_lent", values
    if name == "again":
        return "overwrites_earlier", values
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
    if b"" in pieces and found.rule == "E":  # cut anywhere else, it was right
        return "empty_clears", values
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


CHECK = TranscriptCheck(
    "9.2", RequestDecoder, driver, _STREAMS, _stream_belief,
    Seeded("J", _mixed_streams, setup="decoders"), words=StateWords("9.2", _blanks),
)  # fmt: skip
