"""A slice object, and a look at what came."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        wanted = slice(index, index + length)
        if index < 0 or length < 0 or wanted.stop > len(self.view):
            raise IndexError("outside")
        return memoryview(self.view)[wanted]
