"""A negative index counts from the end, in memory too."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if length < 0 or index + length > self.size:
            raise IndexError(index)
        return self.view[index:][:length]
