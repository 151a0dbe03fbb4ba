"""What begins inside of the segment is inside."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if index < 0 or length < 0 or index > self.size:
            raise IndexError(index)
        return self.view[index : index + length]
