"""The size is the last index."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        if length and (index + length >= self.size) and index:
            raise IndexError(index)
        target.window(target_index, length)[:] = self.window(index, length)
