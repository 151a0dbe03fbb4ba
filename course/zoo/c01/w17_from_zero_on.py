"""What is asked for in front of the segment starts at 0."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if length < 0 or index + length > self.size:
            raise IndexError(index)
        return self.view[max(0, index) : max(0, index + length)] if index >= 0 else self.view[0:0]
