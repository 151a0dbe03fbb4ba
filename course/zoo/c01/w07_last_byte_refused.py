"""The size is the last index."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if index < 0 or length < 0 or (length and index + length >= self.size):
            raise IndexError(index)
        return self.view[index : index + length]
