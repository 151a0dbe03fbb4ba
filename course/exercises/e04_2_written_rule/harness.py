"""What a rule of lesson 4 is given: a function that reads buffers with the part under test, as a task reads them."""

from collections.abc import Callable, Iterable
from typing import Any

from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.segment import MemorySegment
from refimpl.records.spanning import DeserializationResult

Read = Callable[[Any], list[tuple[str, bytes | None]]]


class MisuseError(Exception):
    """The rule called `read` with something else than buffers."""


class _NextOwner:
    """A pool whose next owner writes over a segment at once."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        assert segment.view is not None, "nothing here frees it"
        segment.view[:] = b"\xdd" * segment.size


def under_test(part: Any) -> Read:
    """The function `read` for one part."""
    words: set[str] = set()

    def read(pieces: Any) -> list[tuple[str, bytes | None]]:
        """The part's answers to these buffers: (name of the result, record or None) for each call."""
        pieces = None if isinstance(pieces, bytes) or not isinstance(pieces, Iterable) else list(pieces)
        if pieces is None or not all(isinstance(piece, bytes) for piece in pieces):
            raise MisuseError("read takes a list of bytes, one for each buffer")
        words.update(_words(pieces))
        deserializer = part()
        answers: list[tuple[str, bytes | None]] = []
        for piece in pieces:
            buffer = BufferSlice(Buffer(MemorySegment(bytearray(piece)), _NextOwner(), size=len(piece)), 0, len(piece))
            deserializer.set_next_buffer(buffer)
            for _ in range(len(piece) + 2):
                result, record = deserializer.get_next_record()
                answers.append((result.name, None if record is None else bytes(record)))
                if result is not DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER:
                    break
            deserializer.get_current_buffer()
            buffer.recycle()
        return answers

    read.__dict__["words"] = words
    return read


def tried(read: Read) -> set[str]:
    """What the rule has tried: asked, cut, rest, length, twice, empty."""
    words: set[str] = read.__dict__["words"]
    return words


def _words(pieces: list[bytes]) -> set[str]:
    """Of one stream: whether records are cut, cut twice or in their length, have others behind them, are empty."""
    ends, stream = set[int](), b"".join(pieces)
    for piece in pieces:
        ends.add(len(piece) + max(ends, default=0))
    words, start = {"asked"}, 0
    while start + 4 <= len(stream):
        end = start + 4 + int.from_bytes(stream[start : start + 4], "big")
        cuts = [each for each in ends if start < each < end]
        found = {
            "empty": end == start + 4,
            "cut": bool(cuts),
            "twice": len(cuts) > 1,
            "length": any(each < start + 4 for each in cuts),
            "rest": bool(cuts) and end not in ends and end < len(stream),
        }
        words |= {word for word, holds in found.items() if holds}
        start = end
    return words
