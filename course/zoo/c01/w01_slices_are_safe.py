"""Python looks after the bounds of a slice."""

from refimpl.errors import LocalUsageError
from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        return self.view[index : index + length]
