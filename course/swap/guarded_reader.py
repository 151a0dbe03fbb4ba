"""A learner's deserializer in a running job, with ours reading the same buffers behind it.

Ours is asked whatever theirs is asked, so at every moment it stands where theirs should stand. When theirs raises,
stalls, or does not let go of a buffer, ours has the answer, and goes on alone.
"""

from __future__ import annotations

from typing import Any

from course.swap.guard import Guard
from refimpl.config import Config
from refimpl.memory import Buffer, BufferSlice, MemorySegment
from refimpl.records import DeserializationResult, SpillingAdaptiveSpanningRecordDeserializer

__all__ = ["GuardedDeserializer"]


class _Nobody:
    """Who gets the segment when a part recycles what it was lent: nobody."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Do nothing: the real buffer is still with the task."""


def _lent(buffer: Buffer | BufferSlice) -> BufferSlice:
    """The same memory with a count of references of its own, so that a part cannot give away the task's."""
    start, end = (buffer.start, buffer.end) if isinstance(buffer, BufferSlice) else (0, buffer.size)
    return BufferSlice(Buffer(buffer.segment, _Nobody(), size=end), start, end)


class GuardedDeserializer:
    """A deserializer as the engine knows it; see the module."""

    def __init__(self, guard: Guard, config: Config) -> None:
        self._guard = guard
        self._ours = SpillingAdaptiveSpanningRecordDeserializer(config)
        self._theirs: Any = None
        self._buffer: Buffer | BufferSlice | None = None
        self._lent = BufferSlice(Buffer(MemorySegment(bytearray()), _Nobody()), 0, 0)
        self._num_past_the_end = 0
        with guard.call():
            self._theirs = guard.part()

    @property
    def _is_theirs(self) -> bool:
        return self._theirs is not None and not self._guard.is_out

    def set_next_buffer(self, buffer: Buffer | BufferSlice) -> None:
        self._buffer = buffer
        self._num_past_the_end = 0
        self._ours.set_next_buffer(buffer)
        if self._is_theirs:
            self._lent = _lent(buffer)
            with self._guard.call():
                self._theirs.set_next_buffer(self._lent)

    def get_next_record(self) -> tuple[DeserializationResult, memoryview | None]:
        result, record = self._ours.get_next_record()
        if self._is_theirs:
            answer: Any = None
            with self._guard.call():
                answer = self._theirs.get_next_record()
                given, payload = answer
                shown = None if payload is None else memoryview(payload)
                self._check(given, shown, result)
                return given, shown
        return result, record

    def _check(self, given: object, payload: memoryview | None, ours: DeserializationResult) -> None:
        """Refuse an answer that the task could not act upon, or that would make it ask for ever."""
        if not isinstance(given, DeserializationResult):
            raise TypeError(f"{given!r} is no DeserializationResult")
        if given.is_full_record and payload is None:
            raise TypeError(f"{given.name} comes with a record, not with None")
        self._num_past_the_end += not given.is_buffer_consumed and ours.is_buffer_consumed
        if self._num_past_the_end > 1:
            raise RuntimeError("the buffer is read to its end, and your part wants to be asked again")

    def get_current_buffer(self) -> Buffer | BufferSlice | None:
        self._ours.get_current_buffer()
        buffer, self._buffer = self._buffer, None
        if self._is_theirs and buffer is not None:
            with self._guard.call():
                given = self._theirs.get_current_buffer()
                if self._lent.is_recycled:
                    raise RuntimeError("your part recycled the buffer, which the task does")
                if given is not self._lent:
                    raise RuntimeError(f"get_current_buffer gave {given!r}"[:80] + ", not the buffer it was given")
        return buffer

    def get_unconsumed(self) -> bytes:
        return self._ours.get_unconsumed()

    def clear(self) -> None:
        buffer = self.get_current_buffer()
        if buffer is not None and not buffer.is_recycled:
            buffer.recycle()
        self._ours.clear()
