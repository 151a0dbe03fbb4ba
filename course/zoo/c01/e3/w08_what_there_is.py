"""If there are fewer bytes, fewer are copied."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        length = min(length, self.size - index)
        target.window(target_index, length)[:] = self.window(index, length)
