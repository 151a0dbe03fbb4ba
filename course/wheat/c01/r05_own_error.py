"""Its own kind of IndexError."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class OutsideError(IndexError):
    """The window leaves the segment."""


class Segment(MemorySegment):
    def window(self, index: int, length: int) -> memoryview:
        if not self.is_freed:
            if index >= 0 and 0 <= length <= self.size - index:
                return self.view[index : index + length]
            raise OutsideError(index, length)
        raise LocalUsageError("freed")
