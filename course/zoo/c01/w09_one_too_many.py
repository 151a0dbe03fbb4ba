"""The byte behind the last one is the limit, so it may be reached."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if index < 0 or length < 0 or index + length > self.size + 1:
            raise IndexError(index)
        return self.view[index : index + length]
