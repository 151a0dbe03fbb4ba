"""One chained comparison."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if not 0 <= index <= index + length <= self.size:
            raise IndexError(f"{index} and {length} are outside of {self.size}")
        return self.view[index : index + length]
