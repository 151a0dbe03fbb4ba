"""Two helpers, one for each question."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


def _ask_alive(segment):
    if segment.is_freed:
        raise LocalUsageError("this segment was freed")


def _ask_inside(index, length, size):
    if min(index, length) < 0:
        raise IndexError("below zero")
    if size - index < length:
        raise IndexError("beyond the end")


class Segment(MemorySegment):
    def window(self, index, length):
        _ask_alive(self)
        _ask_inside(index, length, self.size)
        end = index + length
        return self.view[index:end]
