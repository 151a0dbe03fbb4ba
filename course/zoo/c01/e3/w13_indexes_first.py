"""First the arguments are checked, then the objects."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        if min(index, target_index, length) < 0 or index + length > self.size or target_index + length > target.size:
            raise IndexError(index)
        target.window(target_index, length)[:] = self.window(index, length)
