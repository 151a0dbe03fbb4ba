"""What a rule of lesson 8 is given: a function that makes channels of the part under test, easy to write and read."""

from collections.abc import Callable
from typing import Any

from refimpl.config import FlinkVersion
from refimpl.memory.buffer import Buffer
from refimpl.memory.builder import BufferBuilder
from refimpl.memory.segment import MemorySegment
from refimpl.producer.bounded_data import MemoryBoundedData

_MOST_BYTES = 64


class MisuseError(Exception):
    """The rule called a channel or a reader with what is neither bytes nor in order."""


class _NextOwner:
    """A pool whose next owner writes over a segment at once."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        assert segment.view is not None, "nothing here frees it"
        segment.view[:] = b"\xdd" * segment.size


class _Reader:
    """A reader, and which one it is."""

    def __init__(self, number: int, view: Any, note: Callable[[int], None]) -> None:
        self._number, self._view, self._note = number, view, note

    def read(self) -> bytes | None:
        """The bytes of the next buffer, or None at the end."""
        self._note(self._number)
        taken = self._view.poll()
        if taken is None:
            return None
        piece = taken.buffer
        data = bytes(piece.data) if piece.is_buffer else None
        piece.recycle()
        return data


class _Result:
    """A channel of the part under test."""

    def __init__(self, part: Any, words: set[str]) -> None:
        self._channel = part(0, "map-0", MemoryBoundedData())
        self._builder: BufferBuilder | None = None
        self._words = words
        self._num_written = self._num_readers = 0
        self._is_finished = False
        self._turns: list[int] = []

    def write(self, data: bytes) -> None:
        """One more buffer, with these bytes."""
        if not isinstance(data, bytes) or not 0 < len(data) <= _MOST_BYTES:
            raise MisuseError(f"write takes 1 to {_MOST_BYTES} bytes")
        if self._is_finished:
            raise MisuseError("nothing is written after finish()")
        self._close()
        self._builder = BufferBuilder(Buffer(MemorySegment.allocate(_MOST_BYTES), _NextOwner()))
        self._channel.add(self._builder.create_consumer())
        self._builder.append_and_commit(data)
        self._num_written += 1
        self._words |= {"written", "several"} if self._num_written > 1 else {"written"}

    def finish(self) -> None:
        """Nothing is written any more."""
        if self._is_finished:
            raise MisuseError("finish() is called once")
        self._is_finished = True
        self._close()
        self._channel.finish(FlinkVersion.V1_11)

    def reader(self) -> _Reader:
        """Another reader."""
        if not self._is_finished and self._num_written:
            self._words.add("early")
        view = self._channel.create_view()
        self._num_readers += 1
        if self._num_readers > 1:
            self._words.add("second")
        return _Reader(self._num_readers, view, self._note_turn)

    def _note_turn(self, number: int) -> None:
        self._words.add("read")
        if self._turns[-1:] != [number]:
            self._turns.append(number)
        if len(self._turns) > 2:
            self._words.add("turns")

    def _close(self) -> None:
        if self._builder is not None:
            self._builder.finish()
            self._builder = None


def under_test(part: Any) -> Callable[[], _Result]:
    """The function `new_result` for one part."""
    words: set[str] = set()

    def new_result() -> _Result:
        """A new channel of the part."""
        return _Result(part, words)

    new_result.__dict__["words"] = words
    return new_result


def tried(new_result: Callable[[], _Result]) -> set[str]:
    """What the rule has tried: written, several, read, second, turns, early."""
    words: set[str] = new_result.__dict__["words"]
    return words
