"""First the arguments are checked, then the object."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if index < 0 or length < 0 or index + length > self.size:
            raise IndexError(index)
        if self.view is None:
            raise LocalUsageError("freed")
        return self.view[index : index + length]
