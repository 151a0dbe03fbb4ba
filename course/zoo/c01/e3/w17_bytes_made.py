"""To make the bytes is to copy them."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.get(target_index, length)
        return self.get(index, length)
