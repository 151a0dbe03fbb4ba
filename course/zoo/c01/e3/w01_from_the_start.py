"""A copy starts at the first byte."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.window(target_index, length)[:] = self.window(0, length)
